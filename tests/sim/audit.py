"""The auditor: knows what really happened, reads what was stored and what clients saw, and says what does not fit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise

from engine import events as ev
from engine.clock import SECOND_NS
from tests.sim.audit_faults import audit_faults
from tests.sim.audit_log import audit_answers, audit_log
from tests.sim.audit_tails import audit_noticed, audit_tails
from tests.sim.audit_time import audit_first_stamps, audit_stamps, audit_time
from tests.sim.clients import Watcher
from tests.sim.disk import Disk
from tests.sim.prepared import HOLDERS
from tests.sim.story import Story, is_loss_on_time, stories
from tests.sim.tally import tally
from tests.sim.truth import Life, Truth
from tests.sim.world import NEVER_NS

SURE_NS = SECOND_NS
"""How soon replicas must know of a new one."""
STARTING_NS = SECOND_NS // 10
"""How long clocks may run that a process has resumed which is about to open its door."""


def audit(truth: Truth, disk: Disk, watchers: Sequence[Watcher], *, only_clients: bool) -> None:
    """Check every invariant; what is violated is told to `truth`. `only_clients`: no fault of the service was made."""
    audit_stamps(truth)
    audit_answers(truth, disk)
    audit_noticed(truth, disk)
    told = stories(disk)
    for story in told:
        audit_log(truth, disk, story)
        audit_time(truth, story)
        audit_first_stamps(truth, story)
        audit_faults(truth, story)
        audit_tails(truth, story)
        _check_decided(truth, story)
        _check_suspensions(truth, story)
        _check_promptness(truth, story)
        _check_watches(truth, story, [one for one in watchers if one.match_id == story.match_id])
        tally(truth, story)
    if only_clients and disk.ledger:
        truth.violated("a client's faults are no faults of the service", str(disk.ledger[0]))
    for sent in truth.attempts.values():
        if len({attempt.life for attempt in sent if attempt.stamp is not None}) > 1:
            truth.count("command stamped by two processes")
    for row in disk.ledger:
        truth.count(f"ledger {row.fault.cause.value}")


def _check_decided(truth: Truth, story: Story) -> None:
    """Every overdue match is decided within seconds after the faults stop, and no clock stands for ever."""
    last, now_ns = story.last, truth.world.service_ns()
    if last.due_ns is not None and last.due_ns < now_ns - truth.patience.overdue_ns:
        truth.violated("overdue matches are decided", f"{story.match_id} for {(now_ns - last.due_ns) / 1e9:.3f} s")
    if last.suspended_at_ns is not None:
        truth.violated("suspended clocks are resumed", story.match_id)


def _check_suspensions(truth: Truth, story: Story) -> None:
    """A planned stop suspends nobody's clock while another replica stays, and surely knows that it does.

    Whoever serves when that one is gone resumes it, and where nobody is left no clock runs (F4).
    """
    if truth.faults:
        return
    serving = [(life.opened_ns, _goes_ns(life)) for life in truth.lives if life.opened_ns is not None]
    for version in story.versions:
        if not any(isinstance(event, ev.ClocksSuspended) for event in story.change(version).events):
            continue
        written = story.written[version]
        assert written is not None
        at_ns, until_ns = written.at_ns, _written_ns(truth, story, version + 1)
        gone_ns = truth.lives[written.author].ended_ns or NEVER_NS
        for opened_ns, goes_ns in serving:
            if opened_ns < at_ns - SURE_NS and at_ns < goes_ns:
                truth.violated("no clock stands while a replica stays", f"{story.match_id} v{version}")
            if min(goes_ns, until_ns) - max(opened_ns, at_ns, gone_ns) > 2 * SURE_NS:
                truth.violated("suspended clocks are resumed", f"{story.match_id} v{version}")
    for from_ns, to_ns in _gaps(truth):
        for version in range(story.versions.start - 1, len(story.written)):
            ran_from_ns, ran_to_ns = _written_ns(truth, story, version), _written_ns(truth, story, version + 1)
            runs = story.state(version).due_ns is not None
            if runs and min(ran_to_ns, to_ns) - max(ran_from_ns, from_ns) > STARTING_NS:
                truth.violated("no clock runs while nobody is there", f"{story.match_id} v{version}")


def _gaps(truth: Truth) -> Iterator[tuple[int, int]]:
    """From when to when no door was open, behind the first that was."""
    doors = sorted(
        (life.opened_ns, life.closed_ns or life.ended_ns or NEVER_NS)
        for life in truth.lives
        if life.opened_ns is not None
    )
    for (_, closed_ns), (opened_ns, _) in pairwise(accumulate(doors, lambda one, two: (two[0], max(one[1], two[1])))):
        if closed_ns < opened_ns:
            yield closed_ns, opened_ns


def _goes_ns(life: Life) -> int:
    """Since when a process does not stay."""
    return min(life.asked_to_stop_ns or NEVER_NS, life.ended_ns or NEVER_NS)


def _written_ns(truth: Truth, story: Story, version: int) -> int:
    """When a version became durable; now if it is yet to come."""
    written = story.written[version] if version < len(story.written) else None
    return truth.world.now_ns if written is None else written.at_ns


def _check_promptness(truth: Truth, story: Story) -> None:
    """What was due was settled within seconds, or within seconds of the last fault that lasted into that time."""
    for version in story.versions:
        due_ns, written = story.state(version - 1).due_ns, story.written[version]
        assert written is not None
        settles = any(
            isinstance(event, ev.MatchWon | ev.MatchAborted | ev.ContinueTimedOut) for event in written.change.events
        )
        if due_ns is None or not settles or written.change.record is not None:
            continue
        lasting = [min(fault.to_ns, written.at_ns) for fault in truth.faults if fault.from_ns <= written.at_ns]
        lag_ns = written.at_ns - max([truth.true_ns(due_ns), *lasting])
        if lag_ns > truth.patience.overdue_ns:
            truth.violated(
                "overdue matches are decided", f"{story.match_id} v{version}: {lag_ns / SECOND_NS:.3f} s late"
            )


def _check_watches(truth: Truth, story: Story, watchers: Sequence[Watcher]) -> None:
    """Every watch ends at the final version, and nobody loses on time unaware."""
    for watcher in watchers:
        if watcher.healthy_since_ns is None:
            continue
        if watcher.cursor < _old_version(truth, story):
            where = f"{story.match_id} {watcher.holder} at {watcher.cursor}, not {story.last.version}"
            truth.violated("a watch ends at the final version", where)
        for version in story.versions:
            if is_loss_on_time(story.change(version)) is not None:
                _check_shown(truth, story, version, watcher)


def _old_version(truth: Truth, story: Story) -> int:
    """The last version that nobody should still be waiting for."""
    version = len(story.written) - 1
    while (
        written := story.written[version]
    ) is not None and written.at_ns > truth.world.now_ns - truth.patience.travel_ns:
        version -= 1
    return version


def _check_shown(truth: Truth, story: Story, version: int, watcher: Watcher) -> None:
    decision = story.state(version - 1).decision
    assert decision is not None
    began, began_ns = story.began(version - 1), story.started_ns(version - 1)
    is_losers = watcher.holder in ("device", HOLDERS_BY_SEAT[decision.seat.value])
    assert watcher.healthy_since_ns is not None
    if not is_losers or began_ns < watcher.healthy_since_ns:
        return
    shown = truth.shown[story.match_id, watcher.holder]
    if not any(seen >= began and at_ns <= began_ns + truth.patience.shown_ns for seen, at_ns in shown.items()):
        truth.violated("nobody loses on time unaware", f"{story.match_id} v{version} {watcher.holder}")


HOLDERS_BY_SEAT = {audience.value: holder for audience, holder in HOLDERS.items() if holder in ("one", "two")}
