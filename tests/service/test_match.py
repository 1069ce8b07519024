"""One match on fakes of the ports and in virtual time: stored first, in the order of stamps, once, whatever fails."""

import asyncio

import pytest

from engine import commands as cmd
from engine import events as ev
from engine.clock import BANK_NS, Arrival, Verdict
from engine.events import Step
from engine.evolve import replay
from engine.refusals import RefusalReason
from engine.seats import Seat
from engine.state import Phase
from engine.view import Audience
from service.line import LINE_LIMIT, Done, LineFullError
from service.ports import Append, StoreUnavailableError
from service.writer import CONFLICT_RETRIES, UnknownMatchError
from tests.support.ports import MemoryStore, Process, virtual_service_ns
from tests.support.virtual_matches import MATCH_ID, SENDERS, legal_command, log_of, order, seated, started, submit
from tests.support.virtual_time import in_virtual_time, settle


@in_virtual_time
async def test_nobody_hears_of_a_command_before_it_is_stored() -> None:
    """Not the sender, not a watcher, not the bus."""
    async with Process.running(started()) as process:
        match = process.matches.get(MATCH_ID)
        version = (await match.state()).version
        heard: list[int | str | None] = []
        process.bus.subscribe(MATCH_ID, heard.append)
        stored = asyncio.Event()

        async def held_back(_: Append) -> None:
            await stored.wait()

        process.store.before_append = held_back
        ticket = await submit(process, legal_command(await match.state()))
        ticket.done.add_done_callback(lambda _: heard.append("answer"))
        await settle()
        assert heard == []
        assert (await match.state()).version == version
        stored.set()
        assert (await ticket.done).state.version == version + 1
        await settle()
        assert set(heard) == {"answer", version + 1}


@in_virtual_time
async def test_a_refused_command_is_stored_and_heard_of_by_nobody_else() -> None:
    """X3: no version, no event."""
    async with Process.running(started()) as process:
        heard: list[int | None] = []
        process.bus.subscribe(MATCH_ID, heard.append)
        before = list(log_of(process))
        done = await (await submit(process, cmd.Continue())).done
        assert done.record is not None
        assert done.record.refusal is not None
        assert done.record.refusal.reason is RefusalReason.WRONG_PHASE
        await settle()
        assert log_of(process) == before
        assert heard == []
        assert len(process.store.commands) == 1


@in_virtual_time
async def test_when_the_store_is_down_nothing_changes_and_the_same_command_works_afterwards() -> None:
    """The sender is told to try again."""
    async with Process.running(started()) as process:
        match = process.matches.get(MATCH_ID)
        before = await match.state()
        sent = order(process, legal_command(before), before)
        process.store.is_down = True
        with pytest.raises(StoreUnavailableError):
            await match.enter(sent.arrival, sent).done
        process.store.is_down = False
        assert await match.state() == before
        done = await match.enter(sent.arrival, sent).done
        assert (done.state.version, done.repeated) == (before.version + 1, False)


@in_virtual_time
async def test_a_command_whose_commit_was_answered_by_silence_is_found_when_it_is_repeated() -> None:
    """Fault 106: UNAVAILABLE may mean that it was carried out; the repeat has no second effect."""
    async with Process.running(started()) as process:
        match = process.matches.get(MATCH_ID)
        before = await match.state()
        sent = order(process, legal_command(before), before)
        process.store.lost_answers = 1
        with pytest.raises(StoreUnavailableError):
            await match.enter(sent.arrival, sent).done
        assert (await match.state()).version == before.version + 1
        again = sent._replace(arrival=process.core.clock.arrival())
        done = await match.enter(again.arrival, again).done
        assert done.repeated
        assert done.record is not None
        assert (done.record.version, done.record.receipt.arrival) == (before.version + 1, sent.arrival)
        assert len(process.store.logs[MATCH_ID]) == before.version + 1


@in_virtual_time
async def test_a_match_that_another_writer_moved_is_decided_again_with_the_same_stamp() -> None:
    """The command is judged by its arrival, not by when its turn came."""
    async with Process.running(seated()) as process:
        match = process.matches.get(MATCH_ID)
        before = await match.state()
        sent = order(process, cmd.Start(), before, seat=Seat.ONE)
        await move_behind_its_back(process.store, (ev.PlayerReady(Seat.TWO),))
        done = await match.enter(sent.arrival, sent).done
        assert done.state.phase is Phase.OPENING
        assert done.record is not None
        assert done.record.receipt.arrival == sent.arrival
        assert done.state == replay(process.store.logs[MATCH_ID])


async def move_behind_its_back(store: MemoryStore, step: Step) -> None:
    """Another writer appends a step."""
    state = replay([*store.logs[MATCH_ID], step])
    await store.append(Append(MATCH_ID, state.version - 1, step, state.due_ns, live=True))


@in_virtual_time
async def test_a_command_that_was_overtaken_is_refused_by_what_is_true_by_then() -> None:
    """Both seats tried to be first."""
    async with Process.running(seated()) as process:
        match = process.matches.get(MATCH_ID)
        sent = order(process, cmd.Start(), await match.state(), seat=Seat.TWO)
        await move_behind_its_back(process.store, (ev.PlayerReady(Seat.TWO),))
        done = await match.enter(sent.arrival, sent).done
        assert done.record is not None
        assert done.record.refusal is not None
        assert done.record.refusal.reason is RefusalReason.ALREADY_READY


@in_virtual_time
async def test_a_match_that_others_move_all_the_time_is_given_up_for_now() -> None:
    """After so many attempts the sender is told to try again."""
    async with Process.running(seated()) as process:
        attempts = 0

        async def overtaken(change: Append) -> None:
            nonlocal attempts
            if change.record is not None:
                attempts += 1
                process.store.logs[MATCH_ID].append(())

        process.store.before_append = overtaken
        ticket = await submit(process, cmd.Start(), seat=Seat.ONE)
        with pytest.raises(StoreUnavailableError):
            await ticket.done
        assert attempts == CONFLICT_RETRIES


@pytest.mark.parametrize("hangs_up", ["before it is stored", "while it is being stored"])
@in_virtual_time
async def test_a_command_is_carried_out_although_its_sender_has_hung_up(hangs_up: str) -> None:
    """A call that is cancelled or times out has sent its command all the same."""
    async with Process.running(started()) as process:
        match = process.matches.get(MATCH_ID)
        version = (await match.state()).version
        entered, stored = asyncio.Event(), asyncio.Event()

        async def held_back(_: Append) -> None:
            entered.set()
            await stored.wait()

        process.store.before_append = held_back
        ticket = await submit(process, legal_command(await match.state()))
        if hangs_up == "while it is being stored":
            await entered.wait()
        ticket.done.cancel()
        stored.set()
        await settle()
        assert (await match.state()).version == version + 1


@pytest.mark.parametrize("checked_first", [1, 0])
@in_virtual_time
async def test_commands_are_decided_in_the_order_of_their_stamps(checked_first: int) -> None:
    """Not in the order in which their senders were checked: the second Start deals, whoever it belongs to."""
    async with Process.running(seated()) as process:
        match = process.matches.get(MATCH_ID)
        state = await match.state()
        now_ns = virtual_service_ns()
        orders = [
            order(process, cmd.Start(), state, seat=seat)._replace(arrival=Arrival(now_ns + place, now_ns + 10))
            for place, seat in enumerate(SENDERS)
        ]
        tickets = [match.enter(sent.arrival) for sent in reversed(orders)][::-1]
        for index in (checked_first, 1 - checked_first):
            match.fill(tickets[index], orders[index])
            await settle()
        versions = [(await ticket.done).state.version for ticket in tickets]
        assert versions == [state.version + 1, state.version + 2]


@in_virtual_time
async def test_a_sender_who_is_turned_away_holds_nobody_up() -> None:
    """The next in the line is handled."""
    async with Process.running(started()) as process:
        match = process.matches.get(MATCH_ID)
        stranger = match.enter(process.core.clock.arrival())
        ticket = await submit(process, legal_command(await match.state()))
        await settle()
        assert not ticket.done.done()
        match.withdraw(stranger)
        assert (await ticket.done).record is not None


@in_virtual_time
async def test_more_requests_than_the_line_holds_are_turned_away() -> None:
    """The others are still handled."""
    async with Process.running(started()) as process:
        match = process.matches.get(MATCH_ID)
        await match.state()
        tickets = [await submit(process, cmd.Continue()) for _ in range(LINE_LIMIT)]
        with pytest.raises(LineFullError):
            await submit(process, cmd.Continue())
        done = await asyncio.gather(*(ticket.done for ticket in tickets))
        assert len({answered(each) for each in done}) == LINE_LIMIT


def answered(done: Done) -> str:
    """The id of the command that was decided."""
    assert done.record is not None
    return done.record.command_id


@in_virtual_time
async def test_an_unknown_match_turns_everybody_away() -> None:
    """Also those whose token is still being looked up."""
    async with Process.running() as process:
        match = process.matches.get("unknown")
        with pytest.raises(UnknownMatchError):
            await match.state()
        ticket = match.enter(process.core.clock.arrival())
        with pytest.raises(UnknownMatchError):
            await ticket.done
        match.withdraw(ticket)
        await settle()
        assert match.is_idle


@in_virtual_time
async def test_a_match_that_is_not_needed_is_idle() -> None:
    """Not while it works, while somebody waits in the line, or while somebody watches."""
    async with Process.running(started()) as process:
        match = process.matches.get(MATCH_ID)
        state = await match.state()
        idle = [match.is_idle]
        watch = match.watch(Audience.SPECTATOR, 0)
        idle.append(match.is_idle)
        match.unwatch(watch)
        ticket = await submit(process, legal_command(state))
        idle.append(match.is_idle)
        await ticket.done
        await settle()
        idle.append(match.is_idle)
        assert idle == [True, False, False, True]


@in_virtual_time
async def test_the_receipt_tells_how_the_command_stood_to_the_clock() -> None:
    """Stored with the command."""
    async with Process.running(started()) as process:
        match = process.matches.get(MATCH_ID)
        state = await match.state()
        await asyncio.sleep(13)
        done = await (await submit(process, legal_command(state))).done
        assert done.record is not None
        receipt = done.record.receipt
        assert receipt.verdict is Verdict.IN_TIME
        assert receipt.decision == state.decision
        assert receipt.arrival.earliest_ns <= virtual_service_ns() <= receipt.arrival.latest_ns
        assert state.turn is not None
        assert state.decision is not None
        used_ns = BANK_NS - done.state.banks_ns[state.turn.index]
        assert used_ns == receipt.arrival.earliest_ns - state.decision.delay_ends_at_ns


@in_virtual_time
async def test_a_mistake_of_ours_reaches_the_sender_and_the_match_goes_on() -> None:
    """An assertion is no reason to leave anybody waiting."""
    async with Process.running(started()) as process:
        match = process.matches.get(MATCH_ID)
        state = await match.state()

        async def broken(_: Append) -> None:
            raise AssertionError

        process.store.before_append = broken
        ticket = await submit(process, legal_command(state))
        with pytest.raises(AssertionError):
            await ticket.done
        process.store.before_append = nothing
        assert (await (await submit(process, legal_command(state))).done).state.version == state.version + 1


async def nothing(_: Append) -> None:
    return
