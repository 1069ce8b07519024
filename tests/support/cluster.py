"""A service of several processes on a PostgreSQL and a NATS of its own."""

import base64
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import grpc

from service.secret import Secret
from service.store.postgres import PostgresStore
from service.store.sealing import seal_from
from tests.support.nats import NatsServer, nats_server
from tests.support.postgres import PostgresServer
from tests.support.server import ServerProcess, server_process

NO_FILE = Path("unused.sqlite3")


@dataclass
class Replica:
    """A running process, and a channel to it."""

    server: ServerProcess
    channel: grpc.aio.Channel


@dataclass
class Cluster:
    """What replicas share, and how to start one."""

    postgres: PostgresServer
    nats: NatsServer
    dsn: Secret[str]
    key_file: Path
    settings: dict[str, str]

    @property
    def shared(self) -> dict[str, str]:
        """The settings that every process has."""
        return {
            "DATABASE_URL": self.dsn.reveal(),
            "DURABILITY": "single-node",
            "SEALING_KEY_FILE": str(self.key_file),
            "NATS_URL": self.nats.url,
            "DRAIN_SECONDS": "0.5",
            **self.settings,
        }

    @asynccontextmanager
    async def replica(self, **settings: str) -> AsyncIterator[Replica]:
        """One more process; leaving kills it if it still runs."""
        async with (
            server_process(NO_FILE, **self.shared | settings) as server,
            grpc.aio.insecure_channel(server.address) as channel,
        ):
            yield Replica(server, channel)

    @asynccontextmanager
    async def replicas(self, number: int) -> AsyncIterator[list[Replica]]:
        """So many processes."""
        async with AsyncExitStack() as running:
            yield [await running.enter_async_context(self.replica()) for _ in range(number)]

    @asynccontextmanager
    async def store(self, name: str = "test") -> AsyncIterator[PostgresStore]:
        """The store, as the test itself may use it."""
        seal = seal_from(self.key_file)
        store = await PostgresStore.open(self.dsn, seal=seal, replica_id=name, durability="single-node")
        try:
            yield store
        finally:
            await store.close()


@asynccontextmanager
async def cluster(postgres: PostgresServer, folder: Path, **settings: str) -> AsyncIterator[Cluster]:
    """An empty database in the current schema, a key, and NATS; no process yet."""
    key_file = folder / "sealing.key"
    key_file.write_bytes(base64.b64encode(bytes(range(32))))
    dsn = await postgres.migrated_dsn()
    async with nats_server() as nats:
        yield Cluster(postgres, nats, dsn, key_file, settings)
