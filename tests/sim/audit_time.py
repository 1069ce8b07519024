"""Invariants of time: stamps hold arrivals, no wrong loss, no late accept, exact banks, aborts only for real faults."""

from __future__ import annotations

from engine import events as ev
from engine.clock import DELAY_NS, SECOND_NS, Arrival, Verdict
from engine.decide import decide
from engine.faults import TOLERANCES, FaultCause
from engine.seats import Seat
from service.ports import CommandRecord
from tests.sim.audit_tails import loss_of
from tests.sim.prepared import AUDIENCES, HOLDERS
from tests.sim.story import Story, is_loss_on_time, is_resignation, read, request_for, sendings, timing_failure
from tests.sim.truth import Attempt, Truth
from tests.sim.world import MS_NS, NEVER_NS, NOON_NS

CLOCKS_DIFFER_NS = 20 * MS_NS
"""Around an instant by a replica's clock."""
CHARGE_SLACK_NS = 50 * MS_NS
"""Beyond the tolerance of a charge: what ticks and slack may add."""
AROUND_FAULT_NS = 500 * MS_NS
"""How far from its cause a row of the ledger may lie: heartbeats and backlogs."""


def audit_time(truth: Truth, story: Story) -> None:
    """Check one match against what really happened."""
    for version in story.versions:
        change = story.change(version)
        if is_loss_on_time(change) is not None:
            _check_loss(truth, story, version)
        elif timing_failure(change) is not None:
            _check_abort(truth, story, version)
        elif change.record is not None and change.record.receipt.decision is not None:
            _check_accepted(truth, story, version, change.record)


def audit_first_stamps(truth: Truth, story: Story) -> None:
    """A repeat changes nothing: a command is judged by its first stamp in the process that decided it (K4, X4).

    Not where somebody floods the line with the sender's own token: then there is no room to remember everything.
    """
    crowded = {
        one.holder
        for (match_id, _), sent in truth.attempts.items()
        for one in sent
        if match_id == story.match_id and not one.is_honest
    }
    for written in (*story.written[story.versions.start :], *story.refusals):
        record = None if written is None else written.change.record
        if record is None or HOLDERS[record.sender] in crowded or _was_lost_before(story, record):
            continue
        sent = [one for one in sendings(truth, story.match_id, record) if one.stamp is not None]
        judged = next((one for one in sent if one.stamp == record.receipt.arrival), None)
        if judged is not None and any(
            _came_before(one, judged) and not _had_to_wait(story, record, one) for one in sent
        ):
            truth.violated("a command is judged by its first stamp", f"{story.match_id} {record.command_id}")


def _was_lost_before(story: Story, record: CommandRecord) -> bool:
    """Whether this command was stored before, with a stamp that was lost with it."""
    before = [gone.change.record for gone in story.lost if gone.change.record is not None]
    return (record.sender, record.command_id) in [(one.sender, one.command_id) for one in before]


def _came_before(one: Attempt, judged: Attempt) -> bool:
    """Whether it entered the line before, and at no later place: where a witness narrowed stamps these may differ."""
    assert one.stamp is not None
    assert judged.stamp is not None
    is_earlier = one.stamped_ns < judged.stamped_ns and one.stamp.earliest_ns <= judged.stamp.earliest_ns
    return one.life == judged.life and is_earlier and not _was_turned_away_unread(one)


def _had_to_wait(story: Story, record: CommandRecord, attempt: Attempt) -> bool:
    """Whether it came while the clocks stood, so that it was to be repeated when they run again."""
    before = record.version - (record.refusal is None)
    spans, came_ns = story.suspensions(story.versions.start, before), attempt.arrived_service_ns
    return any(from_ns - CLOCKS_DIFFER_NS <= came_ns < to_ns + CLOCKS_DIFFER_NS for from_ns, to_ns in spans)


def _was_turned_away_unread(attempt: Attempt) -> bool:
    """Whether the service had no place for it, or may not have known whose it was."""
    return attempt.answer == "RESOURCE_EXHAUSTED" or (attempt.is_a_strangers and attempt.answer != "")


def audit_stamps(truth: Truth) -> None:
    """Every stamp holds the true arrival of its message; what a witness says of it is part of the service's own."""
    for attempts in truth.attempts.values():
        for attempt in attempts:
            stamp = attempt.stamp
            if stamp is not None and not _is_within_own(stamp):
                truth.violated("a witness narrows", f"{attempt.match_id} {stamp}")
            if stamp is None or attempt.arrived_step_ns != attempt.stamped_step_ns:
                continue
            if not stamp.earliest_ns <= attempt.arrived_service_ns <= stamp.latest_ns:
                early_ns = stamp.earliest_ns - attempt.arrived_service_ns
                truth.violated("a stamp holds the arrival", f"{attempt.match_id} off by {early_ns} ns")


def _is_within_own(stamp: Arrival) -> bool:
    if stamp.own_earliest_ns is None or stamp.own_latest_ns is None:
        return True
    return stamp.own_earliest_ns <= stamp.earliest_ns <= stamp.latest_ns <= stamp.own_latest_ns


def _check_loss(truth: Truth, story: Story, version: int) -> None:
    """No loss on time when a command that would have been accepted reached a live service before the deadline."""
    state = story.state(version - 1)
    decision = state.decision
    assert decision is not None
    began_ns = story.started_ns(version - 1)
    fair_ns = began_ns + story.stood_ns(version - 1, truth) + DELAY_NS + decision.bank_ns
    fair_ns -= TOLERANCES.charge_ns + CHARGE_SLACK_NS  # a turn may be stored that much after it began
    lost = story.written[version]
    assert lost is not None
    decided = {
        (written.change.record.sender, written.change.record.command_id)
        for written in (*filter(None, story.written), *story.refusals)
        if written.change.record is not None and written.at_ns < lost.at_ns
    }
    for (match_id, command_id), attempts in truth.attempts.items():
        if match_id != story.match_id:
            continue
        for attempt in attempts:
            if attempt.arrived_ns is None or not attempt.is_honest or not attempt.reached or attempt.is_cancelled:
                continue
            in_time = attempt.arrived_service_ns < decision.deadline_ns or attempt.arrived_ns < fair_ns
            if not in_time or attempt.arrived_ns < began_ns:
                continue
            if (AUDIENCES[attempt.holder], command_id) in decided or _stood_still(story, version, attempt):
                continue
            is_excused = any(
                excuse(truth, story, attempt, decision.deadline_ns)
                for excuse in (_had_time_to_repeat, _was_fenced, _had_time_to_see_it_lost)
            )
            if _would_count(story, version, attempt, decision.seat) and not is_excused:
                early_ms = (decision.deadline_ns - attempt.arrived_service_ns) / MS_NS
                truth.violated(
                    "no loss on time when a command was in time",
                    f"{match_id} v{version}: {command_id} came {early_ms:.3f} ms before the deadline, {attempt.answer}",
                )


def _would_count(story: Story, version: int, attempt: Attempt, seat: Seat) -> bool:
    state, fields = story.state(version - 1), read(attempt)
    if fields is None:
        return False
    arrival = Arrival.at(attempt.arrived_service_ns)
    request = request_for(state, AUDIENCES[attempt.holder], fields, arrival)
    return request.seat is seat and decide(state, request, now_ns=arrival.latest_ns, deal=()).refusal is None


def _stood_still(story: Story, version: int, attempt: Attempt) -> bool:
    """Whether the clocks stood, for a planned stop, when the command came."""
    spans = story.standstills(version - 1)
    return any(from_ns <= attempt.arrived_service_ns < to_ns for from_ns, to_ns in spans)


def _had_time_to_see_it_lost(truth: Truth, story: Story, attempt: Attempt, deadline_ns: int) -> bool:
    """Whether it was stored, and lost long enough before the deadline."""
    for gone in story.lost:
        record, loss = gone.change.record, loss_of(truth, gone)
        if record is None or loss is None or record.command_id != attempt.command_id:
            continue
        if truth.true_ns(deadline_ns) > loss.to_ns + TOLERANCES.aftermath_ns:
            return True
    return False


def _had_time_to_repeat(truth: Truth, _: Story, attempt: Attempt, deadline_ns: int) -> bool:
    """Whether the process died with the command, and a new one was there long enough before the deadline."""
    died_ns = truth.lives[attempt.life].ended_ns
    if died_ns is None:
        return False
    opened_ns = min(
        (life.opened_ns for life in truth.lives if life.opened_ns and life.opened_ns >= died_ns), default=None
    )
    return opened_ns is not None and truth.true_ns(deadline_ns) - opened_ns > TOLERANCES.aftermath_ns


def _was_fenced(truth: Truth, story: Story, attempt: Attempt, deadline_ns: int) -> bool:
    """Whether its replica was taken for lost before it had handled it, long enough before the deadline."""
    life = truth.lives[attempt.life]
    for fenced_ns in life.fenced:
        back_ns = next((at_ns for at_ns in life.beats if at_ns > fenced_ns), NEVER_NS)
        known = [
            fault.to_ns
            for place, fault in story.rows
            if fault.cause is FaultCause.REPLICA_LOST and story.noted[place].at_ns <= fenced_ns
        ]
        assert attempt.arrived_ns is not None
        if attempt.arrived_ns <= back_ns and known and max(known) + TOLERANCES.aftermath_ns < deadline_ns:
            return True
    return False


def _check_accepted(truth: Truth, story: Story, version: int, record: CommandRecord) -> None:
    decision, stamp = record.receipt.decision, record.receipt.arrival
    assert decision is not None
    attempt = next((one for one in sendings(truth, story.match_id, record) if one.stamp == stamp), None)
    if attempt is None:
        truth.violated("a record has its sending", f"{story.match_id} v{version}")
        return
    if attempt.arrived_service_ns >= decision.deadline_ns:
        narrow = stamp.latest_ns - stamp.earliest_ns <= TOLERANCES.widest_stamp_ns
        if record.receipt.verdict is not Verdict.IN_TIME_BY_DOUBT or not narrow:
            late_ms = (attempt.arrived_service_ns - decision.deadline_ns) / MS_NS
            truth.violated("no late accept", f"{story.match_id} v{version}: {late_ms:.3f} ms late")
    _check_beginning(truth, story, version, record, attempt)
    _check_charge(truth, story, version, attempt)


def _check_beginning(truth: Truth, story: Story, version: int, record: CommandRecord, attempt: Attempt) -> None:
    """The next decision begins when its cause is stored: not before that was taken over, nor after its writing (K3).

    It is compared with true time: the stamp's bounds hold the error of then, which a better clock may have shown since.
    """
    written, error_ns = story.written[version], record.receipt.error_bound_ns
    assert written is not None
    came_ns = attempt.stamped_ns + NOON_NS + attempt.stamped_step_ns
    stored_ns = written.at_ns + NOON_NS + truth.world.stepped_ns
    for event in story.change(version).events:
        if isinstance(event, ev.ClockStarted) and not came_ns - error_ns <= event.at_ns <= stored_ns + error_ns:
            truth.violated("a decision begins when its cause is stored", f"{story.match_id} v{version} {event.at_ns}")


def _check_charge(truth: Truth, story: Story, version: int, attempt: Attempt) -> None:
    """The bank pays for the time from storing the decision's beginning to the command's arrival, give or take 1 s.

    Its arrival is that of its first sending to the process that accepted it: what failed there is not the player's.
    """
    first = story.change(version).events[0]
    decision = story.state(version - 1).decision
    if not isinstance(first, ev.ClockStopped) or is_resignation(story.change(version)):
        return
    assert decision is not None
    if first.bank_used_ns > decision.bank_used_ns(attempt.arrived_service_ns):
        truth.violated("nobody pays for doubt", f"{story.match_id} v{version}: {first.bank_used_ns}")
    started_ns = story.started_ns(version - 1)
    known = truth.attempts[story.match_id, attempt.command_id]
    here = [one for one in known if one.life == attempt.life and not one.is_cancelled]
    arrivals = [one.arrived_ns for one in here if one.arrived_ns is not None and not _stood_still(story, version, one)]
    came_ns = min([at_ns for at_ns in arrivals if at_ns >= started_ns] or [attempt.arrived_ns or 0])
    elapsed_ns = came_ns - started_ns - story.stood_ns(version - 1, truth)
    true_ns = min(decision.bank_ns, max(0, elapsed_ns - DELAY_NS))
    off_ns = first.bank_used_ns - true_ns
    if abs(off_ns) > TOLERANCES.charge_ns + CHARGE_SLACK_NS:
        truth.violated("bank charges are true", f"{story.match_id} v{version}: off by {off_ns / SECOND_NS:.3f} s")


def _check_abort(truth: Truth, story: Story, version: int) -> None:
    """There is a row of the ledger about the decision, and a fault that was really made beside it."""
    aborted = timing_failure(story.change(version))
    assert aborted is not None
    from_ns = aborted.at_ns
    if story.state(version - 1).decision is not None:  # as it began: planned stops have moved it since
        decision = story.state(story.began(version - 1)).decision
        assert decision is not None
        from_ns = decision.started_at_ns
    rows = [
        fault
        for fault in story.faults
        if fault.to_ns + TOLERANCES.aftermath_ns >= from_ns and fault.from_ns <= aborted.at_ns
    ]
    if not rows:
        truth.violated("no abort without a ledger row", f"{story.match_id} v{version}: {aborted.evidence}")
    real = [
        fault
        for fault in truth.faults
        for row in rows
        if fault.from_service_ns - AROUND_FAULT_NS <= row.to_ns and row.from_ns <= fault.to_service_ns + AROUND_FAULT_NS
    ]
    if not real:
        truth.violated("no abort without a real fault", f"{story.match_id} v{version}: {aborted.evidence}")
