"""Dealing and the ranked opening (clauses deal.*, opening.*, readings B1, B2)."""

from __future__ import annotations

from typing import NamedTuple

from engine.seats import SEATS, PerSeat, Seat
from engine.tiles import DOUBLE_SIX, Tile

HAND_SIZE = 7
BONEYARD_SIZE = len(DOUBLE_SIX) - 2 * HAND_SIZE


class Dealt(NamedTuple):
    """The hands in ascending order and the boneyard in drawing order."""

    hands: PerSeat[tuple[Tile, ...]]
    boneyard: tuple[Tile, ...]


class RankedOpening(NamedTuple):
    """Who must open, and with which tile."""

    seat: Seat
    tile: Tile


def deal(order: tuple[Tile, ...]) -> Dealt:
    """The deal of `order`, a permutation of all 28 tiles: seven to ONE, seven to TWO, the rest to draw (B1)."""
    assert len(order) == len(DOUBLE_SIX) == len(set(order))
    one, two = order[:HAND_SIZE], order[HAND_SIZE : 2 * HAND_SIZE]
    return Dealt(PerSeat(tuple(sorted(one)), tuple(sorted(two))), order[2 * HAND_SIZE :])


def ranked_opening(hands: PerSeat[tuple[Tile, ...]]) -> RankedOpening:
    """The holder of the highest double (opening.ranked, B2), else of the heaviest tile (opening.heaviest)."""
    held = [RankedOpening(seat, tile) for seat, hand in zip(SEATS, hands, strict=True) for tile in hand]
    doubles = [opening for opening in held if opening.tile.is_double]
    if doubles:
        return max(doubles, key=lambda opening: opening.tile.high)
    return max(held, key=lambda opening: (opening.tile.pips, opening.tile.high))
