"""A view as lines of text. Pure: the instant of service time is an argument."""

from __future__ import annotations

from collections.abc import Sequence

from spectacularbid.client.actions import bid_range, is_bid, kind_of
from spectacularbid.client.clock import bank_remaining_ns, delay_remaining_ns
from spectacularbid.client.views import name_of, own_seat
from spectacularbid.client.words import (
    ABORT_REASONS,
    OPENINGS,
    PHASES,
    STOP_REASONS,
    WIN_REASONS,
    bank_text,
    end_text,
    gain_text,
    seconds_text,
    tile_text,
    transfer_text,
)
from spectacularbid.v1.events_pb2 import MatchAborted, MatchWon, RoundBlocked, ShownHand
from spectacularbid.v1.views_pb2 import (
    HandTile,
    LayoutView,
    LegalAction,
    MatchView,
    PlacedTile,
    PlayerView,
    ResultView,
    SettlementView,
)

POINTS_PER_CHIP = 5


def view_lines(view: MatchView, now_ns: int | None) -> list[str]:
    """All of a view but the legal actions. Without an instant the clocks show what stood at the start of the turn."""
    public = view.public
    lines = [headline(view), *(player_text(view, player, now_ns) for player in public.players)]
    if public.round_number:
        lines += [f"Table: {layout_text(public.layout)}", ends_text(public.layout)]
        lines += [f"Boneyard {public.boneyard_size}, passes in a row {public.passes}"]
    if public.HasField("last_transfer"):
        payer = name_of(view, public.last_transfer.payer)
        lines.append(f"Last transfer: {payer} pays; {transfer_text(public.last_transfer)}")
    if public.HasField("auction"):
        lines.append(auction_text(view))
    if public.HasField("settlement"):
        lines.append(settlement_text(view, public.settlement))
    if public.HasField("result"):
        lines += result_lines(view, public.result)
    lines.append(clock_text(view, now_ns))
    if view.own.hand:
        lines.append(f"Your hand: {hand_text(view.own.hand)}")
    if view.own.HasField("must_play"):
        lines.append(f"You must play {tile_text(view.own.must_play)}")
    return lines


def headline(view: MatchView) -> str:
    """Version, round and phase."""
    public = view.public
    phase = PHASES.get(public.phase, f"phase {public.phase}")
    opening = OPENINGS.get(public.opening)
    round_text = f", round {public.round_number}" if public.round_number else ""
    return f"Version {public.version}{round_text}: {phase}" + (f" ({opening})" if opening else "")


def player_text(view: MatchView, player: PlayerView, now_ns: int | None) -> str:
    """One player: balance with chips, hand size, bank, and whose turn it is."""
    if not player.seated:
        return f"  {name_of(view, player.seat)}: free"
    you = " (you)" if own_seat(view) == player.seat else ""
    bank_ns = player.bank_remaining_ns if now_ns is None else bank_remaining_ns(view, player.seat, now_ns)
    words = [
        f"{player.balance_points} points ({player.balance_points // POINTS_PER_CHIP} chips)",
        f"{player.hand_size} tiles",
        f"bank {bank_text(bank_ns)}",
    ]
    if player.ready:
        words.append("ready")
    if view.public.turn == player.seat:
        words.append("on turn")
    return f"  {name_of(view, player.seat)}{you}: {', '.join(words)}"


def layout_text(layout: LayoutView) -> str:
    """The main line from left to right, the spinner in brackets, then each side arm after a slash, read outwards.

    The SOUTH arm alone comes after two slashes.
    """
    spinner = layout.spinner_index if layout.HasField("spinner_index") else None
    words = [f"[{_placed(tile)}]" if index == spinner else _placed(tile) for index, tile in enumerate(layout.main_line)]
    if layout.north or layout.south:
        words += ["/", *map(_placed, layout.north)]
    if layout.south:
        words += ["/", *map(_placed, layout.south)]
    return " ".join(words) or "empty"


def _placed(tile: PlacedTile) -> str:
    return f"{tile.first}-{tile.second}"


def ends_text(layout: LayoutView) -> str:
    """Every open end with its letter, its value and what it counts, and the exposed total."""
    ends = ", ".join(f"{end_text(end.end)} {end.value} counts {end.counts}" for end in layout.ends)
    return f"Ends: {ends or 'none'}; exposed total {layout.exposed_total}"


def hand_text(hand: Sequence[HandTile]) -> str:
    """The own hand, each tile with the letters of the ends where it can be played now."""
    return ", ".join(
        tile_text(held.tile) + (f" ({' '.join(map(end_text, held.playable_ends))})" if held.playable_ends else "")
        for held in hand
    )


def auction_text(view: MatchView) -> str:
    """The jockey with the credit, the standing bid with its net price, and what may be bid."""
    auction = view.public.auction
    words = [f"Auction: jockey {name_of(view, auction.jockey)} (credit {auction.credit_points})"]
    if auction.bidder:
        price = f"net price {auction.net_price_points}"
        words.append(f"standing bid {auction.standing_points} by {name_of(view, auction.bidder)}, {price}")
    if auction.maximum_points >= auction.minimum_points:
        words.append(f"next bid {auction.minimum_points} to {auction.maximum_points}")
    else:
        words.append("no further bid can be paid")
    return "; ".join(words)


def settlement_text(view: MatchView, settlement: SettlementView) -> str:
    """How the round ended."""
    match settlement.WhichOneof("ending"):
        case "dominoed":
            return f"{name_of(view, settlement.dominoed.seat)} dominoed and is the next jockey"
        case "blocked":
            return blocked_text(view, settlement.blocked)
        case _:
            return "The round ended"


def blocked_text(view: MatchView, blocked: RoundBlocked) -> str:
    """Both hands of a blocked round and what was paid."""
    hands = "; ".join(shown_hand_text(view, hand) for hand in blocked.hands)
    if not blocked.HasField("transfer"):
        return f"Blocked: {hands}; nothing is paid"
    return f"Blocked: {hands}; {name_of(view, blocked.transfer.payer)} pays: {transfer_text(blocked.transfer)}"


def shown_hand_text(view: MatchView, hand: ShownHand) -> str:
    """A hand that everyone may see."""
    tiles = " ".join(map(tile_text, hand.tiles)) or "no tiles"
    return f"{name_of(view, hand.seat)} holds {tiles} = {hand.pips}"


def result_lines(view: MatchView, result: ResultView) -> list[str]:
    """How the match ended, and the hands as they were."""
    lines = [result_text(view, result)]
    if result.hands:
        lines.append("; ".join(shown_hand_text(view, hand) for hand in result.hands))
    return lines


def result_text(view: MatchView, result: ResultView) -> str:
    """How the match ended, in one line."""
    rated = "rated" if result.rated else "not rated"
    match result.WhichOneof("ending"):
        case "won":
            return f"{won_text(view, result.won)} ({rated})"
        case "aborted":
            return f"{aborted_text(result.aborted)} ({rated})"
        case _:
            return f"The match ended ({rated})"


def won_text(view: MatchView, won: MatchWon) -> str:
    """Who won and how."""
    return f"{name_of(view, won.winner)} wins: {WIN_REASONS.get(won.reason, f'reason {won.reason}')}"


def aborted_text(aborted: MatchAborted) -> str:
    """Why there is no result."""
    evidence = f" - {aborted.evidence}" if aborted.evidence else ""
    return f"The match is aborted: {ABORT_REASONS.get(aborted.reason, f'reason {aborted.reason}')}{evidence}"


def clock_text(view: MatchView, now_ns: int | None) -> str:
    """Whose clock runs with what is left of it, or why none does."""
    clock = view.public.clock
    match clock.WhichOneof("state"):
        case "running":
            seat = clock.running.seat
            at_ns = clock.running.started_at_unix_ns if now_ns is None else now_ns
            delay, bank = delay_remaining_ns(view, seat, at_ns), bank_remaining_ns(view, seat, at_ns)
            return f"Clock: {name_of(view, seat)} decides, delay {seconds_text(delay)}, bank {bank_text(bank)}"
        case "stopped":
            reason = STOP_REASONS.get(clock.stopped.reason, f"reason {clock.stopped.reason}")
            ends = clock.stopped.HasField("ends_at_unix_ns") and now_ns is not None
            left = f", {seconds_text(clock.stopped.ends_at_unix_ns - (now_ns or 0))} left" if ends else ""
            return f"Clocks stopped: {reason}{left}"
        case _:
            return "Clocks unknown"


def action_text(action: LegalAction) -> str:
    """What a legal action does and what it would bring."""
    if is_bid(action):
        return _bid_text(action)
    command, gain = action.command, gain_text(action.transfer) if action.HasField("transfer") else ""
    match kind_of(action):
        case "play_tile":
            words = f"play {tile_text(command.play_tile.tile)} at {end_text(command.play_tile.end)}"
            return f"{words}: total {action.exposed_total}" + (f", {gain}" if gain else "")
        case "accept_bid":
            return "accept the bid" + (f": {gain}" if gain else "")
        case "decline_bidding":
            return "decline bidding"
        case "continue_round":
            return "continue"
        case "draw_tile":
            return "draw a tile"
        case "pass_turn":
            return "pass"
        case kind:
            return kind or "something this client is too old to name"


def _bid_text(action: LegalAction) -> str:
    allowed, credit = bid_range(action), bid_range(action).credit_points
    word = "raise" if action.HasField("raise_bid") else "bid"
    cost = f"costs N - {credit}, at least 0" if credit else "costs N"
    return f"{word} N ({allowed.minimum_points}..{allowed.maximum_points} step {allowed.step_points}, {cost})"
