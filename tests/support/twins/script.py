"""Random matches as scripts, and the same script over other tiles: a twin is what an observer cannot tell apart."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from random import Random
from typing import TypeAlias

from engine import commands as cmd
from engine import events as ev
from engine.clock import SECOND_NS, Arrival
from engine.decide import decide
from engine.evolve import advance
from engine.legal import LegalBids, legal_actions
from engine.seats import SEATS, Seat
from engine.state import MatchState, Phase, acting_seat
from engine.tiles import DOUBLE_SIX, Tile
from engine.view import Audience
from tests.support.store import NOON_NS

Order: TypeAlias = tuple[Tile, ...]
STEP_NS = SECOND_NS // 50
"""From one command to the next, short so that virtual time costs little; now and then a player thinks for long."""
MOST_MOVES = 70
_SEAT_OF = {Audience.SEAT_ONE: Seat.ONE, Audience.SEAT_TWO: Seat.TWO}


@dataclass(frozen=True)
class Move:
    """An accepted command."""

    seat: Seat
    command: cmd.Command
    at_ns: int


@dataclass(frozen=True)
class Script:
    """What everyone saw the players do, and the order of the tiles of each round, which nobody saw."""

    shared_device: bool
    moves: tuple[Move, ...]
    orders: tuple[Order, ...]


@dataclass(frozen=True)
class Course:
    """A script carried out by the rules: the log, and the state after each step."""

    script: Script
    log: tuple[ev.Step, ...]
    states: tuple[MatchState, ...]

    @property
    def dealt(self) -> int:
        """After how many moves the last round had just been dealt."""
        number = self.end.current.number
        return next(index for index, state in enumerate(self.states) if state.round and state.round.number == number)

    @property
    def end(self) -> MatchState:
        """The state at the end."""
        return self.states[-1]


def _birth(*, shared_device: bool) -> ev.Step:
    created = ev.MatchCreated(
        NOON_NS, shared_device=shared_device, start_timeout_ns=600 * SECOND_NS, continue_timeout_ns=600 * SECOND_NS
    )
    return created, *(ev.PlayerSeated(seat, seat.name.title()) for seat in SEATS)


def _shuffled(chance: Random) -> Order:
    tiles = list(DOUBLE_SIX)
    chance.shuffle(tiles)
    return tuple(tiles)


def random_script(seed: int, *, shared_device: bool = False) -> Script:
    """A match played by chance to a point at random, with at least one round dealt."""
    chance = Random(seed)
    state = advance(None, _birth(shared_device=shared_device))
    moves: list[Move] = []
    orders: list[Order] = []
    now_ns, wanted = NOON_NS, chance.randrange(3, MOST_MOVES)
    while state.result is None and len(moves) < wanted:
        now_ns += STEP_NS if chance.randrange(12) else chance.randrange(12 * SECOND_NS)
        seat = _mover(state)
        move = Move(seat, _some_command(chance, state, seat), now_ns)
        order = _shuffled(chance)
        after = _carried_out(state, move, order)
        assert after is not None
        dealt = after[1].round is not None and (state.round is None or after[1].current.number > state.current.number)
        orders += [order] if dealt else []
        moves.append(move)
        state = after[1]
    return Script(shared_device, tuple(moves), tuple(orders))


def _mover(state: MatchState) -> Seat:
    if state.options.shared_device:
        return acting_seat(state)
    return state.turn or next(seat for seat in SEATS if not state.ready[seat.index])


def _some_command(chance: Random, state: MatchState, seat: Seat) -> cmd.Command:
    """A legal command; bids stay low, so that matches go on."""
    action = chance.choice(legal_actions(state, seat))
    return action.kind(action.minimum) if isinstance(action, LegalBids) else action.command


def _carried_out(state: MatchState, move: Move, order: Order) -> tuple[ev.Step, MatchState] | None:
    request = cmd.Request(move.seat, move.command, Arrival.at(move.at_ns))
    deal = order if state.phase in (Phase.NOT_STARTED, Phase.SETTLED) else ()
    ruling = decide(state, request, now_ns=move.at_ns, deal=deal)
    return None if ruling.refusal is not None else (ruling.events, advance(state, ruling.events))


def carry_out(script: Script, *, like: Course | None = None) -> Course | None:
    """The course of a script; None when the rules refuse one of its commands on these tiles.

    Up to the last deal it is that of `like`, if one is given, whose script differs in the last order only.
    """
    birth = _birth(shared_device=script.shared_device)
    known = like.dealt if like is not None else 1
    log = list(like.log[:known]) if like is not None else [birth]
    states = list(like.states[:known]) if like is not None else [advance(None, birth)]
    state, orders = states[-1], script.orders
    for move in script.moves[known - 1 :]:
        if state.turn is not None and state.turn is not move.seat:
            return None
        number = state.round.number if state.round else 0
        done = _carried_out(state, move, orders[number] if number < len(orders) else DOUBLE_SIX)
        if done is None:
            return None
        step, state = done
        log.append(step)
        states.append(state)
    return Course(script, tuple(log), tuple(states))


def known_tiles(course: Course, observer: Audience) -> frozenset[Tile]:
    """What the observer has seen of the round's tiles: the table, shown hands, and for a seat the own hand."""
    state = course.end
    current = state.current
    layout = current.layout
    known = set(layout.tiles())
    if isinstance(state.settlement, ev.RoundBlocked) or state.result is not None:
        known |= {*current.hands.one, *current.hands.two}
    if observer in _SEAT_OF:
        known |= set(current.hands[_SEAT_OF[observer].index])
    return frozenset(known)


def twins(course: Course, observer: Audience, chance: Random, *, most: int) -> Iterator[Course]:
    """Up to `most` courses of the same script in which two tiles that the observer cannot know are swapped."""
    hidden = sorted(set(DOUBLE_SIX) - known_tiles(course, observer))
    pairs = list(combinations(hidden, 2))
    chance.shuffle(pairs)
    made = 0
    for one, other in pairs:
        if made == most:
            return
        twin = _swapped(course, one, other)
        if twin is not None:
            made += 1
            yield twin


def _swapped(course: Course, one: Tile, other: Tile) -> Course | None:
    """The twin, when the rules allow the script on it and everyone's turn stays where it was, and it differs at all."""
    names = {one: other, other: one}
    order = tuple(names.get(tile, tile) for tile in course.script.orders[-1])
    twin = carry_out(replace(course.script, orders=(*course.script.orders[:-1], order)), like=course)
    if twin is None or _turns(twin.states) != _turns(course.states):
        return None
    here, there = course.end.current, twin.end.current
    return twin if (here.hands, here.boneyard) != (there.hands, there.boneyard) else None


def _turns(states: Sequence[MatchState]) -> list[tuple[Seat | None, Phase]]:
    return [(state.turn, state.phase) for state in states]
