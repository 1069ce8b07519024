"""Who is not sure what time it is takes no new clients, where the time comes from a store that others share."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

from service.logs import get_logger
from service.writer import UNCERTAIN_NS

LOOK_SECONDS = 0.5
PATIENCE_LOOKS = 6
"""Looks in a row at which the clock was unsure, before the process says so: three seconds."""


class Door(Protocol):
    """What tells load balancers whether to send clients."""

    async def refuse_new_clients(self) -> None:
        """Say that this process takes no new clients."""

    async def accept_new_clients(self) -> None:
        """Say that it does."""


class ClockWatch:
    """Looks at the bound of the clock's error until it is cancelled."""

    def __init__(self, error_bound_ns: Callable[[], int], door: Door) -> None:
        self._error_bound_ns = error_bound_ns
        self._door = door
        self._unsure = 0

    async def run(self) -> None:
        """Look until cancelled."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            await self._look()

    async def _look(self) -> None:
        was_unsure = self._unsure >= PATIENCE_LOOKS
        self._unsure = self._unsure + 1 if self._error_bound_ns() > UNCERTAIN_NS else 0
        is_unsure = self._unsure >= PATIENCE_LOOKS
        if is_unsure and not was_unsure:
            get_logger().warning("clock_unsure")
            await self._door.refuse_new_clients()
        elif was_unsure and not is_unsure:
            get_logger().info("clock_sure_again")
            await self._door.accept_new_clients()
