"""A stage for scripted scenarios: one match, two silent players and an onlooker, nothing left to chance."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext

import structlog

from engine.seats import Seat
from service.ports import Append
from tests.sim.audit import audit
from tests.sim.clients import CALM, Watcher
from tests.sim.cluster import Cluster
from tests.sim.logs import note_logs
from tests.sim.machine import LoneMachine, WayIn
from tests.sim.player import Player, Temper
from tests.sim.prepared import Wish, often_kept, prepare
from tests.sim.replica_troubles import ReplicaTroubles
from tests.sim.troubles import MachineTroubles, Troubles
from tests.sim.truth import AMONG_REPLICAS, Truth
from tests.sim.world import MS_NS, SECOND_NS, World

SILENT = Temper(aims=0, cuts_it_fine=0, is_quick=0, resigns=0)
DUE_NS = 2 * SECOND_NS
"""When, in true time, the first deadline of a stage comes."""
QUIET_NS = 5 * SECOND_NS
DRAIN_SECONDS = 0.4
"""That of replicas."""


class Theatre:
    """A match whose running decision ends at `DUE_NS`. `turn` and `other` are the players.

    `doors` are where whoever is on turn sends to, and everybody else. With `plays` the players use PlayMatch.
    """

    def __init__(
        self,
        truth: Truth,
        machine: LoneMachine | Cluster,
        troubles: Troubles,
        *,
        doors: tuple[WayIn, WayIn],
        wish: Wish | None,
        plays: bool = False,
    ) -> None:
        self.world, self.truth, self.machine, self.troubles = truth.world, truth, machine, troubles
        self.machine.disk.on_append = self._appended
        self.on_turn_stored: Callable[[], None] | None = None
        """Happens once, when the next turn has been stored and before anybody is told."""
        wish = wish or Wish(due_in_ns=DUE_NS)
        prepared = prepare(
            self.machine.disk, self.world.chance("match"), "stage".ljust(26, "a"), wish, self.world.service_ns()
        )
        self.match_id, self.tokens = prepared.match_id, prepared.tokens
        on_turn = prepared.state.turn or Seat.ONE
        names = {seat: "device" if wish.shared_device else seat.name.lower() for seat in Seat}
        people = {
            name: Player(
                doors[name == names[on_turn.other] and not wish.shared_device],
                self.world.chance(name.upper()),
                name,
                prepared.match_id,
                CALM,
                tokens=prepared.tokens[name],
                temper=SILENT,
                plays=plays,
                fresh_tokens=False,
            )
            for name in names.values()
        }
        token = prepared.tokens["spectator"][0]
        onlooker = Watcher(doors[1], self.world.chance("on"), "spectator", self.match_id, CALM, token=token)
        self.watchers: list[Watcher] = [*people.values(), onlooker]
        self.turn, self.other = people[names[on_turn]], people[names[on_turn.other]]

    def play(self, until_ns: int) -> list[str]:
        """Let the script run, then be quiet, then judge. Returns what is violated."""
        configuration = structlog.get_config()
        structlog.configure(processors=[note_logs(self.truth)])
        try:
            server = self.machine.server.in_place_of_asyncpg() if isinstance(self.machine, Cluster) else nullcontext()
            with often_kept(), server:
                self._play(until_ns)
            audit(self.truth, self.machine.disk, self.watchers, only_clients=not self.truth.faults)
        finally:
            self.machine.end()
            structlog.configure(**configuration)
        return self.truth.violations

    def _play(self, until_ns: int) -> None:
        self.machine.start()
        for watcher in self.watchers:
            self.world.after(10 * MS_NS, watcher.connect)
        self.world.run(until_ns)
        self.troubles.end()
        while not self.machine.is_up:
            self.world.run(self.world.now_ns + 100 * MS_NS)
        self.world.run(self.world.now_ns + QUIET_NS)

    @property
    def ending(self) -> str | None:
        """How the match ended, if it did, as the tally names it."""
        return next((name for name in self.truth.counts if name.startswith(("won by", "aborted"))), None)

    def token_of(self, player: Player) -> str:
        """A token of a player's seat, the one that its stream came with."""
        return self.tokens[player.holder][0]

    def stop_reading(self) -> None:
        """The onlooker does not read any more."""
        stream = self.watchers[-1].stream
        assert stream is not None
        stream.caller.is_reading = False

    def _appended(self, change: Append) -> None:
        events = " ".join(type(event).__name__ for event in change.events)
        refusal = change.record and change.record.refusal and change.record.refusal.reason.name
        self.world.note(f"v{change.expected_version + bool(change.events)} {events} {refusal or ''}")
        if "ClockStarted" in events and self.on_turn_stored is not None:
            self.world.at(self.world.now_ns, self.on_turn_stored)
            self.on_turn_stored = None


class Stage(Theatre):
    """One machine."""

    machine: LoneMachine
    troubles: MachineTroubles

    def __init__(self, wish: Wish | None = None, *, drain_seconds: float = 0.2, is_printing: bool = False) -> None:
        truth = Truth(_world(is_printing=is_printing))
        machine = LoneMachine(truth.world, truth, drain_seconds=drain_seconds)
        troubles = MachineTroubles(machine, truth.world.chance("troubles"))
        super().__init__(truth, machine, troubles, doors=(machine, machine), wish=wish)


class ReplicaStage(Theatre):
    """Two replicas: `one` serves whoever is on turn, `two` everybody else, without a balancer."""

    machine: Cluster
    troubles: ReplicaTroubles

    def __init__(self, wish: Wish | None = None, *, plays: bool = False, is_printing: bool = False) -> None:
        truth = Truth(_world(is_printing=is_printing), AMONG_REPLICAS)
        cluster = Cluster(truth.world, truth, drain_seconds=DRAIN_SECONDS, size=2)
        self.one, self.two = cluster.machines
        troubles = ReplicaTroubles(cluster, truth.world.chance("troubles"))
        super().__init__(truth, cluster, troubles, doors=(self.one, self.two), wish=wish, plays=plays)


def _world(*, is_printing: bool) -> World:
    return World(3, is_printing)  # a seed that leaves the order of callbacks alone
