"""What the rules cost: microseconds a command, by part."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

from bench.recorded import Chooser, Turn, choose_greedily, choose_randomly, recorded
from bench.report import TEXT, Table, Value
from engine.decide import decide
from engine.evolve import advance
from engine.invariants import check
from engine.view import Audience, own_view, public_view

Part: TypeAlias = Callable[[Sequence[Turn]], None]
TARGET = "first <= 120, goal <= 60"


class Effort(NamedTuple):
    """How much is measured."""

    commands: int
    repeats: int


FULL, QUICK = Effort(commands=5_000, repeats=9), Effort(commands=1_000, repeats=3)


def _decide(turns: Sequence[Turn]) -> None:
    for turn in turns:
        decide(turn.before, turn.request, now_ns=turn.now_ns, deal=turn.deal)


def _evolve(turns: Sequence[Turn]) -> None:
    for turn in turns:
        check(advance(turn.before, turn.step))


def _own_views(turns: Sequence[Turn]) -> None:
    for turn in turns:
        own_view(turn.after, Audience.SEAT_ONE)
        own_view(turn.after, Audience.SEAT_TWO)


def _public_view(turns: Sequence[Turn]) -> None:
    for turn in turns:
        public_view(turn.after)


def _whole(turns: Sequence[Turn]) -> None:
    for turn in turns:
        ruling = decide(turn.before, turn.request, now_ns=turn.now_ns, deal=turn.deal)
        after = advance(turn.before, ruling.events)
        check(after)
        own_view(after, Audience.SEAT_ONE)
        own_view(after, Audience.SEAT_TWO)
        public_view(after)


PARTS: dict[str, Part] = {
    "decide": _decide,
    "evolve + invariants": _evolve,
    "legal actions + own views, both seats": _own_views,
    "public view": _public_view,
    "whole command": _whole,
}
PLAYERS: dict[str, Chooser] = {"random": choose_randomly, "greedy": choose_greedily}


def measure(*, quick: bool) -> list[Table]:
    """The engine's table."""
    effort = QUICK if quick else FULL
    spent = {name: _measured(choose, effort) for name, choose in PLAYERS.items()}
    rows: list[list[Value]] = [
        [
            part,
            *(figure for name in PLAYERS for figure in (min(spent[name][part]), statistics.median(spent[name][part]))),
            TARGET if part == "whole command" else "",
        ]
        for part in PARTS
    ]
    figures = {f"{name} {figure}": ".1f" for name in PLAYERS for figure in ("min", "median")}
    note = f"{effort.commands:,} commands of each kind, {effort.repeats} repeats, one process on one core"
    return [Table("Engine: CPU microseconds a command", {"part": TEXT, **figures, "target": TEXT}, rows, [note])]


def _measured(choose: Chooser, effort: Effort) -> dict[str, list[float]]:
    """Microseconds a command in each repeat, by part. The repeats of the parts alternate, so that noise hits all."""
    turns = recorded(choose, effort.commands)
    spent: dict[str, list[float]] = {part: [] for part in PARTS}
    gc.collect()
    gc.freeze()  # the recorded matches are not the engine's garbage
    for _ in range(effort.repeats):
        for name, part in PARTS.items():
            began_ns = time.process_time_ns()
            part(turns)
            spent[name].append((time.process_time_ns() - began_ns) / 1e3 / len(turns))
    gc.unfreeze()
    return spent
