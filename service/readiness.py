"""Who cannot serve takes no new clients, where several processes share a store; unless nobody else could either.

Two things keep a process from serving: it is not sure what time it is, or it cannot reach the store. The first one is
its own trouble. The second may be everybody's: then sending all clients away would help nobody, and they are told to
repeat. Whoever hears that others store their heartbeats while it cannot is alone with its trouble.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from enum import Enum
from typing import Protocol

from engine.clock import SECOND_NS
from service.logs import get_logger
from service.metrics.clock import ClockMetrics
from service.ports import Clock
from service.writer import UNCERTAIN_NS

LOOK_SECONDS = 0.5
PATIENCE_LOOKS = 6
"""Looks in a row at which the clock was unsure, before the process says so: three seconds."""
WELL_NS = SECOND_NS
"""A process whose last stored heartbeat is younger tells the others that it is well."""
AWAY_NS = 3 * SECOND_NS
"""One whose last stored heartbeat is older cannot reach the store; the others have fenced it, or will."""


class Door(Protocol):
    """What tells load balancers whether to send clients."""

    async def refuse_new_clients(self) -> None:
        """Say that this process takes no new clients."""

    async def accept_new_clients(self) -> None:
        """Say that it does."""


class News(Protocol):
    """How processes hear of each other."""

    @property
    def others_are_well(self) -> bool:
        """Whether another process said so within the last second; False also when that cannot be heard."""

    def say_well(self) -> None:
        """Tell the others that this process has just reached the store."""


class Trouble(Enum):
    """Why a process takes no new clients."""

    UNSURE = "unsure"
    CUT_OFF = "cut off"


class Readiness:
    """Looks until it is cancelled. `stored_ns` is when the last heartbeat was stored, by service time."""

    def __init__(
        self, clock: Clock, stored_ns: Callable[[], int], news: News, metrics: ClockMetrics, door: Door
    ) -> None:
        self._clock = clock
        self._stored_ns = stored_ns
        self._news = news
        self._metrics = metrics
        self._door = door
        self._unsure = 0
        self._unstamped = 0
        self._trouble: Trouble | None = None

    async def run(self) -> None:
        """Look until cancelled."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            await self._look()

    async def _look(self) -> None:
        if (unstamped := self._metrics.unstamped.count) > self._unstamped:
            get_logger().warning("commands_not_stamped", commands=unstamped - self._unstamped)
            self._unstamped = unstamped
        before, self._trouble = self._trouble, self._found()
        if before is self._trouble:
            return
        if before is Trouble.UNSURE:
            get_logger().info("clock_sure_again")
        elif before is Trouble.CUT_OFF:
            get_logger().info("store_reached_again")
        if self._trouble is None:
            await self._door.accept_new_clients()
            return
        if self._trouble is Trouble.UNSURE:
            get_logger().warning("clock_unsure")
        else:
            get_logger().warning("cut_off_from_store")
        await self._door.refuse_new_clients()

    def _found(self) -> Trouble | None:
        away_ns = self._clock.now_ns() - self._stored_ns()
        if away_ns < WELL_NS:
            self._news.say_well()
        self._unsure = self._unsure + 1 if self._clock.error_bound_ns() > UNCERTAIN_NS else 0
        if away_ns >= AWAY_NS:  # for want of answers the clock is unsure then, sooner or later
            return Trouble.CUT_OFF if self._news.others_are_well else None
        return Trouble.UNSURE if self._unsure >= PATIENCE_LOOKS else None
