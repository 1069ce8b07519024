"""Latest-wins watching: a stream reads the match at its own pace; it may skip versions and never goes back."""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass

from engine.events import Event, Step
from engine.view import Audience

RECENT_STEPS = 64
"""Versions whose events a match keeps for streams that fall behind."""


class Recent:
    """The events of the last versions of a match."""

    def __init__(self) -> None:
        self._steps: deque[tuple[int, Step]] = deque(maxlen=RECENT_STEPS)

    def add(self, version: int, step: Step) -> None:
        """Remember the events of a version."""
        self._steps.append((version, step))

    def since(self, version: int, upto: int) -> tuple[tuple[Event, ...], bool]:
        """The events after `version` up to `upto`, and whether none is missing."""
        steps = [step for number, step in self._steps if version < number <= upto]
        return tuple(event for step in steps for event in step), len(steps) == max(0, upto - version)


@dataclass(slots=True, eq=False)
class Watch:
    """One stream's interest in a match. `cursor` is the version that it was last sent."""

    audience: Audience
    cursor: int
    going_away: bool = False
    _new: bool = True
    _waiter: asyncio.Future[None] | None = None

    def wake(self) -> None:
        """Something may be new."""
        self._new = True
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def woken(self) -> None:
        """Wait until something may be new since the last time."""
        if not self._new:
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
        self._new = False
