"""Folding events into states. Total, and without a single rule: every number comes from the event."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import reduce
from typing import TypeAlias, assert_never

from engine import events as ev
from engine.auction import Auction, StandingBid
from engine.clock import BANK_NS, Decision
from engine.scoring import STARTING_POINTS, Transfer, moved
from engine.seats import PerSeat, Seat
from engine.state import MatchState, OpeningPrivilege, Options, Phase, Round

_ClockEvent: TypeAlias = ev.ClockStarted | ev.ClockStopped | ev.ClocksSuspended | ev.ClocksResumed
_AroundTheRounds: TypeAlias = (
    ev.PlayerSeated
    | ev.EntropyCommitted
    | ev.PlayerReady
    | ev.HandoverOpened
    | ev.HandRevealed
    | ev.MatchCreated
    | ev.ContinueTimedOut
)
NOBODY_SEATED: PerSeat[str | None] = PerSeat(None, None)
NOBODY_READY = PerSeat(one=False, two=False)


def found(event: ev.MatchCreated) -> MatchState:
    """The state before version 1: nobody seated, 150 points and a full bank each (points.start, clock.bank)."""
    return MatchState(
        version=0,
        options=Options(event.shared_device, event.start_timeout_ns, event.continue_timeout_ns, event.at_ns),
        phase=Phase.NOT_STARTED,
        display_names=NOBODY_SEATED,
        balances=PerSeat(STARTING_POINTS, STARTING_POINTS),
        banks_ns=PerSeat(BANK_NS, BANK_NS),
        ready=NOBODY_READY,
        waiting_until_ns=event.at_ns + event.start_timeout_ns,
        server_commitment=event.server_commitment or b"",
    )


def advance(state: MatchState | None, step: ev.Step) -> MatchState:
    """The state one version later. `state` is None exactly for the first step, which begins with MatchCreated."""
    if state is None:
        created, *rest = step
        assert isinstance(created, ev.MatchCreated)
        state, step = found(created), tuple(rest)
    state = reduce(evolve, step, state)
    return state._replace(version=state.version + 1)


def replay(steps: Iterable[ev.Step]) -> MatchState:
    """The state after the whole log; at least one step."""
    state: MatchState | None = None
    for step in steps:
        state = advance(state, step)
    assert state is not None
    return state


def evolve(state: MatchState, event: ev.Event) -> MatchState:
    """The state after one event."""
    match event:
        case ev.ClockStopped() | ev.ClockStarted() | ev.ClocksSuspended() | ev.ClocksResumed():
            return _clock(state, event)
        case ev.TilePlayed():
            return _tile_played(state, event)
        case ev.TileDrawn():
            return _tile_drawn(state, event)
        case ev.Passed(seat):
            current = state.current
            return state._replace(round=current._replace(turn=seat.other, passes=current.passes + 1))
        case ev.BidMade(seat, points):
            return _bid_made(state, StandingBid(seat, points))
        case ev.BidAccepted():
            return _bid_accepted(state, event)
        case ev.BiddingDeclined(seat):
            return _opener_decided(state, seat.other, OpeningPrivilege.JOCKEY_FREE)
        case ev.RoundDealt():
            return _round_dealt(state, event)
        case ev.RoundDominoed() | ev.RoundBlocked():
            return _round_settled(state, event)
        case ev.MatchWon() | ev.MatchAborted():
            return _over(state, event)
        case _:
            return _around_the_rounds(state, event)


def _around_the_rounds(state: MatchState, event: _AroundTheRounds) -> MatchState:
    match event:
        case ev.PlayerSeated(seat, display_name):
            return state._replace(display_names=state.display_names.having(seat, display_name))
        case ev.EntropyCommitted(seat, commitment):
            return state._replace(commitments=state.commitments.having(seat, commitment))
        case ev.PlayerReady(seat):
            return state._replace(ready=state.ready.having(seat, value=True))
        case ev.HandoverOpened(seat):
            return state._replace(handover=seat, revealed=None)
        case ev.HandRevealed(seat):
            return state._replace(handover=None, revealed=seat)
        case ev.MatchCreated() | ev.ContinueTimedOut():
            return state
        case _:
            assert_never(event)


def _clock(state: MatchState, event: _ClockEvent) -> MatchState:
    match event:
        case ev.ClockStarted(seat, at_ns):
            return state._replace(decision=Decision(seat, at_ns, state.banks_ns[seat.index]))
        case ev.ClockStopped(seat, bank_used_ns):
            left = state.banks_ns[seat.index] - bank_used_ns
            return state._replace(decision=None, banks_ns=state.banks_ns.having(seat, left))
        case ev.ClocksSuspended(at_ns):
            return state._replace(suspended_at_ns=at_ns)
        case ev.ClocksResumed(at_ns):
            return _clocks_resumed(state, at_ns)
        case _:
            assert_never(event)


def _tile_played(state: MatchState, event: ev.TilePlayed) -> MatchState:
    current, seat = state.current, event.seat
    hand = tuple(tile for tile in current.hands[seat.index] if tile != event.tile)
    played = current._replace(
        hands=current.hands.having(seat, hand),
        layout=current.layout.place(event.tile, event.end),
        turn=seat.other,
        must_play=None,
        passes=0,
        last_transfer=event.transfer or current.last_transfer,
    )
    return state._replace(phase=Phase.PLAYING, balances=_paid(state, event.transfer), round=played)


def _tile_drawn(state: MatchState, event: ev.TileDrawn) -> MatchState:
    current = state.current
    hand = tuple(sorted((*current.hands[event.seat.index], event.tile)))
    drawn = current._replace(
        hands=current.hands.having(event.seat, hand),
        boneyard=current.boneyard[1:],
        must_play=event.tile if event.playable else None,
    )
    return state._replace(round=drawn)


def _bid_made(state: MatchState, bid: StandingBid) -> MatchState:
    current = state.current
    assert current.auction is not None
    auction = Auction(current.auction.jockey, bid)
    return state._replace(round=current._replace(auction=auction, turn=bid.bidder.other))


def _bid_accepted(state: MatchState, event: ev.BidAccepted) -> MatchState:
    opened = _opener_decided(state, event.bidder, OpeningPrivilege.BOUGHT)
    paid = opened.current._replace(last_transfer=event.transfer)
    return opened._replace(balances=_paid(state, event.transfer), round=paid)


def _opener_decided(state: MatchState, opener: Seat, opening: OpeningPrivilege) -> MatchState:
    decided = state.current._replace(auction=None, turn=opener, opening=opening)
    return state._replace(phase=Phase.OPENING, round=decided)


def _round_dealt(state: MatchState, event: ev.RoundDealt) -> MatchState:
    is_auction = event.jockey is not None
    dealt = Round(
        number=event.number,
        opening=OpeningPrivilege.AUCTION if is_auction else OpeningPrivilege.RANKED,
        hands=event.hands,
        boneyard=event.boneyard,
        turn=event.turn,
        auction=None if event.jockey is None else Auction(event.jockey),
        must_play=event.must_open,
    )
    return state._replace(
        phase=Phase.BIDDING if is_auction else Phase.OPENING,
        round=dealt,
        ready=NOBODY_READY,
        waiting_until_ns=None,
        settlement=None,
    )


def _round_settled(state: MatchState, event: ev.RoundDominoed | ev.RoundBlocked) -> MatchState:
    payment = event.transfer if isinstance(event, ev.RoundBlocked) else None
    current = state.current
    return state._replace(
        phase=Phase.SETTLED,
        balances=_paid(state, payment),
        round=current._replace(turn=None, last_transfer=payment or current.last_transfer),
        revealed=None,
        settlement=event,
        waiting_until_ns=event.at_ns + state.options.continue_timeout_ns,
    )


def _over(state: MatchState, event: ev.MatchWon | ev.MatchAborted) -> MatchState:
    return state._replace(
        phase=Phase.OVER,
        decision=None,
        handover=None,
        revealed=None,
        waiting_until_ns=None,
        suspended_at_ns=None,
        result=event,
    )


def _clocks_resumed(state: MatchState, at_ns: int) -> MatchState:
    assert state.suspended_at_ns is not None
    standstill = state.suspended_at_ns, at_ns
    stood_ns = at_ns - state.suspended_at_ns
    decision, waiting = state.decision, state.waiting_until_ns
    if decision is not None:
        started_at_ns = decision.started_at_ns + stood_ns
        decision = replace(decision, started_at_ns=started_at_ns, standstills=(*decision.standstills, standstill))
    return state._replace(
        suspended_at_ns=None,
        decision=decision,
        waiting_until_ns=None if waiting is None else waiting + stood_ns,
    )


def _paid(state: MatchState, payment: Transfer | None) -> PerSeat[int]:
    return state.balances if payment is None else moved(state.balances, payment)
