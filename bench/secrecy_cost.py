"""What secrecy costs a command: the outbound guard for every message, the seal for draws and deals."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import islice

from bench.clock_cost import microseconds
from bench.recorded import choose_randomly, recorded
from bench.report import TEXT, Table, Value
from engine.events import RoundDealt, Step, TileDrawn
from engine.view import Audience
from service.metrics import Metrics
from service.rpc.outbound import Guard
from service.rpc.render import Renderer
from service.store.event_json import step_text
from service.store.sealed_steps import sealed_step_text
from service.store.sealing import KEY_BYTES, Seal

MESSAGES = 2
"""Views that leave for each command of PlayMatch: the outcome and the opponent's update."""


def measure(*, quick: bool) -> list[Table]:
    """The table of secrecy."""
    turns = recorded(choose_randomly, 1_000 if quick else 5_000)
    rounds = 2_000 if quick else 20_000
    seal = Seal(random.Random(1).randbytes(KEY_BYTES))
    hiding = [turn.step for turn in turns if any(isinstance(event, RoundDealt | TileDrawn) for event in turn.step)]
    share = len(hiding) / len(turns)
    sealed_us = _each(lambda step: sealed_step_text(step, seal, "m/1"), hiding, rounds)
    plain_us = _each(step_text, hiding, rounds)
    after = next(turn.after for turn in islice(turns, 20, None))
    guard = Guard("m", Audience.SEAT_ONE, Metrics())
    message = b"", Renderer().version("m", after).view(Audience.SEAT_ONE)
    guard_us = microseconds(lambda: guard.release(message), rounds) * MESSAGES
    rows: list[list[Value]] = [
        [f"outbound guard, {MESSAGES} messages a command", guard_us],
        [f"sealing, for the {share:.0%} of commands that deal or draw", (sealed_us - plain_us) * share],
        ["together", guard_us + (sealed_us - plain_us) * share],
    ]
    note = "target: at most 10 % of PlayMatch's CPU a command, so at most 35 us at its goal of 350 us"
    return [Table("Secrecy: CPU microseconds a command", {"part": TEXT, "us": ".2f"}, rows, [note])]


def _each(work: Callable[[Step], object], steps: list[Step], rounds: int) -> float:
    chosen = [steps[number % len(steps)] for number in range(rounds)]
    numbers = iter(range(10 * rounds))
    return microseconds(lambda: work(chosen[next(numbers) % rounds]), rounds)
