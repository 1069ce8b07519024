"""A process that stands still across a deadline, and what Envoy says of a command that came meanwhile.

The test plays Envoy, and stamps by a clock that is an hour ahead. The real one is in `tests/dev/test_envoy.py`.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import grpc
import pytest

from spectacularbid.v1 import events_pb2, outcomes_pb2
from tests.support.late_table import LateTable, late_table
from tests.support.programs import frozen

MINUTE_NS = 60_000_000_000
AHEAD_NS = 60 * MINUTE_NS
LOOKS_SECONDS = [seconds / 10 for seconds in range(45, 5, -3)]
"""So long before the deadline commands come that show how Envoy's clock stands; on a busy machine not each of them."""
NO_FAULT_MS = "10000"
"""A stop of a second would otherwise be a failure of the service in itself, whatever Envoy says."""


def stamp(*, later_ns: int = 0) -> str:
    """What this Envoy writes of a command that has come right now."""
    seconds, nanoseconds = divmod(time.time_ns() + AHEAD_NS + later_ns, 1_000_000_000)
    return f"{seconds}.{nanoseconds:09d} 0"


@asynccontextmanager
async def known_to_envoy(folder: Path) -> AsyncIterator[tuple[LateTable, LateTable]]:
    """A late table by everybody's port and by Envoy's, whose clock the process knows in the end."""
    async with (
        late_table(folder, deadline_in_seconds=6.0, ENVOY_PORT="0", STORE_GAP_MS=NO_FAULT_MS) as table,
        grpc.aio.insecure_channel(table.server.envoy_address) as channel,
    ):
        behind = table.at(channel)
        for seconds in LOOKS_SECONDS:
            await table.until_deadline(seconds)
            await behind.say_nothing(stamp=stamp())
        await table.say_nothing()  # which connects
        yield table, behind


async def sent_into_a_stop(
    table: LateTable, *, left_seconds: float, said: Callable[[], str] = stamp
) -> outcomes_pb2.CommandOutcome:
    """The outcome of a command that comes so long before the deadline, while the process stands still across that."""
    await table.until_deadline(max(0.0, left_seconds) + 0.2)
    async with frozen(table.server.process):
        await table.until_deadline(left_seconds)
        sending = asyncio.create_task(table.play(stamp=said()))
        await table.until_deadline(min(0.0, left_seconds) - 0.2)
    return await sending


def proves_nothing(outcome: outcomes_pb2.CommandOutcome) -> bool:
    """Whether the command was judged by the service's own stamp, which is as wide as the stop was long."""
    aborted = outcome.view.public.result.aborted
    return (
        aborted.reason == events_pb2.ABORT_REASON_TIMING_FAILURE
        and outcome.receipt.verdict == outcomes_pb2.TIMING_VERDICT_UNPROVABLE
        and not outcome.receipt.HasField("own_earliest_unix_ns")
    )


async def test_a_command_that_came_in_time_is_accepted(tmp_path: Path) -> None:
    """Its receipt says what the service knew by itself, and how much of that Envoy left."""
    async with known_to_envoy(tmp_path) as (_, behind):
        outcome = await sent_into_a_stop(behind, left_seconds=0.2)
    assert outcome.HasField("accepted")
    receipt = outcome.receipt
    assert receipt.verdict == outcomes_pb2.TIMING_VERDICT_IN_TIME
    assert receipt.own_earliest_unix_ns <= receipt.arrival_earliest_unix_ns
    assert receipt.arrival_latest_unix_ns < receipt.deadline_unix_ns < receipt.own_latest_unix_ns


async def test_a_command_that_came_too_late_loses(tmp_path: Path) -> None:
    """What the service by itself could not have told from one in time."""
    async with known_to_envoy(tmp_path) as (_, behind):
        outcome = await sent_into_a_stop(behind, left_seconds=-0.2)
    assert outcome.refused.reason == outcomes_pb2.REFUSAL_REASON_TIME_EXPIRED
    assert outcome.view.public.result.won.at_unix_ns == outcome.receipt.deadline_unix_ns
    assert outcome.receipt.own_earliest_unix_ns < outcome.receipt.deadline_unix_ns


async def test_at_everybodys_port_the_same_stamp_has_no_effect(tmp_path: Path) -> None:
    async with known_to_envoy(tmp_path) as (table, _):
        assert proves_nothing(await sent_into_a_stop(table, left_seconds=0.2))


@pytest.mark.parametrize(
    "said", [lambda: "1.5 0", partial(stamp, later_ns=MINUTE_NS)], ids=["no stamp", "a minute later"]
)
async def test_a_stamp_that_cannot_be_is_not_believed(tmp_path: Path, said: Callable[[], str]) -> None:
    """The service is back to what it knows by itself."""
    async with known_to_envoy(tmp_path) as (_, behind):
        assert proves_nothing(await sent_into_a_stop(behind, left_seconds=0.2, said=said))
