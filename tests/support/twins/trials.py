"""Trials: scripts at random, what their observers do, and the differences between a world and its twins."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from random import Random

from engine import commands as cmd
from engine.layout import End
from engine.seats import Seat
from engine.state import MatchState
from engine.view import Audience
from service.rpc.own_view import command_message
from spectacularbid.v1 import commands_pb2
from spectacularbid.v1 import match_service_pb2 as pb
from tests.support.twins.battery import battery
from tests.support.twins.script import Course, Script, carry_out, random_script, twins
from tests.support.twins.world import AUDIENCES, MATCH_ID, Plan, World, run, to_the_observer

OBSERVERS = (Audience.SEAT_ONE, Audience.SEAT_TWO, Audience.SPECTATOR, Audience.DEVICE)
TWINS_EACH = 12
PLAYING = 0.5
"""How many of the players watch and move on one PlayMatch stream, the others by WatchMatch and SubmitCommand."""
TEXT_EVERY = 10
"""One trial in so many keeps the text of /metrics; the others the samples that it is made of."""


def trial(seed: int, observer: Audience) -> tuple[Course, Plan] | None:
    """A course and a plan for its observer; None where no round was dealt, or the device is not being handed over.

    The last round is dealt before the live part begins: its tiles are the script's.
    """
    chance = Random(seed)
    shared = observer is Audience.DEVICE
    script = random_script(seed, shared_device=shared)
    script = _up_to_handover(script) if shared else script
    course = carry_out(script)
    if course is None or course.end.round is None:
        return None
    moves = len(script.moves)
    dealt = course.dealt
    live_from = moves if shared else max(dealt, moves - chance.randrange(2, 12))
    return course, Plan(
        observer,
        live_from,
        probes=tuple(battery(MATCH_ID, course.end, observer)),
        after_version=chance.choice((0, dealt, live_from + 1, max(1, live_from - 2))),
        plays=observer is not Audience.SPECTATOR and chance.random() < PLAYING,
        text=seed % TEXT_EVERY == 0,
    )


def _up_to_handover(script: Script) -> Script:
    """The script up to the last moment at which the device was on its way; its rounds with it."""
    course = carry_out(script)
    assert course is not None
    waiting = [number for number, state in enumerate(course.states) if state.handover is not None]
    if not waiting:
        return replace(script, moves=())
    rounds = course.states[waiting[-1]].current.number
    return replace(script, moves=script.moves[: waiting[-1]], orders=script.orders[:rounds])


def differences(seed: int, observer: Audience, *, most: int = TWINS_EACH) -> Iterator[list[str]]:
    """For each twin of a trial the channels on which it can be told from the original: none, if all is well."""
    made = trial(seed, observer)
    if made is None:
        return
    course, plan = made
    here: dict[str, list[bytes]] | None = None
    for twin in twins(course, observer, Random(seed), most=most):
        here = here or to_the_observer(run(course, plan))
        there = to_the_observer(run(twin, plan))
        assert here.keys() == there.keys()
        yield [name for name, said in here.items() if said != there[name]]


def disturbed(seed: int, observer: Audience) -> list[str] | None:
    """The channels on which an observer notices what the other seat tries in vain; None without a trial."""
    made = trial(seed, observer)
    if made is None:
        return None
    course, plan = made
    other = AUDIENCES[Seat.TWO if observer is Audience.SEAT_ONE else Seat.ONE]
    calm = replace(plan, beside=other)
    here, there = run(course, calm), run(course, replace(calm, meanwhile=_Vain(course, plan.live_from, other)))
    ours = set(to_the_observer(here)) - {"metrics"}  # which count what the other seat tried
    return [name for name in sorted(ours) if here[name] != there[name]]


class _Vain:
    """Before every move the other seat is refused, reads, and comes and goes with a second stream."""

    def __init__(self, course: Course, live_from: int, other: Audience) -> None:
        self._course, self._live_from, self._other = course, live_from, other

    async def __call__(self, world: World, number: int) -> None:
        """What this moment refuses, then reads, then a stream that is hung up."""
        commands = _refused(self._course.states[self._live_from + number], self._other)
        for place, command in enumerate(commands):
            await world.submit(self._other, 0x20000 + 0x100 * number + place, command, "other outcomes")
        for request in (pb.GetMatchRequest(match_id=MATCH_ID), pb.GetMatchRequest(match_id="x"), None):
            await world.call(self._other, "GetMatch", request, "other reads")
        second = world.open(self._other, 0, "other streams")
        await world.settle()
        second.cancel()


def _refused(state: MatchState, other: Audience) -> Iterator[commands_pb2.Command]:
    """Malformed, or plays of a tile that the other seat does not hold."""
    yield commands_pb2.Command()
    if state.round is not None:
        observer = Seat.TWO if other is Audience.SEAT_ONE else Seat.ONE
        for tile in state.round.hands[observer.index][:3]:
            yield command_message(cmd.PlayTile(tile, End.EAST))
