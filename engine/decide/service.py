"""What the service itself does to a match: seating, leaving, settling what is due, aborting, a planned stop."""

from __future__ import annotations

from typing import TypeAlias, assert_never

from engine import commands as cmd
from engine import events as ev
from engine.decide import timing
from engine.decide.readiness import deal_round
from engine.decide.timing import NO_FAULTS, Evidence
from engine.refusals import Refusal, RefusalReason
from engine.seats import SEATS
from engine.state import MatchState, Phase
from engine.tiles import Tile

ServiceRuling: TypeAlias = ev.Step | Refusal


def decide_service(
    state: MatchState,
    command: cmd.ServiceCommand,
    *,
    now_ns: int,
    deal: tuple[Tile, ...],
    evidence: Evidence = NO_FAULTS,
) -> ServiceRuling:
    """The events of a service command, stored at `now_ns`; empty when there is nothing to do."""
    if state.result is not None and not _overturns(state, command):
        return Refusal(RefusalReason.MATCH_OVER)
    match command:
        case cmd.CheckClock(closed_ns):
            return _check_clock(state, closed_ns, now_ns, deal, evidence)
        case cmd.TakeSeat():
            return _take_seat(state, command)
        case cmd.Leave():
            return _leave(state, command, now_ns)
        case cmd.Abort(reason, words):
            return (ev.MatchAborted(reason, words, now_ns),)
        case cmd.SuspendClocks(at_ns):
            return () if state.due_ns is None else (ev.ClocksSuspended(_stands_from_ns(state, at_ns, now_ns)),)
        case cmd.ResumeClocks():
            return () if state.suspended_at_ns is None else (ev.ClocksResumed(now_ns),)
        case _:
            assert_never(command)


def _check_clock(state: MatchState, closed_ns: int, now_ns: int, deal: tuple[Tile, ...], evidence: Evidence) -> ev.Step:
    due = state.due_ns
    if due is None or closed_ns < due:
        return ()
    if state.decision is not None:
        return timing.expiry(state, evidence, now_ns)
    if state.phase is Phase.NOT_STARTED:  # S2
        return (_not_started(state, due),)
    return (ev.ContinueTimedOut(due), *deal_round(state, now_ns, deal))  # S2


def _not_started(state: MatchState, due_ns: int) -> ev.MatchAborted:
    """Who commits and does not open must not choose between deals: the match is void, and counted (SECRECY)."""
    silent = [seat.name for seat in SEATS if state.commitments[seat.index] and not state.ready[seat.index]]
    if silent:
        evidence = f"seat {' and '.join(silent)} committed to entropy and did not open it"
        return ev.MatchAborted(ev.AbortReason.DEAL_NOT_OPENED, evidence, due_ns)
    return ev.MatchAborted(ev.AbortReason.START_TIMEOUT, "not started in time", due_ns)


def _take_seat(state: MatchState, command: cmd.TakeSeat) -> ServiceRuling:
    seat = command.seat
    if state.display_names[seat.index] is not None:
        return Refusal(RefusalReason.ALREADY_READY)
    seated = ev.PlayerSeated(seat, command.display_name)
    takes_part = command.commitment and not state.opened[seat.other.index]
    return (seated, ev.EntropyCommitted(seat, command.commitment)) if takes_part else (seated,)


def _stands_from_ns(state: MatchState, at_ns: int | None, now_ns: int) -> int:
    """A decision that began after the planned instant has used nothing."""
    if at_ns is None:
        return now_ns
    return at_ns if state.decision is None else max(at_ns, state.decision.started_at_ns)


def _overturns(state: MatchState, command: cmd.ServiceCommand) -> bool:
    """Whether a finished match becomes an abort: a command in time was found behind the settled expiry (F2, F5)."""
    lost_on_time = isinstance(state.result, ev.MatchWon) and state.result.reason is ev.WinReason.TIME
    return lost_on_time and isinstance(command, cmd.Abort) and command.reason is ev.AbortReason.TIMING_FAILURE


def _leave(state: MatchState, command: cmd.Leave, now_ns: int) -> ServiceRuling:
    if state.phase is not Phase.NOT_STARTED:
        return Refusal(RefusalReason.WRONG_PHASE)  # X1: after the start a player resigns
    evidence = f"seat {command.seat.name} left"
    return (ev.MatchAborted(ev.AbortReason.LEFT_BEFORE_START, evidence, now_ns),)
