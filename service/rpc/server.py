"""The gRPC server: handlers by method, options, health, and the drain (design of the options: measured grpc facts)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

import grpc
from google.protobuf.descriptor import ServiceDescriptor
from google.protobuf.message import Message
from grpc_health.v1 import health, health_pb2
from grpc_reflection.v1alpha import reflection

from service.metrics import Metrics
from service.metrics.families import Counter
from service.metrics.grpc import CallType
from service.ports import Clock
from service.rpc import edge, rules_service
from service.rpc.arrival import stamping
from service.rpc.doors import Door, Doors
from service.rpc.edge import StreamHandler, Tracing, UnaryHandler
from service.rpc.health_service import HealthService
from service.rpc.match_service import MatchService
from service.rpc.time_service import TimeService
from service.rpc.witness import Witness, witnessed
from spectacularbid.v1 import match_service_pb2 as pb
from spectacularbid.v1 import rules_service_pb2, time_service_pb2

M = TypeVar("M", bound=Message)

SERVICES = (
    pb.DESCRIPTOR.services_by_name["MatchService"],
    rules_service_pb2.DESCRIPTOR.services_by_name["RulesService"],
    time_service_pb2.DESCRIPTOR.services_by_name["TimeService"],
)
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
    ("grpc.http2.bdp_probe", 0),  # pings that seek a larger window: messages are far smaller than the first one
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
    """The listening server with its health service, and the same for Envoy alone. Addresses have the real ports."""

    def __init__(
        self,
        doors: Doors,
        match_service: MatchService,
        clock: Clock,
        metrics: Metrics,
        *,
        connection_streams: int = CONNECTION_STREAMS,
        tracing: Tracing | None = None,
    ) -> None:
        self._options = (*OPTIONS, ("grpc.max_concurrent_streams", connection_streams))
        self._health = HealthService()
        self._clock, self._metrics, self._tracing = clock, metrics, tracing
        self._server, self.address = self._listening(doors.everybody, self._handlers(match_service))
        self._servers = [self._server]
        self.envoy_address: str | None = None
        if doors.envoy is not None:
            self.envoy_address = self._listen_to_envoy(doors.envoy, match_service)
        self.health_address: str | None = None
        self._health_server: grpc.aio.Server | None = None
        if doors.health is not None:
            self._health_server, self.health_address = self._listening(doors.health, ())

    def _listen_to_envoy(self, door: Door, match_service: MatchService) -> str:
        """A server of its own, for no call says by which port it came. Returns its address."""
        behind = replace(match_service, gatekeeper=match_service.gatekeeper.behind_envoy())
        server, address = self._listening(door, self._handlers(behind, Witness(self._metrics.clock)))
        self._servers.append(server)
        return address

    def _listening(self, door: Door, handlers: tuple[grpc.GenericRpcHandler, ...]) -> tuple[grpc.aio.Server, str]:
        """A server with these handlers and health, not started yet, and its address."""
        server = grpc.aio.server(options=self._options)
        server.add_generic_rpc_handlers((self._health.handlers(), *handlers))
        wanted = f"{door.host}:{door.port}"
        if door.credentials is None:
            port = server.add_insecure_port(wanted)
        else:
            port = server.add_secure_port(wanted, door.credentials)
        return server, f"{door.host}:{port}"

    def _handlers(
        self, match_service: MatchService, witness: Witness | None = None
    ) -> tuple[grpc.GenericRpcHandler, ...]:
        """Every service of ours, for one server."""
        matches, rules, time = (_Adapter(service, self._clock, self._metrics, self._tracing) for service in SERVICES)
        _serve_matches(matches, match_service, witness)
        rules.unary("GetRules", rules_service_pb2.GetRulesRequest, rules_service.get_rules)
        time.unary("Sync", time_service_pb2.SyncRequest, TimeService(self._clock).sync)
        return tuple(adapter.handlers() for adapter in (matches, rules, time))

    def offer_reflection(self) -> None:
        """Let tools list the services; for development."""
        names = [service.full_name for service in SERVICES]
        reflection.enable_server_reflection((*names, health.SERVICE_NAME, reflection.SERVICE_NAME), self._server)

    async def start(self) -> None:
        """Listen, and report health."""
        for server in self._servers:
            await server.start()
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
        await asyncio.gather(*(server.stop(grace_seconds) for server in self._servers))
        if self._health_server is not None:
            await self._health_server.stop(0)

    async def _set_health(self, status: int) -> None:
        for name in ("", READINESS, *(service.full_name for service in SERVICES)):
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


def _serve_matches(matches: _Adapter, match_service: MatchService, witness: Witness | None) -> None:
    submit = match_service.submit_command
    matches.unary("CreateMatch", pb.CreateMatchRequest, match_service.create_match)
    matches.unary("JoinMatch", pb.JoinMatchRequest, match_service.join_match)
    matches.unary("GetMatch", pb.GetMatchRequest, match_service.get_match)
    matches.unary("LeaveMatch", pb.LeaveMatchRequest, match_service.leave_match)
    matches.unary("GetDealProof", pb.GetDealProofRequest, match_service.get_deal_proof)
    matches.unary("RotateToken", pb.RotateTokenRequest, match_service.rotate_token)
    matches.unary("SubmitCommand", pb.SubmitCommandRequest, submit if witness is None else witnessed(submit, witness))
    matches.stream("WatchMatch", pb.WatchMatchRequest, match_service.watch_match)
    matches.stream("SpectateMatch", pb.SpectateMatchRequest, match_service.spectate_match)
    matches.stream("PlayMatch", pb.PlayMatchRequest, match_service.play_match)


def _as_it_is(sent: Counter) -> Callable[[bytes], bytes]:
    """A response serializer for bytes that are serialized already; it counts them."""

    def serialize(data: bytes) -> bytes:
        sent.count += 1
        return data

    return serialize
