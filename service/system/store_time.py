"""Service time where several processes share a store: the store's clock, with a bound of the error.

The store is asked for its time now and then; the boot clock of this machine tells what has passed since. The answer
came at some moment between question and answer, so half of that is its error, and clocks drift.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final, NamedTuple

from service.ports import StoreUnavailableError
from service.system.time import boot_ns

SAMPLE_SECONDS: Final = 1.0
SAMPLES: Final = 8
"""The best of so many counts."""
DRIFT_PPM: Final = 200
LEAST_ERROR_NS: Final = 1_000_000
STEP_NS: Final = 50_000_000
"""More than this between two samples, beyond their errors, is a step of one of the clocks."""


class Sample(NamedTuple):
    """The store's time is boot time plus `offset_ns`, within `error_ns` at the boot time `at_ns`."""

    offset_ns: int
    error_ns: int
    at_ns: int

    def error_at(self, boot_time_ns: int) -> int:
        """The bound of the error later."""
        return self.error_ns + (boot_time_ns - self.at_ns) * DRIFT_PPM // 1_000_000


class StoreTime:
    """The store's clock, read from here. `ask` tells the store's time; `boot` the machine's, which never steps."""

    def __init__(self, ask: Callable[[], Awaitable[int]], boot: Callable[[], int] = boot_ns) -> None:
        self._ask = ask
        self._boot = boot
        self._samples: deque[Sample] = deque(maxlen=SAMPLES)
        self._best: Sample | None = None
        self._shown_ns = 0

    async def sample(self) -> None:
        """Ask the store once. Raises StoreUnavailableError."""
        asked_ns = self._boot()
        store_ns = await self._ask()
        answered_ns = self._boot()
        rtt_ns = answered_ns - asked_ns
        fresh = Sample(store_ns - (asked_ns + answered_ns) // 2, rtt_ns // 2 + LEAST_ERROR_NS, answered_ns)
        best = self._best
        if best is not None:
            apart_ns = abs(fresh.offset_ns - best.offset_ns)
            if apart_ns > fresh.error_ns + best.error_at(answered_ns) + STEP_NS:
                self._samples.clear()  # the line goes on from here; the timing guard notices the step
                self._shown_ns = 0
        self._samples.append(fresh)
        self._best = min(self._samples, key=lambda one: one.error_at(answered_ns))

    async def make_sure(self, error_ns: int) -> bool:
        """Ask until the error is no more than this, at most so often as counts; whether it is.

        The first question often opens the connection too, so its answer says little. Raises StoreUnavailableError.
        """
        for number in range(SAMPLES):
            await self.sample()
            if number and self.error_bound_ns() <= error_ns:
                return True
        return False

    async def run(self) -> None:
        """Keep asking until cancelled."""
        while True:
            await asyncio.sleep(SAMPLE_SECONDS)
            with suppress(StoreUnavailableError):  # the bound of the error grows
                await self.sample()

    def now_ns(self) -> int:
        """Service time: nanoseconds since the Unix epoch; a better sample does not let it go back."""
        assert self._best is not None, "the store was asked once before"
        self._shown_ns = max(self._shown_ns, self._boot() + self._best.offset_ns)
        return self._shown_ns

    def error_bound_ns(self) -> int:
        """How far this may be from the store's clock: also while it waits for a better sample to catch up with it."""
        assert self._best is not None, "the store was asked once before"
        boot_time_ns = self._boot()
        ahead_ns = self._shown_ns - (boot_time_ns + self._best.offset_ns)
        return self._best.error_at(boot_time_ns) + max(0, ahead_ns)
