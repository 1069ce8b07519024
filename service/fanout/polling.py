"""The bus of replicas that have nothing between them but the store."""

from __future__ import annotations

from service.fanout.local import LocalBus

POLL_SECONDS = 0.5


class PollingBus(LocalBus):
    """Delivers at once here; what other replicas do is looked for in the store."""

    @property
    def poll_seconds(self) -> float | None:
        """How often to look."""
        return POLL_SECONDS
