"""What a process has behind it: a store, a bus, a line of time. Here that of a single one; `cluster` has the other."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import NamedTuple, Protocol

from service.fanout.local import LocalBus
from service.ports import Bus, Store
from service.tails import Lineage
from tests.sim.disk import Disk
from tests.sim.store import Owner, SimStore, Weather
from tests.sim.world import World


class Behind(NamedTuple):
    """What lies behind the core: the store, the bus, and the line of time that they share."""

    store: Store
    bus: Bus
    now_ns: Callable[[], int]
    error_bound_ns: Callable[[], int]
    lineage: Lineage | None = None


class Backing(Protocol):
    """What one process has behind it, from its start to its end or death."""

    async def open(self) -> Behind:
        """Make it ready. Raises StoreUnavailableError."""

    async def close(self) -> None:
        """The end of a planned stop, or of a start that failed."""

    def die(self) -> None:
        """The process is gone."""


class SimBus(LocalBus):
    """The bus of a single process; publishing is something that the outside can see."""

    def __init__(self, effect: Callable[[str], None]) -> None:
        super().__init__()
        self._effect = effect

    def publish(self, match_id: str, version: int) -> None:
        self._effect("publish")
        super().publish(match_id, version)


class Process(Owner, Protocol):
    """The process that something lies behind."""

    world: World
    chance: Random


class Alone:
    """A file and one process; the machine's clock."""

    def __init__(self, process: Process, disk: Disk, weather: Weather) -> None:
        self._process, self._world = process, process.world
        self._store = SimStore(process, process.world, disk, weather, process.chance)

    async def open(self) -> Behind:
        return Behind(self._store, SimBus(self._process.effect), self._world.service_ns, lambda: 0)

    async def close(self) -> None:
        await self._store.close()

    def die(self) -> None:
        self._store.die()
