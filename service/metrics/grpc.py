"""gRPC methods under the names of go-grpc-middleware, codes as Go spells them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple, TypeAlias

from prometheus_client import CollectorRegistry

from service.metrics.families import Counter, Counters, Histogram, Histograms

GRPC_CODES = (
    "OK",
    "Canceled",
    "Unknown",
    "InvalidArgument",
    "DeadlineExceeded",
    "NotFound",
    "AlreadyExists",
    "PermissionDenied",
    "ResourceExhausted",
    "FailedPrecondition",
    "Aborted",
    "OutOfRange",
    "Unimplemented",
    "Internal",
    "Unavailable",
    "DataLoss",
    "Unauthenticated",
)
CallType: TypeAlias = Literal["unary", "server_stream", "bidi_stream"]
_CALL = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)


class MethodMetrics(NamedTuple):
    """The metrics of one method, its label sets made."""

    started: Callable[[], None]
    """A call began."""
    received: Counter
    """Messages of clients that came here."""
    sent: Counter
    """Messages that were handed to the transport."""
    codes: dict[str, Counter]
    seconds: Histogram | None

    def handled(self, code: str, length_ns: int) -> None:
        """A call ended."""
        self.codes[code].inc()
        if self.seconds is not None:
            self.seconds.observe_ns(length_ns)


class GrpcMetrics:
    """Calls and messages by method. The duration is of unary calls only: a stream lasts as long as its viewer stays."""

    def __init__(self, registry: CollectorRegistry) -> None:
        method = ["grpc_type", "grpc_service", "grpc_method"]
        self._started = Counters(registry, "grpc_server_started", "Calls begun.", method)
        self._handled = Counters(registry, "grpc_server_handled", "Calls ended, by code.", [*method, "grpc_code"])
        self._received = Counters(registry, "grpc_server_msg_received", "Messages of clients.", method)
        self._sent = Counters(registry, "grpc_server_msg_sent", "Messages handed to the transport.", method)
        self._seconds = Histograms(registry, "grpc_server_handling_seconds", "Duration of unary calls.", _CALL, method)

    def method(self, service: str, name: str, kind: CallType = "unary") -> MethodMetrics:
        """The metrics of one method."""
        labels = kind, service, name
        return MethodMetrics(
            self._started.child(*labels).inc,
            self._received.child(*labels),
            self._sent.child(*labels),
            {code: self._handled.child(*labels, code) for code in GRPC_CODES},
            self._seconds.child(*labels) if kind == "unary" else None,
        )
