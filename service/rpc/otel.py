"""OpenTelemetry: a span a unary call and a span a command, joined to the caller's trace. Imported when switched on.

Streams are not traced: they last as long as their viewers stay. No span holds metadata, a message, an error's text, a
token or a tile.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from typing import TypeVar

import grpc
from google.protobuf.message import Message
from opentelemetry.context import Context as TraceContext
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Span, SpanKind, Status, StatusCode, Tracer, set_span_in_context
from opentelemetry.trace.propagation import get_current_span
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from service.rpc.arrival import Stamped
from service.rpc.edge import Context, StreamHandler, UnaryHandler
from service.tracing import CommandTrace, TraceScope, scope

M = TypeVar("M", bound=Message)

HEADERS = ("traceparent", "tracestate")
"""What is read of a caller's metadata."""
SERVER_FAULTS = frozenset(
    {
        grpc.StatusCode.UNKNOWN,
        grpc.StatusCode.INTERNAL,
        grpc.StatusCode.UNAVAILABLE,
        grpc.StatusCode.DATA_LOSS,
        grpc.StatusCode.UNIMPLEMENTED,
        grpc.StatusCode.DEADLINE_EXCEEDED,
    }
)
"""Codes with which a server's span counts as failed (OpenTelemetry's conventions for gRPC)."""
CLOSING_SECONDS = 2.0
"""How long the last spans may take on their way out."""
_propagator = TraceContextTextMapPropagator()


class Otel:
    """Traces of this process. Where they go and how many are kept is said by the standard OTEL_* variables."""

    def __init__(self) -> None:
        chosen = OTELResourceDetector().detect().attributes
        resource = Resource.create({"service.name": "spectacular-bid", **chosen})
        self._provider = TracerProvider(resource=resource, shutdown_on_exit=False)  # `close` does it, and not for long
        self._provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        self._tracer = self._provider.get_tracer("spectacular-bid", version("spectacular-bid"))

    def unary(self, handler: UnaryHandler[M], service: str, method: str) -> UnaryHandler[M]:
        """A unary handler whose calls are spans."""
        attributes = {"rpc.system": "grpc", "rpc.service": service, "rpc.method": method}

        async def call(stamped: Stamped[M], context: Context) -> bytes:
            span = self._tracer.start_span(
                f"{service}/{method}", context=_parent(context), kind=SpanKind.SERVER, attributes=attributes
            )
            known = scope.set(_Scope(self._tracer, set_span_in_context(span)))
            code = None
            try:
                return await handler(stamped, context)
            except asyncio.CancelledError:
                code = grpc.StatusCode.CANCELLED
                raise
            finally:
                scope.reset(known)
                _end_call(span, code or _code_of(context))

        return call

    def stream(self, handler: StreamHandler[M]) -> StreamHandler[M]:
        """A stream whose commands are spans of the trace in which it was opened, or of traces of their own."""

        async def call(stamped: Stamped[M], context: Context) -> None:
            known = scope.set(_Scope(self._tracer, _parent(context)))
            try:
                await handler(stamped, context)
            finally:
                scope.reset(known)

        return call

    async def close(self) -> None:
        """Send what is left, unless that takes too long: a collector that is away must not hold up a stop."""
        closing = threading.Thread(target=self._provider.shutdown, name="traces-last", daemon=True)
        closing.start()
        await asyncio.to_thread(closing.join, CLOSING_SECONDS)


@dataclass(frozen=True, slots=True)
class _Scope(TraceScope):
    tracer: Tracer
    parent: TraceContext

    @property
    def trace_id(self) -> str | None:
        about = get_current_span(self.parent).get_span_context()
        return _hex(about.trace_id) if about.trace_flags.sampled else None

    def command(self, kind: str, arrival_ns: int) -> CommandTrace | None:
        span = self.tracer.start_span(
            f"command {kind}", context=self.parent, start_time=arrival_ns, attributes={"specbid.command": kind}
        )
        return _CommandSpan(span, _hex(span.get_span_context().trace_id)) if span.is_recording() else None


@dataclass(frozen=True, slots=True)
class _CommandSpan:
    span: Span
    trace_id: str

    def end(self, match_id: str, outcome: str, at_ns: int, marks: Mapping[str, int]) -> None:
        self.span.set_attributes({"specbid.match_id": match_id, "specbid.outcome": outcome})
        for name, mark_ns in marks.items():
            self.span.add_event(name, timestamp=mark_ns)
        self.span.end(at_ns)


def _parent(context: Context) -> TraceContext:
    metadata = context.invocation_metadata() or ()
    carrier = {key: value for key, value in metadata if key in HEADERS and isinstance(value, str)}
    return _propagator.extract(carrier, context=TraceContext())


def _end_call(span: Span, code: grpc.StatusCode) -> None:
    span.set_attribute("rpc.grpc.status_code", code.value[0])
    if code in SERVER_FAULTS:
        span.set_status(Status(StatusCode.ERROR))
    span.end()


def _code_of(context: Context) -> grpc.StatusCode:
    """The status that the call was ended with, OK if it was with none. grpc.aio tells its number."""
    code: object = context.code()
    return next((known for known in grpc.StatusCode if code in {known, known.value[0]}), grpc.StatusCode.OK)


def _hex(trace_id: int) -> str:
    return f"{trace_id:032x}"
