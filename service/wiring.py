"""Which adapters this process uses, and the order in which it starts and stops."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from socket import gethostname

from service.clock_watch import ClockWatch
from service.core import Core
from service.fair_deal import order as fair_order
from service.fanout.local import LocalBus
from service.fanout.nats import NatsBus
from service.fanout.polling import PollingBus
from service.limits import Limits, Rates
from service.logs import get_logger
from service.measured_store import MeasuredStore
from service.metrics import Metrics
from service.ports import Bus, Store, StoreUnavailableError
from service.rpc.admin_server import AdminServer
from service.rpc.auth import RECHECK_NS, SHARED_RECHECK_NS, Gatekeeper
from service.rpc.doors import doors
from service.rpc.edge import Tracing
from service.rpc.jwks import FetchedKeys, FileKeys
from service.rpc.match_service import MatchService
from service.rpc.platform import Claims, Platform
from service.rpc.render import Renderer
from service.rpc.server import GrpcServer
from service.settings import Settings
from service.store.postgres import PostgresStore
from service.store.postgres_link import NotReadyError
from service.store.postgres_schema import migrate as migrate_postgres
from service.store.sealing import seal_from
from service.store.sqlite import SqliteStore
from service.system.chance import SystemEntropy
from service.system.store_time import StoreTime
from service.system.time import ANCHOR_KEY, anchor, service_time

FIRST_RETRY_SECONDS = 0.5
LAST_RETRY_SECONDS = 5.0
"""How long to wait before looking again whether a database can be used."""


@dataclass(frozen=True, slots=True)
class Addresses:
    """Where a running service listens. Ports are the real ones, also where 0 was asked for."""

    grpc: str
    metrics: str
    health: str | None = None
    envoy: str | None = None


@dataclass(frozen=True, slots=True)
class Backend:
    """What lies behind the core: the store, the bus, and the line of time that they share."""

    store: Store
    bus: Bus
    now_ns: Callable[[], int]
    error_bound_ns: Callable[[], int]


@asynccontextmanager
async def serving(settings: Settings, *, asked_to_stop: asyncio.Event | None = None) -> AsyncIterator[Service]:
    """Run the whole service; leaving the context drains and stops it. `asked_to_stop` is set when an operator asks."""
    metrics, stop = Metrics(), asked_to_stop or asyncio.Event()
    is_alone = settings.database_url is None
    async with _on_sqlite(settings, metrics) if is_alone else _on_postgres(settings, metrics, stop) as behind:
        service = Service(settings, behind, metrics, stop)
        try:
            await service.start()
        except StoreUnavailableError as error:
            raise NotReadyError("the store went away during the start") from error
        try:
            yield service
        finally:
            await service.stop()


async def migrate(settings: Settings) -> Sequence[str]:
    """Bring the schema of PostgreSQL up to date; what was applied. Raises StoreOpenError; SQLite does it at start."""
    return () if settings.database_url is None else await migrate_postgres(settings.database_url)


@asynccontextmanager
async def _on_sqlite(settings: Settings, metrics: Metrics) -> AsyncIterator[Backend]:
    """A file and this process; the machine's clock."""
    store = await SqliteStore.open(settings.database, key_file=settings.sealing_key_file)
    try:
        last = await store.last_beat()
        anchored = anchor(await store.meta(ANCHOR_KEY), not_before_ns=0 if last is None else last.at_ns)
        await store.set_meta(ANCHOR_KEY, anchored.to_text())
        metrics.process.bus_connected.set(1)  # within a process it always is
        # The store is in this process: one clock.
        yield Backend(store, LocalBus(), service_time(anchored), lambda: 0)
    finally:
        await store.close()


@asynccontextmanager
async def _on_postgres(settings: Settings, metrics: Metrics, stop: asyncio.Event) -> AsyncIterator[Backend]:
    """A database that replicas share; its clock; NATS between them if there is one."""
    store = await _opened(settings, stop)
    bus = _bus(settings, metrics)
    clock = StoreTime(store.service_ns)
    sampling = asyncio.create_task(clock.run())
    try:
        for _ in range(2):  # the first question also opens the connection, so its answer says less about the time
            await clock.sample()
        if isinstance(bus, NatsBus):
            bus.start()
        yield Backend(store, bus, clock.now_ns, clock.error_bound_ns)
    finally:
        sampling.cancel()
        if isinstance(bus, NatsBus):
            await bus.close()
        await store.close()


async def _opened(settings: Settings, stop: asyncio.Event) -> PostgresStore:
    """The store, as soon as it can be used; until then each attempt says what is missing."""
    assert settings.database_url is not None
    assert settings.sealing_key_file is not None, "checked with the settings"
    if not settings.sealing_key_file.exists():  # made here, it would be one that no other replica has
        raise NotReadyError(f"the sealing key {settings.sealing_key_file} is not there: `openssl rand -base64 32`")
    seal = seal_from(settings.sealing_key_file)
    name = f"{gethostname()}-{SystemEntropy().match_id()[:8]}"
    retry_seconds = FIRST_RETRY_SECONDS
    while True:
        try:
            return await PostgresStore.open(
                settings.database_url, seal=seal, replica_id=name, durability=settings.durability
            )
        except NotReadyError as error:
            get_logger().warning("store_not_ready", problem=str(error))
        with suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), retry_seconds)
            raise NotReadyError("it was asked to stop before its database could be used")
        retry_seconds = min(2 * retry_seconds, LAST_RETRY_SECONDS)


def _bus(settings: Settings, metrics: Metrics) -> PollingBus:
    if settings.nats_url is None:
        metrics.process.bus_connected.set(1)  # there is nothing to lose
        return PollingBus()

    def report(problem: str | None) -> None:
        metrics.process.bus_connected.set(problem is None)
        if problem is None:
            get_logger().info("bus_connected")
        else:
            get_logger().warning("bus_not_connected", problem=problem)

    return NatsBus(settings.nats_url, settings.nats_credentials_file, report)


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
        self._watches = ClockWatch(behind.error_bound_ns, self._grpc).run, handlers.gatekeeper.end_revoked_streams
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
