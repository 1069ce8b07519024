"""grpc.health.v1 by the library's servicer, with two mends: garbage gets its status, and a drain ends the streams."""

from __future__ import annotations

import asyncio
from typing import Any

import grpc
from google.protobuf.message import DecodeError
from grpc_health.v1 import health, health_pb2

from service.rpc.statuses import UNREADABLE


class HealthService(health.aio.HealthServicer):
    """The standard health service."""

    SERVING, NOT_SERVING = health_pb2.HealthCheckResponse.SERVING, health_pb2.HealthCheckResponse.NOT_SERVING

    def __init__(self) -> None:
        super().__init__()
        self._ending = asyncio.Event()

    def handlers(self) -> grpc.GenericRpcHandler:
        """Check and Watch, read by a deserializer that does not raise: grpc would answer UNKNOWN with its text."""
        answer = health_pb2.HealthCheckResponse.SerializeToString
        # Any: grpc's stubs cannot say that a request may be None.
        methods: dict[str, grpc.RpcMethodHandler[Any, Any]] = {
            "Check": grpc.unary_unary_rpc_method_handler(self._check, _read, answer),
            "Watch": grpc.unary_stream_rpc_method_handler(self._watch, _read, answer),
        }
        return grpc.method_handlers_generic_handler(health.SERVICE_NAME, methods)

    def end_streams(self) -> None:
        """Let no open Watch hold up the end of a drain."""
        self._ending.set()

    async def _check(
        self, request: health_pb2.HealthCheckRequest | None, context: grpc.aio.ServicerContext[Any, Any]
    ) -> health_pb2.HealthCheckResponse:
        return await self.Check(await _readable(request, context), context)

    async def _watch(
        self, request: health_pb2.HealthCheckRequest | None, context: grpc.aio.ServicerContext[Any, Any]
    ) -> None:
        watching = asyncio.ensure_future(self.Watch(await _readable(request, context), context))
        ending = asyncio.ensure_future(self._ending.wait())
        try:
            await asyncio.wait((watching, ending), return_when=asyncio.FIRST_COMPLETED)
        finally:
            watching.cancel()
            ending.cancel()


def _read(data: bytes) -> health_pb2.HealthCheckRequest | None:
    try:
        return health_pb2.HealthCheckRequest.FromString(data)
    except DecodeError:
        return None


async def _readable(
    request: health_pb2.HealthCheckRequest | None, context: grpc.aio.ServicerContext[Any, Any]
) -> health_pb2.HealthCheckRequest:
    if request is None:
        await context.abort(UNREADABLE.code, UNREADABLE.message, UNREADABLE.trailing_metadata())
        raise AssertionError
    return request
