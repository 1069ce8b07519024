"""The real service for a test: in this process, or as a process of its own that can be killed."""

import asyncio
import json
import os
import re
import signal
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from unittest.mock import patch

import grpc
from prometheus_client import CollectorRegistry

from service import wiring
from service.settings import Settings
from tests.support.ports import ScriptedEntropy

ROOT = Path(__file__).resolve().parent.parent.parent
START_SECONDS = 30.0
STOP_SECONDS = 30.0


MANY = 1_000_000
UNHURRIED = Settings(
    commands_per_second=MANY,
    reads_per_second=MANY,
    guests_per_second=MANY,
    spectator_streams=1000,
    connection_streams=1000,
)
"""Limits out of the way of tests that play as fast as they can, on one connection, and share a spectator's token."""
UNHURRIED_ENVIRONMENT = {
    "SPECBID_COMMANDS_PER_SECOND": str(MANY),
    "SPECBID_READS_PER_SECOND": str(MANY),
    "SPECBID_GUESTS_PER_SECOND": str(MANY),
    "SPECBID_SPECTATOR_STREAMS": "1000",
    "SPECBID_CONNECTION_STREAMS": "1000",
}


def sample_of(registry: CollectorRegistry, name: str, **labels: str) -> float:
    """The sum of the samples of this name that have these labels; there must be one."""
    samples = [sample for family in registry.collect() for sample in family.samples if sample.name == name]
    values = [sample.value for sample in samples if labels.items() <= sample.labels.items()]
    assert values, (name, labels)
    return sum(values)


@dataclass(frozen=True)
class Server:
    """A service in this process, a channel to it, and the chance that deals in it."""

    service: wiring.Service
    channel: grpc.aio.Channel
    entropy: ScriptedEntropy

    @property
    def address(self) -> str:
        """Where it listens for gRPC."""
        return self.service.addresses.grpc

    @property
    def port(self) -> int:
        """The number of its port."""
        return int(self.address.rpartition(":")[2])

    def sample(self, name: str, **labels: str) -> float:
        """The value of one of its metrics now: the sum over the labels that are not given."""
        return sample_of(self.service._metrics.registry, name, **labels)


@asynccontextmanager
async def served(
    database: Path, *, seed: int = 1, drain_seconds: float = 0.0, chosen: Settings = UNHURRIED
) -> AsyncIterator[Server]:
    """Runs the service on free ports and on this file; leaving drains it, and only then hangs up."""
    entropy = ScriptedEntropy(seed)
    free = {"port": 0, "metrics_port": 0, "health_port": 0}
    settings = chosen.model_copy(update={**free, "database": database, "drain_seconds": drain_seconds})
    async with AsyncExitStack() as hung_up, AsyncExitStack() as running:
        with (  # only while it is made: other tests of this process may make another one
            patch.object(wiring, "SystemEntropy", lambda: entropy),
            patch.object(wiring, "fair_order", entropy.shuffle),
        ):
            service = await running.enter_async_context(wiring.serving(settings))
        channel = grpc.aio.insecure_channel(service.addresses.grpc)
        hung_up.push_async_callback(channel.close)
        yield Server(service, channel, entropy)


def environment(database: Path, settings: Mapping[str, str]) -> dict[str, str]:
    """The environment of a service process: free ports unless these settings say otherwise."""
    usual = {"SPECBID_DATABASE": str(database), "SPECBID_PORT": "0", "SPECBID_METRICS_PORT": "0"}
    inherited = {name: text for name, text in os.environ.items() if not name.startswith("SPECBID_")}
    return inherited | usual | UNHURRIED_ENVIRONMENT | {f"SPECBID_{name}": text for name, text in settings.items()}


@dataclass
class ServerProcess:
    """A service process, its addresses, and what it has written so far."""

    process: asyncio.subprocess.Process
    address: str = ""
    envoy_address: str = ""
    log: list[str] = field(default_factory=list)

    def events(self) -> list[str]:
        """The names of the facts that it logged, but for the lives of matches."""
        names = [json.loads(line)["event"] for line in self.log if line.startswith("{")]
        return [name for name in names if name not in {"match_created", "match_finished"}]

    async def kill(self) -> None:
        """Stop it dead, as a crash would."""
        self.process.kill()
        await self.process.wait()

    async def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Ask it to stop; its exit status."""
        self.process.send_signal(number)
        return await self.ended()

    async def ended(self) -> int:
        """Wait until it has ended and everything that it wrote is here; its exit status."""
        async with asyncio.timeout(STOP_SECONDS):
            status = await self.process.wait()
            assert self._reading is not None
            await self._reading
        return status

    async def end(self) -> None:
        """Kill it if it still runs."""
        if self.process.returncode is None:
            await self.kill()
        await self.ended()

    async def started(self) -> None:
        """Wait until it serves."""
        serving: asyncio.Future[dict[str, str]] = asyncio.get_running_loop().create_future()
        self._reading: asyncio.Task[None] | None = asyncio.create_task(self._read(serving))
        async with asyncio.timeout(START_SECONDS):
            facts = await serving
        self.address, self.envoy_address = facts["address"], facts["envoy"] or ""

    async def _read(self, serving: asyncio.Future[dict[str, str]]) -> None:
        assert self.process.stderr is not None
        async for raw in self.process.stderr:
            line = raw.decode().rstrip()
            self.log.append(line)
            if line.startswith("{") and (facts := json.loads(line))["event"] == "serving":
                serving.set_result(facts)
        if not serving.done():
            serving.set_exception(AssertionError("\n".join(self.log)))


async def launch(variables: Mapping[str, str], *, entry: str = "service") -> ServerProcess:
    """Launches the service as a process with this environment; a Ctrl-C in the terminal does not reach it."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", entry, "serve"),
        cwd=ROOT,
        env=variables,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    return ServerProcess(process)


@asynccontextmanager
async def starting_process(database: Path, **settings: str) -> AsyncIterator[ServerProcess]:
    """Starts the service as a process on this file; leaving kills it if it still runs."""
    server = await launch(environment(database, settings))
    try:
        yield server
    finally:
        await server.end()


@asynccontextmanager
async def server_process(database: Path, **settings: str) -> AsyncIterator[ServerProcess]:
    """The same, when it serves."""
    async with starting_process(database, **settings) as server:
        await server.started()
        yield server


@dataclass(frozen=True)
class Finished:
    """A command line that came to its end."""

    status: int
    output: str
    errors: str


async def run_command(*arguments: str, database: Path, **settings: str) -> Finished:
    """Runs `spectacular-bid` to its end."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "service", *arguments),
        cwd=ROOT,
        env=environment(database, settings),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(START_SECONDS):
        output, errors = await process.communicate()
    assert process.returncode is not None
    return Finished(process.returncode, output.decode(), errors.decode())


def without_grpc_noise(errors: str) -> list[str]:
    """The lines of a process's errors but for those that the gRPC core writes on its own."""
    return [line for line in errors.splitlines() if not re.match(r"[EWI]\d{4} ", line)]
