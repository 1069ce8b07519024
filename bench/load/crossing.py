"""How long a command takes to reach the other player of its match."""

from __future__ import annotations


class Crossing:
    """Between the two players of one match, seats 0 and 1."""

    def __init__(self) -> None:
        self._sent: dict[int, tuple[float, int]] = {}

    def sends(self, seat: int, at_seconds: float, version: int) -> None:
        """A player gives a command on a view of this version."""
        self._sent[seat] = (at_seconds, version)

    def reads(self, seat: int, at_seconds: float, version: int) -> float | None:
        """Seconds since the other's command, when this view is the first that is newer than the one it was given on."""
        sent_seconds, sent_version = self._sent.get(1 - seat, (0.0, version))
        if version <= sent_version:
            return None
        del self._sent[1 - seat]
        return at_seconds - sent_seconds
