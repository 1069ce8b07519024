"""What listens while a process cannot use its store yet: health, which says not ready. Other calls are to repeat."""

from __future__ import annotations

from typing import Any

import grpc

from service.rpc.doors import Door, Doors
from service.rpc.health_service import HealthService
from service.rpc.server import LIVENESS, OPTIONS, READINESS, SERVICES, STARTUP
from service.rpc.statuses import UNAVAILABLE


class WaitingRoom:
    """Listens where the service will, as far as the ports are given, until it is closed."""

    def __init__(self, doors: Doors) -> None:
        self._doors = [door for door in doors if door is not None and door.port]
        self._health = HealthService()
        self._servers: list[grpc.aio.Server] = []

    async def open(self) -> None:
        """Listen, if it does not yet. Raises RuntimeError when a port is taken."""
        if self._servers:
            return
        for name in (STARTUP, LIVENESS):  # it runs, and no restart would help
            await self._health.set(name, HealthService.SERVING)
        for name in ("", READINESS, *(service.full_name for service in SERVICES)):
            await self._health.set(name, HealthService.NOT_SERVING)
        self._servers = [self._server(door) for door in self._doors]
        for server in self._servers:
            await server.start()

    async def close(self) -> None:
        """Leave the ports to the service."""
        self._health.end_streams()
        for server in self._servers:
            await server.stop(0)

    def _server(self, door: Door) -> grpc.aio.Server:
        server, address = grpc.aio.server(options=OPTIONS), f"{door.host}:{door.port}"
        server.add_generic_rpc_handlers((self._health.handlers(), _Later()))
        if door.credentials is None:
            server.add_insecure_port(address)
        else:
            server.add_secure_port(address, door.credentials)
        return server


class _Later(grpc.GenericRpcHandler):
    """Answers every call with UNAVAILABLE."""

    # Any: no message of these calls is read.
    def service(self, handler_call_details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler[Any, Any]:
        assert handler_call_details.method
        return grpc.stream_stream_rpc_method_handler(_turn_away)


async def _turn_away(_: object, context: grpc.aio.ServicerContext[Any, Any]) -> None:
    await context.abort(UNAVAILABLE.code, UNAVAILABLE.message, UNAVAILABLE.trailing_metadata())
