"""The process: what it is, whether it goes away, what it turns away, what must never happen."""

from __future__ import annotations

import platform
from enum import Enum
from importlib.metadata import version

from prometheus_client import CollectorRegistry, Gauge, GCCollector, ProcessCollector

from service.metrics.families import Counters


class Limit(Enum):
    """What turned a request away before it entered a match's line."""

    COMMANDS = "commands"
    READS = "reads"
    GUESTS = "guests"
    CREATES = "creates"
    STRANGERS = "strangers"
    LINE = "line"
    UNANSWERED = "unanswered"
    SPECTATORS = "spectators"


class ProcessMetrics:
    """Load, the drain, the bus, the build, and the two counters of the edge."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry
        shed = Counters(registry, "specbid_load_shed", "Requests turned away, by the limit that they met.", ["limit"])
        self._shed = {limit: shed.child(limit.value) for limit in Limit}
        self.inflight = Gauge("specbid_inflight_commands", "Commands stamped and not handled yet.", registry=registry)
        self.draining = Gauge("specbid_draining", "1 from the begin of a planned stop.", registry=registry)
        self.bus_connected = Gauge(
            "specbid_bus_connected", "1 while versions of matches reach the watchers by the bus.", registry=registry
        )
        self.forged_arrivals = Counters(
            registry,
            "specbid_forged_arrival_headers",
            "Headers by which a client claimed a time of arrival; without effect.",
        ).child()
        self.projection_violations = Counters(
            registry,
            "specbid_projection_violations",
            "Messages held back because they were made for somebody else.",
        ).child()
        build = Gauge(
            "specbid_build_info",
            "1, with the versions of what runs.",
            ["version", "python", "grpcio"],
            registry=registry,
        )
        build.labels(version("spectacular-bid"), platform.python_version(), version("grpcio")).set(1)

    def shed(self, limit: Limit) -> None:
        """A request was turned away."""
        self._shed[limit].inc()

    def show_resources(self) -> None:
        """Add memory, processor time, files and garbage collection of the real process."""
        ProcessCollector(registry=self._registry)
        GCCollector(registry=self._registry)
