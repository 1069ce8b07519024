"""An event loop without threads or sockets: it does nothing by itself, takes time from outside, and can be killed.

The order in which ready callbacks run is drawn from a seed, so that code which relies on luck shows it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from heapq import heappop
from random import Random
from typing import Any

NANOSECOND = 1e-9


class SimLoop(asyncio.BaseEventLoop):
    """One process's loop. `now_ns` is its monotonic clock; `turn` is one iteration, which takes no time."""

    _ready: deque[asyncio.Handle]
    _scheduled: list[asyncio.TimerHandle]

    def __init__(self, now_ns: Callable[[], int], chance: Random | None) -> None:
        """`chance` draws the order of what is ready; without it the order is asyncio's own."""
        super().__init__()
        self._now_ns = now_ns
        self._chance = chance
        self._living: dict[asyncio.Task[Any], None] = {}  # a set of tasks would have no order
        self.is_halted = False
        """Set in the middle of a turn to end it after the callback that is running."""
        self.mishaps: list[str] = []
        self.set_exception_handler(self._mishap)
        self.set_task_factory(self._task)

    def time(self) -> float:
        """The loop's monotonic clock in seconds."""
        return self._now_ns() / 1e9

    def due_in_ns(self) -> int | None:
        """How long nothing will happen here; None for ever."""
        if self._ready:
            return 0
        while self._scheduled and self._scheduled[0].cancelled():
            heappop(self._scheduled)
        return max(0, round(self._scheduled[0].when() * 1e9) - self._now_ns()) if self._scheduled else None

    def turn(self) -> None:
        """Run everything that is ready now, in an order of its own."""
        latest = self.time() + NANOSECOND
        while self._scheduled and self._scheduled[0].when() <= latest:
            self._ready.append(heappop(self._scheduled))
        batch = list(self._ready)
        self._ready.clear()
        if self._chance is not None and len(batch) > 1:
            self._chance.shuffle(batch)
        asyncio._set_running_loop(self)
        try:
            for handle in batch:
                if self.is_halted:
                    break
                if not handle.cancelled():
                    handle._run()
        finally:
            asyncio._set_running_loop(None)

    def kill(self) -> None:
        """End everything at once, as SIGKILL does: no task gets to run on, nothing is handed over any more."""
        self._ready.clear()
        self._scheduled.clear()
        asyncio._set_running_loop(self)
        try:
            for task in list(self._living):
                task._log_destroy_pending = False  # type: ignore[attr-defined]
                coroutine = task.get_coro()
                assert coroutine is not None
                coroutine.close()
        finally:
            asyncio._set_running_loop(None)
        self._living.clear()
        self._ready.clear()
        self._scheduled.clear()
        self.close()

    # Any: asyncio hands over whatever it was given.
    def _task(self, loop: asyncio.AbstractEventLoop, work: Any, **options: Any) -> asyncio.Task[Any]:  # noqa: ANN401
        task = asyncio.Task(work, loop=loop, **options)
        self._living[task] = None
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._living.pop(task, None)

    def _mishap(self, _: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        if "never retrieved" not in context["message"]:  # said when memory is freed, so at no certain time
            self.mishaps.append(f"{context['message']}: {context.get('exception')!r}")

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """Asked by every timer; nothing is counted here."""

    def _write_to_self(self) -> None:
        """Nobody waits in a selector."""
