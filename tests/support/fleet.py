"""The service as operators run it: replicas that keep their ports, on a PostgreSQL and a NATS of their own."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from service.secret import Secret
from service.store.postgres_schema import migrate
from service.store.sealing import Seal, seal_from
from tests.support.free_ports import free_port
from tests.support.nats import NatsServer, nats_server
from tests.support.postgres import PostgresServer, postgres_server
from tests.support.proxy import Proxy, proxy_to
from tests.support.server import UNHURRIED_ENVIRONMENT, ServerProcess, launch

DRAINING = {"SPECBID_DRAIN_SECONDS": "1"}
"""Longer than a balancer here takes to notice that a replica is leaving."""


class Replica:
    """A process that may be stopped, killed, frozen and started again on its ports."""

    def __init__(self, variables: Mapping[str, str], *, entry: str = "service") -> None:
        self.port, self.envoy_port, self.metrics_port = free_port(), free_port(), free_port()
        ports = {"PORT": self.port, "ENVOY_PORT": self.envoy_port, "METRICS_PORT": self.metrics_port}
        self._variables = {**variables, **{f"SPECBID_{name}": str(port) for name, port in ports.items()}}
        self._entry = entry
        self._server: ServerProcess | None = None

    @property
    def address(self) -> str:
        """Where it listens for gRPC."""
        return f"127.0.0.1:{self.port}"

    @property
    def server(self) -> ServerProcess:
        """The process that runs now, or ran last."""
        assert self._server is not None, "it has not been started"
        return self._server

    @property
    def is_running(self) -> bool:
        """Whether a process of it runs."""
        return self._server is not None and self._server.process.returncode is None

    async def start(self) -> None:
        """Start it; when this returns it serves."""
        assert not self.is_running, "it runs already"
        self._server = await launch(self._variables, entry=self._entry)
        try:
            await self._server.started()
        except BaseException:
            await self._server.end()
            raise

    async def kill(self) -> None:
        """Stop it dead, as a crash would."""
        await self.server.end()

    async def stop(self) -> int:
        """A planned stop; its exit status."""
        return await self.server.stop()

    async def end(self) -> None:
        """Stop it as planned if it runs, without waiting for balancers; kill it if that takes too long."""
        if self._server is None:
            return
        try:
            if self.is_running:
                await self._server.stop(signal.SIGINT)
        finally:
            await self._server.end()


@dataclass(frozen=True)
class Fleet:
    """Everything that runs. `links[n]` lies between the nth replica and PostgreSQL."""

    postgres: PostgresServer
    nats: NatsServer
    links: Sequence[Proxy]
    replicas: Sequence[Replica]
    seal: Seal
    settings: Mapping[str, str]
    """What a further replica needs, with its `SPECBID_*` names."""

    async def restart_postgres(self, mode: str) -> None:
        """Stop PostgreSQL, fast or as if it had crashed, and start it again."""
        await asyncio.to_thread(self.postgres.stop, mode)
        await asyncio.to_thread(self.postgres.start)

    def signal_postmaster(self, number: signal.Signals) -> None:
        """Send a signal to the process that lets new sessions in; those that are there go on."""
        os.kill(self.postgres.pid, number)


@asynccontextmanager
async def fleet(
    *, replicas: int = 3, entry: str = "service", settings: Mapping[str, str] | None = None
) -> AsyncIterator[Fleet]:
    """Runs replicas on a fresh database, with further `SPECBID_*` variables; leaving stops everything as planned."""
    async with AsyncExitStack() as running:
        folder = Path(running.enter_context(TemporaryDirectory(prefix="specbid-fleet-")))
        nats = await running.enter_async_context(nats_server())
        postgres = await _postgres(running)
        await migrate(Secret(postgres.dsn()))
        links = [await running.enter_async_context(proxy_to(postgres.port)) for _ in range(replicas)]
        needed = {
            "SPECBID_DATABASE_URL": postgres.dsn(),
            "SPECBID_DURABILITY": "single-node",
            "SPECBID_NATS_URL": nats.url,
            "SPECBID_SEALING_KEY_FILE": str(folder / "sealing.key"),
        }
        seal = seal_from(folder / "sealing.key")  # made once, before the replicas look for it
        variables = _inherited() | UNHURRIED_ENVIRONMENT | needed | DRAINING | dict(settings or {})
        addresses = [postgres.dsn().replace(str(postgres.port), str(link.port)) for link in links]
        made = [Replica({**variables, "SPECBID_DATABASE_URL": address}, entry=entry) for address in addresses]
        running.push_async_callback(_stop, made)
        failures = await asyncio.gather(*(replica.start() for replica in made), return_exceptions=True)
        for failure in failures:
            if failure is not None:  # raised only now that no other one is still starting
                raise failure
        yield Fleet(postgres, nats, links, made, seal, needed)


def _inherited() -> dict[str, str]:
    return {name: text for name, text in os.environ.items() if not name.startswith("SPECBID_")}


async def _postgres(running: AsyncExitStack) -> PostgresServer:
    """PostgreSQL, started and stopped without holding up the loop."""
    server = postgres_server()
    started = await asyncio.to_thread(server.__enter__)
    running.push_async_callback(asyncio.to_thread, server.__exit__, None, None, None)
    return started


async def _stop(replicas: Sequence[Replica]) -> None:
    """All at once, as planned; what does not stop is killed."""
    await asyncio.gather(*(replica.end() for replica in replicas))
