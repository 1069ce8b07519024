"""The service's time, and the clocks of a view at an instant of it."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from spectacularbid.client import ClockSync, Service, Settings, bank_remaining_ns, connect, delay_remaining_ns
from spectacularbid.client.clock import SAMPLES, SYNC_EVERY_SECONDS, Sample
from spectacularbid.v1.tiles_pb2 import Seat
from spectacularbid.v1.views_pb2 import (
    STOP_REASON_HANDOVER,
    ClockView,
    MatchView,
    RunningClock,
    StoppedClock,
)
from tests.clients.build import BANK_NS, ONE, SECOND_NS, TWO, view
from tests.clients.conftest import Recorder

MS = 1_000_000


def sample(*, sent: int, received: int, transmitted: int, returned: int, bound: int = 0) -> Sample:
    return Sample(
        sent_ns=sent,
        received_unix_ns=received,
        transmitted_unix_ns=transmitted,
        returned_ns=returned,
        server_error_bound_ns=bound,
    )


@pytest.mark.parametrize(
    ("taken", "offset_ns", "round_trip_ns"),
    [
        (sample(sent=0, received=1005, transmitted=1005, returned=10), 1000, 10),
        (sample(sent=0, received=1005, transmitted=1025, returned=30), 1000, 10),
        (sample(sent=0, received=1010, transmitted=1010, returned=10), 1005, 10),
        (sample(sent=100, received=50, transmitted=60, returned=130), -60, 20),
        (sample(sent=0, received=0, transmitted=50, returned=10), 20, 0),
    ],
    ids=["even", "service time does not count", "uneven", "behind", "impossible"],
)
def test_a_sample_gives_offset_and_round_trip(taken: Sample, offset_ns: int, round_trip_ns: int) -> None:
    """Half of both ways; a round trip is never negative."""
    assert (taken.offset_ns, taken.round_trip_ns) == (offset_ns, round_trip_ns)


@pytest.fixture
async def clock(service: Service) -> ClockSync:
    """A clock whose own monotonic clock stands at 1 ms."""
    made = service.clock()
    made._settings = replace(Settings(), monotonic_ns=lambda: MS)
    return made


async def test_the_quickest_of_the_last_samples_counts(clock: ClockSync) -> None:
    """A slow sample in between changes nothing."""
    clock.add(sample(sent=0, received=1000 * MS, transmitted=1000 * MS, returned=40 * MS))
    clock.add(sample(sent=0, received=1000 * MS, transmitted=1000 * MS, returned=2 * MS, bound=5))
    clock.add(sample(sent=0, received=1000 * MS, transmitted=1000 * MS, returned=90 * MS))
    assert clock.now_ns() == 1000 * MS
    assert clock.error_bound_ns() == MS + 5


async def test_old_samples_are_forgotten(clock: ClockSync) -> None:
    """The quick one was too long ago."""
    clock.add(sample(sent=0, received=0, transmitted=0, returned=0))
    for _ in range(SAMPLES):
        clock.add(sample(sent=0, received=7 * MS, transmitted=7 * MS, returned=2 * MS))
    assert clock.now_ns() == 7 * MS


async def test_without_a_sample_there_is_no_time(clock: ClockSync) -> None:
    """Rather than a wrong one."""
    assert not clock.is_synced
    with pytest.raises(LookupError):
        clock.now_ns()
    with pytest.raises(LookupError):
        clock.error_bound_ns()


async def test_a_sample_is_taken_from_the_service(clock: ClockSync) -> None:
    """Its clock stands at 1 s and is good to 1 ms; the way took no time at all."""
    await clock.sample()
    assert clock.now_ns() == SECOND_NS
    assert clock.error_bound_ns() == MS


async def test_sampling_goes_on_through_failures(recorder: Recorder) -> None:
    """A service that is away for a while is asked again; nobody is there at this address."""
    settings = recorder.settings()
    is_enough = asyncio.Event()

    async def sleep(seconds: float) -> None:
        await settings.sleep(seconds)
        if len(recorder.pauses) == 2:
            is_enough.set()

    async with connect("127.0.0.1:1", settings=replace(settings, sleep=sleep)) as service:
        keeping = asyncio.ensure_future(service.clock().keep_synced())
        await is_enough.wait()
        keeping.cancel()
    assert set(recorder.pauses) == {SYNC_EVERY_SECONDS}


def running(seat: Seat.ValueType) -> MatchView:
    """A decision that began at 100 s, with 10 s of delay and 120 s of bank."""
    clock = RunningClock(
        seat=seat,
        started_at_unix_ns=100 * SECOND_NS,
        delay_ends_at_unix_ns=110 * SECOND_NS,
        deadline_unix_ns=230 * SECOND_NS,
    )
    return view(clock=ClockView(running=clock))


@pytest.mark.parametrize(
    ("at_seconds", "delay_seconds", "bank_seconds"),
    [(99, 10, 120), (100, 10, 120), (108, 2, 120), (110, 0, 120), (113, 0, 117), (230, 0, 0), (999, 0, 0)],
)
def test_the_bank_stands_still_until_the_delay_is_used_up(
    at_seconds: int, delay_seconds: int, bank_seconds: int
) -> None:
    """And neither is ever below zero, or above what there was."""
    shown = running(ONE)
    assert delay_remaining_ns(shown, ONE, at_seconds * SECOND_NS) == delay_seconds * SECOND_NS
    assert bank_remaining_ns(shown, ONE, at_seconds * SECOND_NS) == bank_seconds * SECOND_NS


def test_the_other_players_clock_stands() -> None:
    """Their bank is what the view says, with no delay running."""
    assert bank_remaining_ns(running(ONE), TWO, 200 * SECOND_NS) == BANK_NS
    assert delay_remaining_ns(running(ONE), TWO, 100 * SECOND_NS) == 0


def test_stopped_clocks_stand() -> None:
    """Whatever the time."""
    shown = view(clock=ClockView(stopped=StoppedClock(reason=STOP_REASON_HANDOVER)))
    assert bank_remaining_ns(shown, ONE, 999 * SECOND_NS) == BANK_NS
    assert delay_remaining_ns(shown, ONE, 0) == 0
