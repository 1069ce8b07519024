"""One timer for the deadlines of all matches."""

import asyncio
from dataclasses import dataclass, field
from random import Random

import pytest

from service.deadlines import Deadlines
from service.metrics import Metrics
from tests.support.ports import VirtualClock
from tests.support.store import NOON_NS
from tests.support.virtual_time import in_virtual_time, virtual_now_ns

SECOND_NS = 1_000_000_000


@dataclass
class Fired:
    """The deadlines under test, and what they fired at which second. So many times firing sets the next deadline."""

    chained: int = 0
    log: list[tuple[str, float]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.deadlines = Deadlines(VirtualClock(), self._fire, Metrics().deadlines)

    def arm(self, match_id: str, seconds: float | None) -> None:
        """Set a deadline at so many seconds after the beginning, or lift it."""
        self.deadlines.arm(match_id, None if seconds is None else NOON_NS + int(seconds * SECOND_NS))

    async def until(self, second: float) -> list[tuple[str, float]]:
        """Let time pass; what was fired so far."""
        await asyncio.sleep(second - virtual_now_ns() / SECOND_NS)
        return self.log

    def _fire(self, match_id: str) -> None:
        now_seconds = virtual_now_ns() / SECOND_NS
        self.log.append((match_id, now_seconds))
        if self.chained:
            self.chained -= 1
            self.arm(match_id, now_seconds + 1)


@in_virtual_time
async def test_deadlines_fire_in_their_order_each_at_its_instant() -> None:
    """Whatever the order in which they were set."""
    fired = Fired()
    for match_id, seconds in (("c", 30), ("a", 10), ("b", 20)):
        fired.arm(match_id, seconds)
    assert await fired.until(40) == [("a", 10), ("b", 20), ("c", 30)]


@in_virtual_time
async def test_a_deadline_never_fires_early_and_fires_once() -> None:
    """Not one nanosecond."""
    fired = Fired()
    fired.arm("a", 10)
    assert await fired.until(9.999_999_999) == []
    assert await fired.until(1_000) == [("a", 10)]
    assert len(fired.deadlines) == 0


@pytest.mark.parametrize(("first", "then"), [(10, 20), (20, 10), (10, 10)])
@in_virtual_time
async def test_a_deadline_set_again_replaces_the_earlier_one(first: int, then: int) -> None:
    """Later, earlier, or the same."""
    fired = Fired()
    fired.arm("a", first)
    fired.arm("a", then)
    assert len(fired.deadlines) == 1
    assert await fired.until(40) == [("a", then)]


@in_virtual_time
async def test_a_lifted_deadline_does_not_fire() -> None:
    """Others do; lifting what was not set is fine."""
    fired = Fired()
    for match_id in ("a", "b"):
        fired.arm(match_id, 10)
    for match_id in ("a", "unknown"):
        fired.arm(match_id, None)
    assert await fired.until(40) == [("b", 10)]


@in_virtual_time
async def test_what_is_overdue_when_it_is_set_fires_at_once() -> None:
    """After a restart many are."""
    fired = Fired()
    fired.arm("a", -3_600)
    assert await fired.until(0.001) == [("a", 0)]


@in_virtual_time
async def test_a_deadline_may_be_set_while_another_fires() -> None:
    """The next decision begins where this one ended."""
    fired = Fired(chained=3)
    fired.arm("a", 1)
    assert await fired.until(10) == [("a", 1), ("a", 2), ("a", 3), ("a", 4)]


@in_virtual_time
async def test_it_tells_how_long_the_most_overdue_match_waits() -> None:
    """A stalled loop shows here; nothing overdue is zero."""
    fired = Fired()
    assert fired.deadlines.oldest_overdue_ns() == 0
    fired.arm("a", 10)
    assert fired.deadlines.oldest_overdue_ns() == 0
    fired.arm("b", -5)
    fired.arm("c", -7)
    assert fired.deadlines.oldest_overdue_ns() == 7 * SECOND_NS


@in_virtual_time
async def test_closed_deadlines_fire_no_more() -> None:
    """The process is ending."""
    fired = Fired()
    fired.arm("a", 10)
    fired.deadlines.close()
    assert await fired.until(40) == []
    assert len(fired.deadlines) == 0


@in_virtual_time
async def test_a_million_changes_leave_one_timer_and_little_memory() -> None:
    """Every turn sets a deadline that the next turn replaces."""
    fired = Fired()
    chance = Random(7)
    for turn in range(20_000):
        fired.arm(f"m{turn % 10}", 1_000 + turn / 1_000)
        if chance.randrange(10) == 0:
            fired.arm(f"m{chance.randrange(10)}", None)
    assert len(fired.deadlines._heap) <= 2 * 10 + 1_024
    timers = [handle for handle in asyncio.get_running_loop()._scheduled if not handle.cancelled()]  # type: ignore[attr-defined]
    assert len(timers) == 1
    expected = dict(fired.deadlines._due)
    await fired.until(2_000)
    assert {match_id: NOON_NS + round(second * SECOND_NS) for match_id, second in fired.log} == expected
