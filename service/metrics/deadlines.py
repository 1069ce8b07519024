"""The deadlines of matches: how many wait, and how late they are looked at and settled."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Gauge

from service.metrics.families import Histograms

_DELAY = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1.0, 3.0)


class DeadlineMetrics:
    """The gauges are asked for only when they are read."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._fire_delay = Histograms(
            registry, "specbid_deadline_fire_delay_seconds", "From a deadline to the timer that looks at it.", _DELAY
        ).child()
        self.armed = Gauge("specbid_deadlines_armed", "Deadlines that wait for their instant.", registry=registry)
        self.overdue = Gauge(
            "specbid_deadline_overdue_seconds",
            "How long the oldest deadline that has passed has not been settled.",
            unit="seconds",
            registry=registry,
        )

    def fired(self, delay_ns: int) -> None:
        """A deadline was looked at, so long after it had passed."""
        self._fire_delay.observe_ns(delay_ns)
