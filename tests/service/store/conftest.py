"""The stores that the contract is tested with."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from itertools import count
from pathlib import Path

import pytest

from service.ports import Heartbeat, Store
from service.secret import Secret
from service.store.postgres import PostgresStore
from service.store.sealing import KEY_BYTES, Seal
from service.store.sqlite import SqliteStore
from tests.support.postgres import PostgresServer, postgres_server
from tests.support.store import NOON_NS, OpenStore

SEAL = Seal(bytes(range(KEY_BYTES)))


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """One server for the whole session."""
    with postgres_server() as server:
        yield server


@pytest.fixture
async def dsn(postgres: PostgresServer) -> Secret[str]:
    """An empty database in the current schema."""
    return await postgres.migrated_dsn()


OpenReplica = Callable[[], Awaitable[PostgresStore]]
"""Opens the database as one more replica, which has beaten."""


@pytest.fixture
async def open_replica(dsn: Secret[str]) -> AsyncIterator[OpenReplica]:
    """What was opened is closed after the test."""
    opened: list[PostgresStore] = []
    names = count(1)

    async def open_again() -> PostgresStore:
        name = f"replica {next(names)}"
        store = await PostgresStore.open(dsn, seal=SEAL, replica_id=name, durability="single-node")
        await store.beat(Heartbeat(NOON_NS, NOON_NS))
        opened.append(store)
        return store

    yield open_again
    for store in opened:
        await store.close()


@pytest.fixture
async def open_sqlite(tmp_path: Path) -> AsyncIterator[OpenStore]:
    """What was opened is closed after the test."""
    opened: list[Store] = []

    async def open_again() -> Store:
        store = await SqliteStore.open(tmp_path / "matches.sqlite3")
        opened.append(store)
        return store

    yield open_again
    for store in opened:
        await store.close()


@pytest.fixture(params=["open_sqlite", "open_replica"], ids=["sqlite", "postgres"])
def open_store(request: pytest.FixtureRequest) -> OpenStore:
    """Opens the store; what was opened is closed after the test."""
    opener: OpenStore = request.getfixturevalue(request.param)
    return opener


@pytest.fixture
async def store(open_store: OpenStore) -> Store:
    """An empty store."""
    return await open_store()
