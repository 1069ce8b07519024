"""One seed: a machine, some matches, players, an audience, enemies, troubles; then quiet, and the audit."""

from __future__ import annotations

from collections import Counter
from contextlib import nullcontext
from dataclasses import dataclass
from enum import Enum

import structlog

from engine import events as ev
from engine.clock import Decision
from engine.evolve import advance, replay
from engine.state import MatchState, Phase
from service.ports import Append
from tests.sim.audit import audit
from tests.sim.clients import CALM, FIDGETY, Watcher
from tests.sim.cluster import Cluster
from tests.sim.envoy import Envoy
from tests.sim.hostile import Hostile, Stranger
from tests.sim.logs import note_logs
from tests.sim.machine import LoneMachine
from tests.sim.player import Player, Temper
from tests.sim.prepared import Prepared, Wish, often_kept, prepare
from tests.sim.replica_troubles import ReplicaTroubles, TailTroubles
from tests.sim.troubles import MachineTroubles, Troubles
from tests.sim.truth import AMONG_REPLICAS, Truth
from tests.sim.world import MS_NS, SECOND_NS, World

QUIET_NS = 5 * SECOND_NS
"""How long the world goes on without faults before it is judged."""
QUIET_AMONG_REPLICAS_NS = (3 * SECOND_NS, 6 * SECOND_NS, 8 * SECOND_NS)
"""The same among replicas: at least, if news were lost, and at most, while somebody may have to be fenced first."""
LONGEST_NS = 60 * SECOND_NS
OTHERS_EVERY_NS = 450 * MS_NS
"""How often a command of somebody else comes by Envoy, whose clock the service can see then."""
STANDSTILLS = ("stall", "sigstop", "sleep", "step", "crash")
"""What goes wrong behind an Envoy: what makes stamps wide, or its clock unknown."""


class Mode(Enum):
    """What goes wrong; in three of them with several replicas, in one behind an Envoy."""

    LIGHT = "light"
    HEAVY = "heavy"
    CLIENT = "client"
    PLANNED = "planned"
    REPLICAS = "replicas"
    DEPLOYS = "deploys"
    ENVOY = "envoy"
    TAILS = "tails"


REPLICATED = (Mode.REPLICAS, Mode.DEPLOYS)
"""Those in which several replicas share a database that keeps what it has acknowledged."""
SHARED = (*REPLICATED, Mode.TAILS)
"""And with the one in which it does not."""
ALONE = (Mode.LIGHT, Mode.HEAVY, Mode.CLIENT, Mode.PLANNED)
"""Those of one process and its disk, with nothing in front of it."""


@dataclass
class Report:
    """What became of a seed."""

    seed: int
    mode: Mode
    digest: str
    violations: list[str]
    counts: Counter[str]

    @property
    def command(self) -> str:
        """How to see it again."""
        return f"make sim SEED={self.seed} MODE={self.mode.value}"


class Simulation:
    """A seed being played."""

    def __init__(self, seed: int, mode: Mode, *, is_printing: bool = False) -> None:
        self.seed, self.mode = seed, mode
        self.world = World(seed, is_printing)
        self.truth = Truth(self.world)
        self.chance = self.world.chance(f"workload {mode.value}")
        drain_seconds = self.chance.choice([0.0, 0.2, 0.8])
        self.machine: LoneMachine | Cluster
        self.troubles: Troubles
        if self.has_replicas:
            self.truth.patience = AMONG_REPLICAS
            self.machine = Cluster(self.world, self.truth, drain_seconds=0.4 + drain_seconds, size=2 + seed % 2)
            troubles = TailTroubles if mode is Mode.TAILS else ReplicaTroubles
            self.troubles = troubles(self.machine, self.world.chance("troubles"))
        else:
            self.machine = LoneMachine(self.world, self.truth, drain_seconds=drain_seconds)
            self.machine.envoy = Envoy(self.world) if mode is Mode.ENVOY else None
            self.troubles = MachineTroubles(self.machine, self.world.chance("troubles"))
            if mode is Mode.ENVOY:
                self.troubles.kinds = {kind: self.troubles.kinds[kind] for kind in STANDSTILLS}
        self.machine.disk.on_append = self._appended
        self.machine.disk.on_rewind = self._rewound
        self.states: dict[str, MatchState] = {}
        self.players: list[Player] = []
        self.watchers: list[Watcher] = []
        self.enemies: list[Hostile] = []
        self._active_until_ns = (14 if mode is Mode.ENVOY else self.chance.choice([4, 4, 5, 14])) * SECOND_NS
        few = self.chance.choice([1, 1, 2])
        has_troubles = mode in (Mode.REPLICAS, Mode.TAILS)
        self._is_heavy = mode is Mode.HEAVY or (has_troubles and self.chance.random() < 0.5)
        self._aims = 3 if self._is_heavy else few if mode is Mode.LIGHT or has_troubles else 0
        self._aims = 8 if mode is Mode.ENVOY else self._aims
        self._has_begun = False

    @property
    def has_replicas(self) -> bool:
        """Whether several processes share the matches."""
        return self.mode in SHARED

    def run(self) -> Report:
        """Play it to the end, and judge it."""
        configuration = structlog.get_config()
        structlog.configure(processors=[note_logs(self.truth)])
        try:
            server = self.machine.server.in_place_of_asyncpg() if isinstance(self.machine, Cluster) else nullcontext()
            with often_kept(), server:
                self._play()
        finally:
            self.machine.end()
            structlog.configure(**configuration)
        return Report(self.seed, self.mode, self.world.trace.hexdigest(), self.truth.violations, self.truth.counts)

    def _play(self) -> None:
        for number in range(self.chance.randrange(1, 3) if self.has_replicas else self.chance.randrange(2, 6)):
            self._make_match(number)
        self._has_begun = True
        self.machine.start()
        for client in (*self.players, *self.watchers):
            self.world.after(self.chance.randrange(150 * MS_NS), client.connect)
        for enemy in self.enemies:
            self.world.after(self.chance.randrange(SECOND_NS), enemy.begin)
        self._plan()
        self.world.run(self._active_until_ns)
        for player in self.players:
            player.silence()
        for enemy in self.enemies:
            enemy.is_silent = True
        self.troubles.end()
        while not self.machine.is_up or self.world.now_ns < self.troubles.ends_ns:
            self.world.run(self.world.now_ns + 100 * MS_NS)
            if self.world.now_ns >= LONGEST_NS:
                self.truth.violated("the service comes up", f"not within {LONGEST_NS / SECOND_NS} s")
                break
        self._be_quiet()
        only_clients = self.mode in (Mode.CLIENT, Mode.PLANNED, Mode.DEPLOYS)
        audit(self.truth, self.machine.disk, [*self.players, *self.watchers], only_clients=only_clients)

    def _be_quiet(self) -> None:
        """Let time pass without faults; among replicas, which take long to play, no more of it than is needed."""
        if not self.has_replicas:
            self.world.run(self.world.now_ns + QUIET_NS)
            return
        usual_ns, after_loss_ns, longest_ns = QUIET_AMONG_REPLICAS_NS
        began_ns, least_ns = self.world.now_ns, after_loss_ns if self.truth.counts["news lost"] else usual_ns
        while (passed_ns := self.world.now_ns - began_ns) < longest_ns and (passed_ns < least_ns or self._waits()):
            self.world.run(self.world.now_ns + SECOND_NS // 4)

    def _waits(self) -> bool:
        """Whether a match waits for the service."""
        now_ns = self.world.service_ns()
        return any(
            state.suspended_at_ns is not None or (state.due_ns is not None and state.due_ns < now_ns)
            for state in self.states.values()
        )

    def _make_match(self, number: int) -> None:
        chance = self.chance
        match_id = f"match{number + 2}".ljust(26, "a")
        most_ns = chance.choice([1_500 * MS_NS, 3_000 * MS_NS, 7_000 * MS_NS])
        bank_ns = (chance.randrange(100 * MS_NS, most_ns), chance.randrange(100 * MS_NS, most_ns))
        shared_device = chance.random() < 0.12
        phase = chance.choices([Phase.PLAYING, Phase.SETTLED, Phase.NOT_STARTED], [8, 1, 1])[0]
        wish = Wish(
            phase=phase,
            turns=chance.randrange(2, 9) if phase is Phase.PLAYING else 999,
            shared_device=shared_device,
            bank_left_ns=bank_ns,
            due_in_ns=chance.randrange(800 * MS_NS, 4_500 * MS_NS),
            wait_ns=chance.choice([1_000 * MS_NS, 5_000 * MS_NS]),
        )
        prepared = prepare(self.machine.disk, chance, match_id, wish, self.world.service_ns())
        self._people(prepared, shared_device=shared_device)
        self._maybe_aim(prepared.state)

    def _people(self, prepared: Prepared, *, shared_device: bool) -> None:
        chance, mode = self.chance, self.mode
        is_planned = mode in (Mode.PLANNED, Mode.DEPLOYS)
        fidgets = FIDGETY if self._is_heavy or mode is Mode.CLIENT or (is_planned and self.seed % 2) else CALM
        for holder in ("device",) if shared_device else ("one", "two"):
            player = Player(
                self.machine,
                self.world.chance(f"{holder} {prepared.match_id}"),
                holder,
                prepared.match_id,
                fidgets,
                tokens=prepared.tokens[holder],
                temper=Temper(),
                plays=chance.random() < 0.4,
                fresh_tokens=chance.random() < 0.3,
            )
            self.players.append(player)
        spectator_chance = self.world.chance(f"spectator {prepared.match_id}")
        token = prepared.tokens["spectator"][0]
        self.watchers.append(
            Watcher(self.machine, spectator_chance, "spectator", prepared.match_id, fidgets, token=token)
        )
        if (self._is_heavy or mode is Mode.CLIENT) and chance.random() < 0.5:
            hostile_chance = self.world.chance(f"hostile {prepared.match_id}")
            self.enemies.append(Hostile(self.machine, hostile_chance, prepared, floods=chance.random() < 0.5))

    def _plan(self) -> None:
        """What will happen whatever the matches do."""
        if self._is_heavy:
            at_ns = 0
            while at_ns < 14 * SECOND_NS:
                at_ns += self.chance.randrange(100 * MS_NS, 1_800 * MS_NS)
                self.world.at(at_ns, self._anything)
        if self.mode is Mode.ENVOY:
            stranger = Stranger(self.machine, self.world.chance("others"), "other".ljust(26, "a"))
            for at_ns in range(0, self._active_until_ns, OTHERS_EVERY_NS):
                self.world.at(at_ns, stranger.knock)
        if self.mode in (Mode.PLANNED, Mode.DEPLOYS):
            for _ in range(self.chance.randrange(1, 4)):
                self.world.at(self.chance.randrange(4_000 * MS_NS), self._restart)

    def _anything(self) -> None:
        if self.world.now_ns < self._active_until_ns:
            self._restart() if self.chance.random() < 0.1 else self.troubles.strike()

    def _restart(self) -> None:
        if self.world.now_ns >= self._active_until_ns:
            return
        self.truth.count("planned restart")
        self.machine.restart(self.chance.randrange(20 * MS_NS, 3_000 * MS_NS))

    def _maybe_aim(self, state: MatchState) -> None:
        """Aim a fault, or a planned stop, at the deadline of a decision that has just begun."""
        if state.decision is None or self.chance.random() < 0.5:
            return
        if self._aims > 0:
            self._aims -= 1
            self.troubles.aim(state.decision.deadline_ns)
        elif self.mode in (Mode.PLANNED, Mode.DEPLOYS):
            self.world.after(self._around(state.decision), self._restart)

    def _around(self, decision: Decision) -> int:
        return decision.deadline_ns - self.world.service_ns() + self.chance.randrange(-1_200 * MS_NS, 100 * MS_NS)

    def _rewound(self) -> None:
        """Follow the log back to where it ends now."""
        self.states = {match_id: replay(log) for match_id, log in self.machine.disk.logs.items()}

    def _appended(self, change: Append) -> None:
        """Follow the log; a decision that begins may be aimed at."""
        if change.record is not None:
            record = change.record
            outcome = "accepted" if record.refusal is None else record.refusal.reason.name
            self.world.note(f"{change.match_id[:6]} {record.sender.name} {outcome} {record.receipt.verdict.value}")
        if not change.events:
            return
        state = self.states[change.match_id] = advance(self.states.get(change.match_id), change.events)
        names = " ".join(type(event).__name__ for event in change.events)
        self.world.note(f"{change.match_id[:6]} v{state.version} {names}")
        has_begun = any(isinstance(event, ev.ClockStarted | ev.ClocksResumed) for event in change.events)
        if has_begun and self._has_begun:
            self._maybe_aim(state)
