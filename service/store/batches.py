"""A thread that takes everything waiting as one batch, so that many waiters share one commit."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable, Sequence
from typing import Final, Generic, TypeAlias, TypeVar

from service.ports import StoreUnavailableError

J = TypeVar("J")

MAX_WAITING: Final = 10_000
"""How many jobs may wait or be under way before more are turned away."""
MAX_BATCH: Final = 500

Outcome: TypeAlias = Exception | None
"""What became of a job; None is good."""


class BatchThread(Generic[J]):
    """Runs `work` on a thread of its own with all jobs that wait at a moment, in order; it never waits for more.

    To be used from the running event loop only.
    """

    def __init__(self, name: str, work: Callable[[Sequence[J]], Sequence[Outcome]]) -> None:
        self._work = work
        self._loop = asyncio.get_running_loop()
        self._queue: Final[queue.SimpleQueue[tuple[J, asyncio.Future[None]] | None]] = queue.SimpleQueue()
        self._waiting = 0
        self._closed = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def submit(self, job: J) -> asyncio.Future[None]:
        """Hand in a job; the future has its outcome. Cancelling the future does not stop the job."""
        if self._closed or self._waiting >= MAX_WAITING:
            raise StoreUnavailableError("the store is closed" if self._closed else "too much waits for the store")
        self._waiting += 1
        future = self._loop.create_future()
        self._queue.put((job, future))
        return future

    async def close(self) -> None:
        """Finish what was handed in and end the thread."""
        if not self._closed:
            self._closed = True
            self._queue.put(None)
        await asyncio.to_thread(self._thread.join)

    def _run(self) -> None:
        while batch := self._take():
            jobs, futures = zip(*batch, strict=True)
            try:
                outcomes = self._work(jobs)
                assert len(outcomes) == len(jobs)
            except Exception as error:  # noqa: BLE001  # a mistake of ours must reach its waiters, not end the thread
                outcomes = [error] * len(jobs)
            try:
                self._loop.call_soon_threadsafe(self._deliver, futures, outcomes)
            except RuntimeError:  # the loop is closed: nobody waits any more
                return

    def _take(self) -> list[tuple[J, asyncio.Future[None]]]:
        """All jobs that wait, at least one; none at the end."""
        batch: list[tuple[J, asyncio.Future[None]]] = []
        entry = self._queue.get()
        while entry is not None:
            batch.append(entry)
            if len(batch) == MAX_BATCH or self._queue.empty():
                return batch
            entry = self._queue.get()
        self._queue.put(None)  # to be found again after this batch
        return batch

    def _deliver(self, futures: Sequence[asyncio.Future[None]], outcomes: Sequence[Outcome]) -> None:
        self._waiting -= len(futures)
        for future, outcome in zip(futures, outcomes, strict=True):
            if future.done():  # cancelled by its waiter
                continue
            if outcome is None:
                future.set_result(None)
            else:
                future.set_exception(outcome)
