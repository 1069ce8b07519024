"""Bytes that are no requests, at the real port, for each method: a status that names the caller's mistake."""

from collections.abc import AsyncIterator

import grpc
import pytest
from google.protobuf.descriptor import MethodDescriptor, ServiceDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from spectacularbid.v1 import match_service_pb2, rules_service_pb2, time_service_pb2
from tests.support.players import PASS, Table, in_stream, new_id
from tests.support.server import Server

FILES = (match_service_pb2, rules_service_pb2, time_service_pb2)
SERVICES: list[ServiceDescriptor] = [service for file in FILES for service in file.DESCRIPTOR.services_by_name.values()]
METHODS: list[MethodDescriptor] = [method for service in SERVICES for method in service.methods]
EXAMPLES = 40
ANSWER_SECONDS = 5.0
OURS = frozenset({grpc.StatusCode.UNKNOWN, grpc.StatusCode.INTERNAL, grpc.StatusCode.DEADLINE_EXCEEDED})
"""What would be the service's mistake."""


def example(method: MethodDescriptor, match_id: str) -> bytes:
    """A good request of this method, as far as the names of its fields tell."""
    request: Message = GetMessageClass(method.input_type)()
    if isinstance(request, match_service_pb2.PlayMatchRequest):
        request.CopyFrom(in_stream(PASS))
        request.command.command_id = new_id()
    for name, value in {"match_id": match_id, "command_id": new_id(), "request_id": new_id()}.items():
        if name in request.DESCRIPTOR.fields_by_name:
            setattr(request, name, value)
    return request.SerializePartialToString()


@st.composite
def mutations(draw: st.DrawFn) -> tuple[int, int, bytes]:
    """Where to cut a message, how much to leave out, and what to put there."""
    return draw(st.integers(0, 60)), draw(st.integers(0, 8)), draw(st.binary(max_size=40))


def mutated(data: bytes, mutation: tuple[int, int, bytes]) -> bytes:
    """The message with a part of it replaced."""
    at, left_out, put_in = mutation
    return data[:at] + put_in + data[at + left_out :]


async def code_of(server: Server, method: MethodDescriptor, data: bytes, token: str) -> grpc.StatusCode:
    """The status of a call with these bytes; OK as soon as a stream says anything."""
    path = f"/{method.containing_service.full_name}/{method.name}"
    metadata = (("authorization", f"Bearer {token}"),)
    try:
        if method.client_streaming:
            play: grpc.aio.StreamStreamMultiCallable[bytes, bytes] = server.channel.stream_stream(path)
            await _first_answer(play(_only(data), metadata=metadata, timeout=ANSWER_SECONDS))
        elif method.server_streaming:
            watch: grpc.aio.UnaryStreamMultiCallable[bytes, bytes] = server.channel.unary_stream(path)
            await _first_answer(watch(data, metadata=metadata, timeout=ANSWER_SECONDS))
        else:
            ask: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = server.channel.unary_unary(path)
            await ask(data, metadata=metadata, timeout=ANSWER_SECONDS)
    except grpc.aio.AioRpcError as error:
        return error.code()
    return grpc.StatusCode.OK


async def _only(data: bytes) -> AsyncIterator[bytes]:
    yield data


async def _first_answer(call: grpc.aio.UnaryStreamCall[bytes, bytes] | grpc.aio.StreamStreamCall[bytes, bytes]) -> None:
    async for _ in call:
        break
    call.cancel()


@pytest.mark.asyncio(loop_scope="session")
@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
@settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(garbage=st.binary(max_size=200), mutation=mutations())
async def test_malformed_bytes_are_the_callers_mistake(
    server: Server, table: Table, method: MethodDescriptor, garbage: bytes, mutation: tuple[int, int, bytes]
) -> None:
    """Never UNKNOWN, never INTERNAL, and the service goes on."""
    for data in (garbage, mutated(example(method, table.one.match_id), mutation)):
        assert await code_of(server, method, data, table.two.token) not in OURS
    assert (await table.one.view()).own.seat == 1
