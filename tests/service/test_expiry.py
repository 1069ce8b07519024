"""What happens by itself: a loss on time, the next round, an abort. In virtual time, with no client connected."""

import asyncio
from collections.abc import Callable

import pytest
import structlog

from engine import commands as cmd
from engine import events as ev
from engine.clock import BANK_NS, DELAY_NS, SECOND_NS, Verdict
from engine.faults import FaultCause
from engine.refusals import RefusalReason
from engine.seats import Seat
from engine.state import Phase
from engine.view import Audience
from service.match import STORE_RETRY_NS
from service.ports import Append, DueMatch, Heartbeat, Others
from tests.support.ports import MemoryStore, Process, until, virtual_service_ns
from tests.support.store import NOON_NS
from tests.support.virtual_matches import (
    CONTINUE_TIMEOUT_NS,
    MATCH_ID,
    START_TIMEOUT_NS,
    bidding,
    legal_command,
    log_of,
    order,
    seated,
    settled,
    started,
    state_of,
    submit,
)
from tests.support.virtual_time import in_virtual_time, settle

DEADLINE_NS = NOON_NS + DELAY_NS + BANK_NS
SOON_SECONDS = 0.5
"""A heartbeat later at the latest, what is due is settled."""


SITUATIONS: dict[str, tuple[Callable[[], MemoryStore], Seat]] = {
    "seat ONE opens": (started, Seat.ONE),
    "seat TWO opens": (lambda: started(Seat.TWO), Seat.TWO),
    "seat TWO bids": (bidding, Seat.TWO),
}


@pytest.mark.parametrize("situation", SITUATIONS)
@in_virtual_time
async def test_with_nobody_connected_time_runs_out_at_the_deadline_once(situation: str) -> None:
    """Faults 56 and 74: each seat, each phase; the recorded instant is the deadline itself."""
    given, loser = SITUATIONS[situation]
    async with Process.running(given()) as process:
        version = len(log_of(process))
        await until(DEADLINE_NS, plus_seconds=-0.001)
        assert len(log_of(process)) == version
        await until(DEADLINE_NS, plus_seconds=SOON_SECONDS)
        lost = (ev.ClockStopped(loser, BANK_NS), ev.MatchWon(loser.other, ev.WinReason.TIME, DEADLINE_NS))
        assert log_of(process)[version:] == [lost]
        await asyncio.sleep(60)
        assert len(log_of(process)) == version + 1


@in_virtual_time
async def test_a_round_that_nobody_continues_goes_on_by_itself() -> None:
    """S2: at the end of the wait; then the next decision's clock runs, and runs out."""
    async with Process.running(settled()) as process:
        ended_ns = NOON_NS + CONTINUE_TIMEOUT_NS
        await until(ended_ns, plus_seconds=SOON_SECONDS)
        state = state_of(process)
        assert state.phase is Phase.BIDDING
        assert log_of(process)[-1][0] == ev.ContinueTimedOut(ended_ns)
        assert state.decision is not None
        await until(state.decision.deadline_ns, plus_seconds=SOON_SECONDS)
        assert isinstance(state_of(process).result, ev.MatchWon)


@in_virtual_time
async def test_a_match_that_nobody_starts_is_aborted() -> None:
    """S2: without a result."""
    async with Process.running(seated()) as process:
        await until(NOON_NS + START_TIMEOUT_NS, plus_seconds=SOON_SECONDS)
        result = state_of(process).result
        assert isinstance(result, ev.MatchAborted)
        assert (result.reason, result.at_ns) == (ev.AbortReason.START_TIMEOUT, NOON_NS + START_TIMEOUT_NS)


@in_virtual_time
async def test_before_the_start_nothing_expires() -> None:
    """Fault 67: there is no deadline but that of the start."""
    async with Process.running(seated()) as process:
        await until(NOON_NS + START_TIMEOUT_NS, plus_seconds=-1)
        assert len(log_of(process)) == 1


@in_virtual_time
async def test_a_command_in_time_that_is_handled_late_is_in_time() -> None:
    """K4: its sender was being checked while the deadline passed; nobody has lost on time meanwhile."""
    async with Process.running(started()) as process:
        match = process.matches.get(MATCH_ID)
        state = await match.state()
        await until(DEADLINE_NS, plus_seconds=-0.1)
        sent = order(process, legal_command(state), state)
        ticket = match.enter(sent.arrival)
        await until(DEADLINE_NS, plus_seconds=3)
        assert state_of(process) == state
        match.fill(ticket, sent)
        done = await ticket.done
        assert done.record is not None
        assert done.record.receipt.verdict is Verdict.IN_TIME
        assert done.state.result is None


@in_virtual_time
async def test_a_stranger_who_is_turned_away_delays_a_loss_but_does_not_prevent_it() -> None:
    """The verdict is by the deadline, whenever it is settled."""
    async with Process.running(started()) as process:
        match = process.matches.get(MATCH_ID)
        await match.state()
        await until(DEADLINE_NS, plus_seconds=-0.1)
        ticket = match.enter(process.core.clock.arrival())
        await until(DEADLINE_NS, plus_seconds=1)
        match.withdraw(ticket)
        await asyncio.sleep(SOON_SECONDS)
        result = state_of(process).result
        assert isinstance(result, ev.MatchWon)
        assert result.at_ns == DEADLINE_NS


@in_virtual_time
async def test_a_command_in_time_is_blamed_although_a_later_one_was_turned_away_before_it() -> None:
    """The store can say of neither who sent it; one row is enough only for those that come after its own."""
    async with Process.running(started()) as process:
        match = process.matches.get(MATCH_ID)
        await match.state()
        await until(DEADLINE_NS, plus_seconds=-0.1)
        in_time = match.enter(process.core.clock.arrival())
        await until(DEADLINE_NS, plus_seconds=0.5)
        match.lose(match.enter(process.core.clock.arrival()))
        match.lose(in_time)
        await asyncio.sleep(SOON_SECONDS)
        assert isinstance(state_of(process).result, ev.MatchAborted)


@pytest.mark.parametrize("sender", [Seat.ONE, Seat.TWO])
@in_virtual_time
async def test_a_command_after_the_deadline_is_refused_and_the_loss_is_the_deadlines(sender: Seat) -> None:
    """Fault 70: zero grace, whoever sends it and whether or not it is noticed first."""
    async with Process.running(started()) as process:
        state = await process.matches.get(MATCH_ID).state()
        await until(DEADLINE_NS, plus_seconds=0.06)  # a stamp is up to 50 ms wide
        done = await (await submit(process, legal_command(state), seat=sender)).done
        assert done.record is not None
        assert done.record.refusal is not None
        assert done.record.refusal.reason in (RefusalReason.TIME_EXPIRED, RefusalReason.MATCH_OVER)
        await asyncio.sleep(SOON_SECONDS)
        result = state_of(process).result
        assert isinstance(result, ev.MatchWon)
        assert (result.winner, result.at_ns) == (Seat.TWO, DEADLINE_NS)


@in_virtual_time
async def test_a_store_that_is_down_at_the_deadline_delays_the_verdict() -> None:
    """It is tried again until it can be stored; what is stored then is not a loss that the service may have caused."""
    async with Process.running(started()) as process:
        await until(DEADLINE_NS, plus_seconds=-0.01)
        process.store.is_down = True
        await asyncio.sleep(0.8)
        process.store.is_down = False
        await asyncio.sleep(2 * STORE_RETRY_NS / 1e9)
        assert state_of(process).result is not None
        assert len(log_of(process)) == 4


@in_virtual_time
async def test_a_mistake_in_a_heartbeat_is_logged_and_the_next_one_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise no deadline would be settled here any more, and nobody would know."""

    async def mistaken(_: Heartbeat) -> Others:
        raise RuntimeError("a mistake")

    with structlog.testing.capture_logs() as entries:
        async with Process.running(started()) as process:
            await asyncio.sleep(1)
            with monkeypatch.context() as patched:
                patched.setattr(process.store, "beat", mistaken)
                await asyncio.sleep(0.5)
            await until(DEADLINE_NS, plus_seconds=SOON_SECONDS)
            assert log_of(process)[-1][-1] == ev.MatchWon(Seat.TWO, ev.WinReason.TIME, DEADLINE_NS)
    assert {"heartbeat_failed"} == {entry["event"] for entry in entries if entry["log_level"] == "error"}


@in_virtual_time
async def test_after_a_restart_the_deadline_is_the_same_to_the_nanosecond() -> None:
    """Fault 65: deadlines come from the store, and fire without anybody asking for the match."""
    store = started()
    async with Process.running(store):
        await asyncio.sleep(60)
    async with Process.running(store) as process:
        assert (await process.matches.get(MATCH_ID).state()).due_ns == DEADLINE_NS
        await until(DEADLINE_NS, plus_seconds=SOON_SECONDS)
        result = state_of(process).result
        assert isinstance(result, ev.MatchWon)
        assert result.at_ns == DEADLINE_NS


@in_virtual_time
async def test_a_planned_stop_moves_the_deadline_by_its_length() -> None:
    """F4: not a nanosecond more or less is left."""
    store = started()
    async with Process.running(store) as process:
        await asyncio.sleep(60)
        await process.core.stop()
        suspended = state_of(process)
    assert suspended.suspended_at_ns is not None
    assert await store.live_matches() == [DueMatch(MATCH_ID, None)]
    await asyncio.sleep(3_600)
    async with Process.running(store) as process:
        (resumed,) = log_of(process)[-1]
        assert isinstance(resumed, ev.ClocksResumed)
        state = state_of(process)
        assert state.due_ns == DEADLINE_NS + resumed.at_ns - suspended.suspended_at_ns
        assert state.banks_ns == suspended.banks_ns
        await until(state.due_ns, plus_seconds=SOON_SECONDS)
        assert isinstance(state_of(process).result, ev.MatchWon)


@in_virtual_time
async def test_a_last_heartbeat_that_took_too_long_is_in_the_ledger(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever serves next judges by what is stored."""
    async with Process.running(started()) as process:
        await asyncio.sleep(60)
        beat = process.store.beat

        async def slow(heartbeat: Heartbeat) -> Others:
            await asyncio.sleep(2 * heartbeat.retired)
            return await beat(heartbeat)

        monkeypatch.setattr(process.store, "beat", slow)
        await process.core.stop()
        assert [row.fault.cause for row in process.store.ledger] == [FaultCause.STORE_GAP]


@in_virtual_time
async def test_nothing_but_a_move_moves_a_deadline() -> None:
    """Faults 61, 62 and 73: refused commands, watchers who come and go, strangers who try to join."""
    async with Process.running(started()) as process:
        match = process.matches.get(MATCH_ID)
        for second in range(10):
            await until(NOON_NS + second * 10 * SECOND_NS)
            await (await submit(process, cmd.Continue())).done
            watch = match.watch(Audience.SEAT_ONE, 0)
            match.unwatch(watch)
        assert (await match.state()).due_ns == DEADLINE_NS
        await until(DEADLINE_NS, plus_seconds=SOON_SECONDS)
        assert isinstance(state_of(process).result, ev.MatchWon)


@in_virtual_time
async def test_a_match_that_is_watched_hears_of_its_end() -> None:
    """Streams are woken by what happens by itself too."""
    async with Process.running(started()) as process:
        watch = process.matches.get(MATCH_ID).watch(Audience.SPECTATOR, 0)
        await watch.woken()
        waiting = asyncio.ensure_future(watch.woken())
        await until(DEADLINE_NS, plus_seconds=-1)
        assert not waiting.done()
        await until(DEADLINE_NS, plus_seconds=SOON_SECONDS)
        assert waiting.done()


@in_virtual_time
async def test_a_thousand_matches_expire_each_at_its_own_deadline() -> None:
    """One timer serves them all."""
    store = MemoryStore()
    birth, *rest = started().logs[MATCH_ID]
    for number in range(1_000):
        moved = [*rest[:-1], (*rest[-1][:-1], ev.ClockStarted(Seat.ONE, NOON_NS + number * SECOND_NS))]
        match_id = f"{number:026}"
        store.logs[match_id] = [birth, *moved]
        store.due[match_id] = (DEADLINE_NS + number * SECOND_NS, True)
    ends: dict[str, int] = {}

    async def note(change: Append) -> None:
        ends[change.match_id] = virtual_service_ns()

    async with Process.running(store) as process:
        process.store.before_append = note
        await until(DEADLINE_NS, plus_seconds=1_001)
        await settle()
    assert len(ends) == 1_000
    for number, (match_id, ended_ns) in enumerate(sorted(ends.items())):
        assert 0 <= ended_ns - (DEADLINE_NS + number * SECOND_NS) < SOON_SECONDS * SECOND_NS
        assert isinstance(store.logs[match_id][-1][-1], ev.MatchWon)
