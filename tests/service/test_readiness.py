"""A process that is not sure what time it is, or is alone in not reaching the store, takes no new clients."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from structlog.testing import capture_logs

from engine.commands import Continue
from service.fanout.local import LocalBus
from service.metrics import Metrics
from service.ports import StoreUnavailableError
from service.readiness import AWAY_NS, LOOK_SECONDS, PATIENCE_LOOKS, WELL_NS, Readiness
from service.writer import UNCERTAIN_NS
from tests.support.ports import Process, VirtualClock
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


class Trouble(VirtualClock):
    """A clock, a store and a bus that get into trouble, and what of it is seen."""

    def __init__(self) -> None:
        self.door, self.bus, self.metrics = Door(), Others(), Metrics().clock
        self.error_ns = 0
        self.away_since_ns: int | None = None

    def error_bound_ns(self) -> int:
        return self.error_ns

    def stored_ns(self) -> int:
        """When the last heartbeat was stored."""
        return self.now_ns() if self.away_since_ns is None else self.away_since_ns

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Look after it inside the block."""
        watching = asyncio.create_task(Readiness(self, self.stored_ns, self.bus, self.metrics, self.door).run())
        yield
        watching.cancel()


class Others(LocalBus):
    """A bus by which others may be heard."""

    is_heard = False
    said = 0

    @property
    def others_are_well(self) -> bool:
        return self.is_heard

    def say_well(self) -> None:
        self.said += 1


@in_virtual_time
async def test_a_clock_that_stays_unsure_makes_the_process_not_ready_until_it_is_sure() -> None:
    """After three seconds, once, and back as soon as it is sure again."""
    trouble = Trouble()
    told = trouble.door.told
    with trouble.watched():
        await asyncio.sleep(60)
        assert told == []
        trouble.error_ns = UNCERTAIN_NS + 1
        await asyncio.sleep(PATIENCE_SECONDS - LOOK_SECONDS)
        assert told == []
        await asyncio.sleep(60)
        assert told == [False]
        trouble.error_ns = UNCERTAIN_NS
        await asyncio.sleep(2 * LOOK_SECONDS)
        assert told == [False, True]


@in_virtual_time
async def test_one_unsure_moment_says_nothing() -> None:
    """A slow answer now and then is no reason to send clients away."""
    trouble = Trouble()
    with trouble.watched():
        for _ in range(10):
            trouble.error_ns = UNCERTAIN_NS + 1
            await asyncio.sleep(PATIENCE_SECONDS - 2 * LOOK_SECONDS)
            trouble.error_ns = 0
            await asyncio.sleep(2 * LOOK_SECONDS)
    assert trouble.door.told == []


@in_virtual_time
async def test_who_cannot_reach_the_store_while_others_can_is_not_ready() -> None:
    """After three seconds, until it can again; or until nobody can, for then it is no better elsewhere."""
    trouble = Trouble()
    told = trouble.door.told
    with trouble.watched():
        await asyncio.sleep(10)
        trouble.bus.is_heard = True
        trouble.away_since_ns = trouble.now_ns()
        await asyncio.sleep(AWAY_NS / 1e9 - LOOK_SECONDS)
        assert told == []
        await asyncio.sleep(60)
        assert told == [False]
        trouble.bus.is_heard = False
        await asyncio.sleep(2 * LOOK_SECONDS)
        assert told == [False, True]
        trouble.bus.is_heard = True
        await asyncio.sleep(2 * LOOK_SECONDS)
        trouble.away_since_ns = None
        await asyncio.sleep(2 * LOOK_SECONDS)
        assert told == [False, True, False, True]


@in_virtual_time
async def test_an_outage_of_the_store_that_is_everybodys_sends_nobody_away() -> None:
    """Callers are told to repeat; however long it lasts, and however unsure the clock becomes."""
    trouble = Trouble()
    with trouble.watched():
        trouble.away_since_ns = trouble.now_ns()
        await asyncio.sleep(60)
        trouble.error_ns = UNCERTAIN_NS + 1
        await asyncio.sleep(600)
    assert trouble.door.told == []


@in_virtual_time
async def test_only_who_reaches_the_store_says_that_it_is_well() -> None:
    """And stops to say so soon enough for nobody to be taken for well in an outage of all."""
    trouble = Trouble()
    with trouble.watched():
        await asyncio.sleep(10)
        assert trouble.bus.said >= 10 / LOOK_SECONDS - 1
        trouble.away_since_ns = trouble.now_ns()
        await asyncio.sleep(WELL_NS / 1e9)
        said = trouble.bus.said
        await asyncio.sleep(60)
        assert trouble.bus.said == said


@in_virtual_time
async def test_how_many_commands_were_not_stamped_is_logged_twice_a_second_at_most() -> None:
    """However many there are."""
    trouble = Trouble()
    with trouble.watched(), capture_logs() as logs:
        for _ in range(1_000):
            trouble.metrics.unstamped.inc()
        await asyncio.sleep(10)
        trouble.metrics.unstamped.inc()
        await asyncio.sleep(10)
    assert [(log["event"], log["commands"]) for log in logs] == [("commands_not_stamped", n) for n in (1_000, 1)]


@in_virtual_time
async def test_while_the_clock_is_unsure_nothing_is_stamped() -> None:
    """The client repeats the command, here or at another replica."""
    async with Process.running(started()) as process:
        process.core.clock.error_bound_ns = lambda: UNCERTAIN_NS + 1
        with pytest.raises(StoreUnavailableError):
            await submit(process, Continue())
        assert process.metrics.clock.unstamped.count == 1
        process.core.clock.error_bound_ns = lambda: UNCERTAIN_NS
        await (await submit(process, Continue())).done
