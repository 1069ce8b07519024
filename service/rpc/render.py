"""Views to bytes: built once a version and audience, serialized once, joined for each stream.

Fields are joined in ascending order, as every protobuf library writes them, so that a client that serializes a view
again gets the same bytes and the same digest.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from functools import lru_cache
from typing import NamedTuple

from engine import commands as cmd
from engine import view as vw
from engine.clock import Decision
from engine.events import Event, MatchWon, RoundDominoed
from engine.layout import Layout, OpenEnd, PlacedTile
from engine.legal import LegalAction, LegalBids
from engine.seats import SEATS, Seat
from engine.state import MatchState, OpeningPrivilege, Phase
from engine.tiles import HIGHEST_PIP, Tile
from service.rpc import facts
from service.rpc.wire import SubMessage
from spectacularbid.v1 import commands_pb2, deal_pb2, views_pb2

CACHED_VIEWS = 4096
"""Matches whose current views are kept serialized."""
DIGEST_BYTES = 8
_PHASES = {phase: views_pb2.Phase.Value("PHASE_" + phase.name) for phase in Phase}
_OPENINGS = {
    opening: views_pb2.OpeningPrivilege.Value("OPENING_PRIVILEGE_" + opening.name) for opening in OpeningPrivilege
}
_STOPS = {reason: views_pb2.StopReason.Value("STOP_REASON_" + reason.name) for reason in vw.StopReason}
_public_field = SubMessage(views_pb2.MatchView.DESCRIPTOR, "public")
_own_hand = SubMessage(views_pb2.OwnView.DESCRIPTOR, "hand")
_own_actions = SubMessage(views_pb2.OwnView.DESCRIPTOR, "legal_actions")
_own_field = SubMessage(views_pb2.MatchView.DESCRIPTOR, "own")
_PLAIN_COMMANDS: dict[type[cmd.Command], commands_pb2.Command] = {
    cmd.Start: commands_pb2.Command(start=commands_pb2.Start()),
    cmd.Continue: commands_pb2.Command(continue_round=commands_pb2.Continue()),
    cmd.Reveal: commands_pb2.Command(reveal=commands_pb2.Reveal()),
    cmd.DeclineBidding: commands_pb2.Command(decline_bidding=commands_pb2.DeclineBidding()),
    cmd.AcceptBid: commands_pb2.Command(accept_bid=commands_pb2.AcceptBid()),
    cmd.DrawTile: commands_pb2.Command(draw_tile=commands_pb2.DrawTile()),
    cmd.Pass: commands_pb2.Command(pass_turn=commands_pb2.Pass()),
}


_public_layout = SubMessage(views_pb2.PublicView.DESCRIPTOR, "layout")
_public_fair_deal = SubMessage(views_pb2.PublicView.DESCRIPTOR, "fair_deal")
_layout_end = SubMessage(views_pb2.LayoutView.DESCRIPTOR, "ends")


def _placed_fields(name: str) -> dict[PlacedTile, bytes]:
    """Every placed tile as a ready field of LayoutView."""
    field = SubMessage(views_pb2.LayoutView.DESCRIPTOR, name)
    return {
        PlacedTile(first, second): field(views_pb2.PlacedTile(first=first, second=second).SerializeToString())
        for first in range(HIGHEST_PIP + 1)
        for second in range(HIGHEST_PIP + 1)
    }


_MAIN_LINE, _NORTH, _SOUTH = _placed_fields("main_line"), _placed_fields("north"), _placed_fields("south")


class RenderedView(NamedTuple):
    """A serialized MatchView (for spectators a SpectatorView), its digest, and whom it was made for."""

    data: bytes
    digest: bytes
    match_id: str
    version: int
    audience: vw.Audience


class _Version(NamedTuple):
    state: MatchState
    public: bytes
    views: dict[vw.Audience, RenderedView]
    events: dict[int, tuple[bytes, ...]]


class Renderer:
    """Serialized views by match and audience, for the version last asked for."""

    def __init__(self) -> None:
        self._versions: OrderedDict[str, _Version] = OrderedDict()

    def view(self, match_id: str, state: MatchState, audience: vw.Audience) -> RenderedView:
        """The view of a match for an audience."""
        version = self._version(match_id, state)
        rendered = version.views.get(audience)
        if rendered is None:
            own = vw.own_view(state, audience)
            data = version.public
            if own is not None:
                data += _own_field(own_bytes(own))
            digest = hashlib.sha256(data).digest()[:DIGEST_BYTES]
            rendered = RenderedView(data, digest, match_id, state.version, audience)
            version.views[audience] = rendered
        return rendered

    def events(self, match_id: str, state: MatchState, cursor: int, events: tuple[Event, ...]) -> tuple[bytes, ...]:
        """The serialized Event messages of `events`, those after `cursor` up to the state's version."""
        known = self._version(match_id, state).events
        rendered = known.get(cursor)
        if rendered is None:
            rendered = known[cursor] = tuple(facts.event_message(event).SerializeToString() for event in events)
        return rendered

    def _version(self, match_id: str, state: MatchState) -> _Version:
        version = self._versions.get(match_id)
        if version is None or version.state is not state:
            public = _public_field(public_bytes(match_id, vw.public_view(state)))
            version = self._versions[match_id] = _Version(state, public, {}, {})
            self._versions.move_to_end(match_id)
            if len(self._versions) > CACHED_VIEWS:
                self._versions.popitem(last=False)
        return version


def public_bytes(match_id: str, view: vw.PublicView) -> bytes:
    """What everyone may see, as a serialized PublicView with its fields in ascending order."""
    head = views_pb2.PublicView(
        match_id=match_id,
        version=view.version,
        mode=views_pb2.MATCH_MODE_SHARED_DEVICE if view.shared_device else views_pb2.MATCH_MODE_ONLINE,
        phase=_PHASES[view.phase],
        players=_players(view),
        turn=facts.SEAT_NUMBERS[view.turn],
    )
    tail = views_pb2.PublicView(settlement=_settlement(view), result=_result(view), clock=_clock(view))
    fair_deal = _fair_deal_bytes(view.fair_deal)
    current = view.round
    if current is None:
        return head.SerializeToString() + tail.SerializeToString() + fair_deal
    head.round_number = current.number
    head.opening = _OPENINGS[current.opening]
    if current.auction is not None:
        _set_auction(head.auction, current)
    tail.boneyard_size = current.boneyard_size
    tail.passes = current.passes
    if current.last_transfer is not None:
        tail.last_transfer.MergeFrom(facts.transfer_message(current.last_transfer))
    return head.SerializeToString() + _layout_bytes(current.layout) + tail.SerializeToString() + fair_deal


@lru_cache(maxsize=4096)
def _fair_deal_bytes(fair_deal: vw.FairDeal) -> bytes:
    """The commitments as the last field of PublicView; they change only before the first deal."""
    seats = []
    for seat in SEATS:
        commitment = fair_deal.commitments[seat]
        status = deal_pb2.DEAL_STATUS_COMMITTED if commitment else deal_pb2.DEAL_STATUS_SERVER_ONLY
        if fair_deal.opened[seat]:
            status = deal_pb2.DEAL_STATUS_OPENED
        seats.append(deal_pb2.SeatDeal(seat=facts.SEAT_NUMBERS[seat], status=status, commitment=commitment))
    message = deal_pb2.FairDeal(server_commitment=fair_deal.server_commitment, seats=seats)
    return _public_fair_deal(message.SerializeToString())


@lru_cache(maxsize=4096)
def _layout_bytes(layout: Layout) -> bytes:
    """The layout as a ready field of PublicView; draws, passes and every match's openings find it made."""
    fields = (
        *map(_MAIN_LINE.__getitem__, layout.main_line),
        views_pb2.LayoutView(spinner_index=layout.spinner_index).SerializeToString(),
        *map(_NORTH.__getitem__, layout.north),
        *map(_SOUTH.__getitem__, layout.south),
        *map(_end_bytes, layout.ends),
        views_pb2.LayoutView(exposed_total=layout.exposed_total).SerializeToString(),
    )
    return _public_layout(b"".join(fields))


@lru_cache(maxsize=4096)
def _end_bytes(open_end: OpenEnd) -> bytes:
    end, value, counts = open_end
    return _layout_end(views_pb2.OpenEnd(end=facts.END_NUMBERS[end], value=value, counts=counts).SerializeToString())


def _players(view: vw.PublicView) -> list[views_pb2.PlayerView]:
    return [
        views_pb2.PlayerView(
            seat=facts.SEAT_NUMBERS[seat],
            display_name=view.display_names[seat] or "",
            seated=view.display_names[seat] is not None,
            balance_points=view.balances[seat],
            hand_size=view.hand_sizes[seat],
            bank_remaining_ns=view.banks_ns[seat],
            ready=view.ready[seat],
        )
        for seat in SEATS
    ]


def _set_auction(message: views_pb2.AuctionView, current: vw.PublicRound) -> None:
    auction = current.auction
    assert auction is not None
    message.jockey = facts.SEAT_NUMBERS[auction.jockey]
    message.credit_points = auction.credit_points(auction.jockey)
    message.minimum_points = auction.minimum_points
    message.maximum_points = current.auction_maximum_points
    if auction.standing is not None:
        message.bidder = facts.SEAT_NUMBERS[auction.standing.bidder]
        message.standing_points = auction.standing.points
        message.net_price_points = auction.net_price_points(auction.standing)


def _settlement(view: vw.PublicView) -> views_pb2.SettlementView | None:
    if view.settlement is None:
        return None
    if isinstance(view.settlement, RoundDominoed):
        return views_pb2.SettlementView(dominoed=facts.dominoed_message(view.settlement))
    return views_pb2.SettlementView(blocked=facts.blocked_message(view.settlement))


def _result(view: vw.PublicView) -> views_pb2.ResultView | None:
    if view.result is None:
        return None
    hands = facts.shown_hands(view.final_hands) if view.final_hands else []
    if isinstance(view.result, MatchWon):
        return views_pb2.ResultView(won=facts.won_message(view.result), rated=True, hands=hands)
    return views_pb2.ResultView(aborted=facts.aborted_message(view.result), hands=hands)


def _clock(view: vw.PublicView) -> views_pb2.ClockView:
    clock = view.clock
    if isinstance(clock, Decision):
        running = views_pb2.RunningClock(
            seat=facts.SEAT_NUMBERS[clock.seat],
            started_at_unix_ns=clock.started_at_ns,
            delay_ends_at_unix_ns=clock.delay_ends_at_ns,
            deadline_unix_ns=clock.deadline_ns,
        )
        return views_pb2.ClockView(running=running)
    stopped = views_pb2.StoppedClock(reason=_STOPS[clock.reason], ends_at_unix_ns=clock.ends_at_ns)
    return views_pb2.ClockView(stopped=stopped)


def own_bytes(own: vw.OwnView) -> bytes:
    """What one seat alone may see, as a serialized OwnView with its fields in ascending order."""
    fields = (
        _own_seat(own.seat),
        *map(_hand_tile_bytes, own.hand),
        _own_must_play(own.must_play),
        *map(_action_bytes, own.legal_actions),
    )
    return b"".join(fields)


@lru_cache(maxsize=2)
def _own_seat(seat: Seat) -> bytes:
    return views_pb2.OwnView(seat=facts.SEAT_NUMBERS[seat]).SerializeToString()


@lru_cache(maxsize=29)
def _own_must_play(tile: Tile | None) -> bytes:
    return b"" if tile is None else views_pb2.OwnView(must_play=facts.TILES[tile]).SerializeToString()


@lru_cache(maxsize=1024)
def _hand_tile_bytes(held: vw.HandTile) -> bytes:
    ends = [facts.END_NUMBERS[end] for end in held.playable_ends]
    return _own_hand(views_pb2.HandTile(tile=facts.TILES[held.tile], playable_ends=ends).SerializeToString())


@lru_cache(maxsize=8192)
def _action_bytes(action: LegalAction) -> bytes:
    return _own_actions(_action(action).SerializeToString())


def _action(action: LegalAction) -> views_pb2.LegalAction:
    if isinstance(action, LegalBids):
        bids = views_pb2.BidRange(
            minimum_points=action.minimum,
            maximum_points=action.maximum,
            step_points=action.step,
            credit_points=action.credit,
        )
        is_first = action.kind is cmd.Bid
        return views_pb2.LegalAction(make_bid=bids) if is_first else views_pb2.LegalAction(raise_bid=bids)
    return views_pb2.LegalAction(
        command=command_message(action.command),
        exposed_total=action.exposed_total,
        transfer=facts.transfer_message(action.transfer) if action.transfer else None,
    )


def command_message(command: cmd.Command) -> commands_pb2.Command:
    """A command ready to send back."""
    if isinstance(command, cmd.PlayTile):
        play = commands_pb2.PlayTile(tile=facts.TILES[command.tile], end=facts.END_NUMBERS[command.end])
        return commands_pb2.Command(play_tile=play)
    return _PLAIN_COMMANDS[type(command)]
