"""One run: a fresh server with a fresh database, a load client beside it, each on its core."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

from bench.load.job import Job, Measured, Sizes, Transport, UnderTest
from bench.machine import data_folder
from bench.processes import ROOT, Cores, Server, on_core, serving

WARM_UP_SHARE = 20
"""One in so many commands comes before the clock starts, and every Start."""

NOTHING: Mapping[str, str] = MappingProxyType({})


LOG_TAIL = 4_000
"""So many characters of what a server logged last are told of when a run fails."""


class LoadError(Exception):
    """The load client failed; the text is what it and the servers said last."""


@contextmanager
def service(
    cores: Cores, chosen: Mapping[str, str] = NOTHING, module: Sequence[str] = ("service", "serve")
) -> Iterator[Server]:
    """The service as it is shipped: durable, with metrics; on SQLite unless the settings say otherwise."""
    with tempfile.TemporaryDirectory(prefix="spectacular-bid-bench-", dir=data_folder()) as folder:
        settings = {
            "SPECBID_PORT": "0",
            "SPECBID_METRICS_PORT": "0",
            "SPECBID_DATABASE": str(Path(folder) / "bench.sqlite3"),
            "SPECBID_DRAIN_SECONDS": "0",
            "SPECBID_COMMANDS_PER_SECOND": "1000000",  # the limits are there against clients such as these
            "SPECBID_GUESTS_PER_SECOND": "1000000",
            "SPECBID_CONNECTION_STREAMS": "1000000",
            **chosen,
        }
        log = Path(folder) / "log"
        with serving(["-m", *module], core=cores.server, log=log, settings=settings) as server:
            yield server


@contextmanager
def floor(cores: Cores, sizes: Sizes) -> Iterator[Server]:
    """The floor, with messages as long as the service's."""
    with tempfile.TemporaryDirectory(prefix="spectacular-bid-bench-") as folder:
        arguments = ["-m", "bench.floor", str(sizes.answer), str(sizes.push)]
        with serving(arguments, core=cores.server, log=Path(folder) / "log", settings={}) as server:
            yield server


def run_service(job: Job, cores: Cores) -> Measured:
    """A job against the service."""
    with service(cores) as server, playing(job, [server], cores) as measured:
        return measured


def run_replicas(job: Job, cores: Cores, replicas: int, settings: Mapping[str, str]) -> Measured:
    """A job against so many processes of the service on one database, all on the server's core."""
    with ExitStack() as running:
        servers = [running.enter_context(service(cores, settings)) for _ in range(replicas)]
        return running.enter_context(playing(job, servers, cores))


def run_floor(job: Job, cores: Cores, sizes: Sizes) -> Measured:
    """The same job against the floor."""
    bare = replace(job, under_test=UnderTest.FLOOR, request_bytes=sizes.request)
    with floor(cores, sizes) as server, playing(bare, [server], cores) as measured:
        return measured


def job_of(transport: Transport, *, matches: int, commands: int, pace_per_second: int = 0) -> Job:
    """A job for the service, to be addressed when there is a server."""
    return Job(
        addresses=(),
        server_pids=(),
        under_test=UnderTest.SERVICE,
        transport=transport,
        matches=matches,
        commands=commands,
        warm_up=2 * matches + commands // WARM_UP_SHARE,
        pace_per_second=pace_per_second,
    )


@contextmanager
def playing(job: Job, servers: Sequence[Server], cores: Cores) -> Iterator[Measured]:
    """A load client's result; a held job's streams stay open until the context is left. Raises LoadError."""
    addresses, pids = tuple(server.address for server in servers), tuple(server.pid for server in servers)
    addressed = replace(job, addresses=addresses, server_pids=pids)
    with tempfile.TemporaryFile("w+", encoding="utf-8") as complaints:
        with on_core(cores.client):
            process = subprocess.Popen(
                [sys.executable, "-m", "bench.load", addressed.to_text()],
                cwd=ROOT,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=complaints,
                text=True,
            )
        with process:
            assert process.stdout is not None
            if result := process.stdout.readline():
                yield Measured.from_text(result)
        if process.returncode or not result:
            complaints.seek(0)
            logs = (server.log.read_text(encoding="utf-8")[-LOG_TAIL:] for server in servers)
            raise LoadError("\n".join([complaints.read(), *logs]))
