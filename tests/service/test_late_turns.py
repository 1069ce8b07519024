"""A turn stored long after it began is a fault of its match, whoever stored it and whoever finds it (F2, K3)."""

import asyncio

from engine import events as ev
from engine.clock import DELAY_NS, SECOND_NS
from engine.faults import FaultCause
from service.ports import Append, StoreUnavailableError, VersionConflictError
from tests.support.ports import MemoryStore, Process, until
from tests.support.replicas import ReplicaStore, replica, sharing
from tests.support.store import NOON_NS
from tests.support.virtual_matches import MATCH_ID, legal_command, log_of, started, state_of, submit
from tests.support.virtual_time import in_virtual_time, settle

USED_BANK_NS = 3 * SECOND_NS


def shared() -> ReplicaStore:
    """The opening is due, and the rows are shared by replicas."""
    return sharing(started(), "nobody")


async def write(process: Process, change: Append) -> None:
    """Let a change become durable without anybody hearing of it."""
    await MemoryStore.append(sharing(process.store, "the server"), change)


async def make_a_move(process: Process) -> None:
    """Let the player on turn move, whatever becomes of it."""
    ticket = await submit(process, legal_command(await process.matches.get(MATCH_ID).state()))
    await asyncio.wait([ticket.done])
    ticket.done.exception()


async def answer_after(process: Process, used_ns: int) -> ev.Event:
    """The last event of the step that ends the running decision when that has used so much of the bank."""
    decision = state_of(process).decision
    assert decision is not None
    await until(decision.started_at_ns + DELAY_NS + used_ns)
    await make_a_move(process)
    return log_of(process)[-1][-1]


def stalls(process: Process) -> list[tuple[float, float]]:
    """From when to when, in seconds since noon, the ledger says that a turn was not to be seen."""
    return [
        ((row.fault.from_ns - NOON_NS) / SECOND_NS, round((row.fault.to_ns - NOON_NS) / SECOND_NS, 1))
        for row in process.store.ledger
        if row.fault.cause is FaultCause.PUBLISH_STALL and row.match_id == MATCH_ID
    ]


@in_virtual_time
async def test_a_turn_that_its_own_writer_finds_stored_late_is_a_fault() -> None:
    """The connection is lost at COMMIT; when the write is repeated it finds itself made, whenever that was."""
    async with replica(shared(), "one") as one:

        async def commit_late(change: Append) -> None:
            one.store.before_append = nothing
            await asyncio.sleep(1.5)
            await write(one, change)

        one.store.before_append = commit_late
        await make_a_move(one)
        assert stalls(one) == [(0.0, 1.5)]
        assert isinstance(await answer_after(one, USED_BANK_NS), ev.MatchAborted)


@in_virtual_time
async def test_a_turn_that_is_stored_after_its_writer_gave_up_is_a_fault() -> None:
    """The writer leaves before that; what it knew, that the turn was not there two seconds later, is enough."""
    rows = shared()
    async with replica(rows, "two") as two:
        lost: list[Append] = []
        async with replica(rows, "one") as one:

            async def give_up(change: Append) -> None:
                lost.append(change)
                await asyncio.sleep(2)
                raise StoreUnavailableError

            one.store.before_append = give_up
            await make_a_move(one)
            await asyncio.sleep(0.1)
            await one.core.stop()
        await write(two, lost[0])
        assert stalls(two) == [(0.0, 2.0)]
        assert isinstance(await answer_after(two, USED_BANK_NS), ev.MatchAborted)


@in_virtual_time
async def test_a_turn_of_a_lost_replica_that_was_not_there_when_another_looked_is_a_fault() -> None:
    """Nobody is left who wrote it: the other one's look is the proof."""
    rows = shared()
    async with replica(rows, "one") as one, replica(rows, "two") as two:
        kept: list[Append] = []

        async def keep(change: Append) -> None:
            kept.append(change)
            raise StoreUnavailableError

        one.store.before_append = keep
        await make_a_move(one)
        one.core.release()
        await until(NOON_NS, plus_seconds=1.5)
        await two.matches.get(MATCH_ID).state()
        await until(NOON_NS, plus_seconds=2)
        await write(two, kept[0])
        await two.matches.get(MATCH_ID).state()
        await settle()
        assert stalls(two) == [(0.0, 1.5)]


@in_virtual_time
async def test_a_turn_of_a_lost_replica_for_whose_lock_another_had_to_wait_is_a_fault() -> None:
    """The player repeated the command there; the wait is the proof."""
    rows = shared()
    async with replica(rows, "one") as one, replica(rows, "two") as two:
        await two.matches.get(MATCH_ID).state()
        kept: list[Append] = []

        async def keep(change: Append) -> None:
            kept.append(change)
            raise StoreUnavailableError

        async def wait_for_the_lock(_: Append) -> None:
            await until(NOON_NS, plus_seconds=1.5)
            error = VersionConflictError(MATCH_ID)
            error.unmoved_at = asyncio.get_running_loop().time()
            await write(two, kept[0])
            two.store.before_append = nothing
            raise error

        one.store.before_append, two.store.before_append = keep, wait_for_the_lock
        await make_a_move(one)
        one.core.release()
        await make_a_move(two)
        await settle()
        assert stalls(two) == [(0.0, 1.5)]


@in_virtual_time
async def test_a_turn_that_was_stored_at_once_is_no_fault_however_late_another_replica_finds_it() -> None:
    """Nobody had asked it before."""
    rows = shared()
    async with replica(rows, "one") as one, replica(rows, "two") as two:
        await two.matches.get(MATCH_ID).state()
        await make_a_move(one)
        await asyncio.sleep(9)
        assert len(log_of(two)) == (await two.matches.get(MATCH_ID).state()).version
        assert stalls(two) == []
        assert isinstance(await answer_after(two, USED_BANK_NS), ev.ClockStarted)


@in_virtual_time
async def test_a_writer_that_gave_up_does_not_hold_it_against_a_turn_that_another_replica_stored_at_once() -> None:
    """It was cut off; the player went to another one, and the opponent saw the turn there."""
    rows = shared()
    async with replica(rows, "one") as one, replica(rows, "two") as two:

        async def give_up(_: Append) -> None:
            await asyncio.sleep(2.9)
            raise StoreUnavailableError

        one.store.before_append = give_up
        cut_off = asyncio.create_task(make_a_move(one))
        await asyncio.sleep(1)
        await make_a_move(two)
        await cut_off
        await asyncio.sleep(1)
        assert stalls(one) == []
        assert isinstance(await answer_after(two, USED_BANK_NS), ev.ClockStarted)


async def nothing(_: Append) -> None:
    """Let the next write be made at once."""
