"""Commands that come in a match which this process has not read yet, while the store cannot be asked (F2)."""

import asyncio

import pytest

from engine import events as ev
from engine.clock import BANK_NS, DELAY_NS, SECOND_NS
from engine.faults import FaultCause
from engine.seats import Seat
from service.line import Ticket
from service.match import STORE_RETRY_NS
from service.ports import StoreUnavailableError
from tests.support.ports import Process, until
from tests.support.replicas import replica, sharing
from tests.support.store import NOON_NS
from tests.support.virtual_matches import MATCH_ID, legal_command, log_of, order, started, state_of
from tests.support.virtual_time import in_virtual_time, settle

DEADLINE_NS = NOON_NS + DELAY_NS + BANK_NS
NO_MATCH = "n" * 26
A_PLAYERS, A_STRANGERS = "a player's", "a stranger's"
A_WHILE_SECONDS = 3 * STORE_RETRY_NS / SECOND_NS


async def while_the_store_is_away(process: Process, match_id: str, whose: str) -> Ticket:
    """A command of the opening comes half a second before the deadline, in a short outage of the store."""
    match = process.matches.get(match_id)
    sent = order(process, legal_command(state_of(process)), state_of(process))
    await until(DEADLINE_NS, plus_seconds=-0.5)
    process.store.is_down = True
    arrival = process.core.clock.arrival()
    ticket = match.enter(arrival, None if whose == A_STRANGERS else sent._replace(arrival=arrival))
    await settle()
    if whose == A_STRANGERS:
        match.lose(ticket)
    await asyncio.wait([ticket.done])
    assert ticket.done.cancelled() or isinstance(ticket.done.exception(), StoreUnavailableError)
    await asyncio.sleep(0.1)
    process.store.is_down = False
    return ticket


@pytest.mark.parametrize("whose", [A_PLAYERS, A_STRANGERS])
def test_nobody_loses_on_time_by_a_command_that_the_store_kept_from_being_decided(whose: str) -> None:
    """Not at another replica either, which has always had the store; a repeat would be too late."""
    check_no_loss(whose)


@in_virtual_time
async def check_no_loss(whose: str) -> None:
    """One of two replicas cannot ask the store what the match is, or whose the command is."""
    rows = sharing(started(), "nobody")
    async with replica(rows, "one") as one, replica(rows, "two") as two:
        await two.matches.get(MATCH_ID).state()
        await while_the_store_is_away(one, MATCH_ID, whose)
        await asyncio.sleep(A_WHILE_SECONDS)
        assert [row.fault.cause for row in one.store.ledger] == [FaultCause.NOT_COMMITTED]
        aborted = log_of(two)[-1][-1]
        assert isinstance(aborted, ev.MatchAborted)
        assert aborted.reason is ev.AbortReason.TIMING_FAILURE


@in_virtual_time
async def test_a_stranger_who_made_the_id_of_a_match_up_writes_nothing_and_holds_nobody_up_for_long() -> None:
    """Else anybody could fill the ledger whenever the store is away."""
    rows = sharing(started(), "nobody")
    async with replica(rows, "one") as one, replica(rows, "two"):
        await while_the_store_is_away(one, NO_MATCH, A_STRANGERS)
        assert not one.matches.get(NO_MATCH).is_idle
        await asyncio.sleep(A_WHILE_SECONDS)
        assert one.matches.get(NO_MATCH).is_idle
        assert one.store.ledger == []
        assert log_of(one)[-1][-1] == ev.MatchWon(Seat.TWO, ev.WinReason.TIME, DEADLINE_NS)
