"""Latest-wins watching: a stream reads the match at its own pace; it may skip versions and never goes back."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from engine.events import Event, Step
from engine.view import Audience

RECENT_STEPS = 64
"""Versions whose events a match keeps for streams that fall behind."""


class Recent:
    """The events of the last versions of a match."""

    def __init__(self) -> None:
        self._steps: dict[int, Step] = {}

    def add(self, version: int, step: Step) -> None:
        """Remember the events of a version; the oldest one kept goes."""
        self._steps[version] = step
        self._steps.pop(version - RECENT_STEPS, None)

    def step(self, version: int) -> Step:
        """The events of a version, if it is one of these."""
        return self._steps[version]

    def since(self, version: int, upto: int) -> tuple[tuple[Event, ...], bool]:
        """The events after `version` up to `upto`, and whether none is missing."""
        if upto == version + 1 and (step := self._steps.get(upto)) is not None:
            return step, True  # as nearly always
        first = max(version + 1, upto - RECENT_STEPS + 1)
        steps = [self._steps.get(number) for number in range(first, upto + 1)]
        complete = first == version + 1 and None not in steps
        return tuple(event for step in steps if step is not None for event in step), complete


@dataclass(slots=True, eq=False)
class Watch:
    """One stream's interest in a match. `cursor` is the version that it was last sent."""

    audience: Audience
    cursor: int
    going_away: bool = False
    ending: Exception | None = None
    """Why the stream must end now, if it must."""
    _new: bool = True
    _waiter: asyncio.Future[None] | None = None

    def wake(self) -> None:
        """Something may be new."""
        self._new = True
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def end(self, why: Exception) -> None:
        """Have the stream end with this error, whatever it still had to say."""
        self.ending = self.ending or why
        self.wake()

    async def woken(self) -> None:
        """Wait until something may be new since the last time."""
        if not self._new:
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
        self._new = False
