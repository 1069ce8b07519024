"""The checker against a true history, and against the same history with one thing changed in it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

import pytest

from engine import events as ev
from engine.clock import SECOND_NS, Arrival
from engine.faults import Fault, FaultCause
from engine.view import Audience
from service.ports import CommandRecord, LedgerRow
from service.store.sealing import seal_from
from tests.chaos import rows
from tests.chaos.check import check
from tests.chaos.history import MACHINE, Answered, History, Injected, Stored, StoredMatch
from tests.chaos.people import Habits, Table, seat
from tests.chaos.quick import quick_clock
from tests.support.server import served

Tampering: TypeAlias = Callable[[History, Stored], Stored | None]
"""Changes the history in place, or gives another database."""

EAGER = Habits(think_seconds=(0.0, 0.02), aims_at_the_deadline=0.0, lets_it_pass=0.0)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[History, Stored]]:
    """A true history of two matches that were played for a moment and then lost on time."""
    with ExitStack() as patched:
        patched.enter_context(quick_clock())
        yield asyncio.run(_record(tmp_path_factory.mktemp("recorded") / "matches.sqlite3"))


async def _record(database: Path) -> tuple[History, Stored]:
    history = History()
    async with served(database) as server:
        tables = [await seat(number, (server.channel,), history, EAGER) for number in range(2)]
        async with asyncio.timeout(30), asyncio.TaskGroup() as running:
            for table in tables:
                running.create_task(_played(table))
        stored = rows.of_file(database, seal_from(Path(f"{database}.key")))
    return history, stored


async def _played(table: Table) -> None:
    async with asyncio.TaskGroup() as running:
        for person in table.people:
            running.create_task(person.watch())
        for player in table.players:
            running.create_task(player.play())
        await asyncio.sleep(1.0)
        for player in table.players:
            player.is_playing = False


def copied(history: History) -> History:
    """A history that may be changed."""
    return History(list(history.sent), list(history.answered), list(history.seen), list(history.injected))


def changed(stored: Stored, match_id: str, match: StoredMatch) -> Stored:
    """The database with another row of one match."""
    return stored._replace(matches={**stored.matches, match_id: match})


def some_match(stored: Stored) -> tuple[str, StoredMatch]:
    """One of the matches."""
    return next(iter(stored.matches.items()))


def test_a_true_history_has_no_violation(recorded: tuple[History, Stored]) -> None:
    history, stored = recorded
    assert check(history, stored) == []
    assert len(history.answered) > 20
    assert all(isinstance(match.steps[-1][1][-1], ev.MatchWon) for match in stored.matches.values())


def lose_a_record(_: History, stored: Stored) -> Stored:
    match_id, match = some_match(stored)
    return changed(stored, match_id, match._replace(records=match.records[1:]))


def store_a_record_twice(_: History, stored: Stored) -> Stored:
    match_id, match = some_match(stored)
    return changed(stored, match_id, match._replace(records=[*match.records, match.records[-1]]))


def lose_a_version(_: History, stored: Stored) -> Stored:
    match_id, match = some_match(stored)
    return changed(stored, match_id, match._replace(steps=[*match.steps[:5], *match.steps[6:]]))


def let_the_row_lag(_: History, stored: Stored) -> Stored:
    match_id, match = some_match(stored)
    return changed(stored, match_id, match._replace(live=True, due_ns=1))


def charge_the_bank_otherwise(_: History, stored: Stored) -> Stored:
    """Decisions that took nothing from the bank take a nanosecond."""
    match_id, match = some_match(stored)
    return changed(
        stored, match_id, match._replace(steps=[(version, tuple(map(_charged, step))) for version, step in match.steps])
    )


def _charged(event: ev.Event) -> ev.Event:
    if isinstance(event, ev.ClockStopped) and event.bank_used_ns == 0:
        return event._replace(bank_used_ns=1)
    return event


def accept_by_another_stamp(_: History, stored: Stored) -> Stored:
    match_id, match = some_match(stored)
    return changed(stored, match_id, match._replace(records=[_stamped_late(record) for record in match.records]))


def _stamped_late(record: CommandRecord) -> CommandRecord:
    late_ns = record.receipt.arrival.latest_ns + 60 * SECOND_NS
    return record._replace(receipt=record.receipt._replace(arrival=Arrival.at(late_ns)))


def answer_with_another_version(history: History, _: Stored) -> None:
    answer = next(one for one in history.answered if one.outcome.HasField("accepted"))
    outcome = type(answer.outcome)()
    outcome.CopyFrom(answer.outcome)
    outcome.accepted.version += 1
    history.answered[history.answered.index(answer)] = Answered(answer.sent, outcome, answer.at_ns)


def forget_what_was_sent(history: History, _: Stored) -> None:
    stored_id = history.answered[0].sent.command_id
    history.sent[:] = [
        sent._replace(expected_version=999) if sent.command_id == stored_id else sent for sent in history.sent
    ]


def show_an_older_view(history: History, _: Stored) -> None:
    first = history.seen[0]
    last = next(seen for seen in reversed(history.seen) if seen.watcher == first.watcher)
    history.seen.append(first._replace(at_ns=last.at_ns + 1))


def show_another_balance(history: History, _: Stored) -> None:
    seen = history.seen[-1]
    update = type(seen.update)()
    update.CopyFrom(seen.update)
    update.view.public.players[0].balance_points += 5
    history.seen[-1] = seen._replace(update=update)


def show_the_opponents_hand(history: History, _: Stored) -> None:
    """The spectator gets what seat ONE got."""
    theirs = next(seen for seen in history.seen if seen.audience is Audience.SEAT_ONE and seen.update.view.own.hand)
    at = next(
        at
        for at, seen in enumerate(history.seen)
        if seen.audience is Audience.SPECTATOR
        and seen.match_id == theirs.match_id
        and seen.update.view.public.version == theirs.update.view.public.version
    )
    history.seen[at] = history.seen[at]._replace(update=theirs.update)


def answer_with_the_opponents_hand(history: History, _: Stored) -> None:
    held = {
        (seen.match_id, seen.update.view.public.version): seen
        for seen in history.seen
        if seen.audience is Audience.SEAT_TWO and seen.update.view.own.hand
    }
    at, theirs = next(
        (at, held[answer.sent.match_id, answer.outcome.view.public.version])
        for at, answer in enumerate(history.answered)
        if answer.sent.sender is Audience.SEAT_ONE
        and (answer.sent.match_id, answer.outcome.view.public.version) in held
    )
    answer = history.answered[at]
    outcome = type(answer.outcome)()
    outcome.CopyFrom(answer.outcome)
    outcome.view.CopyFrom(theirs.update.view)
    history.answered[at] = answer._replace(outcome=outcome)


def stop_a_watch_early(history: History, _: Stored) -> None:
    last = history.seen[-1]
    history.seen[:] = [
        seen
        for seen in history.seen
        if seen.watcher != last.watcher or seen.update.view.public.version < last.update.view.public.version
    ]


def lose_before_the_deadline(_: History, stored: Stored) -> Stored:
    match_id, match = some_match(stored)
    version, step = match.steps[-1]
    won = step[-1]
    assert isinstance(won, ev.MatchWon)
    earlier = (*step[:-1], replace(won, at_ns=won.at_ns - 1))
    return changed(stored, match_id, match._replace(steps=[*match.steps[:-1], (version, earlier)]))


def lose_although_a_command_was_sent(history: History, stored: Stored) -> None:
    match_id, match = some_match(stored)
    won = match.steps[-1][1][-1]
    assert isinstance(won, ev.MatchWon)
    loser = Audience.SEAT_ONE if won.winner.value == Audience.SEAT_TWO.value else Audience.SEAT_TWO
    sent = next(one for one in history.sent if one.match_id == match_id and one.sender is loser)
    history.sent.append(
        sent._replace(command_id="new", expected_version=match.version - 1, sent_ns=won.at_ns - 2 * SECOND_NS)
    )


def _aborted(stored: Stored, fault: Fault) -> Stored:
    """The match ends by this fault instead of the loss on time."""
    match_id, match = some_match(stored)
    version, step = match.steps[-1]
    won = step[-1]
    assert isinstance(won, ev.MatchWon)
    aborted = ev.MatchAborted(ev.AbortReason.TIMING_FAILURE, str(fault), won.at_ns)
    return changed(stored, match_id, match._replace(steps=[*match.steps[:-1], (version, (aborted,))]))


def _fault_at_the_end(stored: Stored) -> Fault:
    _, match = some_match(stored)
    won = match.steps[-1][1][-1]
    assert isinstance(won, ev.MatchWon)
    return Fault(FaultCause.STORE_GAP, won.at_ns - SECOND_NS, won.at_ns + SECOND_NS, "no heartbeat could be stored")


def abort_without_a_row(history: History, stored: Stored) -> Stored:
    fault = _fault_at_the_end(stored)
    history.injected.append(Injected("kill -9", fault.from_ns, fault.to_ns))
    return _aborted(stored, fault)


def abort_with_nothing_done_to_the_service(_: History, stored: Stored) -> Stored:
    fault = _fault_at_the_end(stored)
    return _aborted(stored._replace(ledger=[LedgerRow(fault)]), fault)


def abort_long_after_the_fault(history: History, stored: Stored) -> Stored:
    fault = _fault_at_the_end(stored)
    history.injected.append(Injected("kill -9", fault.from_ns - 9 * SECOND_NS, fault.from_ns - 8 * SECOND_NS))
    return _aborted(stored._replace(ledger=[LedgerRow(fault)]), fault)


def abort_while_the_machine_was_busy_elsewhen(history: History, stored: Stored) -> Stored:
    fault = _fault_at_the_end(stored)
    history.injected.append(Injected(MACHINE, fault.from_ns - 2 * SECOND_NS, fault.from_ns - SECOND_NS))
    return _aborted(stored._replace(ledger=[LedgerRow(fault)]), fault)


def leave_a_match_undecided(_: History, stored: Stored) -> Stored:
    """The rows from before the loss on time, read a minute after it was due."""
    match_id, match = some_match(stored)
    *earlier, (_last, step) = match.steps
    won = step[-1]
    assert isinstance(won, ev.MatchWon)
    still = changed(stored, match_id, match._replace(version=len(earlier), due_ns=won.at_ns, live=True, steps=earlier))
    return still._replace(at_ns=won.at_ns + 60 * SECOND_NS)


TAMPERED: dict[str, tuple[Tampering, ...]] = {
    "answered means stored": (lose_a_record,),
    "one effect a command": (store_a_record_twice, answer_with_another_version, lose_a_record),
    "versions are contiguous": (lose_a_version,),
    "the row of a match follows from its log": (let_the_row_lag,),
    "a verdict follows from stored rows": (charge_the_bank_otherwise, accept_by_another_stamp),
    "a record has its command": (forget_what_was_sent,),
    "a receipt is the stored one": (accept_by_another_stamp,),
    "a stamp holds the true arrival": (accept_by_another_stamp,),
    "views never go back": (show_an_older_view,),
    "a view says what is stored": (show_another_balance, show_the_opponents_hand),
    "no hidden tile is shown": (show_the_opponents_hand, answer_with_the_opponents_hand),
    "a watch ends at the final version": (stop_a_watch_early,),
    "a loss on time is at its deadline": (lose_before_the_deadline,),
    "the clock's doing follows from stored rows": (lose_before_the_deadline, abort_without_a_row),
    "who tried in time does not lose on time": (lose_although_a_command_was_sent,),
    "no abort without a row of the ledger": (abort_without_a_row,),
    "clients and planned stops abort nothing": (
        abort_with_nothing_done_to_the_service,
        abort_while_the_machine_was_busy_elsewhen,
    ),
    "no abort without a real fault": (abort_long_after_the_fault,),
    "overdue matches are decided": (leave_a_match_undecided,),
}


@pytest.mark.parametrize(
    ("invariant", "tamper"), [(name, tamper) for name, tampers in TAMPERED.items() for tamper in tampers]
)
def test_a_history_that_was_tampered_with_is_found_out(
    recorded: tuple[History, Stored], invariant: str, tamper: Tampering
) -> None:
    history, stored = copied(recorded[0]), recorded[1]
    stored = tamper(history, stored) or stored
    found = {violation.partition(":")[0] for violation in check(history, stored)}
    assert invariant in found
