"""Which adapters this process uses, and the order in which it starts and stops."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from service.backends import Backend, on_postgres, on_sqlite
from service.core import Core
from service.fair_deal import order as fair_order
from service.limits import Limits, Rates
from service.logs import get_logger
from service.measured_store import MeasuredStore
from service.metrics import Metrics
from service.ports import Store, StoreUnavailableError
from service.readiness import Readiness
from service.rpc.admin_server import AdminServer
from service.rpc.auth import RECHECK_NS, SHARED_RECHECK_NS, Gatekeeper
from service.rpc.doors import doors
from service.rpc.edge import Tracing
from service.rpc.jwks import FetchedKeys, FileKeys
from service.rpc.match_service import MatchService
from service.rpc.platform import Claims, Platform
from service.rpc.render import Renderer
from service.rpc.server import GrpcServer
from service.rpc.waiting_room import WaitingRoom
from service.settings import Settings
from service.store.postgres_link import NotReadyError
from service.system.chance import SystemEntropy


@dataclass(frozen=True, slots=True)
class Addresses:
    """Where a running service listens. Ports are the real ones, also where 0 was asked for."""

    grpc: str
    metrics: str
    health: str | None = None
    envoy: str | None = None


@asynccontextmanager
async def serving(settings: Settings, *, asked_to_stop: asyncio.Event | None = None) -> AsyncIterator[Service]:
    """Run the whole service; leaving the context drains and stops it. `asked_to_stop` is set when an operator asks."""
    metrics, stop = Metrics(), asked_to_stop or asyncio.Event()
    is_alone = settings.database_url is None
    room = WaitingRoom(doors(settings))
    async with on_sqlite(settings, metrics) if is_alone else on_postgres(settings, metrics, stop, room) as behind:
        service = Service(settings, behind, metrics, stop)
        try:
            await service.start()
        except StoreUnavailableError as error:
            raise NotReadyError("the store went away during the start") from error
        try:
            yield service
        finally:
            await service.stop()


class Service:
    """The core on its adapters, and the edges in front of it."""

    def __init__(self, settings: Settings, behind: Backend, metrics: Metrics, asked_to_stop: asyncio.Event) -> None:
        self.drain_seconds = settings.drain_seconds
        self._asked_to_stop = asked_to_stop
        self._metrics = metrics
        _show_process(metrics, behind.now_ns)
        store = MeasuredStore(behind.store, metrics.store, behind.now_ns)
        self._is_shared = behind.bus.poll_seconds is not None
        self._core = Core(
            settings,
            store=store,
            now_ns=behind.now_ns,
            error_bound_ns=behind.error_bound_ns,
            bus=behind.bus,
            entropy=SystemEntropy(),
            metrics=self._metrics,
            shuffle=fair_order,
            lineage=behind.lineage,
        )
        handlers = self._handlers(settings, store)
        self._tracing = _tracing() if settings.traces else None
        self._grpc = GrpcServer(
            doors(settings),
            handlers,
            self._core.clock,
            self._metrics,
            connection_streams=settings.connection_streams,
            tracing=self._tracing,
        )
        self._admin = self._admin_server(settings)
        readiness = Readiness(self._core.clock, self._core.stored_ns, behind.bus, metrics.clock, self._grpc)
        self._watches = readiness.run, handlers.gatekeeper.end_revoked_streams
        self._watching: list[asyncio.Task[None]] = []
        if settings.reflection:
            self._grpc.offer_reflection()
        metrics_port = self._metrics.serve(settings.host, settings.metrics_port)
        metrics_address = f"{self._grpc.address.rpartition(':')[0]}:{metrics_port}"
        self.addresses = Addresses(
            self._grpc.address, metrics_address, self._grpc.health_address, self._grpc.envoy_address
        )

    def _handlers(self, settings: Settings, store: Store) -> MatchService:
        """The players' service."""
        return MatchService(
            matches=self._core.matches,
            gatekeeper=self._gatekeeper(settings, store),
            renderer=Renderer(),
            clock=self._core.clock,
            store=store,
            metrics=self._metrics,
        )

    def _gatekeeper(self, settings: Settings, store: Store) -> Gatekeeper:
        """Who may come in, and how much each may ask for."""
        self._fetched_keys = FetchedKeys(settings.jwks_url) if settings.jwks_url is not None else None
        self._limits = Limits(self._core.clock.now_ns, _rates(settings), self._metrics.process.shed)
        platform = _platform(settings, self._fetched_keys) if settings.auth == "platform" else None
        return Gatekeeper(
            store,
            self._metrics,
            now_ns=self._core.clock.now_ns,
            limits=self._limits,
            platform=platform,
            recheck_ns=SHARED_RECHECK_NS if self._is_shared else RECHECK_NS,
        )

    async def start(self) -> None:
        """Go on with every live match, then listen. What fails leaves nothing behind."""
        try:
            if self._fetched_keys is not None:
                await self._fetched_keys.start()
            live = await self._core.start()
            await self._grpc.start()
            if self._admin is not None:
                await self._admin.start()
            if self._is_shared:
                self._watching = [asyncio.create_task(watch()) for watch in self._watches]
        except BaseException:
            await self._grpc.stop(0)
            await self._stop_admin()
            self._stop_fetching()
            self._core.release()
            self._metrics.stop()
            raise
        get_logger().info(
            "serving",
            address=self.addresses.grpc,
            metrics=self.addresses.metrics,
            health=self.addresses.health,
            envoy=self.addresses.envoy,
            live_matches=live,
        )

    def hurry(self) -> None:
        """Wait no longer for load balancers, also in a drain that has begun."""
        self.drain_seconds = 0.0
        self._core.hurry()

    def _admin_server(self, settings: Settings) -> AdminServer | None:
        """The admin socket; without one that was asked for the service does not start. Raises RuntimeError."""
        if settings.admin_path is None:
            return None
        try:
            return AdminServer(settings.admin_path, self._core.matches, drain=self._asked_to_drain)
        except RuntimeError:
            if settings.admin_socket is not None:
                raise
            get_logger().warning("no_admin_socket")
            return None

    def _asked_to_drain(self) -> float:
        self._asked_to_stop.set()
        return self.drain_seconds

    async def _stop_admin(self) -> None:
        if self._admin is not None:
            await self._admin.stop()

    def _stop_fetching(self) -> None:
        if self._fetched_keys is not None:
            self._fetched_keys.stop()

    async def stop(self) -> None:
        """Drain: not ready, still serving; streams end with a resume point; clocks stand; then nothing is left."""
        get_logger().info("draining", seconds=self.drain_seconds)
        for watching in self._watching:
            watching.cancel()
        suspended = await self._core.drain(self._grpc, self.drain_seconds)
        await self._stop_admin()
        self._stop_fetching()
        self._metrics.stop()
        if self._tracing is not None:
            await self._tracing.close()
        get_logger().info("drained", suspended_matches=suspended)


def _show_process(metrics: Metrics, now_ns: Callable[[], int]) -> None:
    """What only a real process has: resources, and a wall clock beside its service time."""
    metrics.process.show_resources()
    metrics.clock.skew.set_function(lambda: (now_ns() - time.time_ns()) / 1e9)


def _tracing() -> Tracing:
    """OpenTelemetry, which is an extra. Raises RuntimeError without it."""
    try:
        from service.rpc.otel import Otel  # noqa: PLC0415  only who asks for it needs it
    except ImportError as error:
        raise RuntimeError("SPECBID_TRACES needs the extra: pip install 'spectacular-bid[otel]'") from error
    return Otel()


def _rates(settings: Settings) -> Rates:
    return Rates(
        commands=settings.commands_per_second,
        reads=settings.reads_per_second,
        guests=settings.guests_per_second,
        creates=settings.creates_per_second,
        spectator_streams=settings.spectator_streams,
    )


def _platform(settings: Settings, fetched: FetchedKeys | None) -> Platform:
    claims = None
    if settings.jwt_issuer is not None and settings.jwt_audience is not None:
        claims = Claims(settings.jwt_issuer, settings.jwt_audience, settings.jwt_type)
    keys = FileKeys(settings.jwks_file) if settings.jwks_file is not None else fetched
    return Platform(keys, claims, settings.client_scopes)
