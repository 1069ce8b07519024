"""Faults of the service's side: what can go wrong, and when it does."""

from __future__ import annotations

import math
from collections.abc import Callable
from random import Random

from tests.sim.machine import LoneMachine
from tests.sim.truth import InjectedFault, Truth
from tests.sim.world import MS_NS, SECOND_NS, World

AIM_EARLY_NS, AIM_LATE_NS = 800 * MS_NS, 100 * MS_NS
"""A fault aimed at a deadline begins within this of it."""


class Troubles:
    """Makes faults. Each is noted with its true span, so that an abort can be held against it."""

    def __init__(self, world: World, truth: Truth, chance: Random) -> None:
        self.world, self.truth, self.chance = world, truth, chance
        self.ends_ns = 0
        """When the last fault has ended; crashes end when a process has opened its door again."""
        self.has_ended = False
        self.kinds: dict[str, Callable[[], None]] = {}

    def strike(self, kind: str | None = None) -> None:
        """Make a fault now, of this kind or of any."""
        if not self.has_ended:
            self.kinds[kind or self.chance.choice(list(self.kinds))]()

    def aim(self, deadline_ns: int) -> None:
        """Make a fault around a deadline on the service's line of time."""
        offset_ns = self.chance.randrange(-AIM_EARLY_NS, AIM_LATE_NS)
        delay_ns = deadline_ns - self.world.service_ns() + offset_ns
        if delay_ns > 0:
            self.world.after(delay_ns, self.strike)

    def end(self) -> None:
        """No fault lasts any longer, save those that stop a process."""
        self.has_ended = True

    def note(self, kind: str, length_ns: int) -> InjectedFault:
        """A fault begins now."""
        fault = self.truth.injected(kind, length_ns)
        self.ends_ns = max(self.ends_ns, fault.to_ns)
        return fault

    def length_ns(self, shortest_ns: int, longest_ns: int) -> int:
        """How long a fault is: short ones are as likely as long ones, by orders of magnitude."""
        return round(shortest_ns * math.pow(longest_ns / shortest_ns, self.chance.random()))


class MachineTroubles(Troubles):
    """Those of one machine and its disk."""

    def __init__(self, machine: LoneMachine, chance: Random) -> None:
        super().__init__(machine.world, machine.truth, chance)
        self.machine = machine
        self.kinds = {
            "stall": self.stall,
            "sigstop": self.sigstop,
            "sleep": self.sleep,
            "step": self.step,
            "crash": self.crash,
            "slow store": self.slow_store,
            "store locked": lambda: self.store_down(is_locked=True),
            "store full": self.store_down,
            "store gone": lambda: self.store_down(reads_fail=True),
            "write fails": lambda: self.fail_batches("before"),
            "answer lost": lambda: self.fail_batches("after"),
            "slow reads": self.slow_reads,
        }

    def stall(self, length_ns: int | None = None) -> None:
        """The event loop stands."""
        length_ns = length_ns or self.length_ns(15 * MS_NS, 3_500 * MS_NS)
        self.note("stall", length_ns)
        self.machine.stall(length_ns)

    def sigstop(self, length_ns: int | None = None) -> None:
        """The process stands."""
        length_ns = length_ns or self.length_ns(60 * MS_NS, 6 * SECOND_NS)
        self.note("sigstop", length_ns)
        self.machine.sigstop(length_ns)

    def sleep(self, length_ns: int | None = None) -> None:
        """The machine sleeps."""
        length_ns = length_ns or self.length_ns(60 * MS_NS, 6 * SECOND_NS)
        self.note("sleep", length_ns)
        self.machine.sleep(length_ns)

    def step(self, length_ns: int | None = None) -> None:
        """The service's line of time jumps ahead, under the eyes of a process: the boot clock alone never does."""
        process = self.machine.process
        if process is None or process.frozen_until_ns > self.world.now_ns:
            return
        length_ns = length_ns or self.length_ns(60 * MS_NS, 6 * SECOND_NS)
        fault = self.note("step", 0)
        self.world.stepped_ns += length_ns
        fault.to_service_ns += length_ns

    def crash(self, restart_after_ns: int | None = None) -> None:
        """The process dies, and another one starts after a while."""
        restart_after_ns = restart_after_ns or self.length_ns(40 * MS_NS, 8 * SECOND_NS)
        self.note("crash", restart_after_ns)
        self.machine.crash(restart_after_ns)

    def slow_store(self, length_ns: int | None = None, slowness_ns: int | None = None) -> None:
        """Each commit takes long."""
        weather = self.machine.weather
        length_ns = length_ns or self.length_ns(50 * MS_NS, 3 * SECOND_NS)
        weather.slowness_ns = slowness_ns or self.length_ns(20 * MS_NS, 3 * SECOND_NS)
        weather.slow_until_ns = self.world.now_ns + length_ns
        self.note("slow store", length_ns + weather.slowness_ns)

    def store_down(self, length_ns: int | None = None, *, is_locked: bool = False, reads_fail: bool = False) -> None:
        """Writes fail at once, or wait for a lock that somebody holds; reads may fail as well."""
        weather = self.machine.weather
        length_ns = length_ns or self.length_ns(30 * MS_NS, 6 * SECOND_NS)
        weather.is_locked, weather.reads_fail = is_locked, reads_fail
        weather.down_until_ns = self.world.now_ns + length_ns
        self.note("store locked" if is_locked else "store gone" if reads_fail else "store full", length_ns)

    def fail_batches(self, when: str, number: int | None = None) -> None:
        """The next batches with changes of matches fail, before or after they were written."""
        fault = self.note("write fails" if when == "before" else "answer lost", 0)

        def happened() -> None:
            fault.to_ns, fault.to_service_ns = self.world.now_ns, self.world.service_ns()

        self.machine.weather.next_batches.extend([(when, happened)] * (number or self.chance.randrange(1, 4)))

    def slow_reads(self, length_ns: int | None = None, slowness_ns: int | None = None) -> None:
        """Reading takes long, so that strangers' commands stay unchecked; just so long, if that is said."""
        weather = self.machine.weather
        weather.least_read_slowness_ns = 0 if slowness_ns is None else slowness_ns - 1
        length_ns = length_ns or self.length_ns(50 * MS_NS, 3 * SECOND_NS)
        weather.read_slowness_ns = slowness_ns or self.length_ns(20 * MS_NS, 2 * SECOND_NS)
        weather.slow_reads_until_ns = self.world.now_ns + length_ns
        self.note("slow reads", length_ns + weather.read_slowness_ns)

    def end(self) -> None:
        """No fault lasts any longer, save those that stop a process."""
        super().end()
        weather, now_ns = self.machine.weather, self.world.now_ns
        weather.next_batches.clear()
        for until in ("down_until_ns", "slow_until_ns", "slow_reads_until_ns"):
            setattr(weather, until, min(getattr(weather, until), now_ns))
