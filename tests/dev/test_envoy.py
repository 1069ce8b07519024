"""What Envoy, set up as by the chart, does to the calls that pass through it."""

from __future__ import annotations

import asyncio
import time
import urllib.request
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any

import grpc
from grpc_health.v1 import health, health_pb2
from grpc_health.v1.health_pb2_grpc import add_HealthServicer_to_server

from spectacularbid.v1 import match_service_pb2 as pb
from spectacularbid.v1.match_service_pb2_grpc import MatchServiceStub
from tests.support.envoy import ARRIVAL_HEADER, Envoy, envoy
from tests.support.http2 import SERVICE, framed, http2, messages

if TYPE_CHECKING:
    from spectacularbid.v1.match_service_pb2_grpc import MatchServiceAsyncStub

FORGED = "1.000000000 1"
LAG_SECONDS = 0.5
CLOSE_NS = 50_000_000


class Backend(grpc.GenericRpcHandler):
    """Stands for a replica: answers every call with nothing, and remembers when it came and what came with it."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, dict[str, str | bytes], int]] = []
        self.health = health.aio.HealthServicer()
        self.port = 0

    # Any: what grpc's stubs say of handlers of raw bytes.
    def service(self, handler_call_details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler[Any, Any] | None:
        method = str(handler_call_details.method)
        if not method.startswith(SERVICE):
            return None
        metadata = dict(handler_call_details.invocation_metadata or ())

        async def answer(_: bytes, __: object) -> bytes:
            self.calls.append((method, metadata, time.time_ns()))
            return b""

        return grpc.unary_unary_rpc_method_handler(answer)


@asynccontextmanager
async def backend() -> AsyncIterator[Backend]:
    """Runs one on a free port, in good health."""
    made = Backend()
    server = grpc.aio.server()
    server.add_generic_rpc_handlers((made,))
    add_HealthServicer_to_server(made.health, server)
    made.port = server.add_insecure_port("127.0.0.1:0")
    await made.health.set("", health_pb2.HealthCheckResponse.SERVING)
    await server.start()
    try:
        yield made
    finally:
        await server.stop(None)


@asynccontextmanager
async def balanced(count: int = 1) -> AsyncIterator[tuple[Envoy, list[Backend], MatchServiceAsyncStub]]:
    """Envoy in front of so many backends, all of which it has found."""
    async with AsyncExitStack() as running:
        backends = [await running.enter_async_context(backend()) for _ in range(count)]
        door = await running.enter_async_context(envoy([one.port for one in backends]))
        channel = await running.enter_async_context(grpc.aio.insecure_channel(door.address))
        stub = MatchServiceStub(channel)
        async with asyncio.timeout(20):
            while not all(one.calls for one in backends):
                await stub.GetMatch(pb.GetMatchRequest(), wait_for_ready=True)
        for one in backends:
            one.calls.clear()
        yield door, backends, stub


def stamp_ns(header: str | bytes) -> int:
    """The instant that an arrival header names: when the headers came, and what passed until the last byte."""
    seconds, lag_us = str(header).split()
    whole, _, fraction = seconds.partition(".")
    return int(whole) * 1_000_000_000 + int(fraction) + int(lag_us) * 1_000


async def test_a_command_is_stamped_when_its_last_byte_is_in() -> None:
    """Headers that come early gain nothing."""
    async with balanced() as (door, (one,), _), http2(door.port) as connection:
        stream = await connection.call("SubmitCommand", "token")
        await asyncio.sleep(LAG_SECONDS)
        sent_ns = time.time_ns()
        await connection.send(stream, b"", end=True)
        await connection.status(stream)
        _, metadata, came_ns = one.calls[0]
    assert sent_ns - CLOSE_NS < stamp_ns(metadata[ARRIVAL_HEADER]) < came_ns + CLOSE_NS


async def test_a_clients_own_stamp_is_overwritten_or_taken_away() -> None:
    forged = ((ARRIVAL_HEADER, FORGED),)
    async with balanced() as (_, (one,), stub):
        await stub.SubmitCommand(pb.SubmitCommandRequest(), metadata=forged)
        await stub.GetMatch(pb.GetMatchRequest(), metadata=forged)
        (_, stamped, came_ns), (_, other, _) = one.calls
    assert abs(stamp_ns(stamped[ARRIVAL_HEADER]) - came_ns) < CLOSE_NS
    assert ARRIVAL_HEADER not in other


async def test_calls_go_to_every_replica_in_turn_but_to_none_that_is_leaving() -> None:
    async with balanced(3) as (_, backends, stub):
        for _ in range(6):
            await stub.GetMatch(pb.GetMatchRequest())
        assert [len(one.calls) for one in backends] == [2, 2, 2]
        await backends[0].health.set("", health_pb2.HealthCheckResponse.NOT_SERVING)
        async with asyncio.timeout(20):
            while backends[0].calls:
                for one in backends:
                    one.calls.clear()
                for _ in range(6):
                    await stub.GetMatch(pb.GetMatchRequest())
    assert [len(one.calls) for one in backends] == [0, 3, 3]


async def test_a_browser_calls_by_grpc_web() -> None:
    """A message and then the trailers, in one body."""
    async with balanced() as (door, (one,), _):
        request = urllib.request.Request(
            f"http://{door.address}{SERVICE}GetMatch",
            data=framed(b""),
            headers={"content-type": "application/grpc-web+proto", "x-grpc-web": "1"},
        )
        with await asyncio.to_thread(urllib.request.urlopen, request) as response:
            body: bytes = response.read()
    assert messages(body)[0] == b""
    assert b"grpc-status:0" in body
    assert len(one.calls) == 1
