"""Matches that are well under way when the world begins: real logs made by the rules, with banks nearly empty.

A decision may have begun some seconds before the world, so that a deadline comes soon. Until then there was no fault.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from itertools import count
from random import Random
from unittest.mock import patch

from engine import commands as cmd
from engine import events as ev
from engine.clock import BANK_NS, DELAY_NS, Arrival
from engine.decide import decide
from engine.evolve import advance
from engine.legal import LegalBids, legal_actions
from engine.seats import SEATS, Seat
from engine.state import MatchState, Phase, acting_seat
from engine.tiles import DOUBLE_SIX, Tile
from engine.view import Audience
from service import past
from service.matches import token_hash
from service.ports import Append, Credential, DealSecrets
from tests.sim.disk import Disk
from tests.sim.world import MS_NS, SECOND_NS

TOKENS_A_SEAT = 12
"""So many that a player may come with one that the service has not seen."""


@dataclass(frozen=True, slots=True)
class Wish:
    """What a prepared match shall look like. `phase` is where it stands; turns are those played before."""

    phase: Phase = Phase.PLAYING
    turns: int = 4
    shared_device: bool = False
    bank_left_ns: tuple[int, int] = (200 * MS_NS, 200 * MS_NS)
    due_in_ns: int = SECOND_NS
    """When the running decision, or the wait, comes to its end."""
    wait_ns: int = 2 * SECOND_NS
    """The timeouts for Start and Continue."""


@dataclass
class Prepared:
    """A match on the disk, and the tokens for it by holder: "one", "two", "device", "spectator"."""

    match_id: str
    state: MatchState
    tokens: dict[str, list[str]] = field(default_factory=dict)


def prepare(disk: Disk, chance: Random, match_id: str, wish: Wish, now_ns: int) -> Prepared:
    """Write a match to the disk that stands as wished at `now_ns` on the service's line of time."""
    for attempt in count():
        played = _Play(chance, wish)
        if played.state.phase is wish.phase:
            break
        assert attempt < 1_000, "this wish does not come true"
    assert played.state.due_ns is not None
    by_ns = now_ns + wish.due_in_ns - played.state.due_ns
    moved = [_moved(step, by_ns) for step in played.log]
    disk.logs[match_id] = []
    disk.deals[match_id] = DealSecrets(rules_hash=chance.randbytes(32), secret=chance.randbytes(32))
    state: MatchState | None = None
    for version, step in enumerate(moved):
        state = advance(state, step)
        kept = state if version == len(moved) // 2 else None
        disk.write(Append(match_id, version, step, state.due_ns, live=True, snapshot=kept))
    assert state is not None
    prepared = Prepared(match_id, state)
    holders = (Audience.DEVICE,) if wish.shared_device else (Audience.SEAT_ONE, Audience.SEAT_TWO)
    for audience in (*holders, Audience.SPECTATOR):
        holder = HOLDERS[audience]
        prepared.tokens[holder] = [f"{holder}-{number}-{match_id}" for number in range(TOKENS_A_SEAT)]
        for token in prepared.tokens[holder]:
            disk.write(Credential(token_hash(token), match_id, audience))
    return prepared


HOLDERS = {
    Audience.SEAT_ONE: "one",
    Audience.SEAT_TWO: "two",
    Audience.DEVICE: "device",
    Audience.SPECTATOR: "spectator",
}
AUDIENCES = {holder: audience for audience, holder in HOLDERS.items()}


def often_kept() -> AbstractContextManager[object]:
    """Matches here are short: they get a snapshot with nearly every round."""
    return patch.object(past, "SNAPSHOT_VERSIONS", 8)


class _Play:
    """A match played by the rules from its beginning at instant zero; `now_ns` is when the last step was stored."""

    def __init__(self, chance: Random, wish: Wish) -> None:
        self._chance, self._wish = chance, wish
        self.now_ns = 0
        created = ev.MatchCreated(0, wish.shared_device, wish.wait_ns, wish.wait_ns)
        self.log: list[ev.Step] = [(created, *(ev.PlayerSeated(seat, seat.name) for seat in SEATS))]
        self.state = advance(None, self.log[0])
        if wish.phase is not Phase.NOT_STARTED:
            for seat in SEATS[: 1 if wish.shared_device else 2]:
                self._carry_out(seat, cmd.Start())
            self._play()

    def _play(self) -> None:
        turns = 0
        while turns < self._wish.turns and self.state.phase not in (Phase.SETTLED, Phase.OVER):
            seat = acting_seat(self.state)
            command = self._choice(seat)
            if isinstance(command, cmd.Reveal | cmd.DrawTile):
                self._carry_out(seat, command)
                continue
            self.now_ns += self._thinking_ns(seat)
            self._carry_out(seat, command)
            turns += 1
        if self.state.handover is not None and self._wish.phase is Phase.PLAYING:
            self._carry_out(acting_seat(self.state), cmd.Reveal())

    def _thinking_ns(self, seat: Seat) -> int:
        """The first decision of each seat burns its bank down to what is wished to be left."""
        bank_ns = self.state.banks_ns[seat.index]
        if bank_ns < BANK_NS:
            return SECOND_NS
        return DELAY_NS + bank_ns - self._wish.bank_left_ns[0 if seat is Seat.ONE else 1]

    def _choice(self, seat: Seat) -> cmd.Command:
        action = self._chance.choice(legal_actions(self.state, seat))
        return action.kind(action.minimum) if isinstance(action, LegalBids) else action.command

    def _carry_out(self, seat: Seat, command: cmd.Command) -> None:
        request = cmd.Request(seat, command, Arrival.at(self.now_ns))
        ruling = decide(self.state, request, now_ns=self.now_ns, deal=self._deal())
        assert ruling.refusal is None
        self.log.append(ruling.events)
        self.state = advance(self.state, ruling.events)

    def _deal(self) -> tuple[Tile, ...]:
        order = list(DOUBLE_SIX)
        self._chance.shuffle(order)
        return tuple(order)


def _moved(step: ev.Step, by_ns: int) -> ev.Step:
    """The same step, so much later."""
    return tuple(_moved_event(event, by_ns) for event in step)


def _moved_event(event: ev.Event, by_ns: int) -> ev.Event:
    match event:
        case ev.MatchCreated() | ev.ContinueTimedOut() | ev.ClockStarted() | ev.RoundDominoed() | ev.RoundBlocked():
            return replace(event, at_ns=event.at_ns + by_ns)
        case _:
            return event
