"""The event loop of the simulator: time comes from outside, order from a seed, death without a last word."""

import asyncio
from random import Random

from tests.sim.loop import SimLoop


class Clock:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now_ns = 0

    def pass_until_idle(self, loop: SimLoop) -> None:
        """Let time pass to each timer in turn, until nothing more will happen."""
        while (due_in_ns := loop.due_in_ns()) is not None:
            self.now_ns += due_in_ns
            loop.turn()


def made(seed: int | None = None) -> tuple[Clock, SimLoop]:
    clock = Clock()
    return clock, SimLoop(lambda: clock.now_ns, None if seed is None else Random(seed))


def test_time_passes_only_from_timer_to_timer() -> None:
    """Hours take no time, and a timer is never late."""
    clock, loop = made()
    seen: list[float] = []

    async def sleeper() -> None:
        for seconds in (3_600, 0, 0.25):
            await asyncio.sleep(seconds)
            seen.append(loop.time())

    loop.create_task(sleeper())
    clock.pass_until_idle(loop)
    assert seen == [3_600, 3_600, 3_600.25]
    loop.close()


def order_of(seed: int | None) -> list[int]:
    clock, loop = made(seed)
    order: list[int] = []
    for number in range(20):
        loop.call_soon(order.append, number)
    clock.pass_until_idle(loop)
    loop.close()
    return order


def test_the_order_of_what_is_ready_is_the_seeds() -> None:
    """The same again for the same seed; without one it is asyncio's own."""
    assert order_of(None) == list(range(20))
    assert order_of(1) == order_of(1) != order_of(2)
    assert sorted(order_of(1)) == list(range(20))


def test_what_is_killed_does_not_run_on() -> None:
    """Neither what is ready nor what a timer or another task would wake; clean-up code runs and reaches nobody."""
    clock, loop = made()
    words: list[str] = []
    never = loop.create_future()

    async def waiter() -> None:
        try:
            await never
            words.append("woken")
        finally:
            words.append("closed")

    loop.create_task(waiter())
    loop.turn()
    loop.call_soon(words.append, "ready")
    loop.call_later(1, words.append, "timer")
    loop.kill()
    assert words == ["closed"]
    assert loop.due_in_ns() is None
    assert clock.now_ns == 0


def test_a_process_that_dies_in_a_turn_does_nothing_more_in_it() -> None:
    """What else was ready never happens."""
    clock, loop = made()
    words: list[str] = []

    def die() -> None:
        words.append("last")
        loop.is_halted = True

    loop.call_soon(die)
    loop.call_soon(words.append, "too late")
    loop.turn()
    assert words == ["last"]
    assert clock.now_ns == 0
    loop.kill()


def test_a_failing_callback_is_kept_and_the_loop_goes_on() -> None:
    """The auditor counts it as a mistake of the service."""
    clock, loop = made()

    def fail() -> None:
        raise ValueError("oops")

    loop.call_soon(fail)
    clock.pass_until_idle(loop)
    assert len(loop.mishaps) == 1
    assert "oops" in loop.mishaps[0]
    loop.close()
