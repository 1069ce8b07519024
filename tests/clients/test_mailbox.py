"""The slot between a stream and a slow reader."""

from __future__ import annotations

import asyncio

import pytest

from spectacularbid.client import UnavailableError
from spectacularbid.client.mailbox import Mailbox
from spectacularbid.v1.events_pb2 import Event, Passed
from tests.clients.build import ONE, update

PASSED = Event(passed=Passed(seat=ONE))


@pytest.mark.parametrize(
    ("given", "events", "complete"),
    [
        ([(1, True)], 1, True),
        ([(1, True), (1, True)], 2, True),
        ([(0, False), (1, True)], 1, False),
        ([(1, True), (0, False)], 1, False),
        ([(1, True), (1, True), (1, True)], 0, False),
    ],
    ids=["alone", "joined", "gap before", "gap after", "too many"],
)
async def test_unread_updates_are_joined_up_to_a_limit(
    given: list[tuple[int, bool]], events: int, *, complete: bool
) -> None:
    """Here to two events. The latest view stands; beyond the limit the events are gone and it says so."""
    mailbox = Mailbox(merged_events=2)
    for version, (count, is_complete) in enumerate(given, start=1):
        mailbox.put(update(version, *[PASSED] * count, complete=is_complete))
    taken = await mailbox.take()
    assert taken.view.public.version == len(given)
    assert (len(taken.events), taken.events_complete) == (events, complete)


async def test_an_error_comes_after_the_last_update_and_stays() -> None:
    """A reader gets what there was, then hears why there is no more, as often as it asks."""
    mailbox = Mailbox(merged_events=2)
    mailbox.put(update(1))
    mailbox.fail(UnavailableError("gone"))
    assert (await mailbox.take()).view.public.version == 1
    for _ in range(2):
        with pytest.raises(UnavailableError):
            await mailbox.take()


async def test_a_reader_waits_for_the_next_update() -> None:
    """An empty slot is no answer."""
    mailbox = Mailbox(merged_events=2)
    waiting = asyncio.ensure_future(mailbox.take())
    await asyncio.sleep(0)
    assert not waiting.done()
    mailbox.put(update(1))
    assert (await waiting).view.public.version == 1
