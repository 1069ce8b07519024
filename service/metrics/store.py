"""The store, as seen from the event loop: what was asked of it, what came of it, how long it took."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from typing import NamedTuple

from prometheus_client import CollectorRegistry

from service.metrics.families import Counter, Counters, Histograms

_STORE = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.05, 0.25, 1.0)


class Operation(Enum):
    """The methods of the `Store` port."""

    APPEND = "append"
    STEPS = "steps"
    SNAPSHOT = "snapshot"
    COMMAND = "command"
    CREDENTIAL = "credential"
    GOOD_TOKENS = "good_tokens"
    ADD_CREDENTIAL = "add_credential"
    REPLACE_CREDENTIAL = "replace_credential"
    HOLDS = "holds"
    SEAT_REQUEST = "seat_request"
    MATCH_FOR_INVITE = "match_for_invite"
    DEAL_SECRETS = "deal_secrets"
    LIVE_MATCHES = "live_matches"
    BEAT = "beat"
    OTHERS = "others"
    FENCE = "fence"
    OVERDUE = "overdue"
    VERSIONS = "versions"
    RECORD_FAULT = "record_fault"
    FAULTS = "faults"


class StoreOutcome(Enum):
    """What came of an operation. A conflict: nothing was written because of what is stored already."""

    OK = "ok"
    CONFLICT = "conflict"
    UNAVAILABLE = "unavailable"
    ERROR = "error"
    CANCELLED = "cancelled"

    __hash__ = object.__hash__  # as Seat


class OperationMetrics(NamedTuple):
    """The metrics of one operation, its label sets made."""

    counts: Mapping[StoreOutcome, Counter]
    observe_ns: Callable[[int], None]
    """How long it took."""


class StoreMetrics:
    """Operations by outcome, and their duration with the wait for the store's thread or connection."""

    def __init__(self, registry: CollectorRegistry) -> None:
        operations = Counters(
            registry, "specbid_store_operations", "Operations of the store, by outcome.", ["operation", "outcome"]
        )
        seconds = Histograms(
            registry,
            "specbid_store_seconds",
            "From asking the store to its answer, waiting included.",
            _STORE,
            ["operation"],
        )
        self._operations = {
            operation: OperationMetrics(
                {outcome: operations.child(operation.value, outcome.value) for outcome in StoreOutcome},
                seconds.child(operation.value).observe_ns,
            )
            for operation in Operation
        }

    def of(self, operation: Operation) -> OperationMetrics:
        """The metrics of one operation."""
        return self._operations[operation]
