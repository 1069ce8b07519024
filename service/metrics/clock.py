"""The service's clock and its event loop: what a stamp can be trusted for, and what went wrong with time."""

from __future__ import annotations

from enum import Enum

from prometheus_client import CollectorRegistry, Gauge

from engine.faults import FaultCause
from service.metrics.families import Counters, Histograms

_LAG = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1.0, 3.0)


class WitnessUse(Enum):
    """What became of the stamp that a proxy had put on a command."""

    NOT_NEEDED = "not_needed"
    """The service's own was narrow."""
    NARROWED = "narrowed"
    CLOCK_UNKNOWN = "clock_unknown"
    """Too little was known of the proxy's clock."""
    OUT_OF_RANGE = "out_of_range"
    """It contradicted the service's own, or lay too far back."""
    UNREADABLE = "unreadable"
    """There was none, or several, or none of the right form."""


class ClockMetrics:
    """The gauges are asked for only when they are read."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._lag = Histograms(
            registry, "specbid_loop_lag_seconds", "How late the event loop's 10 ms ticker came.", _LAG
        ).child()
        self._stalls = Counters(registry, "specbid_loop_stalls", "Ticks that came more than 40 ms late.").child()
        self._steps = Counters(
            registry, "specbid_clock_steps", "Times that service time and the loop's clock parted by 50 ms in a tick."
        ).child()
        faults = Counters(registry, "specbid_timing_failures", "Rows of the fault ledger, by cause.", ["cause"])
        self._faults = {cause: faults.child(cause.name.lower()) for cause in FaultCause}
        testimonies = Counters(
            registry,
            "specbid_arrival_testimonies",
            "Commands on Envoy's port, by what became of Envoy's stamp.",
            ["outcome"],
        )
        self._testimonies = {testimony: testimonies.child(testimony.value) for testimony in WitnessUse}
        self.unstamped = Counters(
            registry, "specbid_unstamped_commands", "Commands turned away because the clock was not sure of the time."
        ).child()
        self.error_bound = Gauge(
            "specbid_clock_error_bound_seconds",
            "How far service time may be from the store's.",
            unit="seconds",
            registry=registry,
        )
        self.skew = Gauge(
            "specbid_clock_skew_seconds", "Service time less wall time.", unit="seconds", registry=registry
        )

    def ticked(self, late_ns: int) -> None:
        """The loop's ticker came so late."""
        self._lag.observe_ns(late_ns)

    def stalled(self) -> None:
        """The loop stood still, or the machine slept."""
        self._stalls.inc()

    def stepped(self) -> None:
        """One of two clocks stepped."""
        self._steps.inc()

    def testified(self, testimony: WitnessUse) -> None:
        """A command came by Envoy's port."""
        self._testimonies[testimony].inc()

    def fault(self, cause: FaultCause) -> None:
        """A row was added to the fault ledger."""
        self._faults[cause].inc()
