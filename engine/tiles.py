"""The double-six set (clause deal.set)."""

from __future__ import annotations

from typing import NamedTuple

HIGHEST_PIP = 6


class Tile(NamedTuple):
    """A domino tile by its halves, the smaller first. Pips are 0 to 6."""

    low: int
    high: int

    @property
    def pips(self) -> int:
        """The pip total of both halves."""
        return self.low + self.high

    @property
    def is_double(self) -> bool:
        """Whether both halves are equal; the double blank is a double (B2)."""
        return self.low == self.high


DOUBLE_SIX = tuple(Tile(low, high) for low in range(HIGHEST_PIP + 1) for high in range(low, HIGHEST_PIP + 1))
"""All 28 tiles in canonical order: (0-0), (0-1) .. (6-6)."""


def hand_pips(hand: tuple[Tile, ...]) -> int:
    """The pip total of a hand."""
    return sum(tile.low + tile.high for tile in hand)
