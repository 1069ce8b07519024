"""When the service itself fails: what proves it, when it counts, and the planned stop."""

import pytest

from engine import commands as cmd
from engine import events as ev
from engine.clock import BANK_NS, SECOND_NS, Arrival, Decision, Verdict
from engine.decide import Evidence, Ruling, decide_service
from engine.evolve import advance
from engine.faults import TOLERANCES, Fault, FaultCause, Tolerances
from engine.refusals import Refusal, RefusalReason
from engine.state import MatchState, Phase
from tests.support.rules.given import (
    ONE,
    STARTED_NS,
    STORING_NS,
    TWO,
    Match,
    events_of,
    on_shared_device,
    playing,
    reason_of,
    seconds,
    sent,
    served,
    stopped_clock,
    when,
)
from tests.support.rules.notation import play

LENGTH_NS = seconds(130)
DEADLINE_NS = STARTED_NS + LENGTH_NS
HOUR_NS = seconds(3_600)
TURN = playing("2-3", one="3-4 2-6 1-1", two="4-5 0-0 6-6")
LEGAL = play("3-4 E")
ILLEGAL = (cmd.Pass(), cmd.Bid(15), play("5-5 N"), cmd.Start())
WIDEST_NS = TOLERANCES.widest_stamp_ns
BURNING = {FaultCause.OUTAGE, FaultCause.CLOCK_FAULT, FaultCause.PUBLISH_STALL, FaultCause.COMMITS_LOST}


def failed(evidence: str, now_ns: int) -> ev.Step:
    """The only event of a match that a timing failure ended."""
    return (ev.MatchAborted(ev.AbortReason.TIMING_FAILURE, evidence, now_ns),)


def test_the_tolerances_are_those_of_the_design() -> None:
    """A tenth of a second for a stamp, one second for a bank, five seconds after a failure."""
    assert Tolerances(SECOND_NS // 10, SECOND_NS, 5 * SECOND_NS) == TOLERANCES


STAMPS = [
    (-2, -1, Verdict.IN_TIME),
    (-WIDEST_NS - 5, -1, Verdict.IN_TIME),
    (-1, 0, Verdict.IN_TIME_BY_DOUBT),
    (-WIDEST_NS, 0, Verdict.IN_TIME_BY_DOUBT),
    (-1, WIDEST_NS - 1, Verdict.IN_TIME_BY_DOUBT),
    (-WIDEST_NS - 1, 0, Verdict.UNPROVABLE),
    (-1, WIDEST_NS, Verdict.UNPROVABLE),
    (0, 1, Verdict.LATE),
    (0, HOUR_NS, Verdict.LATE),
]
"""Bounds of an arrival relative to the deadline, and the verdict."""


@pytest.mark.clause("clock.before-deadline", "F1", "K5")
@pytest.mark.parametrize(("earliest_ns", "latest_ns", "verdict"), STAMPS)
def test_a_stamp_is_an_interval(earliest_ns: int, latest_ns: int, verdict: Verdict) -> None:
    """Across the deadline a narrow stamp is in time by doubt, a wide one proves nothing."""
    arrival = Arrival(DEADLINE_NS + earliest_ns, DEADLINE_NS + latest_ns)
    assert when(TURN, ONE, LEGAL, arrival=arrival).verdict is verdict


@pytest.mark.clause("K1")
def test_the_bank_is_charged_from_the_earliest_bound() -> None:
    """Also when the doubt reaches across the deadline: one nanosecond is left."""
    doubtful = Arrival(DEADLINE_NS - 1, DEADLINE_NS + 5)
    assert stopped_clock(events_of(when(TURN, ONE, LEGAL, arrival=doubtful))).bank_used_ns == BANK_NS - 1
    early = Arrival(STARTED_NS + seconds(12), STARTED_NS + seconds(13))
    assert stopped_clock(events_of(when(TURN, ONE, LEGAL, arrival=early))).bank_used_ns == seconds(2)


@pytest.mark.clause("clock.timing-failure", "F1", "F2", "P6")
@pytest.mark.parametrize("command", [LEGAL, *ILLEGAL])
def test_a_wide_stamp_across_the_deadline_aborts_without_a_result(command: cmd.Command) -> None:
    """A would-be timeout that cannot be proven; the evidence is in the event, banks and balances stay."""
    wide = Arrival(DEADLINE_NS - seconds(1), DEADLINE_NS + seconds(1))
    ruling = when(TURN, ONE, command, arrival=wide)
    evidence = f"a stamp from {wide.earliest_ns} to {wide.latest_ns} lies across the deadline"
    assert ruling.events == failed(evidence, wide.latest_ns + STORING_NS)
    assert ruling.refusal == Refusal(RefusalReason.MATCH_OVER)
    over = advance(TURN, ruling.events)
    assert (over.phase, over.decision) == (Phase.OVER, None)
    assert (over.banks_ns, over.balances) == (TURN.banks_ns, TURN.balances)


@pytest.mark.clause("F2", "F3")
def test_only_the_stamp_of_the_player_on_turn_can_prove_nothing() -> None:
    """A wide stamp of the opponent aborts nothing."""
    across = Arrival(DEADLINE_NS - seconds(1), DEADLINE_NS + seconds(1))
    assert reason_of(when(TURN, TWO, LEGAL, arrival=across)) is RefusalReason.NOT_YOUR_TURN


@pytest.mark.clause("F2", "F3")
@pytest.mark.parametrize(
    ("earliest_ns", "latest_ns", "is_abort"),
    [
        (0, seconds(11), False),
        (0, seconds(11) + 1, True),
        (seconds(20), seconds(21), False),
        (seconds(20), seconds(21) + 1, True),
    ],
)
def test_a_bank_charge_must_be_known_to_a_second(earliest_ns: int, latest_ns: int, *, is_abort: bool) -> None:
    """A wider stamp that reaches into the bank aborts where the turn ends; a refused request charges nothing."""
    arrival = Arrival(STARTED_NS + earliest_ns, STARTED_NS + latest_ns)
    ruling = when(TURN, ONE, LEGAL, arrival=arrival)
    evidence = f"a stamp from {arrival.earliest_ns} to {arrival.latest_ns} leaves the bank in doubt"
    if is_abort:
        aborted = failed(evidence, arrival.latest_ns + STORING_NS)
        assert ruling == Ruling(aborted, Refusal(RefusalReason.MATCH_OVER), Verdict.IN_TIME)
    else:
        assert ruling.refusal is None
    assert when(TURN, ONE, cmd.Pass(), arrival=arrival).events == ()
    assert isinstance(when(TURN, ONE, cmd.Resign(), arrival=arrival).events[-1], ev.MatchWon)


def fault(cause: FaultCause, from_ns: int, to_ns: int) -> Evidence:
    """One row of the fault ledger, its span relative to the beginning of the decision."""
    return Evidence((Fault(cause, STARTED_NS + from_ns, STARTED_NS + to_ns, "proof"),))


COVERS, BURNS, TOUCHES, BEGINS = "covers the deadline", "burns a second", "touches the decision", "begins in it"
SPANS = [
    (LENGTH_NS - 2, LENGTH_NS, {COVERS, TOUCHES, BEGINS}),
    (LENGTH_NS - 1, LENGTH_NS + HOUR_NS, {COVERS, TOUCHES, BEGINS}),
    (LENGTH_NS, LENGTH_NS + HOUR_NS, set()),
    (0, LENGTH_NS - seconds(5), {COVERS, BURNS, TOUCHES, BEGINS}),
    (0, LENGTH_NS - seconds(5) - 1, {BURNS, TOUCHES, BEGINS}),
    (-1, seconds(1) + 1, {BURNS, TOUCHES}),
    (-1, seconds(1), {TOUCHES}),
    (-seconds(9), 1, {TOUCHES}),
    (-seconds(9), 0, set()),
]
"""A span relative to the decision, and how it stands to it."""


def counts_for(cause: FaultCause) -> set[str]:
    """What makes a fault of this cause count against a loss on time."""
    match cause:
        case FaultCause.CLOCK_FAULT:
            return {TOUCHES}
        case FaultCause.NOT_COMMITTED:
            return {BEGINS}
        case _:
            return {COVERS, BURNS} if cause in BURNING else {COVERS}


@pytest.mark.clause("F1", "F2", "clock.timing-failure")
@pytest.mark.parametrize("cause", FaultCause)
@pytest.mark.parametrize(("from_ns", "to_ns", "relations"), SPANS)
def test_a_fault_counts_against_a_timeout_that_it_could_have_caused(
    cause: FaultCause, from_ns: int, to_ns: int, relations: set[str]
) -> None:
    """Fault 64: over it, right before it, or by the time it took; a step or a lost command, anywhere."""
    evidence = fault(cause, from_ns, to_ns)
    counts = bool(relations & counts_for(cause))
    lost = ev.MatchWon(TWO, ev.WinReason.TIME, DEADLINE_NS)
    text = f"{cause.value} from {STARTED_NS + from_ns} to {STARTED_NS + to_ns}: proof"
    step = served(TURN, cmd.CheckClock(DEADLINE_NS), now_ns=DEADLINE_NS + 1, evidence=evidence)
    assert step == (failed(text, DEADLINE_NS + 1) if counts else (ev.ClockStopped(ONE, BANK_NS), lost))
    late = when(TURN, ONE, LEGAL, at_ns=LENGTH_NS, evidence=evidence)
    assert (late.events[-1] == lost) is not counts
    assert late.refusal == Refusal(RefusalReason.TIME_EXPIRED)


@pytest.mark.clause("F2")
@pytest.mark.parametrize(
    ("lost_at_ns", "is_abort"),
    [(0, True), (seconds(20), True), (seconds(29) - 1, True), (seconds(29), False), (-1, False), (seconds(40), False)],
)
def test_the_bank_burned_since_a_command_that_was_lost_counts(lost_at_ns: int, *, is_abort: bool) -> None:
    """The player had moved: what the bank lost until the repeat came is the service's doing, over a second of it."""
    evidence = fault(FaultCause.NOT_COMMITTED, lost_at_ns, lost_at_ns + seconds(1) // 10)
    ruling = when(TURN, ONE, LEGAL, at_ns=seconds(30), evidence=evidence)
    assert isinstance(ruling.events[0], ev.MatchAborted) is is_abort


@pytest.mark.clause("F1", "F2")
@pytest.mark.parametrize("cause", [cause for cause in FaultCause if cause is not FaultCause.NOT_COMMITTED])
@pytest.mark.parametrize(
    ("from_ns", "to_ns", "is_over_a_second"),
    [
        (0, seconds(1), False),
        (0, seconds(1) + 1, True),
        (seconds(20), seconds(21), False),
        (seconds(20), seconds(21) + 1, True),
        (seconds(29), HOUR_NS, False),
        (seconds(29) - 1, HOUR_NS, True),
        (seconds(40), HOUR_NS, False),
    ],
)
def test_a_fault_counts_against_a_charge_of_which_it_burned_more_than_a_second(
    cause: FaultCause, from_ns: int, to_ns: int, *, is_over_a_second: bool
) -> None:
    """While it lasted the player could not move or could not see to, in the delay as well; a turn of thirty seconds."""
    evidence = fault(cause, from_ns, to_ns)
    ruling = when(TURN, ONE, LEGAL, at_ns=seconds(30), evidence=evidence)
    is_abort = is_over_a_second and cause in BURNING
    assert [type(event) for event in ruling.events][:1] == [ev.MatchAborted if is_abort else ev.ClockStopped]
    assert (ruling.refusal == Refusal(RefusalReason.MATCH_OVER)) is is_abort
    assert when(TURN, ONE, cmd.Pass(), at_ns=seconds(30), evidence=evidence).events == ()


@pytest.mark.clause("F2", "F3")
def test_a_fault_changes_no_clock_where_it_could_change_no_verdict() -> None:
    """Play goes on with the same charges."""
    evidence = fault(FaultCause.STORE_GAP, 0, seconds(20))
    assert when(TURN, ONE, LEGAL, at_ns=seconds(30), evidence=evidence) == when(TURN, ONE, LEGAL, at_ns=seconds(30))
    assert when(TURN, TWO, cmd.Resign(), at_ns=seconds(30), evidence=fault(FaultCause.OUTAGE, 0, HOUR_NS)).events == (
        ev.ClockStopped(ONE, seconds(20)),
        ev.MatchWon(ONE, ev.WinReason.RESIGNATION, STARTED_NS + seconds(30) + STORING_NS),
    )


@pytest.mark.clause("clock.timing-failure", "F2")
def test_the_service_aborts_with_its_evidence() -> None:
    """A fault that it proved elsewhere ends the match without a winner."""
    step = served(TURN, cmd.Abort(ev.AbortReason.TIMING_FAILURE, "store gap of 2 s"), now_ns=DEADLINE_NS)
    assert step == (ev.MatchAborted(ev.AbortReason.TIMING_FAILURE, "store gap of 2 s", DEADLINE_NS),)


@pytest.mark.clause("F2", "F5")
@pytest.mark.parametrize("state", [TURN, on_shared_device(TURN)])
def test_a_command_in_time_behind_a_settled_expiry_aborts(state: MatchState) -> None:
    """Only of who lost, and only when it was surely in time; a shared device speaks for both."""
    lost = advance(state, served(state, cmd.CheckClock(DEADLINE_NS)))
    in_time = when(lost, ONE, LEGAL, arrival=Arrival.at(DEADLINE_NS - 1))
    text = f"a command stamped at {DEADLINE_NS - 1} was found behind a settled expiry"
    aborted = failed(text, DEADLINE_NS - 1 + STORING_NS)
    assert in_time == Ruling(aborted, Refusal(RefusalReason.MATCH_OVER), Verdict.IN_TIME)
    assert reason_of(when(lost, ONE, LEGAL, arrival=Arrival(DEADLINE_NS - 1, DEADLINE_NS))) is RefusalReason.MATCH_OVER
    of_the_winner = when(lost, TWO, LEGAL, arrival=Arrival.at(DEADLINE_NS - 1))
    assert of_the_winner.events == (aborted if state.options.shared_device else ())
    resigned = sent(state, (ONE, cmd.Resign()))
    assert reason_of(when(resigned, ONE, LEGAL, arrival=Arrival.at(STARTED_NS))) is RefusalReason.MATCH_OVER


@pytest.mark.clause("F2", "F5")
def test_a_settled_expiry_is_overturned_by_a_proven_timing_failure_alone() -> None:
    """An in-time command was found behind it; for any other reason a finished match stays finished."""
    lost = advance(TURN, served(TURN, cmd.CheckClock(DEADLINE_NS)))
    step = served(lost, cmd.Abort(ev.AbortReason.TIMING_FAILURE, "in time after all"), now_ns=DEADLINE_NS + 1)
    aborted = advance(lost, step)
    assert aborted.result == ev.MatchAborted(ev.AbortReason.TIMING_FAILURE, "in time after all", DEADLINE_NS + 1)
    resigned = sent(TURN, (ONE, cmd.Resign()))
    finished: list[tuple[MatchState, cmd.ServiceCommand]] = [
        (lost, cmd.Abort(ev.AbortReason.OPERATOR, "")),
        (lost, cmd.CheckClock(DEADLINE_NS)),
        (resigned, cmd.Abort(ev.AbortReason.TIMING_FAILURE, "")),
        (aborted, cmd.Abort(ev.AbortReason.TIMING_FAILURE, "")),
    ]
    for state, command in finished:
        assert decide_service(state, command, now_ns=0, deal=()) == Refusal(RefusalReason.MATCH_OVER)


@pytest.mark.clause("F4")
@pytest.mark.parametrize("stopped_for_ns", [0, 1, HOUR_NS])
def test_a_planned_stop_moves_a_running_clock_by_its_length(stopped_for_ns: int) -> None:
    """What was elapsed is kept and nothing is refilled; while it stands nothing is due and nothing is taken."""
    down = advance(TURN, served(TURN, cmd.SuspendClocks(), now_ns=STARTED_NS + seconds(12)))
    assert down.suspended_at_ns == STARTED_NS + seconds(12)
    assert served(down, cmd.CheckClock(DEADLINE_NS + HOUR_NS)) == ()
    assert served(down, cmd.SuspendClocks()) == ()
    assert reason_of(when(down, ONE, LEGAL, at_ns=LENGTH_NS)) is RefusalReason.WRONG_PHASE
    assert reason_of(when(down, ONE, cmd.Resign())) is RefusalReason.WRONG_PHASE
    step = served(down, cmd.ResumeClocks(), now_ns=STARTED_NS + seconds(12) + stopped_for_ns)
    up = advance(down, step)
    assert step == (ev.ClocksResumed(STARTED_NS + seconds(12) + stopped_for_ns),)
    assert up.suspended_at_ns is None
    assert up.decision == Decision(ONE, STARTED_NS + stopped_for_ns, BANK_NS)
    assert up.banks_ns == TURN.banks_ns


@pytest.mark.clause("F4")
@pytest.mark.parametrize(
    ("planned_ns", "stands_from_ns"), [(-seconds(5), 0), (0, 0), (seconds(4), seconds(4)), (None, seconds(6))]
)
def test_clocks_stand_from_the_planned_instant_on(planned_ns: int | None, stands_from_ns: int) -> None:
    """Stored later, it takes nothing from anybody; a decision that began after it has used nothing."""
    at_ns = None if planned_ns is None else STARTED_NS + planned_ns
    step = served(TURN, cmd.SuspendClocks(at_ns), now_ns=STARTED_NS + seconds(6))
    assert step == (ev.ClocksSuspended(STARTED_NS + stands_from_ns),)
    waiting = Match().state
    assert served(waiting, cmd.SuspendClocks(seconds(5)), now_ns=seconds(6)) == (ev.ClocksSuspended(seconds(5)),)


@pytest.mark.clause("F2", "F4")
@pytest.mark.parametrize("cause", [cause for cause in FaultCause if cause in BURNING])
@pytest.mark.parametrize(
    ("from_ns", "to_ns", "is_abort"), [(2, 4, True), (7, 60, True), (11, 13, False), (13, 60, False)]
)
def test_a_planned_stop_moves_the_faults_before_it_too(
    cause: FaultCause, from_ns: int, to_ns: int, *, is_abort: bool
) -> None:
    """Twelve seconds into a decision, for an hour: what came before goes on concerning it, the stop itself does not."""
    down = advance(TURN, served(TURN, cmd.SuspendClocks(), now_ns=STARTED_NS + seconds(12)))
    up = advance(down, served(down, cmd.ResumeClocks(), now_ns=STARTED_NS + seconds(12) + HOUR_NS))
    evidence = fault(cause, seconds(from_ns), seconds(to_ns))
    ruling = when(up, ONE, LEGAL, at_ns=seconds(20), evidence=evidence)
    assert isinstance(ruling.events[0], ev.MatchAborted) is is_abort


@pytest.mark.clause("F4")
@pytest.mark.parametrize(("before", "after"), [(5, 205), (50, 212), (115, 215), (150, 220), (230, 230)])
def test_each_planned_stop_moves_what_came_before_its_end(before: int, after: int) -> None:
    """Two stops, from 12 to 112 s and from 120 to 220 s: an instant moves with the decision by those behind it."""
    stops = ((seconds(12), seconds(112)), (seconds(120), seconds(220)))
    assert Decision(ONE, 0, seconds(120), stops).moved_ns(seconds(before)) == seconds(after)


@pytest.mark.clause("F4")
def test_a_planned_stop_moves_a_wait_too() -> None:
    """Start and Continue have their full time."""
    waiting = Match().state
    down = advance(waiting, served(waiting, cmd.SuspendClocks(), now_ns=seconds(5)))
    assert reason_of(when(down, ONE, cmd.Start())) is RefusalReason.WRONG_PHASE
    up = advance(down, served(down, cmd.ResumeClocks(), now_ns=seconds(25)))
    assert up.waiting_until_ns == seconds(600) + seconds(20)


@pytest.mark.clause("F4")
def test_a_match_that_is_aborted_during_a_stop_is_over_and_not_suspended() -> None:
    """Nothing resumes in it."""
    down = advance(TURN, served(TURN, cmd.SuspendClocks()))
    over = advance(down, served(down, cmd.Abort(ev.AbortReason.OPERATOR, "asked for")))
    assert (over.phase, over.suspended_at_ns, over.decision) == (Phase.OVER, None, None)
    resumed = decide_service(over, cmd.ResumeClocks(), now_ns=DEADLINE_NS, deal=())
    assert resumed == Refusal(RefusalReason.MATCH_OVER)


@pytest.mark.clause("F4")
def test_where_nothing_runs_nothing_is_suspended_or_resumed() -> None:
    """A handover has no clock; a running service has nothing to resume."""
    handed = TURN._replace(decision=None, handover=ONE)
    assert served(handed, cmd.SuspendClocks()) == ()
    assert served(TURN, cmd.ResumeClocks()) == ()
