"""Everything outside the service, on one true line of time: what happens next, and what happened."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from heapq import heappop, heappush
from random import Random
from typing import Protocol

MS_NS = 1_000_000
SECOND_NS = 1_000_000_000
NOON_NS = 1_790_000_000 * SECOND_NS
"""Where the service's line of time stands when the world begins."""
MOST_TURNS = 20_000
"""Turns that may pass without time passing; more are a livelock."""


class Runnable(Protocol):
    """A process, as the world sees it."""

    def due_ns(self) -> int | None:
        """When it wants to run next; None for never."""

    def turn(self) -> None:
        """Run now."""


class LivelockError(AssertionError):
    """A process runs and runs while no time passes."""


@dataclass(slots=True)
class Event:
    """Something that will happen, unless it is cancelled before."""

    action: Callable[[], None]
    is_cancelled: bool = False

    def cancel(self) -> None:
        """It will not happen."""
        self.is_cancelled = True


@dataclass
class World:
    """True time, chance, the events to come, the processes, and the trace of all that happened."""

    seed: int
    is_printing: bool = False
    now_ns: int = 0
    stepped_ns: int = 0
    """How far faults have moved the service's line of time against the true one."""
    processes: list[Runnable] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.trace = hashlib.sha256()
        self._events: list[tuple[int, int, Event]] = []
        self._numbers = 0
        self._turns = 0

    def chance(self, name: str) -> Random:
        """A source of chance of one's own: drawing from one does not disturb the others."""
        return Random(f"{self.seed} {name}")

    def service_ns(self) -> int:
        """The service's line of time now, as a perfect clock of it would show."""
        return NOON_NS + self.now_ns + self.stepped_ns

    def at(self, when_ns: int, action: Callable[[], None]) -> Event:
        """Let something happen then, or now if that is past."""
        event = Event(action)
        self._numbers += 1
        heappush(self._events, (max(when_ns, self.now_ns), self._numbers, event))
        return event

    def after(self, delay_ns: int, action: Callable[[], None]) -> Event:
        """Let something happen so much later."""
        return self.at(self.now_ns + delay_ns, action)

    def note(self, text: str) -> None:
        """Put a line into the trace."""
        self.trace.update(f"{self.now_ns} {text}\n".encode())
        if self.is_printing:
            print(f"{self.now_ns / 1e9:11.6f}  {text}")  # noqa: T201  the trace is for a person

    def run(self, until_ns: int) -> None:
        """Let time pass until then: events first, then whichever process is due."""
        while True:
            event_ns = self._next_event_ns()
            process, process_ns = self._next_process()
            next_ns = min(event_ns, process_ns)
            if next_ns > until_ns:
                self.now_ns = until_ns
                return
            self._turns = self._turns + 1 if next_ns == self.now_ns else 0
            if self._turns > MOST_TURNS:
                raise LivelockError
            self.now_ns = next_ns
            if event_ns <= process_ns:
                heappop(self._events)[2].action()
            else:
                assert process is not None
                process.turn()

    def _next_event_ns(self) -> int:
        while self._events and self._events[0][2].is_cancelled:
            heappop(self._events)
        return self._events[0][0] if self._events else NEVER_NS

    def _next_process(self) -> tuple[Runnable | None, int]:
        first, first_ns = None, NEVER_NS
        for process in self.processes:
            due_ns = process.due_ns()
            if due_ns is not None and due_ns < first_ns:
                first, first_ns = process, due_ns
        return first, max(first_ns, self.now_ns)


NEVER_NS = 1 << 62
