"""A stage for scripted scenarios: one match, two silent players and an onlooker, nothing left to chance."""

from __future__ import annotations

from collections.abc import Callable

import structlog

from engine.seats import Seat
from service.ports import Append
from tests.sim.audit import audit
from tests.sim.clients import CALM, Watcher
from tests.sim.logs import note_logs
from tests.sim.machine import LoneMachine
from tests.sim.player import Player, Temper
from tests.sim.prepared import Wish, prepare
from tests.sim.troubles import MachineTroubles
from tests.sim.truth import Truth
from tests.sim.world import MS_NS, SECOND_NS, World

SILENT = Temper(aims=0, cuts_it_fine=0, is_quick=0, resigns=0)
DUE_NS = 2 * SECOND_NS
"""When, in true time, the first deadline of a stage comes."""
QUIET_NS = 5 * SECOND_NS


class Stage:
    """A match whose running decision ends at `DUE_NS`. `turn` and `other` are the players."""

    def __init__(self, wish: Wish | None = None, *, drain_seconds: float = 0.2, is_printing: bool = False) -> None:
        self.world = World(3, is_printing)  # a seed that leaves the order of callbacks alone
        self.truth = Truth(self.world)
        self.machine = LoneMachine(self.world, self.truth, drain_seconds=drain_seconds)
        self.machine.disk.on_append = self._appended
        self.troubles = MachineTroubles(self.machine, self.world.chance("troubles"))
        self.on_turn_stored: Callable[[], None] | None = None
        """Happens once, when the next turn has been stored and before anybody is told."""
        wish = wish or Wish(due_in_ns=DUE_NS)
        prepared = prepare(
            self.machine.disk, self.world.chance("match"), "stage".ljust(26, "a"), wish, self.world.service_ns()
        )
        self.match_id, self.tokens = prepared.match_id, prepared.tokens
        self.players = {
            seat: Player(
                self.machine,
                self.world.chance(seat.name),
                seat.name.lower(),
                prepared.match_id,
                CALM,
                tokens=prepared.tokens[seat.name.lower()],
                temper=SILENT,
                plays=False,
                fresh_tokens=False,
            )
            for seat in Seat
        }
        token = prepared.tokens["spectator"][0]
        onlooker = Watcher(self.machine, self.world.chance("on"), "spectator", self.match_id, CALM, token=token)
        self.watchers: list[Watcher] = [*self.players.values(), onlooker]
        on_turn = prepared.state.turn or Seat.ONE
        self.turn, self.other = self.players[on_turn], self.players[on_turn.other]

    def play(self, until_ns: int) -> list[str]:
        """Let the script run, then be quiet, then judge. Returns what is violated."""
        configuration = structlog.get_config()
        structlog.configure(processors=[note_logs(self.truth)])
        try:
            self.machine.start()
            for watcher in self.watchers:
                self.world.after(10 * MS_NS, watcher.connect)
            self.world.run(until_ns)
            self.troubles.end()
            while not self.machine.is_up:
                self.world.run(self.world.now_ns + 100 * MS_NS)
            self.world.run(self.world.now_ns + QUIET_NS)
            audit(self.truth, self.machine.disk, self.watchers, only_clients=not self.truth.faults)
        finally:
            self.machine.end()
            structlog.configure(**configuration)
        return self.truth.violations

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
        if "ClockStarted" in events and self.on_turn_stored is not None and self.machine.process is not None:
            self.world.at(self.world.now_ns, self.on_turn_stored)
            self.on_turn_stored = None
