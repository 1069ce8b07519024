"""Events and outcomes to messages. Event messages have no field for a hidden tile, so none can slip in."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any, TypeAlias, assert_never

from engine import events as ev
from engine.clock import Verdict
from engine.layout import End
from engine.refusals import Refusal, RefusalReason
from engine.scoring import Transfer
from engine.seats import SEATS, PerSeat, Seat
from engine.state import Hand
from engine.tiles import DOUBLE_SIX, Tile, hand_pips
from service.ports import Receipt
from service.rpc.wire import sub_message
from spectacularbid.v1 import events_pb2, outcomes_pb2, tiles_pb2

TILES = {tile: tiles_pb2.Tile(low=tile.low, high=tile.high) for tile in DOUBLE_SIX}
SEAT_NUMBERS = {None: tiles_pb2.SEAT_UNSPECIFIED, Seat.ONE: tiles_pb2.SEAT_ONE, Seat.TWO: tiles_pb2.SEAT_TWO}
END_NUMBERS = {
    End.OPENING: tiles_pb2.END_OPENING,
    End.WEST: tiles_pb2.END_WEST,
    End.EAST: tiles_pb2.END_EAST,
    End.NORTH: tiles_pb2.END_NORTH,
    End.SOUTH: tiles_pb2.END_SOUTH,
}
WIN_REASONS = {
    ev.WinReason.BALANCE: events_pb2.WIN_REASON_BALANCE,
    ev.WinReason.TIME: events_pb2.WIN_REASON_TIME,
    ev.WinReason.RESIGNATION: events_pb2.WIN_REASON_RESIGNATION,
}
ABORT_REASONS = {
    ev.AbortReason.START_TIMEOUT: events_pb2.ABORT_REASON_START_TIMEOUT,
    ev.AbortReason.LEFT_BEFORE_START: events_pb2.ABORT_REASON_LEFT_BEFORE_START,
    ev.AbortReason.TIMING_FAILURE: events_pb2.ABORT_REASON_TIMING_FAILURE,
    ev.AbortReason.OPERATOR: events_pb2.ABORT_REASON_OPERATOR,
    ev.AbortReason.DEAL_NOT_OPENED: events_pb2.ABORT_REASON_DEAL_NOT_OPENED,
}
_VERDICTS = {verdict: outcomes_pb2.TimingVerdict.Value("TIMING_VERDICT_" + verdict.name) for verdict in Verdict}
_SENTENCES = {
    RefusalReason.MATCH_OVER: "The match is over.",
    RefusalReason.TIME_EXPIRED: "The command came at or after the deadline; the match is lost on time.",
    RefusalReason.STALE_VERSION: "The match has moved on since the expected version.",
    RefusalReason.WRONG_PHASE: "That is not possible now.",
    RefusalReason.NOT_YOUR_TURN: "The other player decides now.",
    RefusalReason.ALREADY_READY: "You are ready already; the other player is not.",
    RefusalReason.TILE_NOT_IN_HAND: "That tile is not in your hand.",
    RefusalReason.MUST_PLAY_DRAWN_TILE: "The tile just drawn can be played and must be.",
    RefusalReason.MUST_OPEN_WITH_RANKED_TILE: "The highest double, or else the heaviest tile, must open.",
    RefusalReason.END_NOT_AVAILABLE: "There is no such end now.",
    RefusalReason.TILE_DOES_NOT_FIT: "The tile does not match that end.",
    RefusalReason.CAN_PLAY_INSTEAD: "You can play a tile.",
    RefusalReason.BONEYARD_EMPTY: "There is nothing left to draw.",
    RefusalReason.CAN_DRAW_INSTEAD: "You can draw a tile.",
    RefusalReason.BID_TOO_LOW: "The bid is too low.",
    RefusalReason.BID_NOT_MULTIPLE_OF_FIVE: "A bid is a multiple of five.",
    RefusalReason.BID_UNAFFORDABLE: "You could not pay that bid.",
}

_events = sub_message(outcomes_pb2.Accepted.DESCRIPTOR, "events")
_clock_started = sub_message(events_pb2.Event.DESCRIPTOR, "clock_started")


def transfer_message(transfer: Transfer) -> events_pb2.Transfer:
    """A transfer."""
    return events_pb2.Transfer(
        payer=SEAT_NUMBERS[transfer.payer], earned_points=transfer.earned, paid_points=transfer.paid
    )


def shown_hands(hands: PerSeat[Hand]) -> list[events_pb2.ShownHand]:
    """Both hands, where the rules show them to everyone."""
    return [
        events_pb2.ShownHand(seat=SEAT_NUMBERS[seat], tiles=[TILES[tile] for tile in hand], pips=hand_pips(hand))
        for seat, hand in zip(SEATS, hands, strict=True)
    ]


def dominoed_message(event: ev.RoundDominoed) -> events_pb2.RoundDominoed:
    """A domino."""
    return events_pb2.RoundDominoed(seat=SEAT_NUMBERS[event.seat])


def blocked_message(event: ev.RoundBlocked) -> events_pb2.RoundBlocked:
    """A block; both hands are public (D5)."""
    return events_pb2.RoundBlocked(
        hands=shown_hands(event.hands),
        winner=SEAT_NUMBERS[event.winner],
        transfer=transfer_message(event.transfer) if event.transfer else None,
    )


def won_message(event: ev.MatchWon) -> events_pb2.MatchWon:
    """A win."""
    return events_pb2.MatchWon(
        winner=SEAT_NUMBERS[event.winner], reason=WIN_REASONS[event.reason], at_unix_ns=event.at_ns
    )


def aborted_message(event: ev.MatchAborted) -> events_pb2.MatchAborted:
    """An abort."""
    return events_pb2.MatchAborted(reason=ABORT_REASONS[event.reason], evidence=event.evidence, at_unix_ns=event.at_ns)


def event_fields(events: Iterable[ev.Event]) -> bytes:
    """Serialized Event messages, as everyone may know them, as the field that Accepted and MatchUpdate both have."""
    fields = b""
    for event in events:
        data = _OFTEN.get(type(event), _seldom_bytes)(event)
        fields += _events[len(data)] + data
    return fields


def _started_bytes(event: ev.ClockStarted) -> bytes:
    data = events_pb2.ClockStarted(seat=SEAT_NUMBERS[event.seat], at_unix_ns=event.at_ns).SerializeToString()
    return _clock_started[len(data)] + data


@lru_cache(maxsize=8192)
def _played_bytes(event: ev.TilePlayed) -> bytes:
    played = events_pb2.TilePlayed(
        seat=SEAT_NUMBERS[event.seat],
        tile=_public_tile(event.tile),
        end=END_NUMBERS[event.end],
        exposed_total=event.exposed_total,
        transfer=transfer_message(event.transfer) if event.transfer else None,
    )
    return events_pb2.Event(tile_played=played).SerializeToString()


@lru_cache(maxsize=4096)
def _stopped_bytes(event: ev.ClockStopped) -> bytes:
    stopped = events_pb2.ClockStopped(seat=SEAT_NUMBERS[event.seat], bank_used_ns=event.bank_used_ns)
    return events_pb2.Event(clock_stopped=stopped).SerializeToString()


@lru_cache(maxsize=2)
def _passed_bytes(event: ev.Passed) -> bytes:
    return events_pb2.Event(passed=events_pb2.Passed(seat=SEAT_NUMBERS[event.seat])).SerializeToString()


def _drawn_bytes(event: ev.TileDrawn) -> bytes:
    """Without the tile, which no cache here is keyed by."""
    return _seat_drew_bytes(event.seat)


@lru_cache(maxsize=2)
def _seat_drew_bytes(seat: Seat) -> bytes:
    return events_pb2.Event(tile_drawn=events_pb2.TileDrawn(seat=SEAT_NUMBERS[seat])).SerializeToString()


# Any: each of them takes its own type of event.
_OFTEN: dict[type[ev.Event], Callable[[Any], bytes]] = {
    ev.ClockStarted: _started_bytes,
    ev.ClockStopped: _stopped_bytes,
    ev.TilePlayed: _played_bytes,
    ev.TileDrawn: _drawn_bytes,
    ev.Passed: _passed_bytes,
}
"""The events of nearly every command; what comes again and again is serialized once."""


def _seldom_bytes(event: _Gathering | _Bidding | _TurningPoint) -> bytes:
    match event:
        case ev.MatchCreated() | ev.PlayerSeated() | ev.EntropyCommitted() | ev.PlayerReady() | ev.ContinueTimedOut():
            return _gathering(event).SerializeToString()
        case ev.BiddingDeclined() | ev.BidMade() | ev.BidAccepted():
            return _bidding(event).SerializeToString()
        case _:
            return _turning_point(event).SerializeToString()


def _public_tile(tile: Tile) -> tiles_pb2.Tile:
    return TILES[tile]


_Gathering: TypeAlias = ev.MatchCreated | ev.PlayerSeated | ev.EntropyCommitted | ev.PlayerReady | ev.ContinueTimedOut
_Bidding: TypeAlias = ev.BiddingDeclined | ev.BidMade | ev.BidAccepted
_TurningPoint: TypeAlias = (
    ev.RoundDealt
    | ev.HandoverOpened
    | ev.HandRevealed
    | ev.RoundDominoed
    | ev.RoundBlocked
    | ev.MatchWon
    | ev.MatchAborted
    | ev.ClocksSuspended
    | ev.ClocksResumed
)


def _gathering(event: _Gathering) -> events_pb2.Event:
    match event:
        case ev.MatchCreated(at_ns):
            return events_pb2.Event(match_created=events_pb2.MatchCreated(at_unix_ns=at_ns))
        case ev.PlayerSeated(seat, name):
            return events_pb2.Event(player_seated=events_pb2.PlayerSeated(seat=SEAT_NUMBERS[seat], display_name=name))
        case ev.EntropyCommitted(seat, commitment):
            committed = events_pb2.EntropyCommitted(seat=SEAT_NUMBERS[seat], commitment=commitment)
            return events_pb2.Event(entropy_committed=committed)
        case ev.PlayerReady(seat):
            return events_pb2.Event(player_ready=events_pb2.PlayerReady(seat=SEAT_NUMBERS[seat]))
        case ev.ContinueTimedOut(at_ns):
            return events_pb2.Event(continue_timed_out=events_pb2.ContinueTimedOut(at_unix_ns=at_ns))
        case _:
            assert_never(event)


def _bidding(event: _Bidding) -> events_pb2.Event:
    match event:
        case ev.BiddingDeclined(seat):
            return events_pb2.Event(bidding_declined=events_pb2.BiddingDeclined(seat=SEAT_NUMBERS[seat]))
        case ev.BidMade(seat, points):
            return events_pb2.Event(bid_made=events_pb2.BidMade(seat=SEAT_NUMBERS[seat], points=points))
        case ev.BidAccepted(bidder, points, credit_points, transfer):
            accepted = events_pb2.BidAccepted(
                bidder=SEAT_NUMBERS[bidder],
                points=points,
                credit_points=credit_points,
                transfer=transfer_message(transfer),
            )
            return events_pb2.Event(bid_accepted=accepted)
        case _:
            assert_never(event)


def _turning_point(event: _TurningPoint) -> events_pb2.Event:
    match event:
        case ev.RoundDealt():
            dealt = events_pb2.RoundDealt(round_number=event.number, jockey=SEAT_NUMBERS[event.jockey])
            return events_pb2.Event(round_dealt=dealt)
        case ev.HandoverOpened(seat):
            return events_pb2.Event(handover_opened=events_pb2.HandoverOpened(seat=SEAT_NUMBERS[seat]))
        case ev.HandRevealed(seat):
            return events_pb2.Event(hand_revealed=events_pb2.HandRevealed(seat=SEAT_NUMBERS[seat]))
        case ev.RoundDominoed():
            return events_pb2.Event(round_dominoed=dominoed_message(event))
        case ev.RoundBlocked():
            return events_pb2.Event(round_blocked=blocked_message(event))
        case ev.MatchWon():
            return events_pb2.Event(match_won=won_message(event))
        case ev.MatchAborted():
            return events_pb2.Event(match_aborted=aborted_message(event))
        case ev.ClocksSuspended(at_ns):
            return events_pb2.Event(clocks_suspended=events_pb2.ClocksSuspended(at_unix_ns=at_ns))
        case ev.ClocksResumed(at_ns):
            return events_pb2.Event(clocks_resumed=events_pb2.ClocksResumed(at_unix_ns=at_ns))
        case _:
            assert_never(event)


@lru_cache(maxsize=4096)
def accepted_version(version: int) -> bytes:
    """A serialized Accepted without its events."""
    return outcomes_pb2.Accepted(version=version).SerializeToString()


def refused_message(refusal: Refusal) -> outcomes_pb2.Refused:
    """A refusal with its sentence and figures."""
    return outcomes_pb2.Refused(
        reason=outcomes_pb2.RefusalReason.ValueType(refusal.reason.value),
        message=_SENTENCES[refusal.reason],
        details={name: str(figure) for name, figure in refusal.figures},
    )


def receipt_message(receipt: Receipt) -> outcomes_pb2.TimingReceipt:
    """The stamp and what followed from it."""
    arrival = receipt.arrival
    message = outcomes_pb2.TimingReceipt(
        arrival_earliest_unix_ns=arrival.earliest_ns,
        arrival_latest_unix_ns=arrival.latest_ns,
        error_bound_ns=receipt.error_bound_ns,
        verdict=_VERDICTS[receipt.verdict],
        own_earliest_unix_ns=arrival.own_earliest_ns,
        own_latest_unix_ns=arrival.own_latest_ns,
    )
    decision = receipt.decision
    if decision is not None:
        deadline_ns = decision.deadline_ns
        message.decision_started_at_unix_ns = decision.started_at_ns
        message.delay_ends_at_unix_ns = decision.delay_ends_at_ns
        message.deadline_unix_ns = deadline_ns
        message.margin_ns = deadline_ns - arrival.latest_ns
    return message
