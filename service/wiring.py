"""Which adapters this process uses, and the order in which it starts and stops. The only module that names adapters."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass

from service.deadlines import Deadlines
from service.fanout.local import LocalBus
from service.logs import get_logger
from service.match import Services
from service.matches import Matches
from service.metrics import Metrics
from service.rpc.auth import Gatekeeper
from service.rpc.match_service import MatchService
from service.rpc.render import Renderer
from service.rpc.server import GrpcServer
from service.settings import Settings
from service.store.sqlite import SqliteStore
from service.system.chance import SystemEntropy
from service.system.time import anchor, service_time
from service.timing_guard import TimingGuard

ANCHOR_KEY = "clock_anchor"
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
        anchored = anchor(await store.meta(ANCHOR_KEY), not_before_ns=0)
        await store.set_meta(ANCHOR_KEY, anchored.to_text())
        service = Service(settings, store, TimingGuard(service_time(anchored), lambda: 0))
        await service.start()
        try:
            yield service
        finally:
            await service.stop()
    finally:
        await store.close()


class Service:
    """The parts of one process, in the order of their dependence."""

    def __init__(self, settings: Settings, store: SqliteStore, guard: TimingGuard) -> None:
        self.drain_seconds = settings.drain_seconds
        self._guard = guard
        self._tasks = Tasks()
        self._metrics = Metrics()
        self._deadlines = Deadlines(guard, self._wake)
        self._matches = Matches(
            Services(
                store=store,
                clock=guard,
                bus=LocalBus(),
                entropy=SystemEntropy(),
                metrics=self._metrics,
                deadlines=self._deadlines,
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
        """Go on with every live match, then listen."""
        self._guard.start()
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
        self._deadlines.close()
        self._guard.stop()
        self._metrics.stop()
        log.info("drained", suspended_matches=suspended)

    def _wake(self, match_id: str) -> None:
        self._matches.wake(match_id)
