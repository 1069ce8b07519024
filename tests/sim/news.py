"""The bus between replicas, in place of NATS: it delivers at most once, and may be away."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Protocol

from service.fanout.nats import CONNECTED_POLL_SECONDS
from service.fanout.polling import POLL_SECONDS, PollingBus
from tests.sim.loop import SimLoop
from tests.sim.truth import Truth
from tests.sim.world import MS_NS, World

NOTICED_AFTER_NS = 250 * MS_NS
"""How long a process takes to find the news there again."""


class Reader(Protocol):
    """The process of a bus."""

    is_dead: bool
    loop: SimLoop

    def effect(self, name: str) -> None:
        """The outside is about to see something."""


class News:
    """What lies between the buses of all processes."""

    def __init__(self, world: World, truth: Truth) -> None:
        self.world, self.truth = world, truth
        self.is_away = False
        self.odds_of_loss = 0.0
        self._chance = world.chance("news")
        self._buses: dict[NewsBus, None] = {}

    def join(self, bus: NewsBus) -> None:
        """A process has come."""
        self._buses[bus] = None

    def leave(self, bus: NewsBus) -> None:
        """A process has gone."""
        self._buses.pop(bus, None)

    def go_away(self, length_ns: int) -> None:
        """Nothing is delivered for so long, and everybody knows it."""
        self.is_away = True
        for bus in self._buses:
            bus.tell(bus.lost)
        self.world.after(length_ns, self.come_back)

    def come_back(self) -> None:
        """Connections are made again, each a little later."""
        self.is_away = False
        for bus in self._buses:
            self.world.after(self._chance.randrange(NOTICED_AFTER_NS), partial(bus.tell, bus.found))

    def carry(self, sender: NewsBus, match_id: str, version: int) -> None:
        """Deliver to all others, except what is lost."""
        for bus in self._buses:
            if bus is sender:
                continue
            if self._chance.random() < self.odds_of_loss:
                self.truth.count("news lost")
            else:
                delay_ns = self._chance.randrange(100_000, 4 * MS_NS)
                self.world.after(delay_ns, partial(bus.tell, partial(bus.received, match_id, version)))


class NewsBus(PollingBus):
    """A process's end."""

    def __init__(self, process: Reader, news: News) -> None:
        super().__init__()
        self._process, self._news = process, news
        self._is_connected = not news.is_away
        news.join(self)

    @property
    def poll_seconds(self) -> float | None:
        """As that of NATS."""
        return CONNECTED_POLL_SECONDS if self._is_connected else POLL_SECONDS

    def publish(self, match_id: str, version: int) -> None:
        """Here at once, elsewhere if the news carry it."""
        self._process.effect("publish")
        super().publish(match_id, version)
        if self._is_connected and not self._process.is_dead:
            self._news.carry(self, match_id, version)

    def tell(self, what: Callable[[], None]) -> None:
        """Something reached the process."""
        if not self._process.is_dead:
            self._process.loop.call_soon(what)

    def received(self, match_id: str, version: int) -> None:
        """A message came."""
        if self._is_connected:
            self._tell(match_id, version)

    def lost(self) -> None:
        """The connection is gone."""
        self._is_connected = False

    def found(self) -> None:
        """It is there again: what happened meanwhile was missed."""
        if not self._news.is_away:
            self._is_connected = True
            for match_id in list(self._wakes):
                self._tell(match_id, None)
