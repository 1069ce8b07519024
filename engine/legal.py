"""What a player may do now, and what it would bring; worked out from the open ends, not by trial."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from engine import commands as cmd
from engine.auction import BID_STEP_POINTS, Auction
from engine.layout import End, Layout
from engine.scoring import Transfer, play_transfer, transfer
from engine.seats import Seat
from engine.state import Hand, MatchState, Phase, Round
from engine.tiles import DOUBLE_SIX, Tile


class LegalCommand(NamedTuple):
    """A command ready to send. For a play the total and transfer that it brings, for an acceptance the transfer."""

    command: cmd.Command
    exposed_total: int = 0
    transfer: Transfer | None = None


class LegalBids(NamedTuple):
    """Every bid from `minimum` to `maximum` points in steps of `step`; a winning one costs max(0, bid - credit)."""

    kind: type[cmd.Bid | cmd.Raise]
    minimum: int
    maximum: int
    credit: int
    step: int = BID_STEP_POINTS


LegalAction: TypeAlias = LegalCommand | LegalBids

# Made once: an action that is the same object is found without a comparison where bytes are kept for it.
_START, _CONTINUE, _REVEAL = LegalCommand(cmd.Start()), LegalCommand(cmd.Continue()), LegalCommand(cmd.Reveal())
_DECLINE, _DRAW, _PASS = LegalCommand(cmd.DeclineBidding()), LegalCommand(cmd.DrawTile()), LegalCommand(cmd.Pass())
_PLAYS = {(tile, end): cmd.PlayTile(tile, end) for tile in DOUBLE_SIX for end in End}


def fits(layout: Layout, tile: Tile, end: End) -> bool:
    """Whether `tile` may be joined at `end` (connect.match); mirror images count as two (C7)."""
    for open_end in layout.ends:
        if open_end.end is end:
            return open_end.value in tile
    return end is End.OPENING and not layout.main_line


def can_play(layout: Layout, hand: Hand) -> bool:
    """Whether any tile of `hand` fits anywhere."""
    for open_end in layout.ends:
        for tile in hand:
            if open_end.value in tile:
                return True
    return not layout.main_line


def legal_actions(state: MatchState, seat: Seat) -> tuple[LegalAction, ...]:
    """All that `seat` may do now, except resigning. On a shared device the caller passes the acting seat."""
    if state.result is not None or state.suspended_at_ns is not None:
        return ()
    if state.waiting_until_ns is not None:
        return _ready_actions(state, seat)
    current = state.round
    if current is None or current.turn is not seat:
        return ()
    if state.handover is not None:
        return (_REVEAL,)
    auction = current.auction
    return _play_actions(state, current, seat) if auction is None else _auction_actions(state, seat, auction)


def _ready_actions(state: MatchState, seat: Seat) -> tuple[LegalAction, ...]:
    if state.ready[seat.index]:
        return ()
    return (_START if state.phase is Phase.NOT_STARTED else _CONTINUE,)


def _auction_actions(state: MatchState, seat: Seat, auction: Auction) -> tuple[LegalAction, ...]:
    """Only the affordable bids; who can afford none may only decline or accept (A3)."""
    standing = auction.standing
    answer: LegalAction
    if standing is None:
        answer = _DECLINE
    else:
        payment = transfer(state.balances, standing.bidder, auction.net_price_points(standing))
        answer = LegalCommand(cmd.AcceptBid(), transfer=payment)
    minimum, maximum = auction.minimum_points, auction.maximum_points(seat, state.balances)
    if maximum < minimum:
        return (answer,)
    kind = cmd.Bid if standing is None else cmd.Raise
    return answer, LegalBids(kind, minimum, maximum, auction.credit_points(seat))


def _play_actions(state: MatchState, current: Round, seat: Seat) -> tuple[LegalAction, ...]:
    """Plays if there are any, else a draw, else a pass: each forced (draw.one-at-a-time, draw.pass-last, D2)."""
    layout, balances = current.layout, state.balances
    tiles = current.hands[seat.index] if current.must_play is None else (current.must_play,)
    if not layout.main_line:
        return tuple(
            [
                LegalCommand(_PLAYS[tile, End.OPENING], total := tile.pips, play_transfer(balances, seat, total))
                for tile in tiles
            ]
        )
    plays = [
        LegalCommand(
            _PLAYS[tile, open_end.end],
            total := layout.total_joined(tile, open_end),
            play_transfer(balances, seat, total),
        )
        for tile in tiles
        for open_end in layout.ends
        if open_end.value in tile
    ]
    if plays:
        return tuple(plays)
    return (_DRAW if current.boneyard else _PASS,)
