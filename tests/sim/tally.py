"""Counting what happened in a match, so that a run can show that everything did happen."""

from __future__ import annotations

from engine import events as ev
from engine.clock import Verdict
from tests.sim.story import Story, timing_failure
from tests.sim.truth import Truth
from tests.sim.world import MS_NS


def tally(truth: Truth, story: Story) -> None:
    """Count one match's endings, verdicts and close calls."""
    truth.count("match")
    for version in story.versions:
        _tally_step(truth, story, version)
    for written in (*story.written[story.versions.start :], *story.refusals):
        record = None if written is None else written.change.record
        if record is not None:
            truth.count(f"verdict {record.receipt.verdict.value}")
            if record.refusal is not None:
                truth.count(f"refused {record.refusal.reason.name}")


def _tally_step(truth: Truth, story: Story, version: int) -> None:
    change = story.change(version)
    for event in change.events:
        match event:
            case ev.MatchWon():
                truth.count(f"won by {event.reason.value}")
            case ev.MatchAborted():
                truth.count(f"aborted: {event.reason.value}")
            case ev.ClocksSuspended():
                truth.count("clocks suspended")
            case _:
                pass
    if (aborted := timing_failure(change)) is not None:
        truth.count(f"abort cause: {aborted.evidence.split(' from ')[0]}")
    record = change.record
    if record is not None:
        decision = record.receipt.decision
        if record.refusal is None and decision is not None:
            truth.count("accepted on the clock")
            if record.receipt.verdict is not Verdict.NOT_TIMED:
                margin_ns = decision.deadline_ns - record.receipt.arrival.latest_ns
                if margin_ns < 100 * MS_NS:
                    truth.count("accepted in the last 100 ms")
