"""Calls of any method with any bytes, at the real port."""

from collections.abc import Sequence

import grpc
from google.protobuf.descriptor import MethodDescriptor

from tests.support.http2 import framed, http2
from tests.support.server import Server

ANSWER_SECONDS = 5.0
OURS = frozenset({grpc.StatusCode.UNKNOWN, grpc.StatusCode.INTERNAL, grpc.StatusCode.DEADLINE_EXCEEDED})
"""What would be the service's mistake."""
_CODES = {code.value[0]: code for code in grpc.StatusCode}


async def code_of(server: Server, method: MethodDescriptor, messages: Sequence[bytes], token: str) -> grpc.StatusCode:
    """The status of a call with these messages, one unless the client streams; OK as soon as a watch says anything."""
    path = f"/{method.containing_service.full_name}/{method.name}"
    metadata = (("authorization", f"Bearer {token}"),)
    try:
        if method.client_streaming:
            return await _code_of_stream(server, method, messages, token)
        if method.server_streaming:
            watch: grpc.aio.UnaryStreamMultiCallable[bytes, bytes] = server.channel.unary_stream(path)
            await _first_answer(watch(messages[0], metadata=metadata, timeout=ANSWER_SECONDS))
        else:
            ask: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = server.channel.unary_unary(path)
            await ask(messages[0], metadata=metadata, timeout=ANSWER_SECONDS)
    except grpc.aio.AioRpcError as error:
        return error.code()
    return grpc.StatusCode.OK


async def _code_of_stream(
    server: Server, method: MethodDescriptor, messages: Sequence[bytes], token: str
) -> grpc.StatusCode:
    """By hand: grpc's client reports INTERNAL of its own when the server ends a call to which it is still writing."""
    async with http2(server.port) as connection:
        stream = await connection.call(method.name, token)
        await connection.send_bytes(stream, b"".join(map(framed, messages)), end=True)
        number, _, _ = await connection.status(stream)
        return _CODES[number]


async def _first_answer(call: grpc.aio.UnaryStreamCall[bytes, bytes]) -> None:
    async for _ in call:
        break
    call.cancel()
