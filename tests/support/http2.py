"""A gRPC client made by hand on HTTP/2, which decides when each frame goes out and how much the server may send."""

from __future__ import annotations

import asyncio
from base64 import b64decode
from collections import defaultdict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from urllib.parse import unquote

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import DataReceived, Event, ResponseReceived, StreamEnded, StreamReset, TrailersReceived
from h2.settings import SettingCodes

SERVICE = "/spectacularbid.v1.MatchService/"
DETAILS = "grpc-status-details-bin"
CHUNK = 65_536
PREFIX = 5
PATIENCE_SECONDS = 20.0


def framed(message: bytes) -> bytes:
    """A message as gRPC sends it: not compressed, its length, its bytes."""
    return b"\0" + len(message).to_bytes(4, "big") + message


def messages(data: bytes) -> list[bytes]:
    """The whole messages in a stream's data."""
    found = []
    while len(data) >= PREFIX and len(data) >= PREFIX + (length := int.from_bytes(data[1:PREFIX], "big")):
        found.append(data[PREFIX : PREFIX + length])
        data = data[PREFIX + length :]
    return found


class Http2:
    """One connection. It answers the server's pings and settings by itself."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, window: int) -> None:
        self._reader = reader
        self._writer = writer
        self._h2 = H2Connection(H2Configuration(client_side=True, header_encoding="utf-8"))
        self._h2.initiate_connection()
        self._h2.update_settings({SettingCodes.INITIAL_WINDOW_SIZE: window})
        self.data: dict[int, bytes] = defaultdict(bytes)
        self.trailers: dict[int, dict[str, str]] = defaultdict(dict)
        self.ended: set[int] = set()
        self._changed = asyncio.Event()
        self._reading = asyncio.create_task(self._read())

    async def call(self, method: str, token: str) -> int:
        """Sends the headers of a call, and nothing else; the number of its stream."""
        stream = self._h2.get_next_available_stream_id()
        headers = [
            (":method", "POST"),
            (":scheme", "http"),
            (":path", SERVICE + method),
            (":authority", "localhost"),
            ("te", "trailers"),
            ("content-type", "application/grpc"),
            ("authorization", f"Bearer {token}"),
        ]
        self._h2.send_headers(stream, headers)
        await self.flush()
        return stream

    async def send(self, stream: int, message: bytes, *, end: bool = False) -> None:
        """Sends a message on a call."""
        await self.send_bytes(stream, framed(message), end=end)

    async def send_bytes(self, stream: int, data: bytes, *, end: bool = False) -> None:
        """Sends raw bytes on a call."""
        self._h2.send_data(stream, data, end_stream=end)
        await self.flush()

    async def reset(self, stream: int) -> None:
        """Gives a call up."""
        self._h2.reset_stream(stream)
        await self.flush()

    async def open_window(self, stream: int, size: int) -> None:
        """Lets the server send so many bytes more on a call."""
        self._h2.increment_flow_control_window(size, stream)
        await self.flush()

    async def message(self, stream: int, number: int = 0) -> bytes:
        """The message of this number on a call."""
        await self._until(lambda: len(messages(self.data[stream])) > number or stream in self.ended)
        return messages(self.data[stream])[number]

    async def status(self, stream: int) -> tuple[int, str, bytes]:
        """Wait for the end of a call: its status, its text, its details."""
        await self._until(lambda: stream in self.ended)
        trailers = self.trailers[stream]
        details = trailers.get(DETAILS, "")
        return int(trailers["grpc-status"]), unquote(trailers.get("grpc-message", "")), b64decode(details + "==")

    async def flush(self) -> None:
        """Hand everything to the kernel."""
        self._writer.write(self._h2.data_to_send())
        await self._writer.drain()

    def drop(self) -> None:
        """Let the connection go without a word."""
        self._reading.cancel()
        self._writer.transport.abort()

    async def _until(self, is_so: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not is_so():
                assert not self._reading.done(), "the server has closed the connection"
                self._changed.clear()
                await self._changed.wait()

    async def _read(self) -> None:
        try:
            while chunk := await self._reader.read(CHUNK):
                for event in self._h2.receive_data(chunk):
                    self._take(event)
                await self.flush()
                self._changed.set()
        finally:
            self._changed.set()

    def _take(self, event: Event) -> None:
        match event:
            case DataReceived():
                self.data[event.stream_id] += event.data
                self._h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
            case ResponseReceived() | TrailersReceived():
                self.trailers[event.stream_id] |= {str(name): str(value) for name, value in event.headers}
            case StreamEnded() | StreamReset():
                self.ended.add(event.stream_id)
            case _:
                pass


@asynccontextmanager
async def http2(port: int, *, window: int = CHUNK) -> AsyncIterator[Http2]:
    """A connection to a server here; each of its streams may send `window` bytes unasked."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    connection = Http2(reader, writer, window=window)
    try:
        await connection.flush()
        yield connection
    finally:
        connection.drop()
