"""Calls to the service on this machine: its health, and the admin commands over its socket."""

from __future__ import annotations

from collections.abc import Awaitable
from pathlib import Path
from typing import TypeVar

import grpc
from grpc_health.v1 import health_pb2

from service.admin import RefusedError, UnreachableError
from spectacularbid.admin.v1 import admin_service_pb2 as pb
from spectacularbid.admin.v1 import admin_service_pb2_grpc as pb_grpc

T = TypeVar("T")

HEALTH_SECONDS = 3.0
ADMIN_SECONDS = 15.0
_CANNOT = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.CANCELLED)


async def health_of(address: str, service: str) -> str:
    """The health of a service, such as SERVING. Raises UnreachableError or RefusedError."""
    async with grpc.aio.insecure_channel(address) as channel:
        check: grpc.aio.UnaryUnaryMultiCallable[health_pb2.HealthCheckRequest, health_pb2.HealthCheckResponse]
        check = channel.unary_unary(
            "/grpc.health.v1.Health/Check",
            request_serializer=health_pb2.HealthCheckRequest.SerializeToString,
            response_deserializer=health_pb2.HealthCheckResponse.FromString,
        )
        request = health_pb2.HealthCheckRequest(service=service)
        answer = await _answer(check(request, timeout=HEALTH_SECONDS), at=address)
    return health_pb2.HealthCheckResponse.ServingStatus.Name(answer.status)


async def abort_match(socket: Path, match_id: str, reason: str) -> int:
    """Have a match ended; the version that this made. Raises UnreachableError or RefusedError."""
    async with _admin_channel(socket) as channel:
        request = pb.AbortMatchRequest(match_id=match_id, reason=reason)
        answer = await _answer(pb_grpc.AdminServiceStub(channel).AbortMatch(request, timeout=ADMIN_SECONDS), at=socket)
    return answer.version


async def drain(socket: Path) -> float:
    """Have the service stop as SIGTERM does; how many seconds it serves on. Raises UnreachableError."""
    async with _admin_channel(socket) as channel:
        answer = await _answer(
            pb_grpc.AdminServiceStub(channel).Drain(pb.DrainRequest(), timeout=ADMIN_SECONDS), at=socket
        )
    return answer.drain_ms / 1000


def _admin_channel(socket: Path) -> grpc.aio.Channel:
    return grpc.aio.insecure_channel(f"unix:{socket.resolve()}")


async def _answer(call: Awaitable[T], *, at: Path | str) -> T:
    try:
        return await call
    except grpc.aio.AioRpcError as error:
        if error.code() in _CANNOT:
            raise UnreachableError(f"no answer at {at}: {_cause(str(error.details()))}") from error
        raise RefusedError(str(error.details())) from error


def _cause(details: str) -> str:
    """What the system said, where grpc tells the whole way to it."""
    return details.rpartition(": ")[2] if details.startswith("failed to connect") else details
