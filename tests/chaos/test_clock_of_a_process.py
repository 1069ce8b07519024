"""The clock against real failures of a real process: stops, crashes, a full disk, a locked file, a stepped wall clock.

Every test begins with a match whose running decision expires in a few seconds, and waits for real time to pass.
"""

import asyncio
import resource
import signal
import sqlite3
from pathlib import Path

import grpc
import pytest

from spectacularbid.v1 import events_pb2, outcomes_pb2
from tests.support.late_match import LateMatch
from tests.support.late_table import late_table, running
from tests.support.players import new_id

ABORTED = events_pb2.ABORT_REASON_TIMING_FAILURE


def lost_on_time(result: events_pb2.MatchWon | events_pb2.MatchAborted, match: LateMatch) -> bool:
    """Whether the match was lost on time, at the deadline itself."""
    return (
        isinstance(result, events_pb2.MatchWon)
        and result.reason == events_pb2.WIN_REASON_TIME
        and result.at_unix_ns == match.deadline_ns
    )


async def test_a_command_in_the_last_moment_is_in_time(tmp_path: Path) -> None:
    """Zero grace also means zero theft: 0.2 s before the deadline is before the deadline."""
    async with late_table(tmp_path) as table:
        await table.until_deadline(0.2)
        outcome = await table.play()
    assert outcome.HasField("accepted")
    assert outcome.receipt.verdict == outcomes_pb2.TIMING_VERDICT_IN_TIME
    assert outcome.receipt.deadline_unix_ns == table.match.deadline_ns


async def test_with_nobody_connected_the_deadline_is_kept_to_the_nanosecond(tmp_path: Path) -> None:
    """Faults 56 and 65: the server needs no client to end a match, and tells it soon."""
    async with late_table(tmp_path) as table:
        await table.until_deadline(-0.5)
        view = await table.spectator.view()
        assert lost_on_time(view.public.result.won, table.match)
        assert view.public.version == table.match.version + 1
        late = await table.play()
    assert late.refused.reason == outcomes_pb2.REFUSAL_REASON_MATCH_OVER


async def test_a_command_after_the_deadline_loses(tmp_path: Path) -> None:
    """Fault 70: a stamp behind the deadline is late, whatever the ping."""
    async with late_table(tmp_path) as table:
        await table.until_deadline(-0.15)  # further behind it than any stamp of a healthy process is wide
        outcome = await table.play()
        assert lost_on_time(outcome.view.public.result.won, table.match)
    assert outcome.refused.reason in (
        outcomes_pb2.REFUSAL_REASON_TIME_EXPIRED,
        outcomes_pb2.REFUSAL_REASON_MATCH_OVER,
    )


async def test_a_stopped_process_costs_nobody_the_match(tmp_path: Path) -> None:
    """SIGSTOP across the deadline: a command from before it and one from after it find no result to lose."""
    async with late_table(tmp_path) as table:
        await table.until_deadline(1.2)
        table.server.process.send_signal(signal.SIGSTOP)
        await table.until_deadline(0.6)
        before = asyncio.create_task(table.play())
        await table.until_deadline(-0.6)
        after = asyncio.create_task(table.play())
        table.server.process.send_signal(signal.SIGCONT)
        result = await table.result()
        outcomes = await asyncio.gather(before, after)
    assert isinstance(result, events_pb2.MatchAborted)
    assert result.reason == ABORTED
    assert all(outcome.HasField("refused") for outcome in outcomes)
    assert table.causes() & {"stamp straddles", "store gap"}


async def test_a_stopped_process_that_got_no_command_aborts_too(tmp_path: Path) -> None:
    """Nobody could have been served at the deadline, so nobody loses by it."""
    async with late_table(tmp_path) as table:
        await table.until_deadline(1.0)
        table.server.process.send_signal(signal.SIGSTOP)
        await table.until_deadline(-0.5)
        table.server.process.send_signal(signal.SIGCONT)
        result = await table.result()
    assert isinstance(result, events_pb2.MatchAborted)
    assert "store gap" in table.causes()


async def test_a_crash_across_the_deadline_aborts_the_match(tmp_path: Path) -> None:
    """Fault 64: kill -9, the deadline passes, and the restart finds a failure of the service, not a loss."""
    async with late_table(tmp_path) as table:
        await table.until_deadline(1.0)
        await table.server.kill()
        await table.until_deadline(-0.5)
    async with running(table.match, table.database) as restarted:
        result = await restarted.result()
    assert isinstance(result, events_pb2.MatchAborted)
    assert result.reason == ABORTED
    assert "replica lost" in restarted.causes()


async def test_a_crash_that_misses_the_deadline_changes_nothing(tmp_path: Path) -> None:
    """The decision goes on with its exact deadline, and is lost at it."""
    async with late_table(tmp_path, deadline_in_seconds=12.0) as table:
        await table.until_deadline(10.0)
        await table.server.kill()
    async with running(table.match, table.database) as restarted:
        clock = (await restarted.spectator.view()).public.clock
        assert clock.running.deadline_unix_ns == table.match.deadline_ns
        result = await restarted.result()
    assert lost_on_time(result, table.match)


async def test_a_full_disk_loses_no_command_and_no_match(tmp_path: Path) -> None:
    """What cannot be stored is UNAVAILABLE; the same id is accepted once there is room again."""
    async with late_table(tmp_path, deadline_in_seconds=8.0) as table:
        pid = table.server.process.pid
        _, hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (1, hard))
        command_id = new_id()
        with pytest.raises(grpc.aio.AioRpcError) as failure:
            await table.play(command_id)
        assert failure.value.code() is grpc.StatusCode.UNAVAILABLE
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (hard, hard))
        outcome = await table.play(command_id)
    assert outcome.HasField("accepted")


async def test_a_disk_that_is_full_at_the_deadline_aborts_the_match(tmp_path: Path) -> None:
    """A command in time that could not be stored is not a loss on time."""
    async with late_table(tmp_path) as table:
        pid = table.server.process.pid
        _, hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)
        await table.until_deadline(1.0)
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (1, hard))
        with pytest.raises(grpc.aio.AioRpcError):
            await table.play()
        await table.until_deadline(-0.5)
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (hard, hard))
        result = await table.result()
    assert isinstance(result, events_pb2.MatchAborted)
    assert "not committed" in table.causes()


async def test_a_locked_file_loses_no_command(tmp_path: Path) -> None:
    """A backup that holds the file too long makes the service unavailable, not unfair."""
    async with late_table(tmp_path, deadline_in_seconds=9.0) as table:
        stranger = sqlite3.connect(table.database, isolation_level=None)
        stranger.execute("BEGIN IMMEDIATE")
        command_id = new_id()
        with pytest.raises(grpc.aio.AioRpcError) as failure:
            await table.play(command_id)
        assert failure.value.code() is grpc.StatusCode.UNAVAILABLE
        stranger.execute("ROLLBACK")
        stranger.close()
        outcome = await table.play(command_id)
    assert outcome.HasField("accepted")


@pytest.mark.parametrize("step_seconds", [3600, -3600])
async def test_a_step_of_the_wall_clock_moves_no_deadline(tmp_path: Path, step_seconds: int) -> None:
    """Fault 77: service time is the boot clock; the wall clock is read once a boot."""
    async with late_table(tmp_path, wall_step_seconds=step_seconds) as table:
        await table.until_deadline(0.5)
        outcome = await table.play()
    assert outcome.HasField("accepted")
    assert outcome.receipt.margin_ns < 600_000_000
