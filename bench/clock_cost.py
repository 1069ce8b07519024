"""What the provable clock costs: how late deadlines fire, and what stamps, receipts and the loop monitor take."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable

from bench.loops import run
from bench.report import TEXT, Table, Value
from engine.clock import SECOND_NS, Arrival, Decision, Verdict
from engine.seats import Seat
from service.deadlines import Deadlines
from service.metrics import Metrics
from service.ports import Receipt
from service.rpc.facts import receipt_message
from service.timing_guard import TICK_NS, TimingGuard

ARMED = 10_000
COMMANDS_PER_SECOND = 1_000
"""The rate for which the monitor's ticks are shared out among commands; more commands share them better."""


def measure(*, quick: bool) -> list[Table]:
    """The clock's tables."""
    return [_fire_delay(seconds=2 if quick else 10), _overhead(rounds=5_000 if quick else 50_000)]


def _fire_delay(*, seconds: int) -> Table:
    delays_ms = sorted(run(_fired(seconds)))
    at = {share: delays_ms[int(share * (len(delays_ms) - 1))] for share in (0.5, 0.99, 1.0)}
    note = f"armed at once, due at random over {seconds} s, on the loop that the service uses"
    columns = {"armed": ",d", "p50 ms": ".2f", "p99 ms": ".2f", "worst ms": ".2f", "target": TEXT}
    row: list[Value] = [len(delays_ms), at[0.5], at[0.99], at[1.0], "p99 < 50 ms"]
    return Table("Deadlines: how late they fire", columns, [row], [note])


async def _fired(seconds: int) -> list[float]:
    chance, guard = random.Random(1), _guard()
    due = {str(number): guard.now_ns() + chance.randrange(seconds * SECOND_NS) for number in range(ARMED)}
    delays_ms: list[float] = []
    done = asyncio.Event()

    def fire(match_id: str) -> None:
        delays_ms.append((guard.now_ns() - due[match_id]) / 1e6)
        if len(delays_ms) == ARMED:
            done.set()

    deadlines = Deadlines(guard, fire, Metrics().deadlines)
    for match_id, due_ns in due.items():
        deadlines.arm(match_id, due_ns)
    await done.wait()
    return delays_ms


def _overhead(*, rounds: int) -> Table:
    guard = run(_started())
    decision = Decision(Seat.ONE, guard.now_ns(), 120 * SECOND_NS)
    receipt = Receipt(Arrival.at(guard.now_ns()), decision, 0, Verdict.IN_TIME)
    stamp_us = microseconds(guard.arrival, rounds)
    exact_us = microseconds(guard.now_ns, rounds)
    judge_us = microseconds(lambda: decision.judge(receipt.arrival, SECOND_NS), rounds)
    receipt_us = microseconds(lambda: receipt_message(receipt), rounds)
    tick_us = run(_ticking(seconds=1.0 if rounds < 50_000 else 5.0)) * SECOND_NS / TICK_NS / COMMANDS_PER_SECOND
    rows: list[list[Value]] = [
        ["stamp as an interval, beyond reading the clock once", stamp_us - exact_us],
        ["verdict", judge_us],
        ["receipt on the wire", receipt_us],
        [f"loop monitor, at {COMMANDS_PER_SECOND:,} commands/s", tick_us],
        ["together", stamp_us - exact_us + judge_us + receipt_us + tick_us],
    ]
    note = "target: under 3 % of PlayMatch's CPU a command, so under 10.5 us at its goal of 350 us"
    return Table("Clock: CPU microseconds a command", {"part": TEXT, "us": ".2f"}, rows, [note])


def microseconds(work: Callable[[], object], rounds: int) -> float:
    """The least of several repeats: the machine left alone."""
    best = float("inf")
    for _ in range(5):
        began_ns = time.process_time_ns()
        for _ in range(rounds):
            work()
        best = min(best, (time.process_time_ns() - began_ns) / 1e3 / rounds)
    return best


async def _started() -> TimingGuard:
    guard = _guard()
    guard.start()
    guard.stop()
    return guard


async def _ticking(*, seconds: float) -> float:
    """CPU microseconds of one tick of the monitor, the loop's share included."""
    guard = _guard()
    guard.start()
    began_ns = time.process_time_ns()
    await asyncio.sleep(seconds)
    spent_us = (time.process_time_ns() - began_ns) / 1e3
    guard.stop()
    return spent_us / (seconds * SECOND_NS / TICK_NS)


def _guard() -> TimingGuard:
    return TimingGuard(
        time.monotonic_ns, lambda: 0, publish_stall_ns=2 * SECOND_NS, report=print, metrics=Metrics().clock
    )
