"""The gRPC server: handlers by method, options, health, and the drain (design of the options: measured grpc facts)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import grpc
from google.protobuf.descriptor import ServiceDescriptor
from google.protobuf.message import Message
from grpc_health.v1 import health, health_pb2
from grpc_reflection.v1alpha import reflection

from service.metrics import Metrics
from service.metrics.grpc import CallType
from service.ports import Clock
from service.rpc import edge, rules_service
from service.rpc.arrival import stamping
from service.rpc.edge import StreamHandler, Tracing, UnaryHandler
from service.rpc.health_service import HealthService
from service.rpc.match_service import MatchService
from service.rpc.time_service import TimeService
from spectacularbid.v1 import match_service_pb2 as pb
from spectacularbid.v1 import rules_service_pb2, time_service_pb2

M = TypeVar("M", bound=Message)

STARTUP, READINESS, LIVENESS = "startup", "readiness", "liveness"
"""What probes ask the health service for: has it started, should it get new clients, does its event loop live."""
LARGEST_REQUEST_BYTES = 16 * 1024
LARGEST_METADATA_BYTES = 8 * 1024
BURST_REQUESTS = 100_000
"""Calls that may wait to be taken over, such as everybody's after a restart."""
CONNECTION_STREAMS = 32
"""Calls that a connection may have under way at once; a client of ours waits for a free place."""
ENDING_STREAMS = 100
"""Calls of a connection that may have ended, or been reset, and still be worked off: more are refused (REFUSED_STREAM).

Without them an honest client that sends the next call at the end of the last one would be refused too.
"""
OPTIONS = (
    ("grpc.so_reuseport", 0),  # two servers on one port would go unnoticed
    ("grpc.max_receive_message_length", LARGEST_REQUEST_BYTES),
    ("grpc.max_metadata_size", LARGEST_METADATA_BYTES),
    ("grpc.absolute_max_metadata_size", LARGEST_METADATA_BYTES),
    ("grpc.server.max_pending_requests", BURST_REQUESTS),  # by default a reconnect storm ends as bare CANCELLED
    ("grpc.server.max_pending_requests_hard_limit", BURST_REQUESTS),
    ("grpc.keepalive_time_ms", 20_000),
    ("grpc.http2.ping_timeout_ms", 5_000),  # grpc.keepalive_timeout_ms has no effect
    ("grpc.http2.min_ping_interval_without_data_ms", 10_000),  # clients may ping every 20 s
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.max_ping_strikes", 0),
    ("grpc.http2.max_deallocating_streams", ENDING_STREAMS),
)


class GrpcServer:
    """The listening server with its health service."""

    def __init__(
        self,
        address: str,
        match_service: MatchService,
        clock: Clock,
        metrics: Metrics,
        *,
        credentials: grpc.ServerCredentials | None = None,
        health_address: str | None = None,
        connection_streams: int = CONNECTION_STREAMS,
        tracing: Tracing | None = None,
    ) -> None:
        """With `credentials` the port takes TLS only; `health_address` is for health alone, in plaintext."""
        options = (*OPTIONS, ("grpc.max_concurrent_streams", connection_streams))
        self._server = grpc.aio.server(options=options)
        self._health = HealthService()
        self._server.add_generic_rpc_handlers((self._health.handlers(),))
        self._services = (
            pb.DESCRIPTOR.services_by_name["MatchService"],
            rules_service_pb2.DESCRIPTOR.services_by_name["RulesService"],
            time_service_pb2.DESCRIPTOR.services_by_name["TimeService"],
        )
        matches, rules, time = (_Adapter(service, clock, metrics, tracing) for service in self._services)
        _serve_matches(matches, match_service)
        rules.unary("GetRules", rules_service_pb2.GetRulesRequest, rules_service.get_rules)
        time.unary("Sync", time_service_pb2.SyncRequest, TimeService(clock).sync)
        self._server.add_generic_rpc_handlers(tuple(adapter.handlers() for adapter in (matches, rules, time)))
        if credentials is None:
            self.port = self._server.add_insecure_port(address)
        else:
            self.port = self._server.add_secure_port(address, credentials)
        self.health_port: int | None = None
        self._health_server: grpc.aio.Server | None = None
        if health_address is not None:
            self._health_server = grpc.aio.server(options=options)
            self._health_server.add_generic_rpc_handlers((self._health.handlers(),))
            self.health_port = self._health_server.add_insecure_port(health_address)

    def offer_reflection(self) -> None:
        """Let tools list the services; for development."""
        names = [service.full_name for service in self._services]
        reflection.enable_server_reflection((*names, health.SERVICE_NAME, reflection.SERVICE_NAME), self._server)

    async def start(self) -> None:
        """Listen, and report health."""
        await self._server.start()
        if self._health_server is not None:
            await self._health_server.start()
        for name in (STARTUP, LIVENESS):  # a drain and an outage of the store change neither: no restart would help
            await self._health.set(name, health_pb2.HealthCheckResponse.SERVING)
        await self.accept_new_clients()

    async def accept_new_clients(self) -> None:
        """Health says SERVING."""
        await self._set_health(health_pb2.HealthCheckResponse.SERVING)

    async def refuse_new_clients(self) -> None:
        """First part of the drain: health says NOT_SERVING, everything is still served."""
        await self._set_health(health_pb2.HealthCheckResponse.NOT_SERVING)

    async def stop(self, grace_seconds: float) -> None:
        """Last part of the drain: close the listener and wait for calls to end."""
        self._health.end_streams()
        await self._server.stop(grace_seconds)
        if self._health_server is not None:
            await self._health_server.stop(0)

    async def _set_health(self, status: int) -> None:
        for name in ("", READINESS, *(service.full_name for service in self._services)):
            await self._health.set(name, status)


class _Adapter:
    """The gRPC method handlers of one service: deserializers that stamp, answers that are bytes already."""

    def __init__(self, service: ServiceDescriptor, clock: Clock, metrics: Metrics, tracing: Tracing | None) -> None:
        self._service = service
        self._clock = clock
        self._metrics = metrics
        self._tracing = tracing
        # Any: each method has a request type of its own, checked where the handler is made.
        self._handlers: dict[str, grpc.RpcMethodHandler[Any, Any]] = {}

    def unary(self, name: str, kind: type[M], handler: UnaryHandler[M]) -> None:
        """Serve a unary method."""
        metrics = self._metrics.method(self._service.full_name, name)
        read, write = stamping(kind, self._clock, metrics.received), _as_it_is(metrics.sent)
        call = edge.unary(handler, metrics)
        if self._tracing is not None:
            call = self._tracing.unary(call, self._service.full_name, name)
        self._handlers[name] = grpc.unary_unary_rpc_method_handler(call, read, write)

    def stream(self, name: str, kind: type[M], handler: StreamHandler[M]) -> None:
        """Serve a server-streaming or bidirectional method."""
        bidirectional = self._service.methods_by_name[name].client_streaming
        call_type: CallType = "bidi_stream" if bidirectional else "server_stream"
        metrics = self._metrics.method(self._service.full_name, name, call_type)
        read, write = stamping(kind, self._clock, metrics.received), _as_it_is(metrics.sent)
        make = grpc.stream_stream_rpc_method_handler if bidirectional else grpc.unary_stream_rpc_method_handler
        call = edge.stream(handler, metrics)
        self._handlers[name] = make(call if self._tracing is None else self._tracing.stream(call), read, write)

    def handlers(self) -> grpc.GenericRpcHandler:
        """All of them; every method of the service must have one."""
        assert set(self._handlers) == set(self._service.methods_by_name.keys())
        return grpc.method_handlers_generic_handler(self._service.full_name, self._handlers)


def _serve_matches(matches: _Adapter, match_service: MatchService) -> None:
    matches.unary("CreateMatch", pb.CreateMatchRequest, match_service.create_match)
    matches.unary("JoinMatch", pb.JoinMatchRequest, match_service.join_match)
    matches.unary("GetMatch", pb.GetMatchRequest, match_service.get_match)
    matches.unary("LeaveMatch", pb.LeaveMatchRequest, match_service.leave_match)
    matches.unary("GetDealProof", pb.GetDealProofRequest, match_service.get_deal_proof)
    matches.unary("RotateToken", pb.RotateTokenRequest, match_service.rotate_token)
    matches.unary("SubmitCommand", pb.SubmitCommandRequest, match_service.submit_command)
    matches.stream("WatchMatch", pb.WatchMatchRequest, match_service.watch_match)
    matches.stream("SpectateMatch", pb.SpectateMatchRequest, match_service.spectate_match)
    matches.stream("PlayMatch", pb.PlayMatchRequest, match_service.play_match)


def _as_it_is(sent: Callable[[], None]) -> Callable[[bytes], bytes]:
    """A response serializer for bytes that are serialized already; it counts them."""

    def serialize(data: bytes) -> bytes:
        sent()
        return data

    return serialize
