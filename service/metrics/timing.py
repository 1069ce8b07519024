"""Commands in time: how long one takes and where, and how it stands to its deadline."""

from __future__ import annotations

from typing import NamedTuple

from prometheus_client import CollectorRegistry

from engine.clock import Arrival, Verdict
from service.metrics.families import Histograms
from service.ports import Receipt

_WHOLE = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
_STAGE = (0.0001, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.05, 0.25, 1.0)
_PLAYER = (0.1, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0)


class Instants(NamedTuple):
    """When a command passed from one stage to the next, in nanoseconds of service time."""

    begun_ns: int
    """Its turn in the line came."""
    decided_ns: int
    committed_ns: int

    def marks(self) -> dict[str, int]:
        """The same for a trace: its turn came, and it was decided."""
        return {"begun": self.begun_ns, "decided": self.decided_ns}


class TimingMetrics:
    """Where the time of a command goes: the service's, and the player's."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._arrival_to_commit = Histograms(
            registry,
            "specbid_arrival_to_commit_seconds",
            "From the stamp of a command to its outcome being durable.",
            _WHOLE,
        ).child()
        stage = Histograms(
            registry,
            "specbid_stage_seconds",
            "Stages of a command: waiting in line, deciding, storing, telling; load: reading a match where need be.",
            _STAGE,
            ["stage"],
        )
        self._queue, load, self._rules, self._store, publish = map(
            stage.child, ("queue", "load", "rules", "store", "publish")
        )
        self.loaded = load.observe_ns
        """A match that was not in memory was read, within the waiting of whoever wanted it."""
        self.published = publish.observe_ns
        """The sender and the watchers were told of a command's outcome, so long after it was durable."""
        self._margin = Histograms(
            registry, "specbid_deadline_margin_seconds", "What an accepted command had left of its time.", _PLAYER
        ).child()
        self._late = Histograms(
            registry, "specbid_deadline_late_seconds", "How long after the deadline a late command came.", _PLAYER
        ).child()

    def committed(self, example: dict[str, str], arrival: Arrival, at: Instants) -> None:
        """A command's outcome became durable. `example` names the command to whoever looks into the slow ones."""
        self._arrival_to_commit.observe_example_ns(at.committed_ns - arrival.latest_ns, example, at.committed_ns)
        self._queue.observe_ns(at.begun_ns - arrival.latest_ns)
        self._rules.observe_ns(at.decided_ns - at.begun_ns)
        self._store.observe_ns(at.committed_ns - at.decided_ns)

    def judged(self, receipt: Receipt, *, accepted: bool) -> None:
        """How a command stood to the deadline of its decision."""
        if receipt.decision is None:
            return
        if accepted:
            self._margin.observe_ns(receipt.decision.deadline_ns - receipt.arrival.latest_ns)
        elif receipt.verdict is Verdict.LATE:
            self._late.observe_ns(receipt.arrival.earliest_ns - receipt.decision.deadline_ns)
