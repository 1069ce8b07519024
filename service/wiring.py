"""Which adapters this process uses, and the order in which it starts and stops. The only module that names adapters."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass

from service.deadlines import Deadlines
from service.fanout.local import LocalBus
from service.ledger import FaultLedger
from service.logs import get_logger
from service.match import Services
from service.matches import Matches
from service.metrics import Metrics
from service.rpc.auth import Gatekeeper
from service.rpc.match_service import MatchService
from service.rpc.render import Renderer
from service.rpc.server import GrpcServer
from service.settings import MS_NS, Settings
from service.store.sqlite import SqliteStore
from service.system.chance import SystemEntropy
from service.system.time import ANCHOR_KEY, anchor, service_time
from service.timing_guard import TimingGuard
from service.watermark import Watermark

GRACE_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Addresses:
    """Where a running service listens. Ports are the real ones, also where 0 was asked for."""

    grpc: str
    metrics: str


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


@asynccontextmanager
async def serving(settings: Settings) -> AsyncIterator[Service]:
    """Run the whole service; leaving the context drains and stops it."""
    store = await SqliteStore.open(settings.database)
    try:
        last = await store.last_beat()
        anchored = anchor(await store.meta(ANCHOR_KEY), not_before_ns=0 if last is None else last.at_ns)
        await store.set_meta(ANCHOR_KEY, anchored.to_text())
        service = Service(settings, store, service_time(anchored))
        await service.start()
        try:
            yield service
        finally:
            await service.stop()
    finally:
        await store.close()


class Service:
    """The parts of one process, in the order of their dependence."""

    def __init__(self, settings: Settings, store: SqliteStore, now_ns: Callable[[], int]) -> None:
        self.drain_seconds = settings.drain_seconds
        self._tasks = Tasks()
        self._metrics = Metrics()
        self._ledger = FaultLedger(store, self._metrics, settings.tolerances, self._tasks.spawn)
        self._guard = guard = TimingGuard(
            now_ns,
            lambda: 0,  # the store is in this process: one clock
            publish_stall_ns=settings.publish_stall_ms * MS_NS,
            report=self._ledger.record,
        )
        self._watermark = Watermark(
            store,
            guard,
            self._ledger,
            gap_ns=settings.store_gap_ms * MS_NS,
            outage_ns=settings.outage_ms * MS_NS,
        )
        self._deadlines = Deadlines(guard, self._wake)
        self._matches = Matches(
            Services(
                store=store,
                clock=guard,
                bus=LocalBus(),
                entropy=SystemEntropy(),
                metrics=self._metrics,
                deadlines=self._deadlines,
                ledger=self._ledger,
                watermark=self._watermark,
                spawn=self._tasks.spawn,
            )
        )
        handlers = MatchService(
            matches=self._matches,
            gatekeeper=Gatekeeper(store),
            renderer=Renderer(),
            clock=guard,
            store=store,
            metrics=self._metrics,
        )
        host = f"[{settings.host}]" if ":" in settings.host else settings.host
        self._grpc = GrpcServer(f"{host}:{settings.port}", handlers, guard, self._metrics)
        if settings.reflection:
            self._grpc.offer_reflection()
        metrics_port = self._metrics.serve(settings.host, settings.metrics_port)
        self.addresses = Addresses(f"{host}:{self._grpc.port}", f"{host}:{metrics_port}")

    async def start(self) -> None:
        """Judge the last stop, go on with every live match, then listen."""
        self._guard.start()
        await self._ledger.load(self._guard.now_ns())
        await self._watermark.begin()
        self._beating = asyncio.create_task(self._watermark.run())
        live = await self._matches.recover()
        await self._grpc.start()
        get_logger().info("serving", address=self.addresses.grpc, metrics=self.addresses.metrics, live_matches=live)

    async def stop(self) -> None:
        """Drain: not ready, still serving; streams end with a resume point; clocks stand; then nothing is left."""
        log = get_logger()
        log.info("draining", seconds=self.drain_seconds)
        await self._grpc.refuse_new_clients()
        await asyncio.sleep(self.drain_seconds)
        self._matches.send_away()
        await self._grpc.stop(GRACE_SECONDS)
        await self._tasks.finish()
        suspended = await self._matches.suspend()
        await self._tasks.finish()
        self._beating.cancel()
        await self._watermark.retire()
        self._deadlines.close()
        self._guard.stop()
        self._metrics.stop()
        log.info("drained", suspended_matches=suspended)

    def _wake(self, match_id: str) -> None:
        self._matches.wake(match_id)
