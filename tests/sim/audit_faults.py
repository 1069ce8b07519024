"""What the rules say of faults, told again from what really happened: nobody loses on time or pays for a sure fault.

Margins keep to faults that the service cannot have missed; what it does about doubtful ones is checked elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from engine import events as ev
from engine.faults import TOLERANCES
from tests.sim.story import Story, is_loss_on_time, is_resignation
from tests.sim.truth import Truth
from tests.sim.world import MS_NS, NEVER_NS, SECOND_NS

SURELY_NS = 200 * MS_NS
"""Beyond a threshold of the service: what heartbeats and ticks may hide."""
GAP_NS = SECOND_NS + 2 * SURELY_NS
STALL_NS = 2 * SECOND_NS + SURELY_NS
OUTAGE_NS = 5 * SECOND_NS + 2 * SURELY_NS
_STANDSTILLS = ("stall", "sigstop", "sleep")


class Span(NamedTuple):
    """From one instant of true time to another."""

    name: str
    from_ns: int
    to_ns: int
    known_ns: int = 0
    """When whoever decides about a charge must know of it."""


def audit_faults(truth: Truth, story: Story) -> None:
    """Check one match against the faults that were really made."""
    gaps = list(_gaps(truth))
    standing = [*_standstills(truth), *_outages(truth)]
    for version in story.versions:
        state, written = story.state(version - 1), story.written[version]
        if state.decision is None or written is None or is_resignation(written.change):
            continue
        won, record = is_loss_on_time(written.change), written.change.record
        if won is None and record is None:
            continue
        started_ns, lost_on_time = story.started_ns(version - 1), won is not None
        end_ns = won.at_ns if won is not None else record.receipt.arrival.latest_ns if record is not None else 0
        until_ns = truth.true_ns(end_ns)
        for gap in gaps:
            if lost_on_time and gap.from_ns + SURELY_NS < until_ns < gap.to_ns + TOLERANCES.aftermath_ns - SURELY_NS:
                truth.violated("no loss on time in or behind a gap of the store", f"{story.match_id} v{version} {gap}")
        for span in () if story.standstills(version - 1) else standing:  # a planned stop moves what it overlaps
            if not lost_on_time and written.at_ns < span.known_ns:
                continue
            lost_ns = min(span.to_ns, until_ns) - max(span.from_ns, started_ns)
            if not lost_on_time:
                lost_ns = min(lost_ns, _charge_ns(written.change.events))
            if lost_ns > TOLERANCES.charge_ns + SURELY_NS:
                truth.violated("nobody pays for a standstill", f"{story.match_id} v{version} {span}")


def _charge_ns(step: ev.Step) -> int:
    return sum(event.bank_used_ns for event in step if isinstance(event, ev.ClockStopped))


def _gaps(truth: Truth) -> Iterator[Span]:
    """Between heartbeats that one process stored; what comes after it was taken for lost is judged as a loss."""
    for life in truth.lives:
        for one, two in pairwise(life.beats):
            end_ns = min([two, *(at_ns for at_ns in life.fenced if one < at_ns < two)])
            if end_ns - one >= GAP_NS:
                yield Span("gap", one, end_ns)


def _standstills(truth: Truth) -> Iterator[Span]:
    """Long times in which a process did nothing that lived on long enough to tell: until its next heartbeat.

    Of several, one that stands tells the others when it stands no more; if it is fenced before, it is lost to them.
    """
    for fault in truth.faults:
        if fault.kind not in _STANDSTILLS or fault.to_ns - fault.from_ns < STALL_NS:
            continue
        lives = [life for life in truth.lives if life.began_ns <= fault.from_ns]
        life = truth.lives[fault.life] if fault.life is not None else lives[-1] if lives else None
        if life is None or any(fault.from_ns < at_ns <= fault.to_ns + SURELY_NS for at_ns in life.fenced):
            continue
        told_ns = next((at_ns for at_ns in life.beats if fault.to_ns < at_ns), None)
        if told_ns is not None:
            known_ns = 0 if fault.life is None else told_ns + 2 * SURELY_NS
            yield Span(fault.kind, fault.from_ns, fault.to_ns, known_ns)


def _outages(truth: Truth) -> Iterator[Span]:
    """Long times without a process that nobody had planned."""
    for after in truth.lives[1:]:
        last = max(truth.lives[: after.number], key=lambda life: NEVER_NS if life.ended_ns is None else life.ended_ns)
        if last.ended_ns is not None and not last.is_planned and after.began_ns - last.ended_ns >= OUTAGE_NS:
            yield Span("outage", last.ended_ns, after.began_ns)
