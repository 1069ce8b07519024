"""Stamps as intervals: what a loop that may stall can vouch for."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random

import pytest

from engine.clock import Arrival
from engine.faults import Fault, FaultCause
from service.metrics import Metrics
from service.timing_guard import MS_NS, SLACK_NS, STALL_MEMORY_NS, STALL_NS, STEP_NS, TICK_NS, TimingGuard
from tests.support.virtual_time import VirtualLoop, in_virtual_time, virtual_now_ns

PUBLISH_STALL_NS = 2_000 * MS_NS
USUAL_NS = 2 * TICK_NS + SLACK_NS + MS_NS
"""The widest stamp of a loop that never stalls, and a little for the rounding of its timers."""


class Ticking(TimingGuard):
    """A guard on virtual time; what it reports is kept, and its source can be stepped."""

    def __init__(self, error_bound_ns: int) -> None:
        self.faults: list[Fault] = []
        self.stepped_ns = self.held_up_ms = 0
        self.error_ns = error_bound_ns
        super().__init__(
            self._source,
            lambda: self.error_ns,
            publish_stall_ns=PUBLISH_STALL_NS,
            report=self.faults.append,
            metrics=Metrics().clock,
        )

    def _source(self) -> int:
        held_up_ms, self.held_up_ms = self.held_up_ms, 0
        stall_ms(held_up_ms)
        return virtual_now_ns() + self.stepped_ns


@asynccontextmanager
async def ticking(error_bound_ns: int = 0) -> AsyncIterator[Ticking]:
    """A guard that has ticked for a while."""
    guard = Ticking(error_bound_ns)
    guard.start()
    await pass_ms(995)
    try:
        yield guard
    finally:
        guard.stop()


async def pass_ms(milliseconds: int) -> None:
    """Let time pass with a loop that is free."""
    await asyncio.sleep(milliseconds / 1e3)


def stall_ms(milliseconds: int) -> None:
    """Let time pass without letting the loop do anything."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)
    loop.now_ns += milliseconds * MS_NS


def width_ns(arrival: Arrival) -> int:
    return arrival.latest_ns - arrival.earliest_ns


@in_virtual_time
async def test_a_tick_by_a_poor_clock_vouches_poorly_also_when_the_clock_is_better() -> None:
    """Until the next but one."""
    async with ticking(40 * MS_NS) as guard:
        guard.error_ns = MS_NS
        assert guard.arrival().earliest_ns <= virtual_now_ns() - TICK_NS - SLACK_NS - 40 * MS_NS
        await pass_ms(21)
        assert width_ns(guard.arrival()) <= USUAL_NS + 2 * MS_NS


@in_virtual_time
async def test_a_free_loop_vouches_for_two_ticks_and_the_slack() -> None:
    """The stamp ends now and begins at the tick before the last one, less what the transport may hold back."""
    async with ticking() as guard:
        for _ in range(50):
            arrival = guard.arrival()
            assert arrival.latest_ns == virtual_now_ns()
            assert TICK_NS + SLACK_NS <= width_ns(arrival) <= USUAL_NS
            await pass_ms(3)


@in_virtual_time
async def test_the_clocks_error_widens_the_stamp_on_both_sides() -> None:
    """A replica knows the store's clock only to a bound."""
    async with ticking(error_bound_ns=7 * MS_NS) as guard:
        arrival = guard.arrival()
        assert arrival.latest_ns == virtual_now_ns() + 7 * MS_NS
        assert TICK_NS + SLACK_NS <= width_ns(arrival) - 14 * MS_NS <= USUAL_NS
        assert guard.error_bound_ns() == 7 * MS_NS


@pytest.mark.parametrize("length_ms", [60, 200, 2_000])
@in_virtual_time
async def test_a_command_handled_right_after_a_stall_may_have_come_at_its_beginning(length_ms: int) -> None:
    """Before the late tick and after it."""
    async with ticking() as guard:
        before_ns = virtual_now_ns()
        stall_ms(length_ms)
        assert guard.arrival().earliest_ns <= before_ns - SLACK_NS
        await pass_ms(1)
        assert guard.arrival().earliest_ns <= before_ns - SLACK_NS
        assert guard.arrival().latest_ns == virtual_now_ns()


@in_virtual_time
async def test_a_stall_is_remembered_while_its_backlog_may_still_come_in_and_then_forgotten() -> None:
    """A quarter of a second."""
    async with ticking() as guard:
        before_ns = virtual_now_ns()
        stall_ms(500)
        await pass_ms(STALL_MEMORY_NS // MS_NS - 10)
        assert guard.arrival().earliest_ns <= before_ns
        await pass_ms(30)
        assert width_ns(guard.arrival()) <= USUAL_NS


@in_virtual_time
async def test_a_stall_within_the_memory_of_another_began_with_that_one() -> None:
    """The backlog of the first may be behind the second."""
    async with ticking() as guard:
        before_ns = virtual_now_ns()
        for _ in range(4):
            stall_ms(200)
            await pass_ms(100)
        assert guard.arrival().earliest_ns <= before_ns
        await pass_ms(STALL_MEMORY_NS // MS_NS + 30)
        assert width_ns(guard.arrival()) <= USUAL_NS


@in_virtual_time
async def test_a_tick_that_is_a_little_late_is_no_stall() -> None:
    """It widens the stamps of two ticks and is not remembered."""
    async with ticking() as guard:
        stall_ms(STALL_NS // MS_NS - 20)
        await pass_ms(1)
        assert width_ns(guard.arrival()) <= USUAL_NS + STALL_NS
        await pass_ms(30)
        assert width_ns(guard.arrival()) <= USUAL_NS


@pytest.mark.parametrize("seed", range(5))
@in_virtual_time
async def test_the_true_arrival_lies_in_the_stamp_whatever_the_loop_does(seed: int) -> None:
    """Commands that come at any moment are stamped when the loop gets to them, at most the slack after a free tick."""
    chance = Random(seed)
    async with ticking() as guard:
        for _ in range(300):
            came_ns = virtual_now_ns()
            stall_ms(chance.choice([0, 0, 0, 1, 30, 70, 400, 1_500]))
            await pass_ms(chance.choice([0, 0, 1, 15]))
            arrival = guard.arrival()
            assert arrival.earliest_ns <= came_ns <= arrival.latest_ns
            await pass_ms(chance.randrange(400))


@in_virtual_time
async def test_a_stopped_guard_sets_no_timer_any_more() -> None:
    """Nothing of it is left in the loop."""
    async with ticking() as guard:
        guard.stop()
        await pass_ms(100)
        assert width_ns(guard.arrival()) > 100 * MS_NS


@pytest.mark.parametrize(("length_ms", "causes"), [(1_900, []), (2_100, [FaultCause.PUBLISH_STALL])])
@in_virtual_time
async def test_a_stall_that_kept_players_waiting_is_reported(length_ms: int, causes: list[FaultCause]) -> None:
    """From the last tick before it to the first one after it."""
    async with ticking() as guard:
        before_ns = virtual_now_ns()
        stall_ms(length_ms)
        await pass_ms(1)
        assert [fault.cause for fault in guard.faults] == causes
        for fault in guard.faults:
            assert before_ns - 2 * TICK_NS <= fault.from_ns <= before_ns
            assert fault.to_ns >= before_ns + length_ms * MS_NS


@pytest.mark.parametrize("step_ns", [STEP_NS + MS_NS, -STEP_NS - MS_NS, 3_600_000 * MS_NS, -3_600_000 * MS_NS])
@in_virtual_time
async def test_a_step_of_the_clock_is_reported(step_ns: int) -> None:
    """In either direction, once, with a span that covers both readings."""
    async with ticking() as guard:
        before_ns = guard.now_ns()
        guard.stepped_ns = step_ns
        await pass_ms(500)
        (fault,) = guard.faults  # and nothing else: the loop served everybody meanwhile
        assert fault.cause is FaultCause.CLOCK_FAULT
        assert fault.from_ns <= min(before_ns, before_ns + step_ns) + TICK_NS
        assert fault.to_ns >= max(before_ns, before_ns + step_ns) - TICK_NS


@in_virtual_time
async def test_a_process_held_up_between_two_readings_sees_no_step() -> None:
    """The clocks agree; they were read at different times."""
    async with ticking() as guard:
        guard.held_up_ms = 400
        await pass_ms(500)
        assert guard.faults == []


@pytest.mark.parametrize("step_ms", [STEP_NS // MS_NS - 20, 20 - STEP_NS // MS_NS])
@in_virtual_time
async def test_small_differences_between_two_clocks_are_no_step(step_ms: int) -> None:
    """They are read one after the other."""
    async with ticking() as guard:
        guard.stepped_ns = step_ms * MS_NS
        stall_ms(100)
        await pass_ms(500)
        assert guard.faults == []
