"""The simulated store keeps the contract of the SQLite store: the same tests, on the fake."""

import asyncio
from collections.abc import Callable
from random import Random
from types import SimpleNamespace
from typing import cast

import pytest

from service.ports import Store
from tests.service.store import test_contract_appending, test_contract_keeping
from tests.sim.disk import Disk
from tests.sim.store import Owner, SimStore, Weather
from tests.sim.world import Event, World
from tests.support.store import OpenStore

globals().update(
    {
        name: test
        for module in (test_contract_appending, test_contract_keeping)
        for name, test in vars(module).items()
        if name.startswith("test_")
    }
)


class EagerWorld(World):
    """A world in which everything happens in the running loop, without waiting."""

    def at(self, when_ns: int, action: Callable[[], None]) -> Event:
        event = Event(action)
        asyncio.get_running_loop().call_soon(lambda: None if event.is_cancelled else event.action())
        assert when_ns >= self.now_ns
        return event


@pytest.fixture
def open_store() -> OpenStore:
    """Opens the store on one disk; it may be opened again."""
    world = EagerWorld(1)
    disk = Disk(lambda: world.now_ns)

    async def open_again() -> Store:
        owner = SimpleNamespace(
            loop=asyncio.get_running_loop(), is_dead=False, stopped_until_ns=0, effect=lambda _: None
        )
        return SimStore(cast("Owner", owner), world, disk, Weather(), Random(1))

    return open_again


@pytest.fixture
async def store(open_store: OpenStore) -> Store:
    """An empty store."""
    return await open_store()
