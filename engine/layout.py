"""The layout: the main line, the spinner's side arms, and what the ends count.

The main line reads from WEST to EAST; a side arm reads from the spinner outwards. Clauses `connect.*` and `ends.*`,
readings C1 to C8.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from engine.tiles import Tile


class End(Enum):
    """A connection of the layout."""

    OPENING = "open"
    WEST = "W"
    EAST = "E"
    NORTH = "N"
    SOUTH = "S"

    __hash__ = object.__hash__  # as Seat


class PlacedTile(NamedTuple):
    """A tile on the table by its halves in reading order."""

    first: int
    second: int

    @property
    def is_double(self) -> bool:
        """Whether both halves are equal."""
        return self.first == self.second

    @property
    def tile(self) -> Tile:
        """The tile without its orientation."""
        return Tile(min(self), max(self))


class OpenEnd(NamedTuple):
    """An available connection: the value to match and what it adds to the exposed total, in pips."""

    end: End
    value: int
    counts: int


class Layout(NamedTuple):
    """The tiles on the table. `ends` and `exposed_total` follow from the tiles and are kept because all need them."""

    main_line: tuple[PlacedTile, ...] = ()
    spinner_index: int | None = None
    north: tuple[PlacedTile, ...] = ()
    south: tuple[PlacedTile, ...] = ()
    ends: tuple[OpenEnd, ...] = ()
    exposed_total: int = 0

    @property
    def is_empty(self) -> bool:
        """Whether no tile was played in this round."""
        return not self.main_line

    @property
    def side_arms_open(self) -> bool:
        """Whether both main arms of the spinner are occupied (connect.sides-after-mains, C2, C3)."""
        return self.spinner_index is not None and 0 < self.spinner_index < len(self.main_line) - 1

    def tiles(self) -> tuple[Tile, ...]:
        """Every tile on the table."""
        return tuple(placed.tile for placed in self.main_line + self.north + self.south)

    def value_at(self, end: End) -> int | None:
        """The value to match at `end`, or None when there is no such connection now."""
        for open_end in self.ends:
            if open_end.end is end:
                return open_end.value
        return None

    def place(self, tile: Tile, end: End) -> Layout:
        """The layout with `tile` joined at `end`, which must be available and match."""
        if end is End.OPENING:
            return _with_ends(
                Layout(main_line=(PlacedTile(*tile),), spinner_index=0 if tile.is_double else None),
            )
        value = self.value_at(end)
        assert value is not None
        assert tile.has(value)
        return _with_ends(self._joined(end, inner=value, outer=tile.beside(value)))

    def _joined(self, end: End, *, inner: int, outer: int) -> Layout:
        is_first_double = inner == outer and self.spinner_index is None  # connect.spinner, C1
        if end is End.WEST:
            shifted = None if self.spinner_index is None else self.spinner_index + 1
            index = 0 if is_first_double else shifted
            return self._replace(main_line=(PlacedTile(outer, inner), *self.main_line), spinner_index=index)
        if end is End.EAST:
            index = len(self.main_line) if is_first_double else self.spinner_index
            return self._replace(main_line=(*self.main_line, PlacedTile(inner, outer)), spinner_index=index)
        placed = PlacedTile(inner, outer)
        if end is End.NORTH:
            return self._replace(north=(*self.north, placed))
        return self._replace(south=(*self.south, placed))

    def total_after(self, tile: Tile, end: End) -> int:
        """The exposed total that `place(tile, end)` would have, by arithmetic alone."""
        if end is End.OPENING:
            return tile.pips
        joined = next(open_end for open_end in self.ends if open_end.end is end)
        gained = _counts(joined.value, tile.beside(joined.value))
        total = self.exposed_total - joined.counts + gained
        if len(self.main_line) == 1 and self.main_line[0].is_double:
            total += joined.value  # ends.opening-double: the half on the joined side still counts
        return total


def _counts(first: int, second: int) -> int:
    """What the outermost tile of an arm counts: a double both halves (ends.later-double, C5), else the outer half."""
    return first + second if first == second else second


def _with_ends(layout: Layout) -> Layout:
    ends = _main_ends(layout.main_line)
    if layout.side_arms_open:
        assert layout.spinner_index is not None
        value = layout.main_line[layout.spinner_index].first
        ends += (_side_end(End.NORTH, layout.north, value), _side_end(End.SOUTH, layout.south, value))
    return layout._replace(ends=ends, exposed_total=sum(open_end.counts for open_end in ends))


def _main_ends(line: tuple[PlacedTile, ...]) -> tuple[OpenEnd, ...]:
    west, east = line[0].first, line[-1].second
    if len(line) == 1:
        # C4, C6: a lone tile has two ends that count one half each, so a lone double counts both halves once.
        return OpenEnd(End.WEST, west, west), OpenEnd(End.EAST, east, east)
    return (
        OpenEnd(End.WEST, west, _counts(line[0].second, west)),
        OpenEnd(End.EAST, east, _counts(line[-1].first, east)),
    )


def _side_end(end: End, arm: tuple[PlacedTile, ...], spinner_value: int) -> OpenEnd:
    if not arm:
        return OpenEnd(end, spinner_value, 0)  # ends.unused-branch
    return OpenEnd(end, arm[-1].second, _counts(*arm[-1]))
