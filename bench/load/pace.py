"""When a player who may move does so."""

from __future__ import annotations

import asyncio
import time
from typing import Protocol


class Pace(Protocol):
    """Who may move asks for a turn; the answer is the instant from which its latency counts."""

    async def turn(self) -> float:
        """Wait until the move may be sent."""


class AtOnce:
    """A closed loop: every match has a command under way at all times."""

    async def turn(self) -> float:
        """Now."""
        return time.perf_counter()


class Ticks:
    """So many commands a second over all matches. A tick that finds nobody to move waits, and its time counts."""

    def __init__(self, per_second: int) -> None:
        self._interval_seconds = 1 / per_second
        self._ticks: asyncio.Queue[float] = asyncio.Queue()

    async def turn(self) -> float:
        """The instant of the tick that was taken."""
        return await self._ticks.get()

    async def run(self) -> None:
        """Tick until cancelled."""
        due = time.perf_counter()
        while True:
            due += self._interval_seconds
            await asyncio.sleep(due - time.perf_counter())
            self._ticks.put_nowait(time.perf_counter())
