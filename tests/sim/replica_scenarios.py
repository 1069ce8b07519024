"""Scripted scenarios of two replicas: one idea each, for what many seeds seldom show."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from tests.sim.prepared import Wish
from tests.sim.scenarios import ABORTED, AT_LEISURE, LOST, POOR
from tests.sim.stage import DUE_NS, ReplicaStage
from tests.sim.world import MS_NS, SECOND_NS

POOR_OPPONENT = Wish(due_in_ns=DUE_NS + 25 * SECOND_NS, bank_left_ns=(30 * SECOND_NS, 200 * MS_NS))
"""The player on turn has time until long after the next decision will have expired."""


@dataclass(frozen=True, slots=True)
class ReplicaScenario:
    """`script` sets a stage of two replicas; with `plays` the players use PlayMatch."""

    name: str
    script: Callable[[ReplicaStage], None]
    ending: str | None = None
    wish: Wish = POOR
    runs_until_ns: int = DUE_NS + SECOND_NS
    plays: bool = False


def _commit_late(stage: ReplicaStage, lateness_ns: int) -> None:
    """The turn is committed so late, on a connection that is lost; the next player moves with three seconds of bank."""
    stage.machine.server.weather.lateness_ns = lateness_ns
    _at(stage, -200, partial(stage.troubles.disturb_moves, "late commit", 1))
    stage.turn.move_at(DUE_NS - 100 * MS_NS)
    stage.other.move_at(DUE_NS + 12_900 * MS_NS)


def committed_late(stage: ReplicaStage) -> None:
    """Its writer tries again all the time, and finds it made."""
    _commit_late(stage, 1_600 * MS_NS)


def committed_after_all(stage: ReplicaStage) -> None:
    """Its writer has given up and left, and so has the player."""
    _commit_late(stage, 2_400 * MS_NS)
    _at(stage, 1_600, partial(stage.one.restart, 300 * MS_NS))
    _at(stage, 0, stage.turn.give_up)


def committed_after_a_crash(stage: ReplicaStage) -> None:
    """Its writer is dead; the player repeats the command at the other replica, which waits for the lock meanwhile."""
    _commit_late(stage, 1_900 * MS_NS)
    _at(stage, 200, partial(stage.one.crash, 300 * MS_NS))
    _at(stage, 200, lambda: setattr(stage.turn, "machine", stage.two))


def cannot_be_looked_up(stage: ReplicaStage) -> None:
    """The first that a replica hears of a match is a command, in a blip of the database."""
    stage.turn.machine = stage.two
    _at(stage, -50, lambda: setattr(stage.turn, "machine", stage.one))
    stage.turn.comes_as_a_stranger = True
    stage.turn.repeats_after_ns = (2_000 * MS_NS, 2_100 * MS_NS)
    _at(stage, -40, partial(stage.troubles.database_restarts, 100 * MS_NS))
    stage.turn.move_at(DUE_NS - 30 * MS_NS)


def stream_is_left(stage: ReplicaStage) -> None:
    """A command in time is on its way on a stream that its replica, which is going to stop, has just sent away."""
    stage.turn.repeats_after_ns = (400 * MS_NS, 500 * MS_NS)
    _at(stage, -460, partial(stage.one.restart, 300 * MS_NS))
    stage.turn.move_at(DUE_NS - 52 * MS_NS)


def orphaned(stage: ReplicaStage) -> None:
    """A replica dies that alone knew how soon the next decision expires; no other one comes for long."""
    stage.turn.move_at(DUE_NS - 100 * MS_NS)
    _at(stage, 200, partial(stage.troubles.note, "crash", 0))
    _at(stage, 200, partial(stage.one.crash, 20 * SECOND_NS))


def all_leave(stage: ReplicaStage) -> None:
    """Both stop at the same time, and for three seconds nobody is there."""
    for machine in (stage.one, stage.two):
        _at(stage, -800, partial(machine.restart, 3 * SECOND_NS))


def handed_over_as_all_leave(stage: ReplicaStage) -> None:
    """A shared device reveals a hand on a stream that listens on, when no other door is open."""
    stage.turn.move_at(DUE_NS - 850 * MS_NS)  # and reveals half a second later
    for machine in (stage.one, stage.two):
        _at(stage, -900, partial(machine.restart, 3 * SECOND_NS))


def all_leave_in_turn(stage: ReplicaStage) -> None:
    """The one that suspends the clocks still listens to a stream when the other one is gone."""
    _at(stage, -1_400, partial(stage.two.restart, 3 * SECOND_NS))
    _at(stage, -900, partial(stage.one.restart, 3 * SECOND_NS))


def one_comes_as_the_last_one_leaves(stage: ReplicaStage) -> None:
    """It has looked at all matches before the other one, which has not seen it yet, suspends them."""
    _at(stage, -1_900, partial(stage.two.restart, 780 * MS_NS))
    _at(stage, -1_000, partial(stage.one.restart, 3 * SECOND_NS))


def clock_is_ahead(stage: ReplicaStage) -> None:
    """The first answers of the database about the time were slow, the next one shows that the clock is ahead."""
    stage.one.hold_ns = 29_900_000
    stage.world.at(0, partial(stage.troubles.slow_reads, 300 * MS_NS, 180 * MS_NS))
    stage.turn.move_at(SECOND_NS + 185 * MS_NS)


def move_is_lost(stage: ReplicaStage) -> None:
    """A move was answered; then a standby takes over that lacks it, and the deadline has passed."""
    stage.turn.move_at(DUE_NS - 300 * MS_NS)
    _at(stage, -100, partial(stage.troubles.tail_lost, 350 * MS_NS, 700 * MS_NS))


def move_is_lost_and_made_again(stage: ReplicaStage) -> None:
    """The player sees that it is gone when the standby is there, three seconds of bank later."""
    stage.turn.move_at(DUE_NS - 300 * MS_NS)
    _at(stage, -100, partial(stage.troubles.tail_lost, 350 * MS_NS, 3 * SECOND_NS))
    stage.turn.move_at(DUE_NS + 6 * SECOND_NS)


def _at(stage: ReplicaStage, after_ms: int, action: Callable[[], object]) -> None:
    def act() -> None:
        action()

    stage.world.at(DUE_NS + after_ms * MS_NS, act)


REPLICA_SCENARIOS = (
    ReplicaScenario("committed late", committed_late, ABORTED, wish=AT_LEISURE, runs_until_ns=DUE_NS + 14 * SECOND_NS),
    ReplicaScenario(
        "committed after all", committed_after_all, ABORTED, wish=AT_LEISURE, runs_until_ns=DUE_NS + 14 * SECOND_NS
    ),
    ReplicaScenario(
        "committed after a crash",
        committed_after_a_crash,
        ABORTED,
        wish=AT_LEISURE,
        runs_until_ns=DUE_NS + 14 * SECOND_NS,
    ),
    ReplicaScenario("cannot be looked up", cannot_be_looked_up, ABORTED),
    ReplicaScenario("stream is left", stream_is_left, plays=True),
    ReplicaScenario("orphaned", orphaned, LOST, wish=POOR_OPPONENT, runs_until_ns=DUE_NS + 21 * SECOND_NS),
    ReplicaScenario("all leave", all_leave, LOST, runs_until_ns=DUE_NS + 4 * SECOND_NS),
    ReplicaScenario(
        "handed over as all leave",
        handed_over_as_all_leave,
        wish=Wish(due_in_ns=DUE_NS, shared_device=True),
        runs_until_ns=DUE_NS + 4 * SECOND_NS,
        plays=True,
    ),
    ReplicaScenario("all leave in turn", all_leave_in_turn, LOST, runs_until_ns=DUE_NS + 5 * SECOND_NS, plays=True),
    ReplicaScenario("one comes as the last one leaves", one_comes_as_the_last_one_leaves, LOST),
    ReplicaScenario("clock is ahead", clock_is_ahead),
    ReplicaScenario("move is lost", move_is_lost, ABORTED, runs_until_ns=DUE_NS + 3 * SECOND_NS),
    ReplicaScenario(
        "move is lost and made again",
        move_is_lost_and_made_again,
        ABORTED,
        wish=POOR_OPPONENT,
        runs_until_ns=DUE_NS + 8 * SECOND_NS,
    ),
)
