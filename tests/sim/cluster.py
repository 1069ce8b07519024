"""Several replicas on a shared database: their machines, a balancer before them, a bus between them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial

from service.backends import SURE_NS
from service.ports import Append, StoreUnavailableError
from service.secret import Secret
from service.store.postgres import PostgresStore
from service.system.store_time import StoreTime
from tests.sim.backing import Behind
from tests.sim.disk import Disk
from tests.sim.machine import ClientCall, Machine
from tests.sim.news import News, NewsBus
from tests.sim.postgres import Server
from tests.sim.process import SimProcess
from tests.sim.tables import FENCE_AFTER_NS, SEAL, Tables
from tests.sim.transport import Sent
from tests.sim.truth import Truth
from tests.sim.world import MS_NS, SECOND_NS, World

MOST_DRIFT_PPM = 100
"""How much faster or slower than the database's a machine's clock may run."""
UNREADY_NOTICED_NS = 300 * MS_NS
"""How long the balancer goes on with a replica that is about to stop."""
STUCK_NOTICED_NS = 1_500 * MS_NS
"""How long it goes on with one that does not answer."""
ODDS_OF_DEAD_END = 0.05
"""How likely it sends a call where nobody listens, if there is such a place."""


class NotedStore(PostgresStore):
    """The service's store; when it is handed a change is noted, for that may be long before its commit."""

    on_append: Callable[[Append], None]

    async def append(self, change: Append) -> None:
        self.on_append(change)
        await super().append(change)


class Shared:
    """What one replica has behind it."""

    def __init__(self, process: SimProcess, server: Server, news: News) -> None:
        self._process, self._server, self._news = process, server, news
        self._name = name_of(process.life.number)
        self._drift_ppm = process.chance.randrange(-MOST_DRIFT_PPM, MOST_DRIFT_PPM + 1)
        self._booted_ns = process.chance.randrange(1_000 * SECOND_NS)
        self._store: NotedStore | None = None
        self._sampling: asyncio.Task[None] | None = None
        self._bus = NewsBus(process, news)
        server.processes[process.life.number] = process

    async def open(self) -> Behind:
        """As `service.wiring` does it, save the checks of a database that is not there for the first time."""
        store = self._store = NotedStore(Secret(f"postgresql://{self._name}"), SEAL, self._name)
        store.on_append = partial(self._server.tables.disk.hand_in, author=self._process.life.number)
        clock = StoreTime(store.service_ns, self._boot_ns)
        if not await clock.make_sure(SURE_NS):
            raise StoreUnavailableError
        self._sampling = self._process.loop.create_task(clock.run())
        return Behind(store, self._bus, clock.now_ns, clock.error_bound_ns, store.lineage)

    async def close(self) -> None:
        if self._sampling is not None:
            self._sampling.cancel()
        self._news.leave(self._bus)
        if self._store is not None:
            await self._store.close()

    def die(self) -> None:
        self._news.leave(self._bus)
        for session in [one for one in self._server.sessions if one.process is self._process]:
            session.terminate()

    def _boot_ns(self) -> int:
        now_ns = self._process.world.now_ns
        return self._booted_ns + now_ns + now_ns * self._drift_ppm // 1_000_000


def name_of(life: int) -> str:
    """The name of a replica: a process never comes back under an old one."""
    return f"replica/{life}"


def life_of(name: str) -> int:
    """The number of the process with this name."""
    return int(name.rpartition("/")[2])


class Cluster:
    """The replicas. A machine whose process has ended starts another one."""

    def __init__(self, world: World, truth: Truth, *, drain_seconds: float, size: int) -> None:
        self.world, self.truth = world, truth
        self.disk = Disk(lambda: world.now_ns)
        tables = Tables(self.disk, world.service_ns, life_of, self._beaten, self._fenced, self._strayed)
        self.server = Server(world, truth, tables)
        self.news = News(world, truth)
        self.machines = [
            Machine(
                world,
                truth,
                drain_seconds=drain_seconds,
                backing=lambda process: Shared(process, self.server, self.news),
            )
            for _ in range(size)
        ]
        self._chance = world.chance("balancer")

    @property
    def is_up(self) -> bool:
        """Whether every replica serves."""
        return all(machine.is_up for machine in self.machines)

    def start(self) -> None:
        """Start all replicas."""
        self.disk.keep()
        for machine in self.machines:
            machine.start()

    def restart(self, restart_after_ns: int) -> None:
        """Stop one replica that serves in a planned way, and start another one in its place."""
        serving = [machine for machine in self.machines if machine.is_up]
        if serving:
            self._chance.choice(serving).restart(restart_after_ns)

    def end(self) -> None:
        """The end of the world."""
        for machine in self.machines:
            machine.end()

    def arrive(self, call: ClientCall, sent: Sent) -> None:
        """A message reaches the balancer, which keeps a call with the replica that got its first one."""
        call.machine = call.machine or self._chosen()
        call.machine.arrive(call, sent)

    def _chosen(self) -> Machine:
        listening = [machine for machine in self.machines if machine.process is not None and machine.process.is_open]
        serving = [machine for machine in listening if self._seems_fit(machine)] or listening  # rather than refuse
        silent = [machine for machine in self.machines if machine.process is None]
        if silent and (not serving or self._chance.random() < ODDS_OF_DEAD_END):
            return self._chance.choice(silent)
        return self._chance.choice(serving or self.machines)

    def _seems_fit(self, machine: Machine) -> bool:
        process, now_ns = machine.process, self.world.now_ns
        assert process is not None
        is_stuck = process.frozen_until_ns > now_ns and now_ns - process.frozen_since_ns > STUCK_NOTICED_NS
        has_left = process.unready_since_ns is not None and now_ns - process.unready_since_ns > UNREADY_NOTICED_NS
        return not (is_stuck or has_left)

    def _beaten(self, name: str) -> None:
        life = self.truth.lives[life_of(name)]
        if life.fenced and life.beats and life.fenced[-1] > life.beats[-1]:
            self.truth.count("fenced replica came back")
        life.beats.append(self.world.now_ns)

    def _fenced(self, name: str, unseen_ns: int) -> None:
        if unseen_ns <= FENCE_AFTER_NS:
            self.truth.violated("nobody is fenced who was seen", f"{name} {unseen_ns} ns ago")
        self.truth.count("replica fenced")
        self.truth.lives[life_of(name)].fenced.append(self.world.now_ns)
        self.world.note(f"{name} is fenced")

    def _strayed(self, name: str) -> None:
        self.truth.violated("only a live replica moves matches", name)
