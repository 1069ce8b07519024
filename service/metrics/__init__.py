"""Prometheus metrics. Labels are closed sets, created before the first sample; never ids, players or texts."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, start_http_server

from service.metrics.clock import ClockMetrics
from service.metrics.deadlines import DeadlineMetrics
from service.metrics.game import GameMetrics
from service.metrics.grpc import CallType, GrpcMetrics, MethodMetrics
from service.metrics.process import ProcessMetrics
from service.metrics.store import StoreMetrics
from service.metrics.streams import StreamMetrics
from service.metrics.timing import TimingMetrics

__all__ = ["MethodMetrics", "Metrics"]


class Metrics:
    """Every metric of a process, on a registry of its own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.game = GameMetrics(self.registry)
        self.timing = TimingMetrics(self.registry)
        self.deadlines = DeadlineMetrics(self.registry)
        self.clock = ClockMetrics(self.registry)
        self.store = StoreMetrics(self.registry)
        self.streams = StreamMetrics(self.registry)
        self.process = ProcessMetrics(self.registry)
        self._grpc = GrpcMetrics(self.registry)

    def method(self, service: str, name: str, kind: CallType = "unary") -> MethodMetrics:
        """The metrics of one gRPC method."""
        return self._grpc.method(service, name, kind)

    def serve(self, host: str, port: int) -> int:
        """Offer the metrics over HTTP until `stop`, as OpenMetrics to whoever accepts it; returns the port."""
        self._server, self._thread = start_http_server(port, addr=host, registry=self.registry)
        return int(self._server.server_port)

    def stop(self) -> None:
        """Stop offering the metrics."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
