"""Floods of HTTP/2 frames that no client needs: the server lives, and serves everybody else meanwhile."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator

import grpc
import pytest
import pytest_asyncio
from hpack import Encoder
from hyperframe.frame import ContinuationFrame, DataFrame, Frame, HeadersFrame, PingFrame, RstStreamFrame, SettingsFrame

from service.rpc.server import CONNECTION_STREAMS, ENDING_STREAMS
from tests.support.http2 import SERVICE
from tests.support.players import Viewer, new_table
from tests.support.server import server_process

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
FRAMES = 2_000
CHUNK_FRAMES = 100
CANCEL = 8
REFUSED_STREAM = 7
FRAME_HEADER = 9
CONNECTIONS = 3
FLOOD_SECONDS = 10.0
SERVED_SECONDS = 1.0
Flood = Callable[[], Iterator[Frame]]


def headers_of(encoder: Encoder) -> bytes:
    """The header block of a call."""
    names = {":method": "POST", ":scheme": "http", ":path": SERVICE + "PlayMatch", ":authority": "localhost"}
    return encoder.encode(list((names | {"te": "trailers", "content-type": "application/grpc"}).items()))


def rapid_reset() -> Iterator[Frame]:
    """Calls that are given up as soon as they are made (CVE-2023-44487)."""
    encoder = Encoder()
    for number in range(FRAMES):
        stream = 2 * number + 1
        yield HeadersFrame(stream, headers_of(encoder), flags=["END_HEADERS"])
        yield RstStreamFrame(stream, error_code=CANCEL)


def continuation() -> Iterator[Frame]:
    """Headers that never end (CVE-2024-27316)."""
    yield HeadersFrame(1, headers_of(Encoder()))
    for number in range(FRAMES):
        yield ContinuationFrame(1, Encoder().encode([(f"x-{number}", "a" * 200)]))


def settings() -> Iterator[Frame]:
    """Settings that want to be acknowledged, one after the other (CVE-2019-9515)."""
    for number in range(FRAMES):
        yield SettingsFrame(settings={SettingsFrame.INITIAL_WINDOW_SIZE: 65_535 + number})


def ping() -> Iterator[Frame]:
    """Pings, whose answers nobody reads (CVE-2019-9512)."""
    for number in range(FRAMES):
        yield PingFrame(opaque_data=number.to_bytes(8, "big"))


def empty_data() -> Iterator[Frame]:
    """Frames that say nothing (CVE-2019-9518)."""
    yield HeadersFrame(1, headers_of(Encoder()), flags=["END_HEADERS"])
    for _ in range(FRAMES):
        yield DataFrame(1, b"")


FLOODS: list[Flood] = [rapid_reset, continuation, settings, ping, empty_data]


async def send(port: int, flood: Flood) -> None:
    """Send all of it, or as much as the server takes before it hangs up. Nothing is read."""
    _, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(PREFACE + SettingsFrame().serialize())
        for count, frame in enumerate(flood()):
            writer.write(frame.serialize())
            if count % CHUNK_FRAMES == 0:
                await writer.drain()
        await writer.drain()
    except ConnectionError:
        pass
    finally:
        writer.transport.abort()


async def refused(port: int, flood: Flood, wanted: int) -> set[int]:
    """Send all of it as a client that has read and acknowledged the settings; `wanted` calls that were refused."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    found: set[int] = set()
    try:
        writer.write(PREFACE + SettingsFrame().serialize())
        await next_frame(reader)
        writer.write(SettingsFrame(flags=["ACK"]).serialize() + b"".join(frame.serialize() for frame in flood()))
        while len(found) < wanted:
            frame = await next_frame(reader)
            if isinstance(frame, RstStreamFrame) and frame.error_code == REFUSED_STREAM:
                found.add(frame.stream_id)
    finally:
        writer.transport.abort()
    return found


async def next_frame(reader: asyncio.StreamReader) -> Frame:
    """The next frame that the server sends."""
    frame, length = Frame.parse_frame_header(memoryview(await reader.readexactly(FRAME_HEADER)))
    frame.parse_body(memoryview(await reader.readexactly(length)))
    return frame


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def viewer(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[tuple[Viewer, int]]:
    """Somebody at a service that is a process of its own, and the service's port."""
    async with server_process(tmp_path_factory.mktemp("floods") / "m.sqlite3", connection_streams="32") as server:
        async with grpc.aio.insecure_channel(server.address) as channel:
            table = await new_table(channel, start=True)
            yield table.one, int(server.address.rpartition(":")[2])
        assert await server.stop() == 0


@pytest.mark.parametrize("flood", FLOODS)
async def test_a_flood_of_frames_leaves_everybody_else_served(viewer: tuple[Viewer, int], flood: Flood) -> None:
    """Within a second each time, while it comes in and afterwards."""
    somebody, port = viewer
    async with asyncio.timeout(FLOOD_SECONDS):
        flooding = asyncio.create_task(send(port, flood))
        while not flooding.done():
            await served_in_time(somebody)
        await flooding
    await served_in_time(somebody)


async def served_in_time(viewer: Viewer) -> None:
    """Somebody else gets a view within a second."""
    async with asyncio.timeout(SERVED_SECONDS):
        assert (await viewer.view()).own.seat == 1


async def test_rapid_resets_of_several_connections_leave_everybody_else_served(viewer: tuple[Viewer, int]) -> None:
    """Their clients keep to the protocol in all else; most of their calls are refused before they cost anything."""
    somebody, port = viewer
    async with asyncio.timeout(FLOOD_SECONDS):
        flooding = asyncio.gather(*(refused(port, rapid_reset, FRAMES // 2) for _ in range(CONNECTIONS)))
        while not flooding.done():
            await served_in_time(somebody)
        await flooding
    await served_in_time(somebody)


def unanswered() -> Iterator[Frame]:
    """Calls that wait for their first message."""
    encoder = Encoder()
    for number in range(CONNECTION_STREAMS + 3):
        yield HeadersFrame(2 * number + 1, headers_of(encoder), flags=["END_HEADERS"])


async def test_a_connection_has_so_many_calls_under_way(viewer: tuple[Viewer, int]) -> None:
    """Further ones are refused, as HTTP/2 says."""
    _, port = viewer
    async with asyncio.timeout(FLOOD_SECONDS):
        first = 2 * CONNECTION_STREAMS + 1
        assert await refused(port, unanswered, 3) == {first, first + 2, first + 4}


async def test_a_client_that_asks_much_at_once_is_not_refused(viewer: tuple[Viewer, int]) -> None:
    """It waits for a free place, as grpc's clients do by themselves."""
    somebody, _ = viewer
    views = await asyncio.gather(*(somebody.view() for _ in range(10 * ENDING_STREAMS)))
    assert len(views) == 10 * ENDING_STREAMS
