"""What lies behind the core: a file and this machine's clock, or a PostgreSQL with its clock, and NATS."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from socket import gethostname
from typing import Protocol

from service.fanout.local import LocalBus
from service.fanout.nats import NatsBus
from service.fanout.polling import PollingBus
from service.logs import get_logger
from service.metrics import Metrics
from service.ports import Store, StoreUnavailableError
from service.settings import Settings
from service.store.postgres import PostgresStore
from service.store.postgres_link import NotReadyError
from service.store.postgres_schema import migrate as migrate_postgres
from service.store.sealing import seal_from
from service.store.sqlite import SqliteStore
from service.system.chance import SystemEntropy
from service.system.store_time import StoreTime
from service.system.time import ANCHOR_KEY, anchor, service_time
from service.tails import Lineage
from service.writer import UNCERTAIN_NS

FIRST_RETRY_SECONDS = 0.5
LAST_RETRY_SECONDS = 5.0
"""How long to wait before looking again whether a database can be used."""
SURE_NS = UNCERTAIN_NS // 2
"""How well the time must be known at the start: two answers may be off by as much, to both sides."""


@dataclass(frozen=True, slots=True)
class Backend:
    """What lies behind the core: the store, the bus, and the line of time that they share."""

    store: Store
    bus: LocalBus
    now_ns: Callable[[], int]
    error_bound_ns: Callable[[], int]
    lineage: Lineage | None = None


class Room(Protocol):
    """Where callers are told that the process waits."""

    async def open(self) -> None:
        """Open it, if it is not open yet."""

    async def close(self) -> None:
        """Close it, if it is open."""


async def migrate(settings: Settings) -> Sequence[str]:
    """Bring the schema of PostgreSQL up to date; what was applied. Raises StoreOpenError; SQLite does it at start."""
    return () if settings.database_url is None else await migrate_postgres(settings.database_url)


@asynccontextmanager
async def on_sqlite(settings: Settings, metrics: Metrics) -> AsyncIterator[Backend]:
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
async def on_postgres(settings: Settings, metrics: Metrics, stop: asyncio.Event, room: Room) -> AsyncIterator[Backend]:
    """A database that replicas share; its clock; NATS between them if there is one.

    As long as it cannot be used the room is open.
    """
    store, clock = await _opened(settings, stop, room)
    bus = _bus(settings, metrics)
    sampling = asyncio.create_task(clock.run())
    try:
        if isinstance(bus, NatsBus):
            bus.start()
        yield Backend(store, bus, clock.now_ns, clock.error_bound_ns, store.lineage)
    finally:
        sampling.cancel()
        if isinstance(bus, NatsBus):
            await bus.close()
        await store.close()


async def _opened(settings: Settings, stop: asyncio.Event, room: Room) -> tuple[PostgresStore, StoreTime]:
    """The store and its time, as soon as they can be used; until then each attempt says what is missing."""
    assert settings.database_url is not None
    assert settings.sealing_key_file is not None, "checked with the settings"
    if not settings.sealing_key_file.exists():  # made here, it would be one that no other replica has
        raise NotReadyError(f"the sealing key {settings.sealing_key_file} is not there: `openssl rand -base64 32`")
    seal = seal_from(settings.sealing_key_file)
    name = f"{gethostname()}-{SystemEntropy().match_id()[:8]}"
    retry_seconds = FIRST_RETRY_SECONDS
    try:
        while True:
            try:
                store = await PostgresStore.open(
                    settings.database_url, seal=seal, replica_id=name, durability=settings.durability
                )
                return store, await _time_of(store)
            except NotReadyError as error:
                get_logger().warning("store_not_ready", problem=str(error))
            await room.open()
            with suppress(TimeoutError):
                await asyncio.wait_for(stop.wait(), retry_seconds)
                raise NotReadyError("it was asked to stop before its database could be used")
            retry_seconds = min(2 * retry_seconds, LAST_RETRY_SECONDS)
    finally:
        await room.close()


async def _time_of(store: PostgresStore) -> StoreTime:
    """The store's time, known well enough to stamp. Raises NotReadyError, with the store closed."""
    clock = StoreTime(store.service_ns)
    problem = f"PostgreSQL answers too slowly: its time cannot be told within {SURE_NS // 1_000_000} ms"
    try:
        if await clock.make_sure(SURE_NS):
            return clock
    except StoreUnavailableError:
        problem = "PostgreSQL went away again"
    await store.close()
    raise NotReadyError(problem)


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
