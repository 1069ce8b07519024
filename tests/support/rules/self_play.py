"""Whole matches between players who know only what the legal actions offer, audited after every step."""

import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from engine import commands as cmd
from engine import events as ev
from engine.clock import SECOND_NS, Arrival
from engine.decide import decide, decide_service
from engine.evolve import advance
from engine.invariants import check
from engine.legal import LegalAction, LegalBids, LegalCommand, legal_actions
from engine.refusals import Refusal
from engine.seats import SEATS, Seat
from engine.state import MatchState, Phase, acting_seat
from engine.tiles import DOUBLE_SIX, Tile
from tests.support.rules.given import CREATED

Chooser: TypeAlias = Callable[[random.Random, tuple[LegalAction, ...]], cmd.Command]
WHOLE_SET = frozenset(DOUBLE_SIX)
MOST_COMMANDS = 20_000
SNAPSHOT_ODDS = 100


@dataclass
class Played:
    """A match being played: its log, its state, and some states on the way by version."""

    chance: random.Random
    shared_device: bool
    log: list[ev.Step] = field(default_factory=list)
    snapshots: dict[int, MatchState] = field(default_factory=dict)
    now_ns: int = 0

    def __post_init__(self) -> None:
        created = replace(CREATED, shared_device=self.shared_device)
        self.state = advance(None, (created,))
        self.log.append((created,))

    def store(self, step: ev.Step) -> None:
        """Fold and log a step, and audit the state after it."""
        before, self.state = self.state, advance(self.state, step)
        self.log.append(step)
        check(self.state)
        audit(before, self.state)
        assert self.state.version == len(self.log)
        if self.chance.randrange(SNAPSHOT_ODDS) == 0:
            self.snapshots[self.state.version] = self.state


def audit(before: MatchState, after: MatchState) -> None:
    """What is true of every step, written without the engine's own checks."""
    one, two = after.balances.one, after.balances.two
    assert one + two == 300
    assert one % 5 == two % 5 == 0
    assert min(one, two) >= 0
    assert (min(one, two) == 0) <= (after.result is not None)
    assert one // 5 + two // 5 == 60
    assert 0 <= after.banks_ns.one <= before.banks_ns.one
    assert 0 <= after.banks_ns.two <= before.banks_ns.two
    is_pending = after.turn is not None and after.handover is None
    assert (after.decision is not None) is is_pending
    if after.round is not None:
        held = [*after.round.hands.one, *after.round.hands.two, *after.round.boneyard]
        layout = after.round.layout
        placed = layout.tiles()
        assert len(held) + len(placed) == len(WHOLE_SET)
        assert {*held, *placed} == WHOLE_SET


def self_play(seed: int, choose: Chooser, *, shared_device: bool, hasty: bool) -> Played:
    """A match from creation to its end. Hasty players never use their banks."""
    match = Played(random.Random(seed), shared_device)
    while match.state.result is None:
        assert len(match.log) < MOST_COMMANDS, "a match that does not end"
        match.now_ns += SECOND_NS if hasty else _wait_ns(match.chance)
        match.store(_next_step(match, choose))
    return match


def _next_step(match: Played, choose: Chooser) -> ev.Step:
    """Usually a player's command; now and then the wait for Continue runs out, or a player's time, or patience."""
    state, chance = match.state, match.chance
    deal = _shuffled(chance) if state.phase in (Phase.NOT_STARTED, Phase.SETTLED) else ()
    if state.phase is Phase.SETTLED and chance.randrange(8) == 0:
        assert state.due_ns is not None
        match.now_ns = max(match.now_ns, state.due_ns)
        step = decide_service(state, cmd.CheckClock(match.now_ns), now_ns=match.now_ns, deal=deal)
        assert not isinstance(step, Refusal)
        return step
    seat = _acting(state)
    command = choose(chance, legal_actions(state, seat))
    request = cmd.Request(seat, command, Arrival.at(match.now_ns))
    ruling = decide(state, request, now_ns=match.now_ns + chance.randrange(1_000_000), deal=deal)
    assert ruling.events
    return ruling.events


def _acting(state: MatchState) -> Seat:
    if state.options.shared_device:
        return acting_seat(state)
    return state.turn or next(seat for seat in SEATS if not state.ready[seat.index])


def _wait_ns(chance: random.Random) -> int:
    slow = chance.randrange(12) == 0
    return chance.randrange(10 * SECOND_NS, 16 * SECOND_NS) if slow else chance.randrange(10 * SECOND_NS)


def _shuffled(chance: random.Random) -> tuple[Tile, ...]:
    tiles = list(DOUBLE_SIX)
    chance.shuffle(tiles)
    return tuple(tiles)


def choose_randomly(chance: random.Random, actions: tuple[LegalAction, ...]) -> cmd.Command:
    """Any legal action; any affordable bid, so that many an auction ends the match; once in a long while, give up."""
    if chance.randrange(500) == 0 and not isinstance(_command(actions[0]), cmd.Start):
        return cmd.Resign()
    action = actions[chance.randrange(len(actions))]
    if isinstance(action, LegalBids):
        return action.kind(chance.randrange(action.minimum, action.maximum + 1, action.step))
    return action.command


def choose_greedily(chance: random.Random, actions: tuple[LegalAction, ...]) -> cmd.Command:
    """The play that is paid most, a modest bid half of the time, and whatever comes first otherwise."""
    last = actions[-1]
    if isinstance(last, LegalBids) and chance.randrange(2) == 0:
        return last.kind(min(last.maximum, last.minimum + 5 * chance.randrange(4)))
    ready = [action for action in actions if isinstance(action, LegalCommand)]
    return max(ready, key=_paid).command


def choose_cheaply(chance: random.Random, actions: tuple[LegalAction, ...]) -> cmd.Command:
    """One of the plays that are paid least, and never a bid: matches that may pass 8,000 versions."""
    ready = [action for action in actions if isinstance(action, LegalCommand)]
    least = min(map(_paid, ready))
    return chance.choice([action for action in ready if _paid(action) == least]).command


def _paid(action: LegalCommand) -> int:
    return 0 if action.transfer is None else action.transfer.paid


def _command(action: LegalAction) -> cmd.Command | None:
    return action.command if isinstance(action, LegalCommand) else None
