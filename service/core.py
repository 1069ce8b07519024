"""The core of one process on its ports: what it is made of, and the order in which it starts and stops."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Protocol

from engine.tiles import Tile
from service import fair_deal
from service.deadlines import Deadlines
from service.footing import OneTurn
from service.ledger import FaultLedger
from service.logs import get_logger
from service.lookout import Lookout
from service.matches import Matches
from service.metrics import Metrics
from service.ports import Bus, Entropy, Store, StoreUnavailableError
from service.services import Services
from service.settings import MS_NS, Settings
from service.tails import Lineage, Tails
from service.timing_guard import TimingGuard
from service.watermark import Watermark

GRACE_SECONDS = 3.0
"""How long calls under way may take when the door is closed; 5 s after the drain the cluster kills what is left."""
SUSPENDING_SECONDS = 10.0
"""How long a planned stop waits for a store in which it cannot stop the clocks."""
SUSPEND_RETRY_SECONDS = 0.2


class Tasks:
    """Server-owned tasks: no client's death cancels them, and none is collected while it runs."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[object]] = set()

    def spawn(self, work: Coroutine[object, object, object]) -> None:
        """Run in the background; a failure is logged."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)

    async def finish(self) -> None:
        """Wait for all of them."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    def _done(self, task: asyncio.Task[object]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            get_logger().error("background_task_failed", exc_info=error)


class Edge(Protocol):
    """The door of a process."""

    async def refuse_new_clients(self) -> None:
        """Say that the process is going away; serve as before."""

    async def stop(self, grace_seconds: float) -> None:
        """Take nothing new, and give what is under way so much time."""


class Core:
    """Everything between the edge and the adapters."""

    def __init__(
        self,
        settings: Settings,
        *,
        store: Store,
        now_ns: Callable[[], int],
        error_bound_ns: Callable[[], int],
        bus: Bus,
        entropy: Entropy,
        metrics: Metrics,
        shuffle: Callable[[bytes], tuple[Tile, ...]] = fair_deal.order,
        lineage: Lineage | None = None,
    ) -> None:
        self._tasks = Tasks()
        self._hurry = asyncio.Event()
        self._running: list[asyncio.Task[None]] = []
        self._ledger = FaultLedger(store, metrics, settings.tolerances, self._tasks.spawn)
        stall_ns = settings.publish_stall_ms * MS_NS
        self.clock = TimingGuard(
            now_ns, error_bound_ns, publish_stall_ns=stall_ns, report=self._ledger.record, metrics=metrics.clock
        )
        self._watermark = self._made_watermark(settings, store)
        self._deadlines = Deadlines(self.clock, self._wake, metrics.deadlines)
        services = Services(
            store=store,
            clock=self.clock,
            bus=bus,
            entropy=entropy,
            metrics=metrics,
            deadlines=self._deadlines,
            ledger=self._ledger,
            watermark=self._watermark,
            spawn=self._tasks.spawn,
            shuffle=shuffle,
            turns=lineage or OneTurn(),
        )
        self.matches = Matches(services)
        self._look_after(store, bus, lineage)
        self._show(metrics)

    def _made_watermark(self, settings: Settings, store: Store) -> Watermark:
        gap_ns, outage_ns = settings.store_gap_ms * MS_NS, settings.outage_ms * MS_NS
        return Watermark(store, self.clock, self._ledger, gap_ns=gap_ns, outage_ns=outage_ns)

    def _look_after(self, store: Store, bus: Bus, lineage: Lineage | None) -> None:
        """What other processes did, and what the server behind the store may have lost."""
        self._bus = bus
        self._lookout = Lookout(store, bus, self.clock, self.matches, self._watermark)
        if lineage is not None:
            self._watermark.doubts = Tails(lineage, self.matches, self._ledger, self.clock, self._tasks.spawn)

    def _show(self, metrics: Metrics) -> None:
        """What is asked for only when somebody reads the metrics; from their thread."""
        self._metrics = metrics
        metrics.deadlines.armed.set_function(lambda: len(self._deadlines))
        metrics.deadlines.overdue.set_function(lambda: self._deadlines.oldest_overdue_ns() / 1e9)
        metrics.clock.error_bound.set_function(lambda: self.clock.error_bound_ns() / 1e9)
        metrics.process.inflight.set_function(lambda: len(self._watermark.in_flight))

    def stored_ns(self) -> int:
        """When the last heartbeat was stored."""
        return self._watermark.stored_ns

    async def start(self) -> int:
        """Judge the last stop and go on with every live match, before the edge listens. Returns their number."""
        self.clock.start()
        await self._ledger.load(self.clock.now_ns())
        await self._watermark.begin()
        self._running.append(asyncio.create_task(self._watermark.run()))
        if self._bus.poll_seconds is not None:
            self._running.append(asyncio.create_task(self._lookout.run()))
        return await self.matches.recover()

    async def drain(self, edge: Edge, drain_seconds: float) -> int:
        """A planned stop from its beginning: not ready, still serving; clocks stand; only then the door is closed.

        Where another process stays, nobody's clock need stand. Returns the number of suspended matches.
        """
        self._metrics.process.draining.set(1)
        await edge.refuse_new_clients()
        await self._leave()
        await self._wait(drain_seconds)
        suspended = await self._suspend()
        self.matches.send_away()
        await edge.stop(GRACE_SECONDS)
        return suspended + await self.stop()

    def hurry(self) -> None:
        """Wait no longer before the clocks are stopped, also in a drain that has begun."""
        self._hurry.set()

    async def _leave(self) -> None:
        with suppress(StoreUnavailableError):  # the next heartbeat says it too
            await self._watermark.leave()

    async def _wait(self, seconds: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._hurry.wait()

    async def _suspend(self) -> int:
        """Serve on until the clocks stand; where they cannot, raise, so that the stop is one without notice."""
        loop = asyncio.get_running_loop()
        gives_up = loop.time() + SUSPENDING_SECONDS
        is_told = False
        while True:
            try:
                return 0 if self._watermark.staying else await self.matches.suspend()
            except StoreUnavailableError:
                if not is_told:
                    get_logger().warning("clocks_not_suspended")
                    is_told = True
                if loop.time() >= gives_up:
                    raise
                await asyncio.sleep(SUSPEND_RETRY_SECONDS)

    async def stop(self) -> int:
        """The end of a planned stop, when the edge has closed: absence is no fault from now on. Returns as `drain`."""
        await self._tasks.finish()
        suspended = 0 if self._watermark.staying else await self.matches.suspend()
        await self._tasks.finish()
        self.release()
        await self._watermark.retire()
        return suspended

    def release(self) -> None:
        """Let go of everything that would go on by itself."""
        for task in self._running:
            task.cancel()
        self._deadlines.close()
        self.clock.stop()

    def _wake(self, match_id: str) -> None:
        self.matches.wake(match_id)
