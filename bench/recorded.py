"""Matches played ahead, command by command, so that each part of the engine can be measured on the same positions."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from itertools import count, islice
from typing import NamedTuple, TypeAlias

from engine import commands as cmd
from engine import events as ev
from engine.clock import SECOND_NS, Arrival
from engine.decide import decide
from engine.evolve import advance
from engine.legal import LegalAction, LegalBids, LegalCommand, legal_actions
from engine.seats import SEATS, Seat
from engine.state import MatchState, Phase
from engine.tiles import DOUBLE_SIX, Tile

Chooser: TypeAlias = Callable[[random.Random, tuple[LegalAction, ...]], cmd.Command]
STORING_NS = 2_000_000
_SEATED: ev.Step = (
    ev.MatchCreated(0, shared_device=False, start_timeout_ns=600 * SECOND_NS, continue_timeout_ns=60 * SECOND_NS),
    ev.PlayerSeated(Seat.ONE, "Ada"),
    ev.PlayerSeated(Seat.TWO, "Bo"),
)


class Turn(NamedTuple):
    """One accepted command: all that went in, and what came out."""

    before: MatchState
    request: cmd.Request
    now_ns: int
    deal: tuple[Tile, ...]
    step: ev.Step
    after: MatchState


def recorded(choose: Chooser, commands: int) -> list[Turn]:
    """So many commands, of the matches with the seeds 0, 1, 2 and so on."""
    turns = (turn for seed in count() for turn in _match(seed, choose))
    return list(islice(turns, commands))


def log_of(seed: int, choose: Chooser) -> list[tuple[ev.Step, MatchState]]:
    """Every step of the match with this seed, and the state after it."""
    turns = list(_match(seed, choose))
    return [(_SEATED, turns[0].before), *((turn.step, turn.after) for turn in turns)]


def _match(seed: int, choose: Chooser) -> Iterator[Turn]:
    chance, state, now_ns = random.Random(seed), advance(None, _SEATED), 0
    while state.result is None:
        now_ns += SECOND_NS
        seat = state.turn or next(seat for seat in SEATS if not state.ready[seat.index])
        request = cmd.Request(seat, choose(chance, legal_actions(state, seat)), Arrival.at(now_ns))
        deal = _shuffled(chance) if state.phase in (Phase.NOT_STARTED, Phase.SETTLED) else ()
        ruling = decide(state, request, now_ns=now_ns + STORING_NS, deal=deal)
        assert ruling.refusal is None
        after = advance(state, ruling.events)
        yield Turn(state, request, now_ns + STORING_NS, deal, ruling.events, after)
        state = after


def _shuffled(chance: random.Random) -> tuple[Tile, ...]:
    return tuple(chance.sample(DOUBLE_SIX, len(DOUBLE_SIX)))


def choose_randomly(chance: random.Random, actions: tuple[LegalAction, ...]) -> cmd.Command:
    """Any listed action, of bids the smallest: what the load client does."""
    action = chance.choice(actions)
    return action.kind(action.minimum) if isinstance(action, LegalBids) else action.command


def choose_greedily(_: random.Random, actions: tuple[LegalAction, ...]) -> cmd.Command:
    """The play that is paid most; never a bid."""
    return max((action for action in actions if isinstance(action, LegalCommand)), key=_paid_points).command


def choose_cheaply(chance: random.Random, actions: tuple[LegalAction, ...]) -> cmd.Command:
    """One of the plays that are paid least; never a bid: matches that may pass 8,000 versions."""
    ready = [action for action in actions if isinstance(action, LegalCommand)]
    least = min(map(_paid_points, ready))
    return chance.choice([action for action in ready if _paid_points(action) == least]).command


def _paid_points(action: LegalCommand) -> int:
    return 0 if action.transfer is None else action.transfer.paid
