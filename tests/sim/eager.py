"""A world without waiting, for tests that want a store of the simulator in the running loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import SimpleNamespace

from tests.sim.world import Event, World


class EagerWorld(World):
    """Everything happens in the running loop as soon as it can."""

    def at(self, when_ns: int, action: Callable[[], None]) -> Event:
        event = Event(action)
        asyncio.get_running_loop().call_soon(lambda: None if event.is_cancelled else event.action())
        assert when_ns >= self.now_ns
        return event


def process(number: int = 0) -> SimpleNamespace:
    """As much of a process as a store needs."""
    return SimpleNamespace(
        loop=asyncio.get_running_loop(),
        is_dead=False,
        stopped_until_ns=0,
        effect=lambda _: None,
        beaten=lambda: None,
        life=SimpleNamespace(number=number),
    )
