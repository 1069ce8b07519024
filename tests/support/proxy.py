"""A TCP proxy between the service and a server, for what networks do."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field


@dataclass
class Proxy:
    """Passes bytes on. `loses_answers` so often an answer, with its connection, after the server has done its work."""

    server_port: int
    port: int = 0
    loses_answers: int = 0
    is_cut: bool = False
    _open: set[asyncio.StreamWriter] = field(default_factory=set)

    async def cut(self) -> None:
        """Hang up on everybody and let nobody in."""
        self.is_cut = True
        for writer in self._open:
            writer.transport.abort()

    def mend(self) -> None:
        """Let everybody in again."""
        self.is_cut = False

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection from its beginning to its end."""
        if self.is_cut:
            writer.transport.abort()
            return
        server_reader, server_writer = await asyncio.open_connection("127.0.0.1", self.server_port)
        both = {writer, server_writer}
        self._open |= both
        try:
            await asyncio.gather(self._pass_on(reader, server_writer), self._pass_back(server_reader, writer))
        except OSError:
            pass
        finally:
            self._open -= both
            for one in both:
                one.transport.abort()

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
        raise ConnectionError

    async def _pass_back(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(1 << 16):
            if self.loses_answers:
                self.loses_answers -= 1
                raise ConnectionError
            writer.write(data)
            await writer.drain()
        raise ConnectionError


@asynccontextmanager
async def proxy_to(server_port: int) -> AsyncIterator[Proxy]:
    """A proxy on a free port."""
    proxy = Proxy(server_port)
    server = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
    proxy.port = server.sockets[0].getsockname()[1]
    try:
        yield proxy
    finally:
        server.close()
        with suppress(OSError):
            await proxy.cut()
