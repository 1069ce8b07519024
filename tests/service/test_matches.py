"""Finding, creating and joining matches; recovering them after a stop and suspending them before one."""

import asyncio
import gc
import weakref
from dataclasses import replace

import pytest

from engine import events as ev
from engine.commands import Command, Reveal, Start
from engine.seats import Seat
from engine.view import Audience
from service import matches as matches_module
from service.line import Done
from service.match import Match
from service.matches import CannotJoinError, NewMatch, invite_hash, token_hash
from service.ports import StoreUnavailableError
from service.writer import ClocksStandError, UnknownMatchError
from tests.support.players import new_id
from tests.support.ports import MemoryStore, Process
from tests.support.virtual_matches import MATCH_ID, log_of, order, seated, settled, started, state_of
from tests.support.virtual_time import in_virtual_time, settle

NEW = NewMatch(
    request_id="6f1c2d9e-8a57-4b0e-9a61-0d7f3c5b2a10",
    shared_device=False,
    display_name="Ada",
    second_display_name="",
    start_timeout_ns=600_000_000_000,
    continue_timeout_ns=60_000_000_000,
)


@in_virtual_time
async def test_creating_again_with_the_same_request_finds_the_same_match() -> None:
    """Fault 107: with a fresh token each time; all of them are stored as hashes only."""
    async with Process.running() as process:
        first = await process.matches.create(NEW)
        again = await process.matches.create(NEW)
        assert (again.match_id, again.audience, again.invite_code) == (
            first.match_id,
            first.audience,
            first.invite_code,
        )
        tokens = {first.token, first.spectator_token, again.token, again.spectator_token}
        assert len(tokens) == 4
        assert set(process.store.credentials) == {token_hash(token.reveal()) for token in tokens}
        assert len(process.store.logs) == 1


@in_virtual_time
async def test_creating_at_the_same_time_makes_one_match() -> None:
    """Whoever comes second finds the first one's."""
    async with Process.running() as process:
        admissions = await asyncio.gather(*(process.matches.create(NEW) for _ in range(10)))
        assert len({admission.match_id for admission in admissions}) == 1
        assert len(process.store.logs) == 1


@in_virtual_time
async def test_creating_when_the_answer_of_the_store_is_lost_is_repaired_by_a_repeat() -> None:
    """The match exists; the repeat finds it."""
    async with Process.running() as process:
        process.store.lost_answers = 1
        with pytest.raises(StoreUnavailableError):
            await process.matches.create(NEW)
        await process.matches.create(NEW)
        assert len(process.store.logs) == 1


@in_virtual_time
async def test_joining_again_or_at_the_same_time_gets_the_same_seat() -> None:
    """One request is one player; the match has one step for it."""
    async with Process.running() as process:
        created = await process.matches.create(NEW)
        request_id = new_id()
        joins = [process.matches.join(request_id, created.invite_code, "Bo") for _ in range(5)]
        admissions = [*await asyncio.gather(*joins), await process.matches.join(request_id, created.invite_code, "")]
        assert {admission.audience for admission in admissions} == {Audience.SEAT_TWO}
        assert process.store.logs[created.match_id][1:] == [(ev.PlayerSeated(Seat.TWO, "Bo"),)]
        for admission in admissions:
            assert process.store.credentials[token_hash(admission.token.reveal())].audience is Audience.SEAT_TWO


@in_virtual_time
async def test_a_join_whose_answer_from_the_store_is_lost_is_repaired_by_a_repeat() -> None:
    """The seat is taken by the very request that asks again."""
    async with Process.running() as process:
        created = await process.matches.create(NEW)
        request_id = new_id()
        process.store.lost_answers = 1
        with pytest.raises(StoreUnavailableError):
            await process.matches.join(request_id, created.invite_code, "Bo")
        assert (await process.matches.join(request_id, created.invite_code, "Bo")).audience is Audience.SEAT_TWO


@in_virtual_time
async def test_a_taken_seat_cannot_be_taken_again() -> None:
    """By one of those who try."""
    async with Process.running() as process:
        created = await process.matches.create(NEW)
        joins = [process.matches.join(new_id(), created.invite_code, f"Player {number}") for number in range(5)]
        results = await asyncio.gather(*joins, return_exceptions=True)
        assert sum(isinstance(result, CannotJoinError) for result in results) == 4
        assert len(process.store.logs[created.match_id]) == 2


@pytest.mark.parametrize("code", ["", "AAAAA-AAAAA", "an unknown code"])
@in_virtual_time
async def test_an_unknown_code_opens_nothing(code: str) -> None:
    """Nor does one of a shared device, which has none."""
    async with Process.running() as process:
        await process.matches.create(replace(NEW, shared_device=True))
        with pytest.raises(CannotJoinError):
            await process.matches.join(new_id(), code, "Bo")


def test_invite_codes_are_read_as_people_write_them() -> None:
    """Case, dashes and blanks do not matter; letters do."""
    assert invite_hash("ABCDE-FGHIJ") == invite_hash(" abcde fghij") == invite_hash("a-b-c-d-e-f-g-h-i-j")
    assert invite_hash("ABCDE-FGHIJ") != invite_hash("ABCDE-FGHIK")


@in_virtual_time
async def test_matches_that_nobody_needs_are_forgotten_when_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """The longest unused first; watched ones stay."""
    monkeypatch.setattr(matches_module, "CACHED_MATCHES", 3)
    async with Process.running() as process:
        first = process.matches.get("first")
        watch = first.watch(Audience.SPECTATOR, 0)
        second, third = process.matches.get("second"), process.matches.get("third")
        assert process.matches.get("second") is second
        process.matches.get("fourth")
        assert process.matches.get("first") is first
        assert process.matches.get("second") is second
        assert process.matches.get("third") is not third
        first.unwatch(watch)


@in_virtual_time
async def test_more_matches_than_are_kept_can_be_in_use(monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit is for those that nobody needs."""
    monkeypatch.setattr(matches_module, "CACHED_MATCHES", 3)
    async with Process.running() as process:
        watched = []
        for number in range(6):
            watched.append(process.matches.get(str(number)))
            watched[-1].watch(Audience.SPECTATOR, 0)
        assert process.matches.get("a further one").match_id == "a further one"
        assert [process.matches.get(match.match_id) for match in watched] == watched


@in_virtual_time
async def test_what_was_in_use_at_once_is_forgotten_when_nobody_needs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a rush the bound holds again, and what was forgotten is gone from memory."""
    monkeypatch.setattr(matches_module, "CACHED_MATCHES", 10)
    log, rush = started().logs[MATCH_ID], [f"m{number}" for number in range(50)]
    async with Process.running(MemoryStore(logs=dict.fromkeys(rush, log))) as process:
        matches = [process.matches.get(match_id) for match_id in rush]
        watches = [match.watch(Audience.SPECTATOR, 0) for match in matches]
        for match in matches:
            assert (await match.state()).version == len(log)
        kept = [weakref.ref(match) for match in matches]
        for match, watch in zip(matches, watches, strict=True):
            match.unwatch(watch)
        del match
        matches.clear()
        kept += [weakref.ref(process.matches.get(f"later {number}")) for number in range(10)]
        gc.collect()
        assert sum(match() is not None for match in kept) == 10


@in_virtual_time
async def test_a_forgotten_match_is_read_again_and_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory is a cache."""
    monkeypatch.setattr(matches_module, "CACHED_MATCHES", 0)
    async with Process.running(started()) as process:
        before = process.matches.get(MATCH_ID)
        state = await before.state()
        await settle()
        process.matches.get("another")
        after = process.matches.get(MATCH_ID)
        assert after is not before
        assert await after.state() == state


@in_virtual_time
async def test_a_planned_stop_suspends_every_live_match_and_a_start_resumes_it() -> None:
    """F4: decisions and waits; what is over stays as it is."""
    for store in (started(), settled(), seated()):
        before = state_of_store(store)
        async with Process.running(store) as process:
            assert await process.core.stop() == 1
            assert isinstance(log_of(process)[-1][0], ev.ClocksSuspended)
        await asyncio.sleep(5)
        async with Process.running(store) as process:
            suspended, resumed = (step[0] for step in log_of(process)[-2:])
            assert isinstance(suspended, ev.ClocksSuspended)
            assert isinstance(resumed, ev.ClocksResumed)
            after = state_of(process)
            assert after.due_ns is not None
            assert before is not None
            assert after.due_ns - before == resumed.at_ns - suspended.at_ns


def state_of_store(store: MemoryStore) -> int | None:
    """When the match in this store is due."""
    return store.due[MATCH_ID][0]


@in_virtual_time
async def test_when_the_clocks_stand_for_a_stop_a_handover_starts_none() -> None:
    """It had none to suspend; behind the closed door nobody could move."""
    async with Process.running() as process:
        match = process.matches.get((await process.matches.create(replace(NEW, shared_device=True))).match_id)
        assert (await on_the_device(process, match, Start())).state.handover is not None
        await process.matches.suspend()
        with pytest.raises(ClocksStandError):
            await on_the_device(process, match, Reveal())
    async with Process.running(process.store) as process:
        assert (await on_the_device(process, process.matches.get(match.match_id), Reveal())).state.decision is not None


async def on_the_device(process: Process, match: Match, command: Command) -> Done:
    """What becomes of a command of a shared device."""
    sent = order(process, command, await match.state(), seat=Seat.ONE)._replace(seat=None, sender=Audience.DEVICE)
    return await match.enter(sent.arrival, sent).done


@in_virtual_time
async def test_hundreds_of_matches_are_suspended_and_resumed_together() -> None:
    """A bounded number at a time."""
    store = MemoryStore()
    async with Process.running(store) as process:
        for _ in range(600):
            await process.matches.create(replace(NEW, request_id=new_id()))
        assert await process.core.stop() == 600
    async with Process.running(store) as process:
        await settle()
        assert all(isinstance(steps[-1][0], ev.ClocksResumed) for steps in store.logs.values())
        assert all(due_ns is not None for due_ns, _ in store.due.values())


@pytest.mark.parametrize("seat", list(Seat))
@in_virtual_time
async def test_leaving_before_the_start_ends_a_match_and_afterwards_does_not(seat: Seat) -> None:
    """X1."""
    async with Process.running(seated()) as process:
        assert (await process.matches.leave(MATCH_ID, seat)).refusal is None
        assert isinstance(state_of(process).result, ev.MatchAborted)
    async with Process.running(started()) as process:
        assert (await process.matches.leave(MATCH_ID, seat)).refusal is not None
        assert state_of(process).result is None


WHY = "the players agreed to start anew"


@in_virtual_time
async def test_an_operator_aborts_a_match_once() -> None:
    """In whatever phase. When the answer of the store is lost, a repeat says that it is over already."""
    for store in (seated(), started(), settled()):
        async with Process.running(store) as process:
            store.lost_answers = 1
            with pytest.raises(StoreUnavailableError):
                await process.matches.abort(MATCH_ID, WHY)
            assert (await process.matches.abort(MATCH_ID, WHY)).refusal is not None
            (aborted,) = (event for step in log_of(process) for event in step if isinstance(event, ev.MatchAborted))
            assert (aborted.reason, aborted.evidence) == (ev.AbortReason.OPERATOR, WHY)


@in_virtual_time
async def test_an_operator_aborts_a_match_whose_clocks_stand() -> None:
    """A planned stop has begun."""
    async with Process.running(started()) as process:
        await process.matches.suspend()
        assert (await process.matches.abort(MATCH_ID, WHY)).refusal is None
        assert isinstance(state_of(process).result, ev.MatchAborted)


@in_virtual_time
async def test_an_operator_does_not_undo_a_loss_on_time() -> None:
    """What was due first is settled first, although the abort finds it unsettled."""
    async with Process.running(started()) as process:
        due_ns = process.store.due[MATCH_ID][0]
        assert due_ns is not None
        await asyncio.sleep((due_ns - process.core.clock.now_ns()) / 1e9)
        assert state_of(process).result is None
        assert (await process.matches.abort(MATCH_ID, WHY)).refusal is not None
        result = state_of(process).result
        assert isinstance(result, ev.MatchWon)
        assert result.reason is ev.WinReason.TIME


@in_virtual_time
async def test_an_operator_cannot_abort_what_does_not_exist() -> None:
    """And nothing is written."""
    async with Process.running() as process:
        with pytest.raises(UnknownMatchError):
            await process.matches.abort(MATCH_ID, WHY)
        assert process.store.logs == {}
