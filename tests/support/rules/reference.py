"""The rules once more, plain and slow, read from the rule text alone: nothing here comes from the engine.

The table is a map of the plane: the opening tile lies at (0, 0), the main line along x, the side arms of the spinner
along y. Whatever the engine keeps, this works out by walking over the table.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import TypeVar

Bone = tuple[int, int]
Point = tuple[int, int]
Move = tuple[str] | tuple[str, Bone, str]

COMPASS: dict[str, Point] = {"W": (-1, 0), "E": (1, 0), "N": (0, 1), "S": (0, -1)}
DRAW: Move = ("draw",)
PASS: Move = ("pass",)


@dataclass(frozen=True)
class Table:
    """Tiles by their place, in the order in which they were played."""

    bones: tuple[tuple[Point, Bone], ...] = ()

    def at(self, point: Point) -> Bone | None:
        return next((bone for place, bone in self.bones if place == point), None)

    def spinner(self) -> Point | None:
        """Where the first double of the round lies."""
        return next((place for place, (one, other) in self.bones if one == other), None)

    def sides_open(self) -> bool:
        """Whether both opposite main arms of the spinner are occupied."""
        spinner = self.spinner()
        return spinner is not None and all(self.at((spinner[0] + step, 0)) is not None for step in (-1, 1))

    def directions(self) -> str:
        """The directions in which a tile could be joined now."""
        if not self.bones:
            return ""
        return "WENS" if self.sides_open() else "WE"

    def root(self, direction: str) -> Point:
        """Where walking in a direction begins."""
        spinner = self.spinner()
        return (0, 0) if direction in "WE" or spinner is None else spinner

    def arm(self, direction: str) -> list[Point]:
        """The places of the tiles beyond the root, outwards."""
        (x, y), (right, up) = self.root(direction), COMPASS[direction]
        arm: list[Point] = []
        while self.at((x + right, y + up)) is not None:
            x, y = x + right, y + up
            arm.append((x, y))
        return arm

    def bone(self, point: Point) -> Bone:
        bone = self.at(point)
        if bone is None:
            raise LookupError(point)
        return bone

    def open_value(self, direction: str) -> int:
        """The half to match: what is left of each tile on the way outwards when the joined half is taken off."""
        low, high = self.bone(self.root(direction))
        value = low if direction == "W" else high
        for point in self.arm(direction):
            value = sum(self.bone(point)) - value
        return value

    def counted(self, direction: str) -> int:
        """What the end in a direction adds to the exposed total."""
        arm, value = self.arm(direction), self.open_value(direction)
        tip = arm[-1] if arm else self.root(direction)
        if not arm and direction in "NS":
            return 0
        if len(self.bones) == 1:
            return value
        return 2 * value if len(set(self.bone(tip))) == 1 else value

    def total(self) -> int:
        """The exposed total."""
        return sum(self.counted(direction) for direction in self.directions())

    def fits(self, bone: Bone) -> list[str]:
        """Where a tile may be joined."""
        if not self.bones:
            return ["open"]
        return [direction for direction in self.directions() if self.open_value(direction) in bone]

    def joined(self, bone: Bone, direction: str) -> "Table":
        """The table with one tile more."""
        if direction == "open":
            return Table((((0, 0), bone),))
        (x, y), (right, up) = self.root(direction), COMPASS[direction]
        steps = len(self.arm(direction)) + 1
        return Table((*self.bones, ((x + right * steps, y + up * steps), bone)))


@dataclass(frozen=True)
class Round:
    """One round from the opening on. The players are 0 and 1; `must` is the only tile that may be played."""

    hands: tuple[frozenset[Bone], frozenset[Bone]]
    boneyard: tuple[Bone, ...]
    player: int
    must: Bone | None
    balances: tuple[int, int] = (150, 150)
    table: Table = Table()
    passes: int = 0
    finished: bool = False

    def moves(self) -> list[Move]:
        """All that the player may do."""
        if self.finished:
            return []
        hand = self.hands[self.player] if self.must is None else {self.must}
        plays: list[Move] = [("play", bone, where) for bone in hand for where in self.table.fits(bone)]
        return plays or [DRAW if self.boneyard else PASS]

    def after(self, move: Move) -> "Round":
        """The round after a move."""
        if len(move) > 1:
            return self._played(move[1], move[2])
        return self._drawn() if move == DRAW else self._passed()

    def _played(self, bone: Bone, where: str) -> "Round":
        table = self.table.joined(bone, where)
        hand = self.hands[self.player] - {bone}
        balances = self._paid(table.total())
        over = not hand or 0 in balances
        return Round(
            self._with_hand(hand), self.boneyard, 1 - self.player, None, balances, table, passes=0, finished=over
        )

    def _drawn(self) -> "Round":
        bone, *rest = self.boneyard
        hands = self._with_hand(self.hands[self.player] | {bone})
        must = bone if self.table.fits(bone) else None
        return Round(hands, tuple(rest), self.player, must, self.balances, self.table, self.passes)

    def _passed(self) -> "Round":
        passes = self.passes + 1
        return Round(
            self.hands, (), 1 - self.player, None, self.balances, self.table, passes=passes, finished=passes == 2
        )

    def _with_hand(self, hand: frozenset[Bone]) -> tuple[frozenset[Bone], frozenset[Bone]]:
        return (hand, self.hands[1]) if self.player == 0 else (self.hands[0], hand)

    def _paid(self, total: int) -> tuple[int, int]:
        payer = 1 - self.player
        moving = min(total, self.balances[payer]) if total > 0 and total % 5 == 0 else 0
        signed = -moving if payer == 0 else moving
        return self.balances[0] + signed, self.balances[1] - signed


def ranked(hands: tuple[Iterable[Bone], Iterable[Bone]]) -> tuple[int, Bone]:
    """Who must open a first round, and with which tile."""
    ranking = [(b[0] == b[1], sum(b), max(b), player, b) for player, hand in enumerate(hands) for b in hand]
    *_, player, bone = max(ranking)
    return player, bone


State = TypeVar("State")
Step = TypeVar("Step", bound=Hashable)


def perft(
    state: State,
    depth: int,
    *,
    moves: Callable[[State], Iterable[Step]],
    after: Callable[[State, Step], State],
    total: Callable[[State], int],
) -> list[Counter[int]]:
    """For each depth how often each exposed total stands at the end of a sequence of moves of that length."""
    seen: list[Counter[int]] = [Counter() for _ in range(depth)]

    def walk(here: State, ply: int) -> None:
        for move in moves(here):
            there = after(here, move)
            seen[ply][total(there)] += 1
            if ply + 1 < depth:
                walk(there, ply + 1)

    walk(state, 0)
    return seen
