"""Where a trial takes place: a fleet with a quick clock, people at tables, and a record of all that happens."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from itertools import count
from random import Random

import grpc

from tests.chaos.history import History, Injected, now_ns
from tests.chaos.people import START_SECONDS, Habits, Table, seat
from tests.chaos.quick import LONGEST_DECISION_NS
from tests.chaos.witness import watch_machine
from tests.support.envoy import envoy
from tests.support.fleet import Fleet, Replica, fleet

CHANNELS = 3
"""Ways to Envoy: connections that break apart from each other."""
ENDING_SECONDS = LONGEST_DECISION_NS / 1e9 + START_SECONDS + 15
"""Long after the last trouble: by then every match has been lost on time, or was never started."""
STRIDE = 1_000
"""Between the numbers of two matches at one table."""


@dataclass
class Arena:
    """One trial under way."""

    fleet: Fleet
    ways: Sequence[grpc.aio.Channel]
    chance: Random
    history: History = field(default_factory=History)
    tables: dict[int, Table] = field(default_factory=dict)
    """The matches of the moment."""
    _closing: asyncio.Event = field(default_factory=asyncio.Event)

    @contextmanager
    def injecting(self, kind: str) -> Iterator[None]:
        """Something is done to the service until this is left."""
        from_ns = now_ns()
        try:
            yield
        finally:
            self.history.injected.append(Injected(kind, from_ns, now_ns()))

    def some_replica(self) -> Replica:
        """One that runs, by chance."""
        return self.chance.choice([replica for replica in self.fleet.replicas if replica.is_running])

    @asynccontextmanager
    async def played(self, matches: int, habits: Habits) -> AsyncIterator[None]:
        """So many matches at a time, one after the other; leaving waits until the last ones are over for everybody.

        Who does not get to see the end in time goes home; the checker finds out why.
        """
        async with asyncio.TaskGroup() as running:
            witness = running.create_task(watch_machine(self.fleet, self.history))
            tables = [running.create_task(self._play_on(number, habits)) for number in range(matches)]
            yield
            self._closing.set()
            for table in self.tables.values():
                for player in table.players:
                    player.is_playing = False  # so that the match is lost on time soon
            await asyncio.wait(tables, timeout=ENDING_SECONDS)
            for still in (witness, *tables):
                still.cancel()

    async def _play_on(self, number: int, habits: Habits) -> None:
        rounds = count(number, STRIDE)
        while not self._closing.is_set():
            table = self.tables[number] = await seat(next(rounds), self.ways, self.history, habits)
            async with asyncio.TaskGroup() as running:
                for person in table.people:
                    running.create_task(person.watch())
                for player in table.players:
                    player.is_playing = not self._closing.is_set()
                    running.create_task(player.play())


@asynccontextmanager
async def arena(seed: int, *, through_envoy: bool) -> AsyncIterator[Arena]:
    """Starts one. Without Envoy people go to the replicas themselves, each time to another by chance."""
    async with fleet(entry="tests.chaos.quick") as running:
        if through_envoy:
            ports = [replica.envoy_port for replica in running.replicas]
            async with envoy(ports) as door, _channels([door.address] * CHANNELS) as ways:
                yield Arena(running, ways, Random(seed))
        else:
            async with _channels([replica.address for replica in running.replicas]) as ways:
                yield Arena(running, ways, Random(seed))


@asynccontextmanager
async def _channels(addresses: Sequence[str]) -> AsyncIterator[list[grpc.aio.Channel]]:
    options = (
        ("grpc.use_local_subchannel_pool", 1),  # otherwise channels to one address share a connection
        ("grpc.initial_reconnect_backoff_ms", 100),
        ("grpc.min_reconnect_backoff_ms", 500),
        ("grpc.max_reconnect_backoff_ms", 500),
    )
    channels = [grpc.aio.insecure_channel(address, options=options) for address in addresses]
    try:
        yield channels
    finally:
        for channel in channels:
            await channel.close()
