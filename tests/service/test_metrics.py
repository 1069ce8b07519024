"""The metrics of the core, seen to move by what really happens in it, in virtual time."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import pytest

from engine import commands as cmd
from engine.clock import BANK_NS, DELAY_NS, SECOND_NS, Arrival
from engine.events import Step
from engine.seats import SEATS
from service.line import LINE_LIMIT, LineFullError
from service.ports import Append, StoreUnavailableError
from service.writer import ClocksStandError
from tests.support.openmetrics import families_of, openmetrics
from tests.support.ports import MemoryStore, Process, until, virtual_service_ns
from tests.support.server import sample_of
from tests.support.store import NOON_NS
from tests.support.virtual_matches import MATCH_ID, legal_command, order, seated, started, submit
from tests.support.virtual_time import VirtualLoop, in_virtual_time, settle

DEADLINE_NS = NOON_NS + DELAY_NS + BANK_NS


def read(process: Process, name: str, **labels: str) -> float:
    """The value of a metric now."""
    return sample_of(process.metrics.registry, name, **labels)


def stage(process: Process, name: str) -> tuple[float, float]:
    """How many commands passed a stage, and how many seconds they spent in it."""
    count, seconds = (read(process, f"specbid_stage_seconds_{suffix}", stage=name) for suffix in ("count", "sum"))
    return count, seconds


def phases(process: Process) -> dict[str, float]:
    """Live matches by phase, of the phases that have some."""
    (family,) = (family for family in process.metrics.registry.collect() if family.name == "specbid_matches_live")
    return {sample.labels["phase"]: sample.value for sample in family.samples if sample.value}


def slowly(seconds: float) -> Callable[[Append], Awaitable[None]]:
    """An append that takes so long."""

    async def wait(_: Append) -> None:
        await asyncio.sleep(seconds)

    return wait


@in_virtual_time
async def test_a_live_match_is_counted_where_it_stands() -> None:
    """Found at the start, read, begun, ended: always in one phase, at last in none."""
    async with Process.running(seated()) as process:
        assert read(process, "specbid_recovered_matches") == 1
        assert (phases(process), read(process, "specbid_replayed_versions_total")) == ({"unread": 1}, 0)
        await process.matches.get(MATCH_ID).state()
        assert (phases(process), read(process, "specbid_replayed_versions_total")) == ({"not_started": 1}, 1)
        for seat in SEATS:
            await (await submit(process, cmd.Start(), seat=seat)).done
        assert phases(process) == {"opening": 1}
        await asyncio.sleep(90)
        await (await submit(process, cmd.Resign())).done
        assert phases(process) == {}
    assert read(process, "specbid_matches_finished_total", result="resignation") == 1
    assert read(process, "specbid_match_duration_seconds_count") == 1
    assert read(process, "specbid_match_duration_seconds_sum") == pytest.approx(90)


@in_virtual_time
async def test_a_match_that_is_read_again_is_counted_once() -> None:
    """After a write whose outcome is unknown the state is read from the log."""
    async with Process.running(started()) as process:
        match = process.matches.get(MATCH_ID)
        process.store.lost_answers = 1
        with pytest.raises(StoreUnavailableError):
            await (await submit(process, legal_command(await match.state()))).done
        assert (await match.state()).version == 4
        assert phases(process) == {"playing": 1}
        assert read(process, "specbid_replayed_versions_total") == 3 + 1


@in_virtual_time
async def test_an_end_that_is_read_before_its_write_is_heard_of_is_counted_once() -> None:
    """A stream of the match may look into the store while the answer of the write is on its way."""
    async with Process.running(started()) as process:
        match, append = process.matches.get(MATCH_ID), process.store.append

        async def answered_late(change: Append) -> None:
            await append(change)
            await asyncio.sleep(0.5)

        process.store.append = answered_late  # type: ignore[method-assign]
        ticket = await submit(process, cmd.Resign())
        await asyncio.sleep(0.1)
        match.look_again()
        assert (await match.known_state()).result is not None
        assert (await ticket.done).refusal is None
        assert read(process, "specbid_matches_finished_total", result="resignation") == 1
        assert phases(process) == {}


@in_virtual_time
async def test_a_command_without_an_outcome_says_why() -> None:
    """The store was away; the clocks stood; what it asked for cannot be; each is seen beside the refusals."""
    async with Process.running(started()) as process:
        match = process.matches.get(MATCH_ID)
        command = legal_command(await match.state())
        process.store.is_down = True
        with pytest.raises(StoreUnavailableError):
            await (await submit(process, command)).done
        process.store.is_down = False
        await process.matches.suspend()
        with pytest.raises(ClocksStandError):
            await (await submit(process, command)).done
    kind = type(command).__name__
    assert read(process, "specbid_commands_total", kind=kind, outcome="unavailable") == 1
    assert read(process, "specbid_commands_total", kind=kind, outcome="clocks_stand") == 1
    assert read(process, "specbid_commands_total") == 2


@in_virtual_time
async def test_commands_that_wait_while_the_match_cannot_be_read_are_counted_too() -> None:
    """They were never decided."""
    async with Process.running(seated()) as process:
        sent = order(process, cmd.Start(), await process.matches.get(MATCH_ID).state())
    async with Process.running(process.store) as other:
        other.store.is_down = True
        with pytest.raises(StoreUnavailableError):
            await other.matches.get(MATCH_ID).enter(other.core.clock.arrival(), sent).done
        assert read(other, "specbid_commands_total", kind="Start", outcome="unavailable") == 1


@in_virtual_time
async def test_a_repeated_command_is_counted_as_such() -> None:
    """And not as a command."""
    async with Process.running(started()) as process:
        match = process.matches.get(MATCH_ID)
        state = await match.state()
        sent = order(process, legal_command(state), state)
        for _ in range(3):
            await match.enter(sent.arrival, sent).done
        assert read(process, "specbid_commands_total", outcome="accepted") == 1
        assert read(process, "specbid_commands_repeated_total") == 2
        assert stage(process, "publish") == (1, 0)


class SlowStore(MemoryStore):
    """A store that takes so long to read a match."""

    read_seconds = 0.0

    async def steps(self, match_id: str, after_version: int = 0) -> Sequence[Step]:
        await asyncio.sleep(self.read_seconds)
        return await super().steps(match_id, after_version)


@in_virtual_time
async def test_every_stage_of_a_command_shows_where_its_time_went() -> None:
    """Two commands wait until their match is read, the second also until the first is stored."""
    store = SlowStore(**vars(started()))
    async with Process.running(store) as process:
        match = process.matches.get(MATCH_ID)
        state = await match.state()
        match._writer.forget()
        store.read_seconds, store.before_append = 2.0, slowly(3)
        commands = [order(process, command, state) for command in (legal_command(state), cmd.Continue())]
        await asyncio.gather(*(match.enter(sent.arrival, sent).done for sent in commands))
        await settle()
        assert stage(process, "load") == (2, 2)
        assert stage(process, "queue")[1] == pytest.approx(2 + (2 + 3), abs=0.001)
        assert stage(process, "rules") == (2, 0)
        assert stage(process, "store") == (2, 3 + 3)
        assert stage(process, "publish") == (1, 0)
        assert read(process, "specbid_arrival_to_commit_seconds_count") == 2
        assert read(process, "specbid_arrival_to_commit_seconds_sum") == pytest.approx(5 + 8, abs=0.001)


@in_virtual_time
async def test_a_slow_command_can_be_found_by_its_exemplar() -> None:
    """Shown where OpenMetrics is asked for: the match, and nothing else."""
    async with Process.running(started()) as process:
        process.store.before_append = slowly(0.2)
        await (await submit(process, legal_command(await process.matches.get(MATCH_ID).state()))).done
        text = openmetrics(process.metrics.registry)
    samples = families_of(text)["specbid_arrival_to_commit_seconds"].samples
    shown = [(sample.labels["le"], sample.exemplar) for sample in samples if sample.exemplar is not None]
    assert [(bound, exemplar.labels) for bound, exemplar in shown] == [("0.25", {"match_id": MATCH_ID})]
    assert shown[0][1].value == pytest.approx(0.2, abs=0.001)
    assert text.count(" # {") == 1


@in_virtual_time
async def test_an_accepted_command_tells_its_margin_and_a_late_one_by_how_much() -> None:
    """A refused command in time tells neither."""
    async with Process.running(started()) as process:
        match = process.matches.get(MATCH_ID)
        await until(DEADLINE_NS, plus_seconds=-4)
        await (await submit(process, cmd.Continue())).done
        await (await submit(process, legal_command(await match.state()))).done
        assert read(process, "specbid_deadline_margin_seconds_count") == 1
        assert read(process, "specbid_deadline_margin_seconds_sum") == pytest.approx(4, abs=0.1)
        state = await match.state()
        assert state.decision is not None
        sent = order(process, legal_command(state), state)
        holding = match.hold(Arrival.at(virtual_service_ns()))
        await until(state.decision.deadline_ns, plus_seconds=0.5)
        late = match.enter(process.core.clock.arrival(), order(process, sent.command, state))
        match.withdraw(holding)
        record = (await late.done).record
        assert record is not None
        assert record.refusal is not None
        assert read(process, "specbid_deadline_late_seconds_count") == 1
        assert read(process, "specbid_deadline_late_seconds_sum") == pytest.approx(0.5, abs=0.1)


@in_virtual_time
async def test_deadlines_are_seen_while_they_wait_when_they_fire_and_until_they_are_settled() -> None:
    """A store that is away at the deadline leaves it overdue; trying again before it does not."""
    async with Process.running(started()) as process:
        assert read(process, "specbid_deadlines_armed") == 1
        await until(DEADLINE_NS, plus_seconds=-30)
        process.store.is_down = True
        with pytest.raises(StoreUnavailableError):
            await (await submit(process, cmd.Continue())).done
        await until(DEADLINE_NS, plus_seconds=-10)
        assert read(process, "specbid_deadline_overdue_seconds") == 0
        await until(DEADLINE_NS, plus_seconds=20)
        assert read(process, "specbid_deadline_overdue_seconds") == pytest.approx(20)
        process.store.is_down = False
        await asyncio.sleep(3)
        assert read(process, "specbid_deadline_overdue_seconds") == 0
        assert read(process, "specbid_deadlines_armed") == 0
        assert read(process, "specbid_deadline_fire_delay_seconds_count") >= 1
        assert read(process, "specbid_deadline_fire_delay_seconds_sum") < 0.01
        assert read(process, "specbid_matches_finished_total", result="timing_failure") == 1


@in_virtual_time
async def test_a_stalled_loop_shows_as_lag_a_stall_a_late_deadline_and_a_failure() -> None:
    """Three seconds in which nobody was served, across a deadline."""
    async with Process.running(started()) as process:
        await until(DEADLINE_NS, plus_seconds=-1)
        free = read(process, "specbid_loop_lag_seconds_sum")
        assert free < 0.001
        assert read(process, "specbid_loop_lag_seconds_count") > 100
        stall(3)
        await asyncio.sleep(1)
        assert read(process, "specbid_loop_lag_seconds_sum") == pytest.approx(3, abs=0.1)
        assert read(process, "specbid_loop_stalls_total") == 1
        assert read(process, "specbid_clock_steps_total") == 0
        assert read(process, "specbid_timing_failures_total", cause="publish_stall") == 1
        assert read(process, "specbid_deadline_fire_delay_seconds_sum") == pytest.approx(2, abs=0.1)


def stall(seconds: float) -> None:
    """Let time pass without letting the loop do anything."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)
    loop.now_ns += int(seconds * SECOND_NS)


@in_virtual_time
async def test_a_step_of_the_clock_is_counted() -> None:
    """Service time goes on by a minute within a tick."""
    stepped_ns = 0
    process = Process(now_ns=lambda: virtual_service_ns() + stepped_ns, error_bound_ns=lambda: 7_000_000)
    await process.core.start()
    await asyncio.sleep(1)
    stepped_ns = 60 * SECOND_NS
    await asyncio.sleep(1)
    process.core.release()
    assert read(process, "specbid_clock_steps_total") == 1
    assert read(process, "specbid_timing_failures_total", cause="clock_fault") == 1
    assert read(process, "specbid_clock_error_bound_seconds") == 0.007


@in_virtual_time
async def test_a_full_line_is_load_that_is_shed_and_what_is_in_it_is_in_flight() -> None:
    """The limit keeps one sender from filling a match's line."""
    async with Process.running(started()) as process:
        match = process.matches.get(MATCH_ID)
        state = await match.state()
        process.store.before_append = slowly(1)
        sent = [order(process, cmd.Continue(), state) for _ in range(LINE_LIMIT + 1)]
        tickets = [match.enter(one.arrival, one) for one in sent[:LINE_LIMIT]]
        with pytest.raises(LineFullError):
            match.enter(sent[-1].arrival, sent[-1])
        assert read(process, "specbid_load_shed_total", limit="line") == 1
        assert read(process, "specbid_inflight_commands") == LINE_LIMIT
        await asyncio.gather(*(ticket.done for ticket in tickets))
        assert read(process, "specbid_inflight_commands") == 0
