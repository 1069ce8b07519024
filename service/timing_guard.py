"""Stamps as intervals: what an event loop that may stall can still vouch for (docs/ARCHITECTURE.md, "The stamp").

A message is stamped when the loop gets to it, which may be later than it arrived. A ticker shows how late: what had
arrived before the tick before the last one has been handled by now, unless a recent stall left a backlog.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from engine.clock import Arrival

MS_NS = 1_000_000
TICK_NS = 10 * MS_NS
STALL_NS = 50 * MS_NS
"""A tick later than this is a stall."""
STALL_MEMORY_NS = 250 * MS_NS
"""How long a stall's backlog may still be coming in."""
SLACK_NS = 30 * MS_NS
"""What the kernel and the transport may hold back besides."""


class TimingGuard:
    """The `Clock` port over a source of service time: `now_ns`, and arrivals as intervals."""

    def __init__(self, source: Callable[[], int], error_bound_ns: Callable[[], int]) -> None:
        self.now_ns = source
        self.error_bound_ns = error_bound_ns
        self._last_tick_ns = self._vouched_ns = self._stalled_since_ns = source()
        self._stall_forgotten_ns = 0
        self._timer: asyncio.TimerHandle | None = None

    def arrival(self) -> Arrival:
        """The stamp of a message taken over right now; both bounds include the clock's error."""
        now_ns, error_ns = self.now_ns(), self.error_bound_ns()
        vouched_ns = self._stalled_since_ns if now_ns < self._stall_forgotten_ns else self._vouched_ns
        return Arrival(vouched_ns - SLACK_NS - error_ns, now_ns + error_ns)

    def start(self) -> None:
        """Begin to tick on the running loop."""
        self._last_tick_ns = self._vouched_ns = self.now_ns()
        self._schedule()

    def stop(self) -> None:
        """Stop ticking."""
        if self._timer is not None:
            self._timer.cancel()

    def _schedule(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(TICK_NS / 1e9, self._tick)

    def _tick(self) -> None:
        now_ns = self.now_ns()
        if now_ns - self._last_tick_ns > STALL_NS:
            if now_ns >= self._stall_forgotten_ns:  # a stall within the memory of another began with that one
                self._stalled_since_ns = self._vouched_ns
            self._stall_forgotten_ns = now_ns + STALL_MEMORY_NS
        self._vouched_ns = self._last_tick_ns
        self._last_tick_ns = now_ns
        self._schedule()
