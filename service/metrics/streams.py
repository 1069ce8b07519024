"""Streams to viewers: how many, why they end, how soon they show what is durable."""

from __future__ import annotations

from enum import Enum

from prometheus_client import CollectorRegistry, Gauge

from service.metrics.families import Counters, Histograms

_DELIVERY = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0)


class StreamKind(Enum):
    """Which method opened it."""

    WATCH = "watch"
    SPECTATE = "spectate"
    PLAY = "play"


class StreamEnd(Enum):
    """Why a stream ended."""

    CLIENT_GONE = "client_gone"
    FINISHED = "finished"
    """The client of PlayMatch said its last and has every answer."""
    GOING_AWAY = "going_away"
    REPLACED = "replaced"
    TOKEN_ROTATED = "token_rotated"  # noqa: S105
    SLOW_READER = "slow_reader"
    REFUSED = "refused"
    """What the client sent, or one stream too many."""
    UNAVAILABLE = "unavailable"
    INTERNAL_ERROR = "internal_error"


class StreamMetrics:
    """Open and ended streams by kind, and the delivery of versions."""

    def __init__(self, registry: CollectorRegistry) -> None:
        streams = Gauge("specbid_streams_open", "Streams open now, by kind.", ["kind"], registry=registry)
        self._open = {kind: streams.labels(kind.value) for kind in StreamKind}
        ended = Counters(registry, "specbid_streams_ended", "Streams that ended, by why.", ["kind", "reason"])
        self._ended = {(kind, why): ended.child(kind.value, why.value) for kind in StreamKind for why in StreamEnd}
        delivery = Histograms(
            registry,
            "specbid_delivery_seconds",
            "From a version being durable to a stream having handed it to the transport.",
            _DELIVERY,
        )
        self.delivered = delivery.child().observe_ns
        """A stream has sent a new version, so long after it was durable."""

    def opened(self, kind: StreamKind) -> None:
        """A stream is open; `ended` must follow."""
        self._open[kind].inc()

    def ended(self, kind: StreamKind, why: StreamEnd) -> None:
        """A stream is open no longer."""
        self._open[kind].dec()
        self._ended[kind, why].inc()
