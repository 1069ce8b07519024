"""The checker: reads a recorded history and the database offline, and says what does not hold.

It knows the rules of the game, the fault ledger and what was done to the service; of the service's own code it uses
only the reading of rows and commands, and the projector of views.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from engine import events as ev
from engine.clock import SECOND_NS, Arrival, Verdict
from engine.faults import Fault
from engine.refusals import RefusalReason
from service.ports import CommandRecord
from spectacularbid.v1 import outcomes_pb2
from tests.chaos.check_log import check_log, proves
from tests.chaos.check_views import SEAT_OF, check_views
from tests.chaos.history import MACHINE, Answered, History, Injected, Sent, Stored
from tests.chaos.story import Story, loss_on_time, stories, timing_failure

OVERDUE_NS = 3 * SECOND_NS
"""So long after its time, and after the last fault, nothing may be left undecided."""
AROUND_FAULT_NS = 2 * SECOND_NS
"""How far a row of the ledger may lie beside what was done to the service: what noticing and recovering take."""
AROUND_STALL_NS = SECOND_NS // 2
"""The same for a moment in which the machine was busy: a stamp is wide for a quarter of a second after it."""
HARMLESS = frozenset({"rolling deploy", "NATS killed"})
"""What may never cost a match its result."""
TRIED_NS = 3 * SECOND_NS // 2
"""Whoever began to send so long before a deadline, and never stopped trying, has done enough."""
REFUSAL_NUMBERS = {
    reason: outcomes_pb2.RefusalReason.Value("REFUSAL_REASON_" + reason.name) for reason in RefusalReason
}
VERDICT_NUMBERS = {verdict: outcomes_pb2.TimingVerdict.Value("TIMING_VERDICT_" + verdict.name) for verdict in Verdict}


def check(history: History, stored: Stored) -> list[str]:
    """Every violation, as `invariant: where`."""
    return list(_violations(history, stored))


def _violations(history: History, stored: Stored) -> Iterator[str]:
    yield from _check_answers(history, stored)
    for story in stories(stored):
        yield from check_log(history, story)
        if len(story.states) > 1:
            yield from check_views(history, story)
            yield from _check_endings(history, story)
            yield from _check_decided(history, stored, story)
            yield from _check_last_views(history, story)


def _check_answers(history: History, stored: Stored) -> Iterator[str]:
    """Answered means stored, once, with the same outcome; and the stamp holds the true arrival."""
    records = {
        (match_id, record.sender, record.command_id): record
        for match_id, match in stored.matches.items()
        for record in match.records
    }
    sendings: dict[tuple[str, str], list[Sent]] = defaultdict(list)
    for sent in history.sent:
        sendings[sent.match_id, sent.command_id].append(sent)
    last_ns: dict[tuple[str, str], int] = defaultdict(int)
    for answer in history.answered:
        key = answer.sent.match_id, answer.sent.command_id
        last_ns[key] = max(last_ns[key], answer.at_ns)
    for answer in history.answered:
        sent = answer.sent
        where = f"{sent.match_id} {sent.command_id}"
        record = records.get((sent.match_id, sent.sender, sent.command_id))
        if record is None:
            yield f"answered means stored: {where}"
            continue
        yield from (f"{text}: {where}" for text in _disagreements(answer, record))
        first_ns = min(one.sent_ns for one in sendings[sent.match_id, sent.command_id])
        arrival = record.receipt.arrival
        if not (
            first_ns - history.apart_ns <= arrival.latest_ns
            and arrival.earliest_ns <= last_ns[sent.match_id, sent.command_id] + history.apart_ns
        ):
            yield f"a stamp holds the true arrival: {where}"


def _disagreements(answer: Answered, record: CommandRecord) -> Iterator[str]:
    outcome = answer.outcome
    accepted = outcome.accepted.version if outcome.HasField("accepted") else None
    reason = outcome.refused.reason if outcome.HasField("refused") else None
    if accepted != (record.version if record.refusal is None else None):
        yield "one effect a command"
    if reason != (None if record.refusal is None else REFUSAL_NUMBERS[record.refusal.reason]):
        yield "one effect a command"
    if outcome.view.public.version < record.version:
        yield "an answer shows its effect"
    if _receipt_of(outcome) != _receipt_of_record(record):
        yield "a receipt is the stored one"


def _receipt_of(outcome: outcomes_pb2.CommandOutcome) -> tuple[Arrival, int]:
    receipt = outcome.receipt
    own = (receipt.own_earliest_unix_ns, receipt.own_latest_unix_ns) if receipt.HasField("own_latest_unix_ns") else ()
    return Arrival(receipt.arrival_earliest_unix_ns, receipt.arrival_latest_unix_ns, *own), int(receipt.verdict)


def _receipt_of_record(record: CommandRecord) -> tuple[Arrival, int]:
    return record.receipt.arrival, VERDICT_NUMBERS[record.receipt.verdict]


def _check_endings(history: History, story: Story) -> Iterator[str]:
    for version in story.versions[1:]:
        step, decision = story.steps[version], story.state(version - 1).decision
        if (won := loss_on_time(step)) is not None:
            if decision is None or won.at_ns != decision.deadline_ns:
                yield f"a loss on time is at its deadline: {story.match_id} v{version}"
            if any(_tried_in_time(sent, story, version, won, history.apart_ns) for sent in history.sent):
                yield f"who tried in time does not lose on time: {story.match_id} v{version}"
        if (aborted := timing_failure(step)) is not None:
            yield from _check_abort(history, story, version, aborted)


def _tried_in_time(sent: Sent, story: Story, version: int, won: ev.MatchWon, apart_ns: int) -> bool:
    """Whether the loser had begun to send a command of this decision long before its deadline."""
    return (
        sent.match_id == story.match_id
        and SEAT_OF.get(sent.sender) is won.winner.other
        and sent.expected_version == version - 1
        and sent.command.WhichOneof("command") is not None
        and sent.sent_ns < won.at_ns - TRIED_NS - apart_ns
    )


def _check_abort(history: History, story: Story, version: int, aborted: ev.MatchAborted) -> Iterator[str]:
    """A row of the ledger proves it, and the service was really made to suffer then."""
    where = f"{story.match_id} v{version} {aborted.evidence}"
    rows = [fault for fault in story.faults if proves(fault, aborted)]
    if not rows:
        yield f"no abort without a row of the ledger: {where}"
        return
    harmful = [one for one in history.injected if one.kind not in HARMLESS]
    if any(_overlaps(fault, one, history.apart_ns) for fault in rows for one in harmful):
        return
    if all(one.kind == MACHINE for one in harmful):
        yield f"clients and planned stops abort nothing: {where}"
    else:
        yield f"no abort without a real fault: {where}"


def _overlaps(fault: Fault, injected: Injected, apart_ns: int) -> bool:
    around_ns = apart_ns + (AROUND_STALL_NS if injected.kind == MACHINE else AROUND_FAULT_NS)
    return fault.from_ns <= injected.to_ns + around_ns and fault.to_ns >= injected.from_ns - around_ns


def _check_decided(history: History, stored: Stored, story: Story) -> Iterator[str]:
    """Every overdue match is decided within seconds after the faults stop, and no clock stands for ever."""
    due_ns = story.last.due_ns
    if due_ns is not None:
        quiet_ns = max([due_ns, *(one.to_ns for one in history.injected if one.kind != MACHINE)])
        if stored.at_ns > quiet_ns + OVERDUE_NS + history.apart_ns:
            yield f"overdue matches are decided: {story.match_id} for {(stored.at_ns - due_ns) / SECOND_NS:.1f} s"
    if story.last.suspended_at_ns is not None:
        yield f"suspended clocks are resumed: {story.match_id}"


def _check_last_views(history: History, story: Story) -> Iterator[str]:
    """Whoever watched to the end saw the end."""
    if story.last.result is None:
        return
    newest: dict[str, int] = {}
    for seen in history.seen:
        if seen.match_id == story.match_id:
            newest[seen.watcher] = seen.update.view.public.version
    for watcher, version in newest.items():
        if version != story.last.version:
            yield f"a watch ends at the final version: {watcher} at v{version} of {story.last.version}"
