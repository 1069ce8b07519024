"""The layout: the main line, the spinner's side arms, and what the ends count.

The main line reads from WEST to EAST; a side arm reads from the spinner outwards. Clauses `connect.*` and `ends.*`,
readings C1 to C8.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple, TypeAlias

from engine.tiles import DOUBLE_SIX, HIGHEST_PIP, Tile


class End(Enum):
    """A connection of the layout."""

    OPENING = "open"
    WEST = "W"
    EAST = "E"
    NORTH = "N"
    SOUTH = "S"

    __hash__ = object.__hash__  # as Seat


_OPENING, _WEST, _EAST, _NORTH, _SOUTH = End  # read in a tenth of the time that a member takes through its class


class PlacedTile(NamedTuple):
    """A tile on the table by its halves in reading order."""

    first: int
    second: int

    @property
    def is_double(self) -> bool:
        """Whether both halves are equal."""
        return self.first == self.second


_UNPLACED = {PlacedTile(*halves): tile for tile in DOUBLE_SIX for halves in (tile, reversed(tile))}
"""Every placed tile without its orientation."""


Arm: TypeAlias = tuple[PlacedTile, ...]


class OpenEnd(NamedTuple):
    """An available connection: the value to match and what it adds to the exposed total, in pips."""

    end: End
    value: int
    counts: int


def _outermost(end: End, placed: PlacedTile) -> OpenEnd:
    """The end of an arm: a double counts both halves (ends.later-double, C5), any other tile the outer half."""
    inner, outer = reversed(placed) if end is _WEST else placed
    return OpenEnd(end, outer, inner + outer if inner == outer else outer)


_OUTERMOST = {(end, placed): _outermost(end, placed) for end in End for placed in _UNPLACED}
"""What every tile makes of the arm that it ends."""
_UNUSED = {(end, value): OpenEnd(end, value, 0) for end in End for value in range(HIGHEST_PIP + 1)}
"""Side arms without a tile (ends.unused-branch)."""


class Layout(NamedTuple):
    """The tiles on the table. `ends` and `exposed_total` follow from the tiles and are kept because all need them."""

    main_line: Arm = ()
    spinner_index: int | None = None
    north: Arm = ()
    south: Arm = ()
    ends: tuple[OpenEnd, ...] = ()
    exposed_total: int = 0

    def tiles(self) -> tuple[Tile, ...]:
        """Every tile on the table."""
        return tuple(map(_UNPLACED.__getitem__, self.main_line + self.north + self.south))

    def open_end(self, end: End) -> OpenEnd | None:
        """The connection at `end`, or None when there is none now. An empty layout has none."""
        for open_end in self.ends:
            if open_end.end is end:
                return open_end
        return None

    def place(self, tile: Tile, end: End) -> Layout:
        """The layout with `tile` joined at `end`, which must be available and match."""
        if end is _OPENING:
            return _laid((PlacedTile(*tile),), 0 if tile.is_double else None, (), ())
        joined = self.open_end(end)
        assert joined is not None
        value = joined.value
        assert value in tile
        return self._joined(end, inner=value, outer=tile.low + tile.high - value)

    def _joined(self, end: End, *, inner: int, outer: int) -> Layout:
        line, spinner, north, south = self[:4]
        is_first_double = inner == outer and spinner is None  # connect.spinner, C1
        if end is _WEST:
            shifted = None if spinner is None else spinner + 1
            return _laid((PlacedTile(outer, inner), *line), 0 if is_first_double else shifted, north, south)
        placed = PlacedTile(inner, outer)
        if end is _EAST:
            return _laid((*line, placed), len(line) if is_first_double else spinner, north, south)
        if end is _NORTH:
            return _laid(line, spinner, (*north, placed), south)
        return _laid(line, spinner, north, (*south, placed))

    def total_after(self, tile: Tile, end: End) -> int:
        """The exposed total that `place(tile, end)` would have, by arithmetic alone."""
        if end is _OPENING:
            return tile.pips
        joined = self.open_end(end)
        assert joined is not None
        return self.total_joined(tile, joined)

    def total_joined(self, tile: Tile, joined: OpenEnd) -> int:
        """The same for a tile that matches one of `ends`."""
        low, high = tile
        gained = low + high - (0 if low == high else joined.value)  # as _outermost
        total = self.exposed_total - joined.counts + gained
        if len(self.main_line) == 1 and self.main_line[0].is_double:
            total += joined.value  # ends.opening-double: the half on the joined side still counts
        return total


def _laid(line: Arm, spinner_index: int | None, north: Arm, south: Arm) -> Layout:
    """These tiles with what follows from them."""
    west, east = line[0], line[-1]
    ends: tuple[OpenEnd, ...]
    if len(line) == 1:
        # C4, C6: a lone tile has two ends that count one half each, so a lone double counts both halves once.
        ends = OpenEnd(_WEST, west.first, west.first), OpenEnd(_EAST, east.second, east.second)
    else:
        ends = _OUTERMOST[_WEST, west], _OUTERMOST[_EAST, east]
    if spinner_index is not None and 0 < spinner_index < len(line) - 1:  # connect.sides-after-mains, C2, C3
        value = line[spinner_index].first
        ends += (
            _OUTERMOST[_NORTH, north[-1]] if north else _UNUSED[_NORTH, value],
            _OUTERMOST[_SOUTH, south[-1]] if south else _UNUSED[_SOUTH, value],
        )
    exposed_total = 0
    for open_end in ends:
        exposed_total += open_end.counts
    return Layout(line, spinner_index, north, south, ends, exposed_total)
