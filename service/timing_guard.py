"""Stamps as intervals: what an event loop that may stall can still vouch for (docs/ARCHITECTURE.md, "The stamp").

A message is stamped when the loop gets to it, which may be later than it arrived. A ticker shows how late: what had
arrived before the tick before the last one has been handled by now, unless a recent stall left a backlog.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from engine.clock import Arrival
from engine.faults import Fault, FaultCause
from service.metrics.clock import ClockMetrics

MS_NS = 1_000_000
TICK_NS = 10 * MS_NS
STALL_NS = 50 * MS_NS
"""A tick later than this is a stall."""
STALL_MEMORY_NS = 250 * MS_NS
"""How long a stall's backlog may still be coming in."""
STEP_NS = 50 * MS_NS
"""More than this between two clocks in one tick is a step of one of them."""
SLACK_NS = 30 * MS_NS
"""What the kernel and the transport may hold back besides."""


class TimingGuard:
    """The `Clock` port over a source of service time: `now_ns`, and arrivals as intervals.

    `report` gets what it finds: a stall of `publish_stall_ns`, in which nobody was served, or a step of the source
    against the loop's own clock.
    """

    def __init__(
        self,
        source: Callable[[], int],
        error_bound_ns: Callable[[], int],
        *,
        publish_stall_ns: int,
        report: Callable[[Fault], None],
        metrics: ClockMetrics,
    ) -> None:
        self.now_ns = source
        self.error_bound_ns = error_bound_ns
        self._publish_stall_ns = publish_stall_ns
        self._report = report
        self._metrics = metrics
        self._loop_before_ns = self._loop_after_ns = 0
        self._last_tick_ns = source()
        self._tick_bound_ns = self._vouched_ns = self._stalled_since_ns = self._last_tick_ns - error_bound_ns()
        """No later than these ticks: the clock's error was known then, and a better clock may show less now."""
        self._stall_forgotten_ns = 0
        self._timer: asyncio.TimerHandle | None = None

    def arrival(self) -> Arrival:
        """The stamp of a message taken over right now; both bounds include the clock's error."""
        now_ns, error_ns = self.now_ns(), self.error_bound_ns()
        remembers_stall = (
            self._last_tick_ns < self._stall_forgotten_ns
        )  # while the loop stands no backlog is worked off
        vouched_ns = self._stalled_since_ns if remembers_stall else self._vouched_ns
        return Arrival(vouched_ns - SLACK_NS, now_ns + error_ns)

    def start(self) -> None:
        """Begin to tick on the running loop."""
        self._loop = asyncio.get_running_loop()
        self._loop_before_ns, self._last_tick_ns, self._loop_after_ns = self._read()
        self._tick_bound_ns = self._vouched_ns = self._last_tick_ns - self.error_bound_ns()
        self._schedule()

    def stop(self) -> None:
        """Stop ticking."""
        if self._timer is not None:
            self._timer.cancel()

    def _schedule(self) -> None:
        self._timer = self._loop.call_later(TICK_NS / 1e9, self._tick)

    def _read(self) -> tuple[int, int, int]:
        """The loop's clock, the source, and the loop's clock again: the process may be held up in between."""
        return int(self._loop.time() * 1e9), self.now_ns(), int(self._loop.time() * 1e9)

    def _tick(self) -> None:
        before_ns, now_ns, after_ns = self._read()
        stood_ns = after_ns - self._loop_after_ns  # by the loop's own clock: a step of the other is no stall
        passed_ns = max(stood_ns, now_ns - self._last_tick_ns)  # but a sleep of the machine leaves a backlog too
        if self._last_tick_ns < self._stall_forgotten_ns:  # which is worked off only while the loop runs
            self._stall_forgotten_ns += max(0, passed_ns - TICK_NS)
        self._metrics.ticked(max(0, passed_ns - TICK_NS))
        if passed_ns > STALL_NS:
            self._metrics.stalled()
            self._stalled(now_ns, stood_ns)
        least_ns, most_ns = before_ns - self._loop_after_ns, after_ns - self._loop_before_ns
        step_ns = (now_ns - self._last_tick_ns) - min(max(now_ns - self._last_tick_ns, least_ns), most_ns)
        if abs(step_ns) > STEP_NS:
            self._metrics.stepped()
            span = sorted((self._last_tick_ns, now_ns))
            self._report(Fault(FaultCause.CLOCK_FAULT, span[0], span[1], f"service time stepped by {step_ns} ns"))
        self._vouched_ns, self._tick_bound_ns = self._tick_bound_ns, now_ns - self.error_bound_ns()
        self._loop_before_ns, self._last_tick_ns, self._loop_after_ns = before_ns, now_ns, after_ns
        self._schedule()

    def _stalled(self, now_ns: int, length_ns: int) -> None:
        if self._last_tick_ns >= self._stall_forgotten_ns:  # a stall within the memory of another began with that one
            self._stalled_since_ns = self._vouched_ns
        self._stall_forgotten_ns = now_ns + STALL_MEMORY_NS
        if length_ns >= self._publish_stall_ns:
            evidence = "the event loop served nobody"
            self._report(Fault(FaultCause.PUBLISH_STALL, self._last_tick_ns, now_ns, evidence))
