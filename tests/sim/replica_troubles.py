"""Faults of replicas, of the database that they share, and of what lies between."""

from __future__ import annotations

from random import Random

from tests.sim.cluster import Cluster
from tests.sim.machine import Machine
from tests.sim.troubles import Troubles
from tests.sim.truth import TAIL_LOST
from tests.sim.world import MS_NS, SECOND_NS

MOST_EFFECTS = 60
"""A crash at an effect comes at one of the next so many."""


class ReplicaTroubles(Troubles):
    """Those of a cluster. What befalls a replica befalls any that runs."""

    def __init__(self, cluster: Cluster, chance: Random) -> None:
        super().__init__(cluster.world, cluster.truth, chance)
        self.cluster, self.weather = cluster, cluster.server.weather
        self.kinds = {
            "stall": self.stall,
            "sigstop": self.sigstop,
            "crash": self.crash,
            "crash at an effect": self.crash_at_an_effect,
            "cut off": self.cut_off,
            "no answers": self.no_answers,
            "connection stuck": self.connection_stuck,
            "database restarts": self.database_restarts,
            "failover": self.failover,
            "slow store": self.slow_store,
            "slow reads": self.slow_reads,
            "answer lost": lambda: self.disturb_moves("answer lost"),
            "late commit": lambda: self.disturb_moves("late commit"),
            "lost commit": lambda: self.disturb_moves("lost commit"),
            "news away": self.news_away,
            "news lossy": self.news_lossy,
        }

    def stall(self, length_ns: int | None = None, machine: Machine | None = None) -> None:
        """An event loop stands."""
        length_ns = length_ns or self.length_ns(15 * MS_NS, 3_500 * MS_NS)
        machine = self._befallen("stall", length_ns, machine)
        machine.stall(length_ns)

    def sigstop(self, length_ns: int | None = None, machine: Machine | None = None) -> None:
        """A replica stands, maybe until it is fenced."""
        length_ns = length_ns or self.length_ns(100 * MS_NS, 6 * SECOND_NS)
        machine = self._befallen("sigstop", length_ns, machine)
        machine.sigstop(length_ns)

    def crash(self, restart_after_ns: int | None = None, machine: Machine | None = None) -> None:
        """A replica dies; another one starts on its machine after a while."""
        restart_after_ns = restart_after_ns or self.length_ns(40 * MS_NS, 6 * SECOND_NS)
        machine = self._befallen("crash", restart_after_ns, machine)
        machine.crash(restart_after_ns)

    def crash_at_an_effect(self) -> None:
        """A replica dies right before something that the outside would see: a statement, an answer, news, a reply."""
        process = self.chance.choice(self.cluster.machines).process
        if process is not None and not process.crash_at_effect:
            self.truth.count("fault crash at an effect")
            process.crash_at_effect = len(process.effects) + self.chance.randrange(1, MOST_EFFECTS)

    def cut_off(self, length_ns: int | None = None, machine: Machine | None = None) -> None:
        """Nothing travels between a replica and the database."""
        self._block("cut off", self.weather.cuts, length_ns, machine)

    def no_answers(self, length_ns: int | None = None, machine: Machine | None = None) -> None:
        """What a replica asks is done, but it does not hear so."""
        self._block("no answers", self.weather.mute, length_ns, machine)

    def connection_stuck(self, length_ns: int | None = None) -> None:
        """Nothing travels on one connection of a replica."""
        sessions = list(self.cluster.server.sessions)
        if sessions:
            session = self.chance.choice(sessions)
            length_ns = length_ns or self.length_ns(50 * MS_NS, 6 * SECOND_NS)
            self.note("connection stuck", length_ns).life = session.number
            session.stuck_until_ns = self.world.now_ns + length_ns

    def database_restarts(self, length_ns: int | None = None) -> None:
        """Every connection is lost, and what was not committed."""
        length_ns = length_ns or self.length_ns(30 * MS_NS, 5 * SECOND_NS)
        self.note("database restarts", length_ns)
        self.cluster.server.restart(length_ns)

    def failover(self) -> None:
        """The synchronous standby takes over: it has everything that was acknowledged."""
        length_ns = self.length_ns(500 * MS_NS, 8 * SECOND_NS)
        self.note("failover", length_ns)
        self.cluster.server.restart(length_ns)

    def tail_lost(self, lag_ns: int | None = None, length_ns: int | None = None) -> None:
        """A standby takes over that was behind: what it lacks was acknowledged."""
        lag_ns = lag_ns or self.length_ns(5 * MS_NS, 4 * SECOND_NS)
        length_ns = length_ns or self.length_ns(100 * MS_NS, 4 * SECOND_NS)
        self.note(TAIL_LOST, length_ns)
        self.cluster.server.lose_tail(lag_ns, length_ns)

    def slow_store(self, length_ns: int | None = None, slowness_ns: int | None = None) -> None:
        """Each commit takes long."""
        length_ns = length_ns or self.length_ns(50 * MS_NS, 3 * SECOND_NS)
        self.weather.slowness_ns = slowness_ns or self.length_ns(20 * MS_NS, 4 * SECOND_NS)
        self.weather.slow_until_ns = self.world.now_ns + length_ns
        self.note("slow store", length_ns + self.weather.slowness_ns)

    def slow_reads(self, length_ns: int | None = None, slowness_ns: int | None = None) -> None:
        """Each query takes long."""
        length_ns = length_ns or self.length_ns(50 * MS_NS, 3 * SECOND_NS)
        self.weather.read_slowness_ns = slowness_ns or self.length_ns(20 * MS_NS, 2 * SECOND_NS)
        self.weather.slow_reads_until_ns = self.world.now_ns + length_ns
        self.note("slow reads", length_ns + self.weather.read_slowness_ns)

    def disturb_moves(self, kind: str, number: int | None = None) -> None:
        """The connections of the next statements that move matches are lost at COMMIT."""
        fault = self.note(kind, 0)

        def happened() -> None:
            self.truth.count(f"happened: {kind}")
            fault.to_ns, fault.to_service_ns = self.world.now_ns, self.world.service_ns()

        self.weather.next_moves.extend([(kind, happened)] * (number or self.chance.randrange(1, 4)))

    def news_away(self) -> None:
        """The bus is down."""
        length_ns = self.length_ns(100 * MS_NS, 5 * SECOND_NS)
        self.note("news away", length_ns)
        self.cluster.news.go_away(length_ns)

    def news_lossy(self) -> None:
        """The bus loses messages, and nobody knows."""
        length_ns = self.length_ns(100 * MS_NS, 3 * SECOND_NS)
        self.note("news lossy", length_ns)
        self.cluster.news.odds_of_loss = 0.5
        self.world.after(length_ns, lambda: setattr(self.cluster.news, "odds_of_loss", 0.0))

    def end(self) -> None:
        """No fault lasts any longer, save those that stop a process."""
        super().end()
        now_ns = self.world.now_ns
        self.weather.next_moves.clear()
        for process in self.cluster.server.processes.values():
            process.crash_at_effect = 0
        for blocked in (self.weather.cuts, self.weather.mute):
            blocked.clear()
        for session in self.cluster.server.sessions:
            session.stuck_until_ns = min(session.stuck_until_ns, now_ns)
        for until in ("down_until_ns", "slow_until_ns", "slow_reads_until_ns"):
            setattr(self.weather, until, min(getattr(self.weather, until), now_ns))
        self.cluster.news.odds_of_loss = 0.0
        if self.cluster.news.is_away:
            self.cluster.news.come_back()

    def _block(self, kind: str, blocked: dict[int, int], length_ns: int | None, machine: Machine | None) -> None:
        length_ns = length_ns or self.length_ns(50 * MS_NS, 6 * SECOND_NS)
        machine = self._befallen(kind, length_ns, machine)
        if machine.process is not None:
            number = machine.process.life.number
            blocked[number] = max(blocked.get(number, 0), self.world.now_ns + length_ns)

    def _befallen(self, kind: str, length_ns: int, machine: Machine | None) -> Machine:
        """Whom it befalls; where no process runs there is nothing to befall, and no fault."""
        machine = machine or self.chance.choice(self.cluster.machines)
        if machine.process is not None:
            self.note(kind, length_ns).life = machine.process.life.number
        return machine


class TailTroubles(ReplicaTroubles):
    """Those of a cluster whose standby is behind."""

    def strike(self, kind: str | None = None) -> None:
        """Make a fault now; of those of any kind every other one is the loss of the tail."""
        if kind is None and not self.has_ended and self.chance.random() < 0.5:
            self.tail_lost()
        else:
            super().strike(kind)
