"""What each audience may know of a match (reading X2). Built by naming what is shown, never by removing what is not.

A view is a pure function of (state, audience). Its public part is the same object for all, so it is built once a
version. Nothing in `PublicView` is secret; `OwnView` holds what one seat alone may see.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from engine import commands as cmd
from engine.auction import Auction
from engine.clock import Decision
from engine.events import MatchAborted, MatchWon, RoundBlocked, RoundDominoed
from engine.layout import End, Layout
from engine.legal import LegalAction, LegalCommand, legal_actions
from engine.scoring import Transfer
from engine.seats import PerSeat, Seat
from engine.state import Hand, MatchState, OpeningPrivilege, Phase, Round, acting_seat
from engine.tiles import DOUBLE_SIX, Tile


class Audience(Enum):
    """Who looks."""

    SEAT_ONE = 1
    SEAT_TWO = 2
    DEVICE = 3
    SPECTATOR = 4

    __hash__ = object.__hash__  # as Seat


_DEVICE = Audience.DEVICE  # as in engine.layout
_SEAT_OF = {Audience.SEAT_ONE: Seat.ONE, Audience.SEAT_TWO: Seat.TWO, Audience.SPECTATOR: None}


class StopReason(Enum):
    """Why no clock runs."""

    NOT_STARTED = 1
    WAITING_FOR_CONTINUE = 2
    HANDOVER = 3
    OVER = 4
    SUSPENDED = 5


class StoppedClock(NamedTuple):
    """No clock runs; `ends_at_ns` is when the wait ends by itself, if it does (S2)."""

    reason: StopReason
    ends_at_ns: int | None


class PublicRound(NamedTuple):
    """The round as everyone sees it: hands and boneyard by their sizes."""

    number: int
    opening: OpeningPrivilege
    layout: Layout
    boneyard_size: int
    passes: int
    auction: Auction | None
    auction_maximum_points: int
    last_transfer: Transfer | None


class FairDeal(NamedTuple):
    """What was committed to before the deal; `opened` says who opened it, never what."""

    server_commitment: bytes
    commitments: PerSeat[bytes]
    opened: PerSeat[bool]


class PublicView(NamedTuple):
    """What players, opponents and spectators share."""

    version: int
    shared_device: bool
    phase: Phase
    display_names: PerSeat[str | None]
    balances: PerSeat[int]
    banks_ns: PerSeat[int]
    ready: PerSeat[bool]
    hand_sizes: PerSeat[int]
    turn: Seat | None
    round: PublicRound | None
    settlement: RoundDominoed | RoundBlocked | None
    result: MatchWon | MatchAborted | None
    final_hands: PerSeat[Hand] | None
    clock: Decision | StoppedClock
    fair_deal: FairDeal


class HandTile(NamedTuple):
    """A tile of the own hand and where it may be played now."""

    tile: Tile
    playable_ends: tuple[End, ...]


_RESTING = {tile: HandTile(tile, ()) for tile in DOUBLE_SIX}


class OwnView(NamedTuple):
    """What one seat alone may see and do."""

    seat: Seat
    hand: tuple[HandTile, ...]
    must_play: Tile | None
    legal_actions: tuple[LegalAction, ...]


def public_view(state: MatchState) -> PublicView:
    """The part of the view that everyone may see."""
    current = state.round
    return PublicView(
        version=state.version,
        shared_device=state.options.shared_device,
        phase=state.phase,
        display_names=state.display_names,
        balances=state.balances,
        banks_ns=state.banks_ns,
        ready=state.ready,
        hand_sizes=PerSeat(0, 0) if current is None else PerSeat(*map(len, current.hands)),
        turn=state.turn,
        round=None if current is None else _public_round(state, current),
        settlement=state.settlement,
        result=state.result,
        final_hands=current.hands if current and state.result else None,
        clock=_clock(state),
        fair_deal=FairDeal(state.server_commitment, state.commitments, state.opened),
    )


def own_view(state: MatchState, audience: Audience) -> OwnView | None:
    """The viewer's own part; None for a spectator. A shared device shows a hand only after Reveal (K7)."""
    seat = acting_seat(state) if audience is _DEVICE else _SEAT_OF[audience]
    if seat is None:
        return None
    actions = legal_actions(state, seat)
    is_shared = state.options.shared_device or audience is _DEVICE
    current = state.round
    if current is None or (is_shared and state.revealed is not seat):
        return OwnView(seat, (), None, actions)
    ends: dict[Tile, tuple[End, ...]] = {}
    for action in actions:
        if isinstance(action, LegalCommand) and isinstance(action.command, cmd.PlayTile):
            tile, end = action.command
            ends[tile] = (*ends[tile], end) if tile in ends else (end,)
    must_play = current.must_play
    hand = tuple(map(_RESTING.__getitem__, current.hands[seat.index]))
    if ends:
        hand = tuple([HandTile(rest.tile, ends[rest.tile]) if rest.tile in ends else rest for rest in hand])
    return OwnView(seat, hand, must_play if must_play is not None and state.turn is seat else None, actions)


def _public_round(state: MatchState, current: Round) -> PublicRound:
    auction, turn = current.auction, current.turn
    return PublicRound(
        number=current.number,
        opening=current.opening,
        layout=current.layout,
        boneyard_size=len(current.boneyard),
        passes=current.passes,
        auction=auction,
        auction_maximum_points=auction.maximum_points(turn, state.balances) if auction and turn else 0,
        last_transfer=current.last_transfer,
    )


def _clock(state: MatchState) -> Decision | StoppedClock:
    if state.result is not None:
        return StoppedClock(StopReason.OVER, None)
    if state.suspended_at_ns is not None:
        return StoppedClock(StopReason.SUSPENDED, None)
    if state.decision is not None:
        return state.decision
    if state.handover is not None:
        return StoppedClock(StopReason.HANDOVER, None)
    waiting_for_start = state.phase is Phase.NOT_STARTED
    reason = StopReason.NOT_STARTED if waiting_for_start else StopReason.WAITING_FOR_CONTINUE
    return StoppedClock(reason, state.waiting_until_ns)
