"""What Envoy, set up as by the chart, does to the calls that pass through it, and what the service makes of it."""

from __future__ import annotations

import asyncio
import time
import urllib.request
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import grpc
from grpc_health.v1 import health, health_pb2
from grpc_health.v1.health_pb2_grpc import add_HealthServicer_to_server

from spectacularbid.v1 import match_service_pb2 as pb
from spectacularbid.v1.match_service_pb2_grpc import MatchServiceStub
from spectacularbid.v1.outcomes_pb2 import TIMING_VERDICT_IN_TIME
from tests.support.envoy import ARRIVAL_HEADER, Envoy, envoy
from tests.support.http2 import SERVICE, framed, http2, messages
from tests.support.late_table import late_table
from tests.support.programs import frozen

if TYPE_CHECKING:
    from spectacularbid.v1.match_service_pb2_grpc import MatchServiceAsyncStub

FORGED = "1.000000000 1"
LAG_SECONDS = 0.5
QUIET_SECONDS = [seconds / 10 for seconds in range(45, 5, -3)]
"""So long before the deadline commands come from which the service learns how Envoy's clock stands."""
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


async def test_a_command_is_judged_by_envoys_stamp_when_the_service_stood_still(tmp_path: Path) -> None:
    """SIGSTOP across the deadline. The command came to Envoy before that, and the service knows Envoy's clock."""
    async with (
        late_table(tmp_path, deadline_in_seconds=8.0, ENVOY_PORT="0") as table,
        envoy([int(table.server.envoy_address.rpartition(":")[2])]) as door,
        grpc.aio.insecure_channel(door.address) as channel,
    ):
        behind = table.at(channel)
        for seconds in QUIET_SECONDS:
            await table.until_deadline(seconds)
            await behind.say_nothing(stamp=FORGED)
        await table.until_deadline(0.4)
        async with frozen(table.server.process):
            await table.until_deadline(0.2)
            sending = asyncio.create_task(behind.play(stamp=FORGED))
            await table.until_deadline(-0.2)
        outcome = await sending
    assert outcome.HasField("accepted"), outcome.refused
    receipt = outcome.receipt
    assert receipt.verdict == TIMING_VERDICT_IN_TIME
    assert receipt.arrival_latest_unix_ns < receipt.deadline_unix_ns < receipt.own_latest_unix_ns
