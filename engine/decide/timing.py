"""The match clock at work: verdicts, charges, the next decision (clauses clock.*, readings K1 to K7, F1, F2)."""

from __future__ import annotations

from engine import events as ev
from engine.clock import Arrival, Verdict
from engine.commands import Request
from engine.seats import Seat
from engine.state import MatchState


def verdict(state: MatchState, request: Request) -> Verdict:
    """How the request stands to the running decision, if that is its sender's."""
    if state.decision is None or state.suspended_at_ns is not None or state.decision.seat is not request.seat:
        return Verdict.NOT_TIMED
    return state.decision.judge(request.arrival)


def is_after_deadline(state: MatchState, arrival: Arrival) -> bool:
    """Whether the running decision had expired when this command came, whoever sent it (K5)."""
    due = state.due_ns
    return state.decision is not None and due is not None and arrival.earliest_ns >= due


def expiry(state: MatchState) -> ev.Step:
    """The loss on time, recorded at the deadline itself (clock.expiry, K5). Balances stay (P5)."""
    decision = state.decision
    assert decision is not None
    return (
        ev.ClockStopped(decision.seat, decision.bank_ns),
        ev.MatchWon(decision.seat.other, ev.WinReason.TIME, decision.deadline_ns),
    )


def unprovable(arrival: Arrival, now_ns: int) -> ev.Step:
    """The stamp is too wide and lies across the deadline: no result (clock.timing-failure, F2)."""
    width_ms = (arrival.latest_ns - arrival.earliest_ns) // 1_000_000
    evidence = f"a command's arrival is known only to {width_ms} ms and lies across the deadline"
    return (ev.MatchAborted(ev.AbortReason.TIMING_FAILURE, evidence, now_ns),)


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
