"""The store's server comes back without the last that it had acknowledged: nobody loses by it, and everybody hears."""

import asyncio
from collections.abc import Sequence

import pytest

from engine import events as ev
from engine.clock import BANK_NS, DELAY_NS, SECOND_NS, Arrival, Verdict
from engine.events import Step
from engine.faults import Fault, FaultCause
from engine.refusals import Refusal, RefusalReason
from engine.seats import Seat
from engine.view import Audience
from service.footing import Footing, OneTurn
from service.match import VersionsLostError
from service.ports import (
    Append,
    CommandRecord,
    Heartbeat,
    LedgerRow,
    Receipt,
    StoreUnavailableError,
    VersionConflictError,
)
from service.watermark import BEAT_SECONDS
from tests.support.ports import MemoryStore, Process, until, virtual_service_ns
from tests.support.replicas import MemoryLineage, ReplicaStore, replica, sharing
from tests.support.store import NOON_NS
from tests.support.virtual_matches import MATCH_ID, legal_command, log_of, started, submit
from tests.support.virtual_time import in_virtual_time

DEADLINE_NS = NOON_NS + DELAY_NS + BANK_NS
SOON_SECONDS = 3 * BEAT_SECONDS


def shared(store: MemoryStore) -> ReplicaStore:
    """Rows that replicas share."""
    return sharing(store, "nobody")


def come_back(*processes: Process, versions: int, has_lost: bool = False, kept_until_ns: int | None = None) -> None:
    """The server has so many versions left of the match; of heartbeats all, or those until then."""
    del log_of(processes[0])[versions:]
    for process in processes:
        lineage, store = process.lineage, process.store
        assert isinstance(lineage, MemoryLineage)
        assert isinstance(store, ReplicaStore)
        row = store.replicas[store.name]
        if kept_until_ns is not None:
            row.heartbeat = Heartbeat(kept_until_ns, kept_until_ns)
        lineage.doubt(row.heartbeat.at_ns, has_lost=has_lost or kept_until_ns is not None)
    last = log_of(processes[0])[-1][-1]
    assert isinstance(last, ev.ClockStarted)
    processes[0].store.due[MATCH_ID] = (last.at_ns + DELAY_NS + BANK_NS, True)


async def moved(process: Process) -> int:
    """The player on turn moves; the version before."""
    version = len(log_of(process))
    done = await (await submit(process, legal_command(await process.matches.get(MATCH_ID).state()))).done
    assert done.refusal is None
    return version


def faults(process: Process) -> list[FaultCause]:
    """What is in the ledger."""
    return [row.fault.cause for row in process.store.ledger]


@in_virtual_time
async def test_a_match_that_is_ahead_of_the_store_is_forgotten_and_that_is_a_fault() -> None:
    """The span is from the last heartbeat that is still there to the moment of looking."""
    async with replica(shared(started()), "one") as one:
        await asyncio.sleep(5)
        version = await moved(one)
        before_ns = virtual_service_ns()
        come_back(one, versions=version)
        await asyncio.sleep(SOON_SECONDS)
        (row,) = one.store.ledger
        assert row.fault.cause is FaultCause.COMMITS_LOST
        assert row.match_id is None
        assert before_ns - BEAT_SECONDS * SECOND_NS <= row.fault.from_ns <= before_ns
        assert before_ns <= row.fault.to_ns <= before_ns + 2 * BEAT_SECONDS * SECOND_NS
        assert (await one.matches.get(MATCH_ID).known_state()).version == version
        await moved(one)


@in_virtual_time
async def test_a_server_that_has_lost_nothing_leaves_no_trace() -> None:
    """Nothing is read again, no stream ends, and the ledger stays empty."""
    async with replica(shared(started()), "one") as one:
        await moved(one)
        match = one.matches.get(MATCH_ID)
        watch, state = match.watch(Audience.SPECTATOR, 0), await match.known_state()
        come_back(one, versions=len(log_of(one)))
        await asyncio.sleep(SOON_SECONDS)
        assert await match.known_state() is state
        assert (watch.ending, faults(one)) == (None, [])


@in_virtual_time
async def test_a_lost_move_is_no_loss_on_time() -> None:
    """It was answered a second before the deadline; when the store has lost it, it is too late for another one."""
    async with replica(shared(started()), "one") as one:
        await until(DEADLINE_NS, plus_seconds=-1)
        version = await moved(one)
        await until(DEADLINE_NS, plus_seconds=1)
        come_back(one, versions=version, kept_until_ns=DEADLINE_NS - 2 * SECOND_NS)
        await asyncio.sleep(2)
        ending = log_of(one)[-1][-1]
        assert isinstance(ending, ev.MatchAborted)
        assert ending.reason is ev.AbortReason.TIMING_FAILURE
        assert "commits lost" in ending.evidence


@in_virtual_time
async def test_nobody_settles_a_deadline_before_those_who_know_of_a_lost_move_have_told() -> None:
    """The other replica had heard that all was handled; that was about commits which are lost."""
    rows = shared(started())
    async with replica(rows, "one") as one, replica(rows, "two") as two:
        await until(DEADLINE_NS, plus_seconds=-0.1)
        version = await moved(one)
        await until(DEADLINE_NS, plus_seconds=1)
        two.matches._matches.clear()  # as if it had not been used for long: this one has no proof
        come_back(one, two, versions=version, kept_until_ns=DEADLINE_NS - SECOND_NS)
        looking, lineage, fresh = asyncio.Event(), one.lineage, two.lineage
        assert isinstance(fresh, MemoryLineage)
        fresh.has_lost = False
        assert isinstance(lineage, MemoryLineage)
        kept = lineage.steps_at

        async def slowly(versions: dict[str, int]) -> object:
            await looking.wait()
            return await kept(versions)

        lineage.steps_at = slowly  # type: ignore[assignment,method-assign]
        two.matches.get(MATCH_ID).look_again()
        await asyncio.sleep(2)
        assert len(log_of(two)) == version
        looking.set()
        await asyncio.sleep(2)
        ending = log_of(two)[-1][-1]
        assert isinstance(ending, ev.MatchAborted)


@in_virtual_time
async def test_a_deadline_that_is_far_from_the_gap_still_counts() -> None:
    """The player had all the time to see that the move was gone."""
    async with replica(shared(started()), "one") as one:
        await asyncio.sleep(1)
        version = await moved(one)
        come_back(one, versions=version)
        await until(DEADLINE_NS, plus_seconds=2)
        assert log_of(one)[-1][-1] == ev.MatchWon(Seat.TWO, ev.WinReason.TIME, DEADLINE_NS)


@in_virtual_time
async def test_who_watched_a_match_that_is_ahead_must_begin_anew() -> None:
    """What was shown is no more; a stream that begins is shown what is."""
    async with replica(shared(started()), "one") as one:
        match, version = one.matches.get(MATCH_ID), await moved(one)
        watch = match.watch(Audience.SPECTATOR, version + 1)
        come_back(one, versions=version)
        await asyncio.sleep(SOON_SECONDS)
        assert isinstance(watch.ending, VersionsLostError)
        match.unwatch(watch)
        assert match.watch(Audience.SPECTATOR, 0).ending is None
        assert (await match.known_state()).version == version


@in_virtual_time
async def test_another_step_at_the_same_version_is_no_less_a_loss() -> None:
    """Another replica may have gone on from what was left before this one looks."""
    rows = shared(started())
    async with replica(rows, "one") as one:
        version = await moved(one)
        come_back(one, versions=version)
        log_of(one).append((ev.ClocksSuspended(virtual_service_ns()),))
        await asyncio.sleep(SOON_SECONDS)
        assert faults(one) == [FaultCause.COMMITS_LOST]


@in_virtual_time
async def test_a_lost_heartbeat_is_proof_where_no_match_is_known() -> None:
    """Whoever moved the matches that are behind may be gone."""
    async with replica(shared(started()), "one") as one:
        await asyncio.sleep(1)
        come_back(one, versions=len(log_of(one)), has_lost=True)
        await asyncio.sleep(SOON_SECONDS)
        assert faults(one) == [FaultCause.COMMITS_LOST]


@in_virtual_time
async def test_a_row_of_the_ledger_that_is_lost_is_stored_again() -> None:
    """It stays true; and what others had added is forgotten with what they will say anew."""
    async with replica(shared(started()), "one") as one:
        own = Fault(FaultCause.STORE_GAP, NOON_NS, NOON_NS + SECOND_NS, "no heartbeat could be stored")
        one.core._ledger.record(own)
        await asyncio.sleep(1)
        assert one.store.ledger == [LedgerRow(own)]
        one.store.ledger.clear()
        come_back(one, versions=len(log_of(one)))
        await asyncio.sleep(SOON_SECONDS)
        assert one.store.ledger == [LedgerRow(own)]


@in_virtual_time
async def test_what_was_read_while_the_server_changed_is_read_again() -> None:
    """It may be lost; the command is decided on what is there then."""
    async with replica(shared(started()), "one") as one:
        version = len(log_of(one))
        lineage, store, reads = one.lineage, one.store, list[int]()
        assert isinstance(lineage, MemoryLineage)
        steps = store.steps

        async def changed_meanwhile(match_id: str, after_version: int = 0) -> Sequence[Step]:
            found = await steps(match_id, after_version)
            lineage.turn += not reads
            reads.append(after_version)
            return found

        ticket = await submit(one, legal_command(await one.matches.get(MATCH_ID).state()))
        store.steps = changed_meanwhile  # type: ignore[method-assign]
        one.matches.get(MATCH_ID).look_again()
        assert (await ticket.done).refusal is None
        assert reads == [version, version]


@in_virtual_time
async def test_what_is_lost_does_not_come_back_by_a_look_that_began_before() -> None:
    """It waits for the store while the match is compared, and then finds nothing behind what it knew."""
    async with replica(shared(started()), "one") as one:
        match, store = one.matches.get(MATCH_ID), one.store
        version = await moved(one)
        steps, trusted = store.steps, asyncio.Event()

        async def waiting(match_id: str, after_version: int = 0) -> Sequence[Step]:
            await trusted.wait()
            return await steps(match_id, after_version)

        store.steps = waiting  # type: ignore[method-assign]
        come_back(one, versions=version)
        match.look_again()
        await asyncio.sleep(SOON_SECONDS)
        trusted.set()
        assert (await match.known_state()).version == version


TOUCHED = Append(MATCH_ID, 3, (), None, live=True)
RECORD = CommandRecord(Audience.SEAT_ONE, "c", b"", 3, None, Receipt(Arrival.at(0), None, 0, Verdict.IN_TIME))


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (TOUCHED, StoreUnavailableError),
        (TOUCHED._replace(record=RECORD), VersionConflictError),
        (TOUCHED._replace(record=RECORD._replace(refusal=Refusal(RefusalReason.MATCH_OVER))), StoreUnavailableError),
        (
            TOUCHED._replace(
                record=RECORD._replace(refusal=Refusal(RefusalReason.TIME_EXPIRED)),
                events=(ev.MatchWon(Seat.TWO, ev.WinReason.TIME, 0),),
            ),
            StoreUnavailableError,
        ),
    ],
    ids=["expiry", "command", "refusal", "late command"],
)
def test_what_is_decided_before_the_server_changes_is_not_stored_after(change: Append, error: type[Exception]) -> None:
    """A command may be decided again at once; what rests on others' word must hear that word again."""
    turns = OneTurn()
    footing = Footing(turns)
    footing.begin()
    footing.read()
    footing.require(change)
    turns.turn = 1
    with pytest.raises(error):
        footing.require(change)
    footing.read()
    if error is VersionConflictError:
        footing.require(change)
    footing.begin()
    footing.require(change)
