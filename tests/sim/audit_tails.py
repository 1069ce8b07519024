"""When a standby takes over that lacks what was acknowledged: that is noticed, and nobody pays for it."""

from __future__ import annotations

from engine import events as ev
from engine.faults import TOLERANCES, FaultCause
from service.ports import CommandRecord
from tests.sim.disk import Disk, Written
from tests.sim.prepared import HOLDERS
from tests.sim.story import Story, is_loss_on_time, is_resignation
from tests.sim.truth import InjectedFault, Truth
from tests.sim.world import MS_NS, SECOND_NS

KNOWN_WITHIN_NS = SECOND_NS
"""How soon replicas know of a row of the ledger."""
SURELY_NS = 400 * MS_NS
"""Beyond the tolerance of a charge: what heartbeats and clocks may hide."""


def audit_noticed(truth: Truth, disk: Disk) -> None:
    """A replica that lives to the end and has made a step that was lost has found that out."""
    found = [
        noted.at_ns
        for row, noted in zip(disk.ledger, disk.noted, strict=True)
        if row.fault.cause is FaultCause.COMMITS_LOST
    ]
    for written in disk.lost:
        lives_on = truth.lives[written.author].ended_ns is None and written.change.events
        if lives_on and not any(at_ns > written.at_ns for at_ns in found):
            truth.violated("lost commits are noticed", f"{written.change.match_id} at {written.at_ns}")


def audit_tails(truth: Truth, story: Story) -> None:
    """Whoever had moved, was told so, and must move again pays for no second of what lies between."""
    for gone in story.lost:
        record, loss = gone.change.record, loss_of(truth, gone)
        if record is None or record.refusal is not None or loss is None:
            continue
        for version in story.versions:
            _check_payment(truth, story, version, Gone(gone, record, loss))


class Gone:
    """An accepted command that was lost."""

    def __init__(self, written: Written, record: CommandRecord, loss: InjectedFault) -> None:
        self.written, self.record, self.loss = written, record, loss


def loss_of(truth: Truth, written: Written) -> InjectedFault | None:
    """The fault that a change was lost by."""
    return next((fault for fault in truth.losses if fault.from_ns >= written.at_ns), None)


def _check_payment(truth: Truth, story: Story, version: int, gone: Gone) -> None:
    """If the decision that the lost command was for ends by this version, it is not at that player's cost."""
    state, written = story.state(version - 1), story.written[version]
    receipt = gone.record.receipt.decision
    if written is None or state.decision is None or receipt is None or is_resignation(written.change):
        return
    is_the_same = state.decision.started_at_ns == receipt.started_at_ns and state.decision.seat is receipt.seat
    rows = [
        story.noted[place].at_ns
        for place, fault in story.rows
        if fault.cause is FaultCause.COMMITS_LOST and story.noted[place].at_ns > gone.loss.from_ns
    ]
    if not is_the_same or not rows:
        return
    won = is_loss_on_time(written.change)
    if won is None and written.at_ns < min(rows) + KNOWN_WITHIN_NS:
        return
    until_ns = truth.true_ns(won.at_ns) if won is not None else written.at_ns
    lost_ns = min(gone.loss.to_ns, until_ns) - gone.written.at_ns
    if won is None:
        lost_ns = min(lost_ns, sum(e.bank_used_ns for e in written.change.events if isinstance(e, ev.ClockStopped)))
    if lost_ns > TOLERANCES.charge_ns + SURELY_NS:
        who = HOLDERS[gone.record.sender]
        truth.violated("nobody pays for lost commits", f"{story.match_id} v{version} {who} {lost_ns / SECOND_NS:.3f} s")
