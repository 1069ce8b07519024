"""Real NATS servers for tests, from the binary of a package."""

import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from nats.aio.client import Client

from tests.support.free_ports import free_port

BINARY = Path(sys.executable).parent / "nats-server"


@dataclass
class NatsServer:
    """A server on its port, which may be killed and started again."""

    options: tuple[str, ...] = ()
    port: int = field(default_factory=free_port)
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Where it is."""
        return f"nats://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start it; when this returns it answers."""
        command = [str(BINARY), "--addr=127.0.0.1", f"--port={self.port}", *self.options]
        quiet = subprocess.DEVNULL
        self.process = subprocess.Popen(command, stdout=quiet, stderr=quiet, start_new_session=True)
        for _ in range(500):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            try:
                status = self.process.wait(timeout=0.02)
            except subprocess.TimeoutExpired:
                continue
            raise AssertionError(f"nats-server ended with {status}")
        raise AssertionError("nats-server does not start")

    def kill(self) -> None:
        """Stop it dead."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()


@asynccontextmanager
async def nats_server(*options: str) -> AsyncIterator[NatsServer]:
    """Runs a server on a free port."""
    server = NatsServer(options)
    server.start()
    try:
        yield server
    finally:
        server.kill()


@asynccontextmanager
async def nats_client(server: NatsServer) -> AsyncIterator[Client]:
    """A client of one's own, as an operator has one."""
    client = Client()
    await client.connect(server.url)
    try:
        yield client
    finally:
        await client.close()
