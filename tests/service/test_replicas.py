"""Several processes on the same matches: an expiry waits for all of them, a lost one is fenced."""

import asyncio
from collections.abc import Sequence

from engine import events as ev
from engine.clock import BANK_NS, DELAY_NS, SECOND_NS, Arrival, Verdict
from engine.commands import Resign
from engine.events import Step
from engine.faults import FaultCause
from engine.seats import Seat
from engine.state import MatchState
from service.core import Core
from service.ports import Append, Heartbeat, LedgerRow, StoreUnavailableError
from service.watermark import BEAT_SECONDS, LOST_NS
from tests.support.ports import MemoryStore, Process, until, virtual_service_ns
from tests.support.replicas import ReplicaStore, Row, replica, sharing
from tests.support.store import NOON_NS
from tests.support.virtual_matches import MATCH_ID, SENDERS, legal_command, log_of, order, started, submit
from tests.support.virtual_time import in_virtual_time, settle, virtual_now_ns

DEADLINE_NS = NOON_NS + DELAY_NS + BANK_NS
SOON_SECONDS = 3 * BEAT_SECONDS
"""The others' heartbeats and one's own, and then it is settled."""


class Door:
    """The edge of a process that nobody calls."""

    async def refuse_new_clients(self) -> None:
        return

    async def stop(self, grace_seconds: float) -> None:
        assert grace_seconds


def other(process: Process, name: str = "two") -> Row:
    """A replica's row."""
    assert isinstance(process.store, ReplicaStore)
    return process.store.replicas[name]


def faults(process: Process) -> list[FaultCause]:
    """What is in the ledger."""
    return [row.fault.cause for row in process.store.ledger]


async def seen_by(process: Process) -> MatchState:
    """The match as this replica knows it."""
    return await process.matches.get(MATCH_ID).state()


def ending(process: Process) -> ev.Event:
    """The last event of the match."""
    return log_of(process)[-1][-1]


def shared(store: MemoryStore) -> ReplicaStore:
    """Rows that replicas share."""
    return sharing(store, "nobody")


@in_virtual_time
async def test_an_expiry_is_settled_when_every_replica_has_closed_the_past() -> None:
    """Soon after the deadline, once, by the deadline."""
    rows = shared(started())
    async with replica(rows, "one") as one, replica(rows, "two"):
        version = len(log_of(one))
        await until(DEADLINE_NS, plus_seconds=SOON_SECONDS)
        assert len(log_of(one)) == version + 1
        assert ending(one) == ev.MatchWon(Seat.TWO, ev.WinReason.TIME, DEADLINE_NS)
        assert faults(one) == []


async def busy(row: Row, closed_ns: int) -> None:
    """Be a replica that beats, and has something in hand that was stamped at this instant."""
    while True:
        row.heartbeat = Heartbeat(virtual_service_ns(), min(closed_ns, virtual_service_ns()))
        row.seen_ns = virtual_now_ns()
        await asyncio.sleep(BEAT_SECONDS)


@in_virtual_time
async def test_an_expiry_waits_for_a_command_under_way_elsewhere() -> None:
    """Another replica says that something stamped before the deadline is not handled yet; then it has moved on."""
    rows = shared(started())
    rows.replicas["two"] = Row(Heartbeat(NOON_NS, NOON_NS), virtual_now_ns())
    async with replica(rows, "one") as one:
        before = len(log_of(one))
        beating = asyncio.create_task(busy(other(one), DEADLINE_NS - 1))
        await until(DEADLINE_NS, plus_seconds=20)
        assert len(log_of(one)) == before
        beating.cancel()
        beating = asyncio.create_task(busy(other(one), 1 << 62))
        await asyncio.sleep(SOON_SECONDS)
        assert ending(one) == ev.MatchWon(Seat.TWO, ev.WinReason.TIME, DEADLINE_NS)
        beating.cancel()


@in_virtual_time
async def test_what_comes_with_an_older_stamp_is_handled_while_others_are_waited_for() -> None:
    """Others may be waiting for just that, and then nobody would ever go on."""
    rows = shared(started())
    rows.replicas["two"] = Row(Heartbeat(NOON_NS, NOON_NS), virtual_now_ns())
    async with replica(rows, "one") as one:
        beating = asyncio.create_task(busy(other(one), DEADLINE_NS - 1))
        await until(DEADLINE_NS, plus_seconds=1)
        state = await seen_by(one)
        late = order(one, legal_command(state), state)
        sent = late._replace(arrival=Arrival(DEADLINE_NS - SECOND_NS, late.arrival.latest_ns))
        done = await asyncio.wait_for(one.matches.get(MATCH_ID).enter(sent.arrival, sent).done, 1.0)
        assert done.record is not None
        assert done.record.receipt.verdict is Verdict.UNPROVABLE
        beating.cancel()


@in_virtual_time
async def test_a_command_in_time_that_another_replica_stores_late_wins_over_the_expiry() -> None:
    """Its stamp counts: the store is slow on that replica while the deadline passes."""
    rows = shared(started())
    async with replica(rows, "one") as one, replica(rows, "two") as two:
        slow = asyncio.Event()

        async def held_back(_: object) -> None:
            await slow.wait()

        two.store.before_append = held_back
        await until(DEADLINE_NS, plus_seconds=-0.1)
        ticket = await submit(two, legal_command(await seen_by(two)))
        await until(DEADLINE_NS, plus_seconds=1.5)
        slow.set()
        done = await ticket.done
        assert done.record is not None
        assert done.record.refusal is None
        await asyncio.sleep(SOON_SECONDS)
        assert not isinstance(ending(one), ev.MatchWon | ev.MatchAborted)
        assert (await seen_by(one)).version == done.state.version


@in_virtual_time
async def test_a_replica_that_is_lost_is_fenced_with_its_proof_and_what_it_had_in_hand_is_no_loss() -> None:
    """It was stopped half a second before the deadline: whether a command had reached it nobody knows."""
    rows = shared(started())
    async with replica(rows, "one") as one:
        async with replica(rows, "two"):
            await until(DEADLINE_NS, plus_seconds=-0.5)
        before = len(log_of(one))
        await until(DEADLINE_NS, plus_seconds=1)
        assert len(log_of(one)) == before
        await asyncio.sleep(LOST_NS / SECOND_NS)
        assert other(one).is_fenced
        assert faults(one) == [FaultCause.REPLICA_LOST]
        aborted = ending(one)
        assert isinstance(aborted, ev.MatchAborted)
        assert aborted.reason is ev.AbortReason.TIMING_FAILURE


@in_virtual_time
async def test_nobody_is_fenced_before_the_evidence_is_stored() -> None:
    """The ledger cannot be written for a while; the expiry waits, and the loss is recorded once."""
    rows = shared(started())
    async with replica(rows, "one") as one:
        async with replica(rows, "two"):
            await until(DEADLINE_NS, plus_seconds=-0.5)
        before, record_fault = len(log_of(one)), one.store.record_fault

        async def refused(_: LedgerRow) -> None:
            raise StoreUnavailableError

        one.store.record_fault = refused  # type: ignore[method-assign, assignment]
        await until(DEADLINE_NS, plus_seconds=10)
        assert not other(one).is_fenced
        assert len(log_of(one)) == before
        one.store.record_fault = record_fault  # type: ignore[method-assign]
        await asyncio.sleep(20)
        assert other(one).is_fenced
        assert faults(one).count(FaultCause.REPLICA_LOST) == 1
        assert isinstance(ending(one), ev.MatchAborted)


@in_virtual_time
async def test_a_read_that_took_long_brings_no_older_version_back() -> None:
    """Meanwhile this replica has stored a newer one itself."""
    rows = shared(started())
    async with replica(rows, "one") as one:
        match, steps, answered = one.matches.get(MATCH_ID), one.store.steps, asyncio.Event()
        state, written = await match.state(), asyncio.Event()

        async def held_back(_: object) -> None:
            await written.wait()

        async def late(match_id: str, after_version: int = 0) -> Sequence[Step]:
            found = list(await steps(match_id, after_version))
            await answered.wait()
            return found

        one.store.before_append = held_back
        sent = order(one, legal_command(state), state)
        ticket = match.enter(sent.arrival, sent)
        await settle()
        one.store.steps = late  # type: ignore[method-assign]
        reading = asyncio.create_task(match.state())
        await settle()
        written.set()
        done = await ticket.done
        answered.set()
        assert (await reading).version == done.state.version == state.version + 1


@in_virtual_time
async def test_a_replica_lost_long_before_the_deadline_costs_nobody_the_match() -> None:
    """Its deadlines are settled by whoever is left, in time."""
    rows = shared(started())
    async with replica(rows, "one") as one:
        async with replica(rows, "two"):
            await until(DEADLINE_NS, plus_seconds=-30)
        await until(DEADLINE_NS, plus_seconds=SOON_SECONDS)
        assert ending(one) == ev.MatchWon(Seat.TWO, ev.WinReason.TIME, DEADLINE_NS)


@in_virtual_time
async def test_a_deadline_that_only_a_lost_replica_knew_is_found() -> None:
    """The match was moved elsewhere, and this replica was never asked about it."""
    rows = shared(MemoryStore())
    async with replica(rows, "one") as one:
        async with replica(rows, "two") as two:
            late = started()
            two.store.logs[MATCH_ID] = late.logs[MATCH_ID]
            two.store.due[MATCH_ID] = late.due[MATCH_ID]
            await until(DEADLINE_NS, plus_seconds=-30)
        await until(DEADLINE_NS, plus_seconds=2)
        assert ending(one) == ev.MatchWon(Seat.TWO, ev.WinReason.TIME, DEADLINE_NS)


@in_virtual_time
async def test_a_fenced_replica_stores_nothing_and_comes_back_with_its_next_heartbeat() -> None:
    """Its client repeats the command and is served."""
    rows = shared(started())
    async with replica(rows, "one") as one, replica(rows, "two") as two:
        command = legal_command(await seen_by(two))
        before = len(log_of(one))
        other(one).is_fenced = True
        ticket = await submit(two, command)
        await asyncio.wait([ticket.done])
        assert ticket.done.exception() is not None
        assert len(log_of(one)) == before
        await asyncio.sleep(2 * BEAT_SECONDS)
        assert other(one).epoch == 2
        done = await (await submit(two, command)).done
        assert done.state.version == before + 1


@in_virtual_time
async def test_a_fault_that_one_replica_found_counts_on_all() -> None:
    """The verdict is the same whoever settles."""
    rows = shared(started())
    async with replica(rows, "one") as one, replica(rows, "two") as two:
        two.store.is_down = True
        await asyncio.sleep(1.5)
        two.store.is_down = False
        await asyncio.sleep(1)
        assert FaultCause.STORE_GAP in faults(one)
        known = one.core._ledger.evidence(MATCH_ID).faults
        assert [fault.cause for fault in known] == faults(one)


@in_virtual_time
async def test_a_watcher_sees_what_another_replica_does() -> None:
    """Without any message between them: half a second later."""
    rows = shared(started())
    async with replica(rows, "one") as one, replica(rows, "two") as two:
        state = await seen_by(one)
        watch = one.matches.get(MATCH_ID).watch(SENDERS[Seat.ONE], state.version)
        await watch.woken()
        done = await (await submit(two, legal_command(state))).done
        await asyncio.wait_for(watch.woken(), 1.0)
        assert (await seen_by(one)).version == done.state.version


@in_virtual_time
async def test_a_read_that_nobody_watches_asks_the_store() -> None:
    """A player may have seen a newer version elsewhere."""
    rows = shared(started())
    async with replica(rows, "one") as one, replica(rows, "two") as two:
        state = await seen_by(one)
        done = await (await submit(two, legal_command(state))).done
        assert (await seen_by(one)).version == done.state.version


@in_virtual_time
async def test_whoever_looks_while_another_looks_sees_what_is_new() -> None:
    """Two streams of one match are woken by the same news."""
    rows = shared(started())
    async with replica(rows, "one") as one, replica(rows, "two") as two:
        match = one.matches.get(MATCH_ID)
        watch = match.watch(SENDERS[Seat.ONE], 0)
        done = await (await submit(two, legal_command(await match.state()))).done
        assert isinstance(one.store, ReplicaStore)
        one.store.read_seconds = 0.1
        match.heard(done.state.version)
        seen = await asyncio.gather(match.known_state(), match.known_state())
        assert [state.version for state in seen] == [done.state.version] * 2
        match.unwatch(watch)


@in_virtual_time
async def test_a_viewer_who_has_seen_more_elsewhere_is_shown_no_less_here() -> None:
    """Although another stream is open here, which has not heard of it yet."""
    rows = shared(started())
    async with replica(rows, "one") as one, replica(rows, "two") as two:
        match = one.matches.get(MATCH_ID)
        watches = [match.watch(SENDERS[Seat.ONE], 0)]
        done = await (await submit(two, legal_command(await match.known_state()))).done
        watches.append(match.watch(SENDERS[Seat.TWO], done.state.version))
        assert (await match.known_state()).version == done.state.version
        for watch in watches:
            match.unwatch(watch)


@in_virtual_time
async def test_a_repeat_elsewhere_shows_what_the_command_did() -> None:
    """Although nobody told this replica that the match had moved."""
    rows = shared(started())
    async with replica(rows, "one") as one, replica(rows, "two") as two:
        matches = [process.matches.get(MATCH_ID) for process in (one, two)]
        watch = matches[1].watch(SENDERS[Seat.ONE], 0)
        state = await matches[1].state()
        sent = order(one, legal_command(state), state)
        first, again = [await match.enter(sent.arrival, sent).done for match in matches]
        assert again.repeated
        assert again.record == first.record
        assert again.state.version == first.state.version
        matches[1].unwatch(watch)


async def stop(core: Core) -> int:
    """A planned stop; the number of matches that were suspended for it."""
    return await core.drain(Door(), 1.0)


@in_virtual_time
async def test_a_planned_stop_of_one_of_two_suspends_nothing_and_is_no_fault() -> None:
    """The other one goes on, also with what is due."""
    rows = shared(started())
    async with replica(rows, "one") as one, replica(rows, "two") as two:
        assert await stop(two.core) == 0
        await until(DEADLINE_NS, plus_seconds=SOON_SECONDS)
        assert ending(one) == ev.MatchWon(Seat.TWO, ev.WinReason.TIME, DEADLINE_NS)
        assert faults(one) == []


@in_virtual_time
async def test_when_all_stop_at_once_the_clocks_stand() -> None:
    """Each knows that the other leaves; the next start resumes them."""
    rows = shared(started())
    async with replica(rows, "one") as one, replica(rows, "two") as two:
        await asyncio.gather(stop(one.core), stop(two.core))
        assert isinstance(ending(one), ev.ClocksSuspended)
    await asyncio.sleep(600)
    async with replica(rows, "three") as three:
        await settle()
        assert isinstance(ending(three), ev.ClocksResumed | ev.ClockStarted)
        assert faults(three) == []


@in_virtual_time
async def test_what_the_last_one_suspended_is_resumed_by_one_that_started_meanwhile() -> None:
    """It suspended them because it did not know of the other yet."""
    rows = shared(started())
    async with replica(rows, "one") as one:
        suspending, slow = asyncio.Event(), asyncio.Event()

        async def held_back(_: object) -> None:
            suspending.set()
            await slow.wait()

        one.store.before_append = held_back
        stopping = asyncio.create_task(stop(one.core))
        await suspending.wait()
        async with replica(rows, "two") as two:
            slow.set()
            assert await stopping == 1
            assert isinstance(ending(two), ev.ClocksSuspended)
            await asyncio.sleep(1)
            assert (await seen_by(two)).suspended_at_ns is None


@in_virtual_time
async def test_a_repeat_that_another_replica_carried_out_shows_its_effect() -> None:
    """The state that goes with the answer is never older than the version that the answer names."""
    rows = shared(started())
    async with replica(rows, "one") as one, replica(rows, "two") as two:
        state = await seen_by(two)
        sent = order(one, legal_command(state), state)
        first = await one.matches.get(MATCH_ID).enter(sent.arrival, sent).done
        again = await two.matches.get(MATCH_ID).enter(sent.arrival, sent).done
        assert (again.repeated, again.record) == (True, first.record)
        assert again.state.version == first.state.version == state.version + 1


@in_virtual_time
async def test_commands_in_the_last_moment_on_two_replicas_do_not_wait_for_each_other() -> None:
    """Each came in while its match waited for the other replica to close the past."""
    rows = shared(started())
    other_id = "w" * 26
    rows.logs[other_id], rows.due[other_id] = list(rows.logs[MATCH_ID]), rows.due[MATCH_ID]
    async with replica(rows, "one") as one, replica(rows, "two") as two:
        state = await seen_by(one)
        await until(DEADLINE_NS, plus_seconds=0.01)
        tickets = []
        for process, match_id in ((one, MATCH_ID), (two, other_id)):
            arrival = Arrival(DEADLINE_NS - SECOND_NS // 50, virtual_service_ns())
            sent = order(process, legal_command(state), state)._replace(arrival=arrival)
            tickets.append(process.matches.get(match_id).enter(arrival, sent))
        async with asyncio.timeout(SOON_SECONDS):
            done = [await ticket.done for ticket in tickets]
    verdicts = [one.record and one.record.receipt.verdict for one in done]
    assert verdicts == [Verdict.IN_TIME_BY_DOUBT, Verdict.IN_TIME_BY_DOUBT]


@in_virtual_time
async def test_nobody_serving_for_long_is_an_outage() -> None:
    """All were killed; the next start records it with the loss of each."""
    rows = shared(started())
    async with replica(rows, "one"), replica(rows, "two"):
        await asyncio.sleep(1)
    await asyncio.sleep(10)
    async with replica(rows, "three") as three:
        assert sorted(cause.name for cause in faults(three)) == ["OUTAGE", "REPLICA_LOST", "REPLICA_LOST"]


@in_virtual_time
async def test_an_end_that_is_read_before_its_write_is_answered_is_told_all_the_same() -> None:
    """Somebody asks for the match just then."""
    rows = shared(started())
    async with replica(rows, "one") as one:
        append = one.store.append

        async def read_before_the_answer(change: Append) -> None:
            await append(change)
            await seen_by(one)

        one.store.append = read_before_the_answer  # type: ignore[method-assign]
        done = await (await submit(one, Resign(), seat=Seat.ONE)).done
        assert done.state.result == ending(one)


@in_virtual_time
async def test_a_replica_that_is_leaving_resumes_nothing() -> None:
    """Its door closes soon: clocks that one has stopped which left a little earlier wait for whoever comes."""
    rows = shared(started())
    async with replica(rows, "one") as one, replica(rows, "two") as two:
        leaving = asyncio.create_task(one.core.drain(Door(), 5.0))
        await asyncio.sleep(1)
        await two.core.drain(Door(), 0.0)
        await asyncio.sleep(3)
        assert isinstance(ending(one), ev.ClocksSuspended)
        await leaving
        assert isinstance(ending(one), ev.ClocksSuspended)
