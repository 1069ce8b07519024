"""The public part of a view to bytes: what rarely changes is serialized once and found again.

Fields are joined in ascending order, as every protobuf library writes them.
"""

from __future__ import annotations

from functools import lru_cache

from engine import view as vw
from engine.clock import Decision
from engine.events import MatchWon, RoundDominoed
from engine.layout import Layout, OpenEnd, PlacedTile
from engine.scoring import Transfer
from engine.seats import SEATS, Seat
from engine.state import OpeningPrivilege, Phase
from engine.tiles import HIGHEST_PIP
from service.rpc import facts
from service.rpc.wire import sub_message
from spectacularbid.v1 import deal_pb2, views_pb2

_PHASES = {phase: views_pb2.Phase.Value("PHASE_" + phase.name) for phase in Phase}
_OPENINGS = {
    opening: views_pb2.OpeningPrivilege.Value("OPENING_PRIVILEGE_" + opening.name) for opening in OpeningPrivilege
}
_STOPS = {reason: views_pb2.StopReason.Value("STOP_REASON_" + reason.name) for reason in vw.StopReason}
_player = sub_message(views_pb2.PublicView.DESCRIPTOR, "players")
_layout = sub_message(views_pb2.PublicView.DESCRIPTOR, "layout")
_transfer = sub_message(views_pb2.PublicView.DESCRIPTOR, "last_transfer")
_clock = sub_message(views_pb2.PublicView.DESCRIPTOR, "clock")
_running = sub_message(views_pb2.ClockView.DESCRIPTOR, "running")
_fair_deal = sub_message(views_pb2.PublicView.DESCRIPTOR, "fair_deal")
_end = sub_message(views_pb2.LayoutView.DESCRIPTOR, "ends")


def _placed_fields(name: str) -> dict[PlacedTile, bytes]:
    """Every placed tile as a ready field of LayoutView."""
    field = sub_message(views_pb2.LayoutView.DESCRIPTOR, name)
    return {
        PlacedTile(first, second): field(views_pb2.PlacedTile(first=first, second=second).SerializeToString())
        for first in range(HIGHEST_PIP + 1)
        for second in range(HIGHEST_PIP + 1)
    }


_MAIN_LINE, _NORTH, _SOUTH = _placed_fields("main_line"), _placed_fields("north"), _placed_fields("south")


def public_bytes(match_id: str, view: vw.PublicView) -> bytes:
    """What everyone may see, as a serialized PublicView."""
    current, names, ready = view.round, view.display_names, view.ready
    balances, hand_sizes, banks_ns = view.balances, view.hand_sizes, view.banks_ns
    fields = (
        _match_bytes(match_id),
        _version_bytes(view.version),
        _phase_bytes(view.shared_device, view.phase),
        _player_bytes(Seat.ONE, names.one, balances.one, hand_sizes.one, banks_ns.one, ready.one),
        _player_bytes(Seat.TWO, names.two, balances.two, hand_sizes.two, banks_ns.two, ready.two),
        *((_turn_bytes(view.turn),) if current is None else _round_fields(current, view.turn)),
        _ending_bytes(view) if view.settlement or view.result else b"",
        _clock_bytes(view.clock),
        _fair_deal_bytes(view.fair_deal),
    )
    return b"".join(fields)


@lru_cache(maxsize=4096)
def _match_bytes(match_id: str) -> bytes:
    return views_pb2.PublicView(match_id=match_id).SerializeToString()


@lru_cache(maxsize=4096)
def _version_bytes(version: int) -> bytes:
    return views_pb2.PublicView(version=version).SerializeToString()


@lru_cache(maxsize=2 * len(Phase))
def _phase_bytes(shared_device: bool, phase: Phase) -> bytes:  # noqa: FBT001  by position, as names cost a cache more
    mode = views_pb2.MATCH_MODE_SHARED_DEVICE if shared_device else views_pb2.MATCH_MODE_ONLINE
    return views_pb2.PublicView(mode=mode, phase=_PHASES[phase]).SerializeToString()


@lru_cache(maxsize=8192)
def _player_bytes(  # noqa: PLR0917  by position, as names cost a cache more
    seat: Seat,
    display_name: str | None,
    balance_points: int,
    hand_size: int,
    bank_ns: int,
    ready: bool,  # noqa: FBT001  as above
) -> bytes:
    message = views_pb2.PlayerView(
        seat=facts.SEAT_NUMBERS[seat],
        display_name=display_name or "",
        seated=display_name is not None,
        balance_points=balance_points,
        hand_size=hand_size,
        bank_remaining_ns=bank_ns,
        ready=ready,
    )
    return _player(message.SerializeToString())


@lru_cache(maxsize=3)
def _turn_bytes(turn: Seat | None) -> bytes:
    return views_pb2.PublicView(turn=facts.SEAT_NUMBERS[turn]).SerializeToString()


def _round_fields(current: vw.PublicRound, turn: Seat | None) -> tuple[bytes, ...]:
    """The fields of PublicView that a round has, from its number to its last transfer."""
    transfer = current.last_transfer
    return (
        _heading_bytes(current.number, current.opening, turn),
        b"" if current.auction is None else _auction_bytes(current),
        _layout_bytes(current.layout),
        _counts_bytes(current.boneyard_size, current.passes),
        b"" if transfer is None else _transfer_bytes(transfer),
    )


@lru_cache(maxsize=4096)
def _heading_bytes(number: int, opening: OpeningPrivilege, turn: Seat | None) -> bytes:
    message = views_pb2.PublicView(round_number=number, opening=_OPENINGS[opening], turn=facts.SEAT_NUMBERS[turn])
    return message.SerializeToString()


def _auction_bytes(current: vw.PublicRound) -> bytes:
    auction = current.auction
    assert auction is not None
    message = views_pb2.AuctionView(
        jockey=facts.SEAT_NUMBERS[auction.jockey],
        credit_points=auction.credit_points(auction.jockey),
        minimum_points=auction.minimum_points,
        maximum_points=current.auction_maximum_points,
    )
    if auction.standing is not None:
        message.bidder = facts.SEAT_NUMBERS[auction.standing.bidder]
        message.standing_points = auction.standing.points
        message.net_price_points = auction.net_price_points(auction.standing)
    return views_pb2.PublicView(auction=message).SerializeToString()


@lru_cache(maxsize=4096)
def _layout_bytes(layout: Layout) -> bytes:
    """The layout; draws, passes and every match's openings find it made."""
    fields = (
        *map(_MAIN_LINE.__getitem__, layout.main_line),
        _spinner_bytes(layout.spinner_index),
        *map(_NORTH.__getitem__, layout.north),
        *map(_SOUTH.__getitem__, layout.south),
        *map(_end_bytes, layout.ends),
        _total_bytes(layout.exposed_total),
    )
    data = b"".join(fields)
    return _layout[len(data)] + data


@lru_cache(maxsize=32)
def _spinner_bytes(index: int | None) -> bytes:
    return views_pb2.LayoutView(spinner_index=index).SerializeToString()


@lru_cache(maxsize=512)
def _end_bytes(open_end: OpenEnd) -> bytes:
    end, value, counts = open_end
    return _end(views_pb2.OpenEnd(end=facts.END_NUMBERS[end], value=value, counts=counts).SerializeToString())


@lru_cache(maxsize=64)
def _total_bytes(exposed_total: int) -> bytes:
    return views_pb2.LayoutView(exposed_total=exposed_total).SerializeToString()


@lru_cache(maxsize=64)
def _counts_bytes(boneyard_size: int, passes: int) -> bytes:
    return views_pb2.PublicView(boneyard_size=boneyard_size, passes=passes).SerializeToString()


@lru_cache(maxsize=4096)
def _transfer_bytes(transfer: Transfer) -> bytes:
    return _transfer(facts.transfer_message(transfer).SerializeToString())


def _ending_bytes(view: vw.PublicView) -> bytes:
    """How the last round was settled, and how the match ended."""
    return views_pb2.PublicView(settlement=_settlement(view), result=_result(view)).SerializeToString()


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


def _clock_bytes(clock: Decision | vw.StoppedClock) -> bytes:
    if isinstance(clock, Decision):
        message = views_pb2.RunningClock(
            seat=facts.SEAT_NUMBERS[clock.seat],
            started_at_unix_ns=clock.started_at_ns,
            delay_ends_at_unix_ns=clock.delay_ends_at_ns,
            deadline_unix_ns=clock.deadline_ns,
        )
        data = message.SerializeToString()
        running = _running[len(data)] + data
        return _clock[len(running)] + running
    stopped = views_pb2.StoppedClock(reason=_STOPS[clock.reason], ends_at_unix_ns=clock.ends_at_ns)
    return views_pb2.PublicView(clock=views_pb2.ClockView(stopped=stopped)).SerializeToString()


@lru_cache(maxsize=4096)
def _fair_deal_bytes(fair_deal: vw.FairDeal) -> bytes:
    """The commitments; they change only before the first deal."""
    seats = []
    for seat in SEATS:
        commitment = fair_deal.commitments[seat.index]
        status = deal_pb2.DEAL_STATUS_COMMITTED if commitment else deal_pb2.DEAL_STATUS_SERVER_ONLY
        if fair_deal.opened[seat.index]:
            status = deal_pb2.DEAL_STATUS_OPENED
        seats.append(deal_pb2.SeatDeal(seat=facts.SEAT_NUMBERS[seat], status=status, commitment=commitment))
    message = deal_pb2.FairDeal(server_commitment=fair_deal.server_commitment, seats=seats)
    return _fair_deal(message.SerializeToString())
