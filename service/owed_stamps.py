"""First stamps of commands that could not be stored: a repeat was in time if the first sending was (K4)."""

from __future__ import annotations

from engine.clock import Arrival
from engine.view import Audience
from service.line import PlayerOrder

OWED_STAMPS = 64
"""Commands of one sender that are remembered."""


class OwedStamps:
    """Those of one match."""

    def __init__(self) -> None:
        self._owed: dict[tuple[Audience, str, bytes], Arrival] = {}

    def owe(self, order: PlayerOrder) -> None:
        """It could not be stored, or the store could not say what it meets."""
        self._owed.setdefault(_key(order), order.arrival)
        of_sender = [owed for owed in self._owed if owed[0] is order.sender]
        for owed in of_sender[:-OWED_STAMPS]:
            del self._owed[owed]

    def first(self, order: PlayerOrder) -> Arrival:
        """The stamp by which it is judged."""
        return self._owed.get(_key(order), order.arrival) if self._owed else order.arrival

    def settle(self, order: PlayerOrder) -> None:
        """Its outcome is stored."""
        if self._owed:
            self._owed.pop(_key(order), None)


def _key(order: PlayerOrder) -> tuple[Audience, str, bytes]:
    return order.sender, order.command_id, order.body_hash
