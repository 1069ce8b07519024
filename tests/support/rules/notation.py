"""Dominoes as text: `5-3` is a tile, `5-3 E` a play, `2-3 [3-3] 3-6 / 3-1 / 3-0` a layout.

A layout is the main line from west to east with the spinner in brackets, then the side arms after slashes, each read
from the spinner outwards: north first, south second.
"""

from engine.commands import PlayTile
from engine.layout import End, Layout, PlacedTile
from engine.tiles import DOUBLE_SIX, Tile


def tile(text: str) -> Tile:
    """The tile of `5-3` or `[5-5]`."""
    low, high = sorted(int(half) for half in text.strip("[]").split("-"))
    return Tile(low, high)


def tiles(text: str) -> tuple[Tile, ...]:
    """The tiles of `5-3 6-6`, in the order of the text."""
    return tuple(tile(word) for word in text.split())


def play(text: str) -> PlayTile:
    """The command of `5-3 E`, or of `5-3 open` on an empty table."""
    what, where = text.split()
    return PlayTile(tile(what), End(where))


def plays(text: str) -> tuple[PlayTile, ...]:
    """The commands of `5-3 open, 5-5 E`."""
    return tuple(play(part) for part in text.split(","))


def layout(text: str) -> Layout:
    """The layout of a text that `layout_text` could have written, built by placing tile after tile."""
    main, north, south = [*(arm.split() for arm in text.split("/")), [], []][:3]
    if not main:
        return Layout()
    opener = next(index for index, word in enumerate(main) if _can_open(main, word))
    placing = [
        *((word, End.EAST) for word in main[opener + 1 :]),
        *((word, End.WEST) for word in reversed(main[:opener])),
        *((word, End.NORTH) for word in north),
        *((word, End.SOUTH) for word in south),
    ]
    table = Layout().place(tile(main[opener]), End.OPENING)
    for word, end in placing:
        table = table.place(tile(word), end)
    assert layout_text(table) == text, f"{text!r} is read as {layout_text(table)!r}"
    return table


def layout_text(table: Layout) -> str:
    """The layout as text; the south arm alone comes after two slashes."""
    main = " ".join(
        f"[{_word(placed)}]" if index == table.spinner_index else _word(placed)
        for index, placed in enumerate(table.main_line)
    )
    sides = [" ".join(map(_word, arm)) for arm in (table.north, table.south)]
    while sides and not sides[-1]:
        sides.pop()
    return " / ".join([main, *sides]).replace("/  /", "/ /")


def order(*, one: str = "", two: str = "", boneyard: str = "") -> tuple[Tile, ...]:
    """All 28 tiles in deal order, beginning each share with the tiles named and filling up with the others."""
    named = [tiles(text) for text in (one, two, boneyard)]
    rest = [spare for spare in DOUBLE_SIX if all(spare not in share for share in named)]
    dealt: list[Tile] = []
    for share, size in zip(named, (7, 7, 14), strict=True):
        missing = size - len(share)
        dealt += [*share, *rest[:missing]]
        rest = rest[missing:]
    return tuple(dealt)


def _can_open(main: list[str], word: str) -> bool:
    """A spinner can always have been the first tile; else a tile that reads upwards, as an opening tile lies."""
    has_spinner = any(other.startswith("[") for other in main)
    return word.startswith("[") if has_spinner else word == _word(PlacedTile(*tile(word)))


def _word(placed: PlacedTile) -> str:
    return f"{placed.first}-{placed.second}"
