"""Invariants of the log: one effect a command, answered means logged, verdicts that follow from stored rows."""

from __future__ import annotations

from engine import commands as cmd
from engine import events as ev
from engine import invariants
from engine.decide import Evidence, decide, decide_service
from engine.tiles import Tile
from engine.view import Audience
from service.ports import Append
from tests.sim.disk import Disk, Written
from tests.sim.prepared import AUDIENCES
from tests.sim.story import Story, is_loss_on_time, read, request_for, sendings, timing_failure
from tests.sim.truth import Truth

BY_PLAYERS = (
    *(ev.TilePlayed, ev.TileDrawn, ev.Passed, ev.BidMade, ev.BidAccepted, ev.BiddingDeclined),
    *(ev.PlayerReady, ev.HandRevealed),
)


def audit_log(truth: Truth, disk: Disk, story: Story) -> None:
    """Check one match's rows."""
    _check_states(truth, disk, story)
    for version in story.versions:
        _check_author(truth, story.match_id, version, story.change(version))
        _check_verdict(truth, story, version - 1, story.written[version])
        _check_endings(truth, story, version)
    for written in story.refusals:
        assert written.change.record is not None
        _check_verdict(truth, story, written.change.record.version, written)


def key_of(written: Written) -> tuple[str, Audience, str] | None:
    """Whose command a change was, if it was one's."""
    record = written.change.record
    return None if record is None else (written.change.match_id, record.sender, record.command_id)


def audit_answers(truth: Truth, disk: Disk) -> None:
    """Answered means logged: each outcome that a client got was durable before the service sent it."""
    durable = {key_of(written): written for written in disk.history}
    gone = {key_of(written): written.at_ns for written in disk.lost}
    for match_id, holder, outcome, sent_ns in truth.answers:
        if gone.get((match_id, AUDIENCES[holder], outcome.command_id), sent_ns) < sent_ns:
            continue  # it was stored when it was answered
        written = durable.get((match_id, AUDIENCES[holder], outcome.command_id))
        if written is None or written.at_ns > sent_ns:
            truth.violated("answered means logged", f"{match_id} {outcome.command_id} answered at {sent_ns}")
            continue
        record = written.change.record
        assert record is not None
        accepted = outcome.accepted.version if outcome.WhichOneof("outcome") == "accepted" else None
        stored = record.version if record.refusal is None else None
        reason = int(outcome.refused.reason) if accepted is None else None
        if accepted != stored or reason != (None if record.refusal is None else int(record.refusal.reason)):
            truth.violated(
                "one effect a command", f"{match_id} {outcome.command_id}: answered {accepted}, not {stored}"
            )
        if outcome.view.public.version < (accepted or 0):
            truth.violated("an answer shows its effect", f"{match_id} {outcome.command_id}: v{accepted}")


def _check_states(truth: Truth, disk: Disk, story: Story) -> None:
    for version in story.versions:
        state = story.state(version)
        invariants.check(state)
        is_pending = state.turn is not None and state.handover is None
        if (state.decision is not None) != is_pending:
            truth.violated("one clock runs iff a decision is pending", f"{story.match_id} v{version}")
    due = disk.due.get(story.match_id)
    last = story.last
    if (due is None) != (last.result is not None) or (due is not None and due.due_ns != last.due_ns):
        truth.violated("the due column follows from the log", f"{story.match_id} {due} but {last.due_ns}")


def _check_author(truth: Truth, match_id: str, version: int, change: Append) -> None:
    """A step that only a player can cause has the one record of that player's command."""
    is_players = any(
        isinstance(event, BY_PLAYERS) or (isinstance(event, ev.MatchWon) and event.reason is not ev.WinReason.TIME)
        for event in change.events
    )
    record = change.record
    has_accepted = record is not None and record.refusal is None
    if is_players != has_accepted or (has_accepted and record is not None and record.version != version):
        truth.violated("one effect a command", f"{match_id} v{version} {record and record.command_id}")


def _check_verdict(truth: Truth, story: Story, base: int, written: Written | None) -> None:
    """What was decided about a command follows from the log before it, its record and the ledger."""
    if written is None or written.change.record is None:
        return
    change, record = written.change, written.change.record
    attempts = sendings(truth, story.match_id, record)
    if not attempts:
        truth.violated("a record has its command", f"{story.match_id} {record.command_id}")
        return
    fields = read(attempts[0])
    assert fields is not None
    state = story.state(base)
    request = request_for(state, record.sender, fields, record.receipt.arrival)
    now_ns, deal = arguments_of(change.events)
    stored = (change.events, record.refusal, record.receipt.verdict)
    rulings = [
        decide(state, request, now_ns=now_ns, deal=deal, evidence=Evidence(known))
        for known in story.faults_for(written)
    ]
    if not any(
        stored == (ruling.events, ruling.refusal, ruling.verdict) or differs_in_words(ruling.events, change.events)
        for ruling in rulings
    ):
        truth.violated("a verdict follows from stored rows", f"{story.match_id} v{base} {stored} is not {rulings}")


def arguments_of(events: ev.Step) -> tuple[int, tuple[Tile, ...]]:
    """The instant and the deal with which a step was decided, read from the step."""
    now_ns = 0
    deal: tuple[Tile, ...] = ()
    for event in events:
        match event:
            case ev.RoundDealt():
                deal = (*event.hands.one, *event.hands.two, *event.boneyard)
            case ev.MatchWon(_, ev.WinReason.TIME):
                pass
            case ev.ClockStarted() | ev.MatchWon() | ev.MatchAborted() | ev.RoundDominoed() | ev.RoundBlocked():
                now_ns = event.at_ns
            case _:
                pass
    return now_ns, deal


def differs_in_words(one: ev.Step, other: ev.Step) -> bool:
    """Both abort for a timing failure; several rows may prove it."""
    return all(len(step) == 1 and isinstance(step[0], ev.MatchAborted) for step in (one, other))


def _check_endings(truth: Truth, story: Story, version: int) -> None:
    """Nothing in the ledger speaks against a loss on time, and the proof of an abort was stored before it."""
    change, before, written = story.change(version), story.state(version - 1), story.written[version]
    assert written is not None
    won = is_loss_on_time(change)
    if won is not None:
        assert before.decision is not None
        if won.at_ns != before.decision.deadline_ns:
            truth.violated("a loss on time is recorded at the deadline", f"{story.match_id} v{version} {won.at_ns}")
        evidence = Evidence(story.faults_for(written)[0])
        ruling = decide_service(before, cmd.CheckClock(won.at_ns), now_ns=won.at_ns, deal=(), evidence=evidence)
        if ruling != change.events:
            truth.violated("a loss on time follows from stored rows", f"{story.match_id} v{version} is not {ruling}")
    aborted = timing_failure(change)
    if aborted is not None:
        before_it = [fault for place, fault in story.rows if place < written.rows_before]
        if not any(aborted.evidence in (str(fault), fault.evidence) for fault in before_it):
            truth.violated("no abort without a ledger row", f"{story.match_id} v{version} {aborted.evidence}")
