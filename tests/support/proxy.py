"""A TCP proxy between the service and a server, for what networks do."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field


def _set_event() -> asyncio.Event:
    event = asyncio.Event()
    event.set()
    return event


@dataclass
class Proxy:
    """Passes bytes on. `loses_answers` so often an answer, with its connection, after the server has done its work.

    While it is not `passing` nothing gets through in either direction, not even an end, as if the cable were out; while
    it is not `answering` only the server's answers wait.
    """

    server_port: int
    port: int = 0
    loses_answers: int = 0
    is_cut: bool = False
    delay_seconds: float = 0.0
    """How late each piece is, either way."""
    passing: asyncio.Event = field(default_factory=_set_event)
    answering: asyncio.Event = field(default_factory=_set_event)
    _open: set[asyncio.StreamWriter] = field(default_factory=set)

    async def cut(self) -> None:
        """Hang up on everybody and let nobody in."""
        self.is_cut = True
        for writer in self._open:
            writer.transport.abort()

    def mend(self) -> None:
        """Let everybody in again."""
        self.is_cut = False

    @asynccontextmanager
    async def unplugged(self) -> AsyncIterator[None]:
        """Pulls the cable. When it is plugged in again, connections of before are reset and new ones come in."""
        self.passing.clear()
        try:
            yield
        finally:
            await self.cut()
            self.mend()
            self.passing.set()

    @asynccontextmanager
    async def holding_answers(self) -> AsyncIterator[None]:
        """What the server is asked to do it does, and nobody hears of it until this is left."""
        self.answering.clear()
        try:
            yield
        finally:
            self.answering.set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection from its beginning to its end."""
        await self.passing.wait()
        if self.is_cut:
            writer.transport.abort()
            return
        try:
            server_reader, server_writer = await asyncio.open_connection("127.0.0.1", self.server_port)
        except OSError:
            writer.transport.abort()
            return
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
            await self._carry(data, writer)
        raise ConnectionError

    async def _pass_back(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(1 << 16):
            if self.loses_answers:
                self.loses_answers -= 1
                raise ConnectionError
            await self.answering.wait()
            await self._carry(data, writer)
        raise ConnectionError

    async def _carry(self, data: bytes, writer: asyncio.StreamWriter) -> None:
        if self.delay_seconds:
            await asyncio.sleep(self.delay_seconds)
        await self.passing.wait()
        writer.write(data)
        await writer.drain()


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
        proxy.passing.set()
        proxy.answering.set()
        with suppress(OSError):
            await proxy.cut()
