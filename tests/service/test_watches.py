"""Watching by the latest version, and the events kept for streams that fall behind."""

import asyncio

import pytest

from engine.events import Event, Passed, Step
from engine.seats import Seat
from engine.view import Audience
from service.watches import RECENT_STEPS, Recent, Watch
from tests.support.virtual_time import in_virtual_time, settle


def step(version: int) -> Step:
    """The events of a version, told apart by their number: as many passes as the version says, modulo 3."""
    return (Passed(Seat.ONE),) * (version % 3 + 1)


def events(*versions: int) -> tuple[Event, ...]:
    """The events of these versions, in order."""
    return tuple(event for version in versions for event in step(version))


def recent(versions: range) -> Recent:
    """The events of these versions were remembered."""
    kept = Recent()
    for version in versions:
        kept.add(version, step(version))
    return kept


OLDEST = 100 - RECENT_STEPS


@pytest.mark.parametrize(
    ("after", "upto", "versions", "complete"),
    [
        (98, 99, (99,), True),
        (95, 99, (96, 97, 98, 99), True),
        (99, 99, (), True),
        (95, 97, (96, 97), True),
        (OLDEST - 1, 99, tuple(range(OLDEST, 100)), True),
        (OLDEST - 2, 99, tuple(range(OLDEST, 100)), False),
        (99, 98, (), True),
    ],
)
def test_events_since_a_version_say_whether_any_is_missing(
    after: int,
    upto: int,
    versions: tuple[int, ...],
    complete: bool,  # noqa: FBT001  a column of the table
) -> None:
    """The last versions are kept; a stream that is further behind gets the view and an honest flag."""
    assert recent(range(1, 100)).since(after, upto) == (events(*versions), complete)


def test_nothing_remembered_is_nothing_complete() -> None:
    """A match not loaded yet."""
    assert Recent().since(0, 3) == ((), False)


@in_virtual_time
async def test_a_new_watch_is_woken_at_once() -> None:
    """The first full view comes without waiting for a change."""
    await Watch(Audience.SPECTATOR, 0).woken()


@in_virtual_time
async def test_a_watch_waits_until_it_is_woken_again() -> None:
    """Once is enough for any number of changes: the latest view is read then."""
    watch = Watch(Audience.SEAT_ONE, 0)
    await watch.woken()
    waiting = asyncio.ensure_future(watch.woken())
    await settle()
    assert not waiting.done()
    for _ in range(3):
        watch.wake()
    await waiting
    again = asyncio.ensure_future(watch.woken())
    await settle()
    assert not again.done()
    again.cancel()


@in_virtual_time
async def test_a_change_while_a_message_is_being_written_is_not_missed() -> None:
    """Waking nobody is remembered."""
    watch = Watch(Audience.SEAT_ONE, 0)
    await watch.woken()
    watch.wake()
    await watch.woken()


@in_virtual_time
async def test_a_watch_whose_stream_was_cancelled_can_still_be_woken() -> None:
    """The stream ends a moment before the match forgets its watch."""
    watch = Watch(Audience.SEAT_ONE, 0)
    await watch.woken()
    waiting = asyncio.ensure_future(watch.woken())
    await settle()
    waiting.cancel()
    await settle()
    watch.wake()
    await watch.woken()
