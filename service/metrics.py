"""Prometheus metrics. Labels are closed sets, created before the first sample; never ids, players or texts."""

from __future__ import annotations

from collections.abc import Sequence

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, start_http_server

from engine import commands as cmd
from engine import events as ev
from engine.faults import FaultCause
from engine.refusals import Refusal, RefusalReason

_COMMANDS = (
    cmd.Start,
    cmd.Continue,
    cmd.Reveal,
    cmd.DeclineBidding,
    cmd.Bid,
    cmd.Raise,
    cmd.AcceptBid,
    cmd.PlayTile,
    cmd.DrawTile,
    cmd.Pass,
    cmd.Resign,
    cmd.CommitEntropy,
)
_LATENCY_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
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


class Metrics:
    """Every metric of a process, on a registry of its own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        kinds = ["kind", "outcome"]
        commands = self._counter("specbid_commands", "Commands decided; outcome is 'accepted' or the refusal.", kinds)
        outcomes = ("accepted", *(reason.name.lower() for reason in RefusalReason))
        self._commands = {
            (kind, outcome): commands.labels(kind.__name__, outcome) for kind in _COMMANDS for outcome in outcomes
        }
        results = self._counter("specbid_matches_finished", "Matches that ended, by how.", ["result"])
        self._results = {reason: results.labels(reason.value) for reason in (*ev.WinReason, *ev.AbortReason)}
        self._created = self._counter("specbid_matches_created", "Matches created.")
        rounds = self._counter("specbid_rounds_finished", "Rounds that ended, by how.", ["ending"])
        self._dominoed, self._blocked = rounds.labels("domino"), rounds.labels("blocked")
        faults = self._counter("specbid_timing_faults", "Rows of the fault ledger, by cause.", ["cause"])
        self._faults = {cause: faults.labels(cause.value) for cause in FaultCause}
        self.forged_arrivals = self._counter(
            "specbid_forged_arrival_headers", "Headers by which a client claimed a time of arrival; without effect."
        )
        self.projection_violations = self._counter(
            "specbid_projection_violations", "Messages held back because they were made for somebody else."
        )
        self.streams = Gauge("specbid_streams_open", "Watch and play streams open now.", registry=self.registry)
        self.bus_connected = Gauge(
            "specbid_bus_connected", "1 while NATS is connected; 0 also where none is set.", registry=self.registry
        )
        self._arrival_to_commit = self._histogram(
            "specbid_arrival_to_commit_seconds", "From the stamp of a command to its outcome being durable."
        )
        method = ["grpc_service", "grpc_method"]
        self._grpc_started = self._counter("grpc_server_started", "Calls begun.", method)
        self._grpc_handled = self._counter("grpc_server_handled", "Calls ended.", [*method, "grpc_code"])
        self._grpc_seconds = self._histogram("grpc_server_handling_seconds", "Duration of unary calls.", method)

    def _counter(self, name: str, text: str, labels: Sequence[str] = ()) -> Counter:
        return Counter(name, text, labels, registry=self.registry)

    def _histogram(self, name: str, text: str, labels: Sequence[str] = ()) -> Histogram:
        return Histogram(name, text, labels, buckets=_LATENCY_BUCKETS, registry=self.registry)

    def serve(self, host: str, port: int) -> int:
        """Offer the metrics over HTTP until `stop`; returns the port."""
        self._server, self._thread = start_http_server(port, addr=host, registry=self.registry)
        return int(self._server.server_port)

    def stop(self) -> None:
        """Stop offering the metrics."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def command(self, command: cmd.Command, refusal: Refusal | None) -> None:
        """A command was decided and stored."""
        outcome = "accepted" if refusal is None else refusal.reason.name.lower()
        self._commands[type(command), outcome].inc()

    def committed(self, since_arrival_ns: int) -> None:
        """An outcome became durable, so long after its command's stamp."""
        self._arrival_to_commit.observe(since_arrival_ns / 1e9)

    def fault(self, cause: FaultCause) -> None:
        """A row was added to the fault ledger."""
        self._faults[cause].inc()

    def step(self, step: ev.Step) -> None:
        """A step was stored."""
        for event in step:
            match event:
                case ev.MatchWon() | ev.MatchAborted():
                    self._results[event.reason].inc()
                case ev.RoundDominoed():
                    self._dominoed.inc()
                case ev.RoundBlocked():
                    self._blocked.inc()
                case ev.MatchCreated():
                    self._created.inc()
                case _:
                    pass

    def method(self, service: str, method: str) -> MethodMetrics:
        """The metrics of one gRPC method."""
        return MethodMetrics(
            self._grpc_started.labels(service, method),
            {code: self._grpc_handled.labels(service, method, code) for code in GRPC_CODES},
            self._grpc_seconds.labels(service, method),
        )


class MethodMetrics:
    """The metrics of one gRPC method, with its children looked up once."""

    def __init__(self, started: Counter, handled: dict[str, Counter], seconds: Histogram) -> None:
        self._started = started
        self._handled = handled
        self._seconds = seconds

    def started(self) -> None:
        """A call began."""
        self._started.inc()

    def handled(self, code: str, seconds: float | None) -> None:
        """A call ended; `seconds` for unary calls only."""
        self._handled[code].inc()
        if seconds is not None:
            self._seconds.observe(seconds)
