"""Folding events into states. Total, and without a single rule: every number comes from the event."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from operator import attrgetter
from typing import TypeAlias, assert_never

from engine import events as ev
from engine.auction import Auction, StandingBid
from engine.clock import BANK_NS, Decision
from engine.scoring import STARTING_POINTS, moved
from engine.seats import PerSeat, Seat
from engine.state import MatchState, OpeningPrivilege, Options, Phase, Round

_Auction: TypeAlias = ev.BidMade | ev.BidAccepted | ev.BiddingDeclined
_Gathering: TypeAlias = (
    ev.PlayerSeated
    | ev.EntropyCommitted
    | ev.PlayerReady
    | ev.HandoverOpened
    | ev.HandRevealed
    | ev.MatchCreated
    | ev.ContinueTimedOut
)
_Seldom: TypeAlias = (
    _Auction
    | _Gathering
    | ev.Passed
    | ev.RoundDealt
    | ev.RoundDominoed
    | ev.RoundBlocked
    | ev.MatchWon
    | ev.MatchAborted
    | ev.ClocksSuspended
    | ev.ClocksResumed
)
NOBODY_SEATED: PerSeat[str | None] = PerSeat(None, None)
NOBODY_READY = PerSeat(one=False, two=False)


@dataclass(slots=True)
class _Draft:
    """A state in the making: the fields of `MatchState`, which the events of a step overwrite. Nobody else sees it."""

    version: int
    options: Options
    phase: Phase
    display_names: PerSeat[str | None]
    balances: PerSeat[int]
    banks_ns: PerSeat[int]
    ready: PerSeat[bool]
    waiting_until_ns: int | None
    round: Round | None
    decision: Decision | None
    handover: Seat | None
    revealed: Seat | None
    settlement: ev.RoundDominoed | ev.RoundBlocked | None
    result: ev.MatchWon | ev.MatchAborted | None
    suspended_at_ns: int | None
    server_commitment: bytes
    commitments: PerSeat[bytes]

    @property
    def current(self) -> Round:
        """The round, where there must be one."""
        assert self.round is not None
        return self.round


_values = attrgetter(*MatchState._fields)
assert tuple(field.name for field in fields(_Draft)) == MatchState._fields, "a state becomes a draft by position"


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
    draft = _Draft(*state)
    draft.version += 1
    _evolve(draft, step)
    return MatchState._make(_values(draft))


def replay(steps: Iterable[ev.Step]) -> MatchState:
    """The state after the whole log; at least one step."""
    state: MatchState | None = None
    for step in steps:
        state = advance(state, step)
    assert state is not None
    return state


def _evolve(draft: _Draft, step: ev.Step) -> None:
    for event in step:
        # The events of every turn first and by isinstance, which takes a third of the time of a class pattern.
        if isinstance(event, ev.ClockStopped):
            seat, bank_used_ns = event
            draft.decision = None
            if bank_used_ns:
                draft.banks_ns = draft.banks_ns.having(seat, draft.banks_ns[seat.index] - bank_used_ns)
        elif isinstance(event, ev.TilePlayed):
            _tile_played(draft, event)
        elif isinstance(event, ev.ClockStarted):
            draft.decision = Decision(event.seat, event.at_ns, draft.banks_ns[event.seat.index])
        elif isinstance(event, ev.TileDrawn):
            _tile_drawn(draft, event)
        else:
            _seldom(draft, event)


def _seldom(draft: _Draft, event: _Seldom) -> None:
    match event:
        case ev.Passed(seat):
            current = draft.current
            draft.round = current._replace(turn=seat.other, passes=current.passes + 1)
        case ev.BidMade() | ev.BidAccepted() | ev.BiddingDeclined():
            _auction(draft, event)
        case ev.RoundDealt():
            _round_dealt(draft, event)
        case ev.RoundDominoed() | ev.RoundBlocked():
            _round_settled(draft, event)
        case ev.MatchWon() | ev.MatchAborted():
            _over(draft, event)
        case ev.ClocksSuspended(at_ns):
            draft.suspended_at_ns = at_ns
        case ev.ClocksResumed(at_ns):
            _clocks_resumed(draft, at_ns)
        case _:
            _gathering(draft, event)


def _gathering(draft: _Draft, event: _Gathering) -> None:
    match event:
        case ev.PlayerSeated(seat, display_name):
            draft.display_names = draft.display_names.having(seat, display_name)
        case ev.EntropyCommitted(seat, commitment):
            draft.commitments = draft.commitments.having(seat, commitment)
        case ev.PlayerReady(seat):
            draft.ready = draft.ready.having(seat, value=True)
        case ev.HandoverOpened(seat):
            draft.handover, draft.revealed = seat, None
        case ev.HandRevealed(seat):
            draft.handover, draft.revealed = None, seat
        case ev.MatchCreated() | ev.ContinueTimedOut():
            pass
        case _:
            assert_never(event)


def _tile_played(draft: _Draft, event: ev.TilePlayed) -> None:
    current, seat = draft.current, event.seat
    hand = current.hands[seat.index]
    at = hand.index(event.tile)
    draft.phase = Phase.PLAYING
    draft.round = current._replace(
        hands=current.hands.having(seat, hand[:at] + hand[at + 1 :]),
        layout=current.layout.place(event.tile, event.end),
        turn=seat.other,
        must_play=None,
        passes=0,
        last_transfer=event.transfer or current.last_transfer,
    )
    if event.transfer is not None:
        draft.balances = moved(draft.balances, event.transfer)


def _tile_drawn(draft: _Draft, event: ev.TileDrawn) -> None:
    current = draft.current
    hand = tuple(sorted((*current.hands[event.seat.index], event.tile)))
    draft.round = current._replace(
        hands=current.hands.having(event.seat, hand),
        boneyard=current.boneyard[1:],
        must_play=event.tile if event.playable else None,
    )


def _auction(draft: _Draft, event: _Auction) -> None:
    current = draft.current
    match event:
        case ev.BidMade(seat, points):
            assert current.auction is not None
            auction = Auction(current.auction.jockey, StandingBid(seat, points))
            draft.round = current._replace(auction=auction, turn=seat.other)
        case ev.BidAccepted(bidder, _, _, payment):
            draft.phase = Phase.OPENING
            opening = OpeningPrivilege.BOUGHT
            draft.round = current._replace(auction=None, turn=bidder, opening=opening, last_transfer=payment)
            draft.balances = moved(draft.balances, payment)
        case ev.BiddingDeclined(seat):
            draft.phase = Phase.OPENING
            draft.round = current._replace(auction=None, turn=seat.other, opening=OpeningPrivilege.JOCKEY_FREE)
        case _:
            assert_never(event)


def _round_dealt(draft: _Draft, event: ev.RoundDealt) -> None:
    is_auction = event.jockey is not None
    draft.phase = Phase.BIDDING if is_auction else Phase.OPENING
    draft.round = Round(
        number=event.number,
        opening=OpeningPrivilege.AUCTION if is_auction else OpeningPrivilege.RANKED,
        hands=event.hands,
        boneyard=event.boneyard,
        turn=event.turn,
        auction=None if event.jockey is None else Auction(event.jockey),
        must_play=event.must_open,
    )
    draft.ready = NOBODY_READY
    draft.waiting_until_ns = None
    draft.settlement = None


def _round_settled(draft: _Draft, event: ev.RoundDominoed | ev.RoundBlocked) -> None:
    payment = event.transfer if isinstance(event, ev.RoundBlocked) else None
    current = draft.current
    draft.phase = Phase.SETTLED
    draft.round = current._replace(turn=None, last_transfer=payment or current.last_transfer)
    draft.revealed = None
    draft.settlement = event
    draft.waiting_until_ns = event.at_ns + draft.options.continue_timeout_ns
    if payment is not None:
        draft.balances = moved(draft.balances, payment)


def _over(draft: _Draft, event: ev.MatchWon | ev.MatchAborted) -> None:
    draft.phase = Phase.OVER
    draft.decision = draft.handover = draft.revealed = draft.waiting_until_ns = draft.suspended_at_ns = None
    draft.result = event


def _clocks_resumed(draft: _Draft, at_ns: int) -> None:
    assert draft.suspended_at_ns is not None
    standstill = draft.suspended_at_ns, at_ns
    stood_ns = at_ns - draft.suspended_at_ns
    draft.suspended_at_ns = None
    decision = draft.decision
    if decision is not None:
        started_at_ns = decision.started_at_ns + stood_ns
        draft.decision = replace(decision, started_at_ns=started_at_ns, standstills=(*decision.standstills, standstill))
    if draft.waiting_until_ns is not None:
        draft.waiting_until_ns += stood_ns
