"""What must hold of stored rows by themselves: contiguous versions, one effect a command, verdicts that follow."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from engine import events as ev
from engine import invariants
from engine.clock import Arrival
from engine.commands import CheckClock
from engine.decide import NO_FAULTS, Evidence, decide, decide_service
from engine.faults import Fault
from engine.refusals import Refusal, RefusalReason
from service.ports import CommandRecord
from service.rpc import requests
from service.rpc.requests import CommandFields
from service.rpc.statuses import StatusError
from spectacularbid.v1 import match_service_pb2 as pb
from tests.chaos.history import History, Sent
from tests.chaos.story import Story, has_gap
from tests.sim.audit_log import BY_PLAYERS, arguments_of, differs_in_words
from tests.sim.story import request_for

BY_THE_CLOCK = (ev.MatchWon, ev.MatchAborted, ev.ContinueTimedOut)

BY_PEOPLE = (ev.AbortReason.LEFT_BEFORE_START, ev.AbortReason.OPERATOR)
OVER = (RefusalReason.MATCH_OVER, RefusalReason.TIME_EXPIRED)


def check_log(history: History, story: Story) -> Iterator[str]:
    """What is wrong with one match's rows."""
    if has_gap(story.stored):
        yield f"versions are contiguous: {story.match_id} to {story.stored.version}"
        return
    yield from _check_row(story)
    for version in story.versions:
        yield from _check_author(story, version)
        yield from _check_clock(story, version)
    sendings = _sendings(history, story.match_id)
    twice = Counter((record.sender, record.command_id) for record in story.stored.records)
    yield from (f"one effect a command: {story.match_id} {key[1]}" for key, times in twice.items() if times > 1)
    for record in story.stored.records:
        yield from _check_verdict(story, record, sendings.get((record.command_id, record.body_hash)))


def _check_row(story: Story) -> Iterator[str]:
    for version in story.versions:
        state = story.state(version)
        try:
            invariants.check(state)
        except AssertionError as error:
            yield f"a state keeps the rules: {story.match_id} v{version} {error}"
        is_pending = state.turn is not None and state.handover is None
        if (state.decision is not None) != is_pending:
            yield f"one clock runs iff a decision is pending: {story.match_id} v{version}"
    last = story.last
    if story.stored.due_ns != last.due_ns or story.stored.live != (last.result is None):
        yield f"the row of a match follows from its log: {story.match_id}"


def _check_author(story: Story, version: int) -> Iterator[str]:
    """A step that only a player can cause has the one record of that player's command, and the reverse."""
    step = story.steps[version]
    is_players = any(
        isinstance(event, BY_PLAYERS) or (isinstance(event, ev.MatchWon) and event.reason is not ev.WinReason.TIME)
        for event in step
    )
    if len(story.accepted(version)) != int(is_players):
        yield f"one effect a command: {story.match_id} v{version} has {len(story.accepted(version))} records"


def _check_clock(story: Story, version: int) -> Iterator[str]:
    """What the clock did of itself is what the rules say, given some of the rows of the ledger."""
    step, before = story.steps[version], story.states[version - 1]
    if before is None or before.due_ns is None or not any(isinstance(event, BY_THE_CLOCK) for event in step):
        return
    if story.accepted(version):
        return  # a command brought it about: checked with its record
    now_ns, deal = arguments_of(step)
    for evidence in _evidences(story):
        ruling = decide_service(before, CheckClock(before.due_ns), now_ns=now_ns, deal=deal, evidence=evidence)
        if not isinstance(ruling, Refusal) and (ruling == step or differs_in_words(ruling, step)):
            return
    is_by_a_late_command = any(
        record.version == version - 1 and record.refusal is not None and record.refusal.reason in OVER
        for record in story.stored.records
    )  # also checked with its record
    is_by_people = any(isinstance(event, ev.MatchAborted) and event.reason in BY_PEOPLE for event in step)
    if not is_by_a_late_command and not is_by_people:
        yield f"the clock's doing follows from stored rows: {story.match_id} v{version} {step}"


def _check_verdict(story: Story, record: CommandRecord, fields: CommandFields | None) -> Iterator[str]:
    """What was decided about a command follows from the log before it, its record and the ledger."""
    if fields is None:
        yield f"a record has its command: {story.match_id} {record.command_id}"
        return
    base = record.version - 1 if record.refusal is None else record.version
    step = story.steps[record.version] if record.refusal is None else ()
    state = story.states[base]
    if state is None:
        yield f"a verdict follows from stored rows: {story.match_id} {record.command_id} at no version"
        return
    late_step = story.steps[base + 1] if base + 1 < len(story.steps) else ()
    arrival: Arrival = record.receipt.arrival
    request = request_for(state, record.sender, fields, arrival)
    for evidence in _evidences(story):
        for made in (step,) if record.refusal is None else ((), late_step):
            now_ns, deal = arguments_of(made)
            ruling = decide(state, request, now_ns=now_ns, deal=deal, evidence=evidence)
            same_events = ruling.events == made or differs_in_words(ruling.events, made)
            if same_events and (ruling.refusal, ruling.verdict) == (record.refusal, record.receipt.verdict):
                return
    yield f"a verdict follows from stored rows: {story.match_id} {record.command_id} on v{base} {record.refusal}"


def _evidences(story: Story) -> Iterator[Evidence]:
    """What a replica may have known when it decided: nothing, each row of the ledger, or all of them."""
    yield NO_FAULTS
    yield from (Evidence((fault,)) for fault in story.faults)
    yield Evidence(tuple(story.faults))


def _sendings(history: History, match_id: str) -> dict[tuple[str, bytes], CommandFields]:
    """The commands that were really sent, by id and content."""
    fields = (_fields(sent) for sent in history.sent if sent.match_id == match_id)
    return {(one.command_id, one.body_hash): one for one in fields if one is not None}


def _fields(sent: Sent) -> CommandFields | None:
    request = pb.SubmitCommandRequest(
        match_id=sent.match_id,
        command_id=sent.command_id,
        expected_version=sent.expected_version,
        command=sent.command,
    )
    try:
        return requests.command_fields(request)
    except StatusError:
        return None


def proves(fault: Fault, aborted: ev.MatchAborted) -> bool:
    """Whether this row is the evidence that an abort names."""
    return aborted.evidence in (str(fault), fault.evidence)
