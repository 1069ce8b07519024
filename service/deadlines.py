"""When each match needs the service next: one timer for all of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from heapq import heapify, heappop, heappush

from service.metrics.deadlines import DeadlineMetrics
from service.ports import Clock

LONGEST_NAP_NS = 1_000_000_000
"""The loop's clock leaves out what the machine sleeps, service time does not; so the timer looks again this soon."""
_NEVER_NS = 2**63
_SLACK_ENTRIES = 1024
"""Stale heap entries tolerated before the heap is built anew."""


class Deadlines:
    """Calls `fire(match_id)` once `due_ns` of a match has passed. A later `arm` replaces the earlier one."""

    def __init__(self, clock: Clock, fire: Callable[[str], None], metrics: DeadlineMetrics) -> None:
        self._clock = clock
        self._fire = fire
        self._metrics = metrics
        self._due: dict[str, int] = {}
        self._unsettled: dict[str, int] = {}
        """Deadlines of matches that were to be looked at and were not armed anew since."""
        self._heap: list[tuple[int, str]] = []
        self._timer: asyncio.TimerHandle | None = None
        self._timer_due_ns = 0

    def __len__(self) -> int:
        return len(self._due)

    def arm(self, match_id: str, due_ns: int | None) -> None:
        """Set, move or (with None) lift the deadline of a match: what was due before is settled."""
        self._unsettled.pop(match_id, None)
        self._set(match_id, due_ns)

    def retry(self, match_id: str, at_ns: int) -> None:
        """Fire then, for a match that could not be looked at; its deadline stays what it is."""
        self._unsettled.setdefault(match_id, self._due.get(match_id, _NEVER_NS))
        self._set(match_id, at_ns)

    def _set(self, match_id: str, due_ns: int | None) -> None:
        if due_ns is None:
            self._due.pop(match_id, None)
            return
        self._due[match_id] = due_ns
        heappush(self._heap, (due_ns, match_id))
        if len(self._heap) > 2 * len(self._due) + _SLACK_ENTRIES:
            self._heap = [(due, match) for match, due in self._due.items()]
            heapify(self._heap)
        if self._timer is None or due_ns < self._timer_due_ns:
            self._set_timer()

    def oldest_overdue_ns(self) -> int:
        """How long the oldest deadline that has passed has not been settled, 0 when there is none. From any thread."""
        due_ns = min((*self._unsettled.copy().values(), *self._due.copy().values()), default=None)
        return 0 if due_ns is None else max(0, self._clock.now_ns() - due_ns)

    def close(self) -> None:
        """Stop firing."""
        if self._timer is not None:
            self._timer.cancel()
        self._due.clear()
        self._unsettled.clear()
        self._heap.clear()

    def _prune(self) -> bool:
        while self._heap and self._due.get(self._heap[0][1]) != self._heap[0][0]:
            heappop(self._heap)
        return bool(self._heap)

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._prune():
            self._timer_due_ns = self._heap[0][0]
            delay_ns = min(max(0, self._timer_due_ns - self._clock.now_ns()), LONGEST_NAP_NS)
            self._timer = asyncio.get_running_loop().call_later(delay_ns / 1e9, self._run)

    def _run(self) -> None:
        self._timer = None
        now_ns = self._clock.now_ns()
        while self._prune() and self._heap[0][0] <= now_ns:
            due_ns, match_id = heappop(self._heap)
            del self._due[match_id]
            self._unsettled.setdefault(match_id, due_ns)
            self._metrics.fired(now_ns - due_ns)
            self._fire(match_id)
        self._set_timer()
