"""The match clock at work: verdicts, charges, the next decision (clauses clock.*, readings K1 to K7, F1, F2)."""

from __future__ import annotations

from typing import NamedTuple

from engine import events as ev
from engine.clock import Arrival, Verdict
from engine.commands import Request
from engine.faults import TOLERANCES, Fault, Tolerances
from engine.seats import Seat
from engine.state import MatchState


class Evidence(NamedTuple):
    """What is known against the clock: faults of the service that concern this match, and how much doubt is borne."""

    faults: tuple[Fault, ...] = ()
    tolerances: Tolerances = TOLERANCES


NO_FAULTS = Evidence()


def verdict(state: MatchState, request: Request, evidence: Evidence) -> Verdict:
    """How the request stands to the running decision, if that is its sender's."""
    decision = state.decision
    if decision is None or state.suspended_at_ns is not None or decision.seat is not request.seat:
        return Verdict.NOT_TIMED
    return decision.judge(request.arrival, evidence.tolerances.widest_stamp_ns)


def is_after_deadline(state: MatchState, arrival: Arrival) -> bool:
    """Whether the running decision had expired when this command came, whoever sent it (K5)."""
    decision = state.decision
    return decision is not None and state.suspended_at_ns is None and arrival.earliest_ns >= decision.deadline_ns


def expiry(state: MatchState, evidence: Evidence, now_ns: int) -> ev.Step:
    """The loss on time, recorded at the deadline itself (clock.expiry, K5). Balances stay (P5).

    Where a fault of the service could have caused it there is no result (clock.timing-failure, F2).
    """
    decision = state.decision
    assert decision is not None
    for fault in evidence.faults:
        if fault.covers_deadline(decision, evidence.tolerances):
            return timing_failure(str(fault), now_ns)
    return (
        ev.ClockStopped(decision.seat, decision.bank_ns),
        ev.MatchWon(decision.seat.other, ev.WinReason.TIME, decision.deadline_ns),
    )


def unprovable(arrival: Arrival, now_ns: int) -> ev.Step:
    """The stamp is too wide and lies across the deadline: no result (clock.timing-failure, F2)."""
    return timing_failure(f"a stamp from {arrival.earliest_ns} to {arrival.latest_ns} lies across the deadline", now_ns)


def timing_failure(evidence: str, now_ns: int) -> ev.Step:
    """A proven timing failure of the service: the match has no rated result (clock.timing-failure)."""
    return (ev.MatchAborted(ev.AbortReason.TIMING_FAILURE, evidence, now_ns),)


def was_in_time_after_all(state: MatchState, request: Request) -> bool:
    """Whether this command of the loser on time had arrived before the deadline that was settled without it (F5).

    A shared device speaks for whoever is on turn, and after the end nobody is.
    """
    result = state.result
    return (
        isinstance(result, ev.MatchWon)
        and result.reason is ev.WinReason.TIME
        and (state.options.shared_device or result.winner is not request.seat)
        and request.arrival.latest_ns < result.at_ns
    )


def charge_doubt(state: MatchState, arrival: Arrival, evidence: Evidence) -> str | None:
    """Why the bank cannot be charged for the decision that this command ends, if so (F2)."""
    decision = state.decision
    assert decision is not None
    tolerance = evidence.tolerances.charge_ns
    is_wide = arrival.latest_ns - arrival.earliest_ns > tolerance  # a bank is used no faster than time passes
    if is_wide and decision.bank_used_ns(arrival.latest_ns) - decision.bank_used_ns(arrival.earliest_ns) > tolerance:
        return f"a stamp from {arrival.earliest_ns} to {arrival.latest_ns} leaves the bank in doubt"
    for fault in evidence.faults:
        if fault.burned_ns(decision, arrival.earliest_ns) > tolerance:
            return str(fault)
    return None


def charge(state: MatchState, arrival: Arrival) -> ev.ClockStopped:
    """The end of the running decision, charged from the earliest bound of the stamp (K1)."""
    decision = state.decision
    assert decision is not None
    return ev.ClockStopped(decision.seat, decision.bank_used_ns(arrival.earliest_ns))


def next_decision(state: MatchState, seat: Seat, now_ns: int) -> ev.Event:
    """A fresh decision of `seat` (K2, K3). It is never that of who looks at a shared device: a handover first (K7)."""
    if state.options.shared_device:
        return ev.HandoverOpened(seat)
    return ev.ClockStarted(seat, now_ns)
