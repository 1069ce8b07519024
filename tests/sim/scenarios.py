"""Scripted scenarios: one idea each, with how the match must end when nothing else goes wrong."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from engine.state import Phase
from tests.sim.hostile import Flooder, Stranger
from tests.sim.prepared import Wish
from tests.sim.stage import DUE_NS, Stage
from tests.sim.world import MS_NS, SECOND_NS

ABORTED, LOST = "aborted: timing failure", "won by time"
POOR = Wish(due_in_ns=DUE_NS)
AT_LEISURE = Wish(due_in_ns=DUE_NS + 8 * SECOND_NS, bank_left_ns=(6 * SECOND_NS, 6 * SECOND_NS))
RICH = Wish(due_in_ns=DUE_NS + 2 * SECOND_NS, bank_left_ns=(6 * SECOND_NS, 6 * SECOND_NS))
"""A match whose players began with six seconds in the bank, and whose deadline comes two seconds later."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """`script` sets a stage; effects between `from_ns` and `until_ns` are those at which the process may die."""

    name: str
    script: Callable[[Stage], None]
    ending: str | None = None
    wish: Wish = POOR
    from_ns: int = DUE_NS - 300 * MS_NS
    until_ns: int = DUE_NS + 400 * MS_NS
    runs_until_ns: int = DUE_NS + SECOND_NS
    dies_everywhere: bool = False
    """Whether it is also played with a crash at each of its effects."""


def in_time(stage: Stage) -> None:
    """A command thirty milliseconds before the deadline."""
    stage.turn.move_at(DUE_NS - 30 * MS_NS)


def late(stage: Stage) -> None:
    """A command that surely came after it."""
    stage.turn.move_at(DUE_NS + 60 * MS_NS)


def nothing(_: Stage) -> None:
    """Nobody sends anything."""


def held_by_the_kernel(stage: Stage) -> None:
    """In time, but the transport holds every message as long as it may."""
    stage.machine.hold_ns = 29_900_000
    stage.turn.move_at(DUE_NS - MS_NS)


def slow_check(stage: Stage) -> None:
    """A stranger's command in time, whose token takes long to check."""
    stage.turn.comes_as_a_stranger = True
    _at(stage, -100, partial(stage.troubles.slow_reads, 300 * MS_NS, 900 * MS_NS))
    stage.turn.move_at(DUE_NS - 20 * MS_NS)


def answer_lost(stage: Stage) -> None:
    """Written, but the store says it was not."""
    _at(stage, -40, partial(stage.troubles.fail_batches, "after", 1))
    stage.turn.move_at(DUE_NS - 30 * MS_NS)


def answer_lost_early(stage: Stage) -> None:
    """The same, long before the deadline."""
    _at(stage, -910, partial(stage.troubles.fail_batches, "after", 1))
    stage.turn.move_at(DUE_NS - 900 * MS_NS)


def answer_lost_for_good(stage: Stage) -> None:
    """The same, and the client never asks again: the other player must hear of the turn."""
    answer_lost(stage)
    stage.world.at(DUE_NS - 32 * MS_NS, stage.turn.give_up)


def answer_lost_early_for_good(stage: Stage) -> None:
    """And long before the deadline, which would make the service look again."""
    answer_lost_early(stage)
    stage.world.at(DUE_NS - 902 * MS_NS, stage.turn.give_up)


def write_fails(stage: Stage) -> None:
    """Not written, right before the deadline."""
    _at(stage, -40, partial(stage.troubles.fail_batches, "before", 1))
    stage.turn.move_at(DUE_NS - 30 * MS_NS)


def cannot_be_checked(stage: Stage) -> None:
    """For half a second nobody can be looked up; that is too short to be a gap."""
    stage.turn.comes_as_a_stranger = True
    _at(stage, -300, partial(stage.troubles.store_down, 500 * MS_NS, is_locked=False, reads_fail=True))
    stage.turn.move_at(DUE_NS - 100 * MS_NS)


def store_gap(stage: Stage) -> None:
    """Nothing can be stored around the deadline, and a command comes meanwhile."""
    stage.turn.comes_as_a_stranger = True
    _at(stage, -900, partial(stage.troubles.store_down, 1_300 * MS_NS, is_locked=False, reads_fail=True))
    stage.turn.move_at(DUE_NS - 200 * MS_NS)


def store_gap_alone(stage: Stage) -> None:
    """The same without a command that anybody knows of."""
    _at(stage, -900, partial(stage.troubles.store_down, 1_300 * MS_NS, is_locked=False, reads_fail=True))


def charge_after_failure(stage: Stage) -> None:
    """The store fails for two seconds in which the bank runs; the command came at their beginning."""
    _at(stage, -1_500, partial(stage.troubles.fail_batches, "before", 11))
    stage.turn.move_at(DUE_NS - 1_400 * MS_NS)


def slow_turn(stage: Stage) -> None:
    """A turn takes two seconds to be stored; the next player moves with three seconds of the bank."""
    _at(stage, -200, partial(stage.troubles.slow_store, 150 * MS_NS, 2_000 * MS_NS))
    stage.turn.move_at(DUE_NS - 100 * MS_NS)
    stage.other.move_at(DUE_NS - 100 * MS_NS + 13 * SECOND_NS)


def stall(stage: Stage) -> None:
    """A command in time that the loop gets to long after."""
    _at(stage, -40, partial(stage.troubles.stall, 400 * MS_NS))
    stage.turn.move_at(DUE_NS - 20 * MS_NS)


def late_in_a_stall(stage: Stage) -> None:
    """A late command that the loop gets to long after, so that it might have been in time."""
    _at(stage, -40, partial(stage.troubles.stall, 400 * MS_NS))
    stage.turn.move_at(DUE_NS + 200 * MS_NS)


def backlog(stage: Stage) -> None:
    """A command in time that waits behind the backlog of a stall."""
    stage.machine.backlog_ns = 220 * MS_NS
    _at(stage, -150, partial(stage.troubles.stall, 120 * MS_NS))
    stage.turn.move_at(DUE_NS - 100 * MS_NS)


def stall_in_a_backlog(stage: Stage) -> None:
    """The loop stands once more, too short for a stall, while it works off the backlog of one."""
    stage.machine.backlog_ns = 220 * MS_NS
    _at(stage, -150, partial(stage.troubles.stall, 120 * MS_NS))
    stage.turn.move_at(DUE_NS - 100 * MS_NS)
    _at(stage, 181, partial(stage.troubles.stall, 48 * MS_NS))


def stall_in_the_bank(stage: Stage) -> None:
    """A stall too short to be a fault makes a stamp too wide for a bank."""
    _at(stage, -1_000, partial(stage.troubles.stall, 1_400 * MS_NS))
    stage.turn.move_at(DUE_NS - 900 * MS_NS)


def stall_before_a_move(stage: Stage) -> None:
    """The loop stands for two and a half seconds while the bank runs; the player moves half a second later."""
    _at(stage, -1_500, partial(stage.troubles.stall, 2_400 * MS_NS))
    stage.turn.move_at(DUE_NS + 1_400 * MS_NS)


def unseen_turn(stage: Stage) -> None:
    """The loop stands for three seconds right after a turn was stored; the other player lets time run out."""
    stage.turn.move_at(DUE_NS - 900 * MS_NS)
    stage.on_turn_stored = partial(stage.troubles.stall, 3 * SECOND_NS)


def long_stall(stage: Stage) -> None:
    """A stall of almost four seconds that ends right after the deadline."""
    _at(stage, -1_600, partial(stage.troubles.stall, 3_800 * MS_NS))


def step_in_the_delay(stage: Stage) -> None:
    """The clock jumps in the next player's delay, who then uses the bank."""
    stage.turn.move_at(DUE_NS - 900 * MS_NS)
    _at(stage, 1_000, partial(stage.troubles.step, 2_000 * MS_NS))
    stage.other.move_at(DUE_NS + 10_500 * MS_NS)


def sleeping_machine(stage: Stage) -> None:
    """The machine sleeps for six seconds, over the deadline."""
    _at(stage, -1_700, partial(stage.troubles.sleep, 6 * SECOND_NS))


def crash(stage: Stage) -> None:
    """A command reaches the process right before it dies, and the deadline passes before the next one is there."""
    stage.machine.hold_ns = 20 * MS_NS
    stage.turn.move_at(DUE_NS - 110 * MS_NS)
    _at(stage, -100, partial(stage.troubles.crash, 900 * MS_NS))


def outage(stage: Stage) -> None:
    """Six seconds without a service while a bank runs."""
    stage.turn.move_at(DUE_NS - 900 * MS_NS)
    _at(stage, 5_000, partial(stage.troubles.crash, 6_500 * MS_NS))
    stage.other.move_at(DUE_NS + 13 * SECOND_NS)


def planned_stop(stage: Stage) -> None:
    """The command arrives right before the clocks stand."""
    _restart(stage, -260)
    stage.turn.move_at(DUE_NS - 62 * MS_NS)


def planned_stop_and_held(stage: Stage) -> None:
    """It arrives before the clocks stand, and the loop gets it after."""
    stage.machine.hold_ns = 29 * MS_NS
    stage.turn.repeats_after_ns = (400 * MS_NS, 500 * MS_NS)
    _restart(stage, -220)
    stage.turn.move_at(DUE_NS - 30 * MS_NS)


def planned_stop_and_slow(stage: Stage) -> None:
    """It arrives while standing still takes long to be stored."""
    _restart(stage, -400)
    _at(stage, -190, partial(stage.troubles.slow_store, 400 * MS_NS, 300 * MS_NS))
    stage.turn.move_at(DUE_NS - 30 * MS_NS)


def planned_stop_and_slow_reader(stage: Stage) -> None:
    """A client that does not read keeps the process from ending; if a clock ran meanwhile, the player would move."""
    _at(stage, -900, stage.stop_reading)
    _restart(stage, -800)
    stage.turn.move_at(DUE_NS - 300 * MS_NS)


def planned_stop_and_store_gone(stage: Stage) -> None:
    """The clocks cannot be stopped for a while; until they can, the door stays open. One client does not read."""
    _at(stage, -900, stage.stop_reading)
    _restart(stage, -600)
    _at(stage, -450, partial(stage.troubles.store_down, 200 * MS_NS, is_locked=False, reads_fail=True))
    stage.turn.repeats_after_ns = (400 * MS_NS, 500 * MS_NS)
    stage.turn.move_at(DUE_NS - 80 * MS_NS)


def step_before_a_planned_stop(stage: Stage) -> None:
    """The clock jumps in a decision that a planned stop moves further than that; then the player uses the bank."""
    stage.turn.move_at(DUE_NS - 900 * MS_NS)
    _at(stage, -600, partial(stage.troubles.step, 2_000 * MS_NS))
    _at(stage, -400, partial(stage.machine.restart, 3_000 * MS_NS))
    stage.other.move_at(DUE_NS + 13_200 * MS_NS)


def starts(stage: Stage) -> None:
    """Both players start, one after the other."""
    stage.turn.move_at(DUE_NS - 60 * MS_NS)
    stage.other.move_at(DUE_NS - 20 * MS_NS)


def crowd_of_strangers(stage: Stage) -> None:
    """Strangers come all the time, so that one is always being checked."""
    stranger = Stranger(stage.machine, stage.world.chance("stranger"), stage.match_id)
    weather = stage.machine.weather
    stage.world.at(SECOND_NS, lambda: setattr(weather, "slow_reads_until_ns", 8 * SECOND_NS))  # an old disk, no fault
    weather.read_slowness_ns = 400 * MS_NS
    for number in range(100):
        stage.world.at(DUE_NS - (500 - 50 * number) * MS_NS, stranger.knock)


def flood(stage: Stage) -> None:
    """The other player fills the line while the one on turn still has thirty milliseconds."""
    stage.machine.hold_ns = MS_NS
    stage.turn.repeats_after_ns = (400 * MS_NS, 500 * MS_NS)
    flooder = Flooder(stage.machine, stage.world.chance("flooder"), stage.match_id, stage.token_of(stage.other))
    for number in range(300):
        stage.world.at(DUE_NS - 60 * MS_NS + number * MS_NS // 5, flooder.knock)
    in_time(stage)


def _at(stage: Stage, after_ms: int, action: Callable[[], object]) -> None:
    def act() -> None:
        action()

    stage.world.at(DUE_NS + after_ms * MS_NS, act)


def _restart(stage: Stage, after_ms: int) -> None:
    _at(stage, after_ms, partial(stage.machine.restart, 300 * MS_NS))


SCENARIOS = (
    Scenario("in time", in_time, dies_everywhere=True),
    Scenario("late", late, LOST, dies_everywhere=True),
    Scenario("nothing sent", nothing, LOST, dies_everywhere=True),
    Scenario("held by the kernel", held_by_the_kernel),
    Scenario("slow check", slow_check, dies_everywhere=True, until_ns=DUE_NS + 1_100 * MS_NS),
    Scenario("answer lost", answer_lost, dies_everywhere=True),
    Scenario("answer lost early", answer_lost_early, wish=RICH),
    Scenario("answer lost for good", answer_lost_for_good, LOST, runs_until_ns=DUE_NS + 11 * SECOND_NS),
    Scenario("answer lost early for good", answer_lost_early_for_good, wish=AT_LEISURE),
    Scenario("write fails", write_fails, ABORTED, dies_everywhere=True),
    Scenario("cannot be checked", cannot_be_checked, ABORTED),
    Scenario("store gap", store_gap, ABORTED, dies_everywhere=True, until_ns=DUE_NS + 900 * MS_NS),
    Scenario("store gap alone", store_gap_alone, ABORTED),
    Scenario("charge after failure", charge_after_failure, wish=RICH),
    Scenario("slow turn", slow_turn, ABORTED, wish=RICH, runs_until_ns=DUE_NS + 14 * SECOND_NS),
    Scenario("stall", stall, ABORTED, dies_everywhere=True, until_ns=DUE_NS + 900 * MS_NS),
    Scenario("late in a stall", late_in_a_stall, ABORTED),
    Scenario("backlog", backlog, ABORTED),
    Scenario("stall in a backlog", stall_in_a_backlog, ABORTED),
    Scenario("stall in the bank", stall_in_the_bank, ABORTED, wish=RICH),
    Scenario("stall before a move", stall_before_a_move, ABORTED, wish=RICH, runs_until_ns=DUE_NS + 2 * SECOND_NS),
    Scenario("unseen turn", unseen_turn, ABORTED, runs_until_ns=DUE_NS + 11 * SECOND_NS),
    Scenario("long stall", long_stall, ABORTED, wish=RICH, runs_until_ns=DUE_NS + 5 * SECOND_NS),
    Scenario("step in the delay", step_in_the_delay, ABORTED, wish=RICH, runs_until_ns=DUE_NS + 12 * SECOND_NS),
    Scenario("sleeping machine", sleeping_machine, ABORTED, wish=RICH, runs_until_ns=DUE_NS + 9 * SECOND_NS),
    Scenario("crash", crash, ABORTED),
    Scenario("outage", outage, ABORTED, wish=RICH, runs_until_ns=DUE_NS + 14 * SECOND_NS),
    Scenario("planned stop", planned_stop, dies_everywhere=True, until_ns=DUE_NS + 600 * MS_NS),
    Scenario("planned stop and held", planned_stop_and_held),
    Scenario("planned stop and slow", planned_stop_and_slow),
    Scenario("planned stop and store gone", planned_stop_and_store_gone, LOST),
    Scenario(
        "step before a planned stop",
        step_before_a_planned_stop,
        ABORTED,
        wish=RICH,
        runs_until_ns=DUE_NS + 14 * SECOND_NS,
    ),
    Scenario("planned stop and a slow reader", planned_stop_and_slow_reader, LOST),
    Scenario(
        "both start",
        starts,
        wish=Wish(Phase.NOT_STARTED, due_in_ns=DUE_NS, wait_ns=5 * SECOND_NS),
        dies_everywhere=True,
    ),
    Scenario("flood", flood),
    Scenario("crowd of strangers", crowd_of_strangers, LOST, runs_until_ns=DUE_NS + 5 * SECOND_NS),
)
