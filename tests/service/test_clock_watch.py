"""A process that is not sure what time it is takes no new clients and stamps nothing."""

import asyncio

import pytest

from engine.commands import Continue
from service.clock_watch import LOOK_SECONDS, PATIENCE_LOOKS, ClockWatch
from service.ports import StoreUnavailableError
from service.writer import UNCERTAIN_NS
from tests.support.ports import Process
from tests.support.virtual_matches import started, submit
from tests.support.virtual_time import in_virtual_time

PATIENCE_SECONDS = PATIENCE_LOOKS * LOOK_SECONDS


class Door:
    """What load balancers are told."""

    def __init__(self) -> None:
        self.told: list[bool] = []

    async def refuse_new_clients(self) -> None:
        self.told.append(False)

    async def accept_new_clients(self) -> None:
        self.told.append(True)


@in_virtual_time
async def test_a_clock_that_stays_unsure_makes_the_process_not_ready_until_it_is_sure() -> None:
    """After three seconds, once, and back as soon as it is sure again."""
    door, error_ns = Door(), [0]
    watching = asyncio.create_task(ClockWatch(lambda: error_ns[0], door).run())
    await asyncio.sleep(60)
    assert door.told == []
    error_ns[0] = UNCERTAIN_NS + 1
    await asyncio.sleep(PATIENCE_SECONDS - LOOK_SECONDS)
    assert door.told == []
    await asyncio.sleep(60)
    assert door.told == [False]
    error_ns[0] = UNCERTAIN_NS
    await asyncio.sleep(2 * LOOK_SECONDS)
    assert door.told == [False, True]
    watching.cancel()


@in_virtual_time
async def test_one_unsure_moment_says_nothing() -> None:
    """A slow answer now and then is no reason to send clients away."""
    door, error_ns = Door(), [0]
    watching = asyncio.create_task(ClockWatch(lambda: error_ns[0], door).run())
    for _ in range(10):
        error_ns[0] = UNCERTAIN_NS + 1
        await asyncio.sleep(PATIENCE_SECONDS - 2 * LOOK_SECONDS)
        error_ns[0] = 0
        await asyncio.sleep(2 * LOOK_SECONDS)
    assert door.told == []
    watching.cancel()


@in_virtual_time
async def test_while_the_clock_is_unsure_nothing_is_stamped() -> None:
    """The client repeats the command, here or at another replica."""
    async with Process.running(started()) as process:
        process.core.clock.error_bound_ns = lambda: UNCERTAIN_NS + 1
        with pytest.raises(StoreUnavailableError):
            await submit(process, Continue())
        process.core.clock.error_bound_ns = lambda: UNCERTAIN_NS
        await (await submit(process, Continue())).done
