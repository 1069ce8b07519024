"""The line of one match: by stamps, whatever happened to a command on the way (K4)."""

import asyncio
from collections.abc import Callable

import pytest

from engine.clock import Arrival
from engine.commands import CheckClock
from service.line import LINE_LIMIT, STRANGERS_LIMIT, Done, Line, LineFullError, ServiceOrder, Ticket
from tests.support.rules.given import playing
from tests.support.virtual_time import in_virtual_time


def order(number: int = 0) -> ServiceOrder:
    """Some order; the number tells it from others."""
    return ServiceOrder(CheckClock(number))


def worked_off(line: Line) -> list[int]:
    """Takes everything out of the line; the stamps in the order of their turns."""
    stamps = []
    while (ticket := line.first()) is not None:
        stamps.append(ticket.stamp_ns)
        line.leave(ticket)
    return stamps


@pytest.mark.parametrize("entered", [(1, 2, 3), (3, 2, 1), (2, 3, 1)])
async def test_the_earliest_stamp_is_first_whoever_entered_first(entered: tuple[int, ...]) -> None:
    """The earliest instant of the arrival counts."""
    line = Line()
    for stamp in entered:
        line.enter(Arrival(stamp, 10), order())
    assert worked_off(line) == [1, 2, 3]


async def test_equal_stamps_keep_the_order_of_entry() -> None:
    """Two commands stamped between the same ticks."""
    line = Line()
    tickets = [line.enter(Arrival(5, latest), order(latest)) for latest in (9, 8, 7)]
    for ticket in tickets:
        assert line.first() is ticket
        line.leave(ticket)


async def test_a_ticket_whose_sender_is_being_checked_holds_its_place() -> None:
    """Commands that came later wait behind it."""
    line = Line()
    unchecked = line.enter(Arrival.at(1))
    line.enter(Arrival.at(2), order())
    assert line.first() is unchecked
    assert unchecked.order is None
    line.fill(unchecked, order(7))
    first = line.first()
    assert first is unchecked
    assert first.order == order(7)


@pytest.mark.parametrize("withdrawn", [0, 1, 2])
async def test_a_withdrawn_ticket_blocks_nobody(withdrawn: int) -> None:
    """Its sender was turned away, and nobody waits for the answer."""
    line = Line()
    tickets = [line.enter(Arrival.at(stamp)) for stamp in range(3)]
    line.withdraw(tickets[withdrawn])
    assert worked_off(line) == [stamp for stamp in range(3) if stamp != withdrawn]
    assert tickets[withdrawn].done.cancelled()


async def test_withdrawing_a_ticket_that_failed_already_is_silent() -> None:
    """Its error belongs to nobody any more."""
    line = Line()
    ticket = line.enter(Arrival.at(1))
    ticket.done.set_exception(LineFullError())
    line.withdraw(ticket)
    assert line.first() is None


async def test_a_handled_ticket_leaves_from_any_place() -> None:
    """An earlier stamp may have come in meanwhile."""
    line = Line()
    handled = line.enter(Arrival.at(5), order())
    line.enter(Arrival.at(1), order())
    line.leave(handled)
    assert worked_off(line) == [1]


async def test_the_line_has_a_limit() -> None:
    """Players wait for answers, so more than a few is a fault or an attack."""
    line = Line()
    for stamp in range(LINE_LIMIT):
        line.enter(Arrival.at(stamp), order())
    with pytest.raises(LineFullError):
        line.enter(Arrival.at(0), order())
    first = line.first()
    assert first is not None
    line.leave(first)
    line.first()
    line.enter(Arrival.at(0), order())


async def test_the_service_itself_finds_a_place_in_a_full_line() -> None:
    """It must be able to stop the clocks."""
    line = Line()
    for stamp in range(LINE_LIMIT):
        line.enter(Arrival.at(stamp), order())
    ticket = line.hold(Arrival.at(-1))
    assert line.first() is ticket


CHANGES: dict[str, Callable[[Line, Ticket], object]] = {
    "enter": lambda line, _: line.enter(Arrival.at(9), order()),
    "fill": lambda line, ticket: line.fill(ticket, order()),
    "withdraw": lambda line, ticket: line.withdraw(ticket),
}


@pytest.mark.parametrize("change", CHANGES)
@in_virtual_time
async def test_who_waits_for_the_line_is_woken_by_every_change(change: str) -> None:
    """By nothing else: a virtual loop would notice that nothing can happen."""
    line = Line()
    ticket = line.enter(Arrival.at(1))
    waiting = asyncio.ensure_future(line.changed())
    await asyncio.sleep(0)
    assert not waiting.done()
    CHANGES[change](line, ticket)
    await waiting


async def test_the_sender_gets_the_answer_through_the_ticket() -> None:
    """Tickets carry the future that the sender awaits."""
    ticket: Ticket = Line().enter(Arrival.at(1), order())
    done = Done(playing("2-3"), None)
    ticket.done.set_result(done)
    assert await ticket.done is done


async def test_strangers_cannot_fill_the_line_of_players() -> None:
    """Whoever knows a match's id may be checked, but only so many at a time."""
    line = Line()
    tickets = [line.enter(Arrival.at(number)) for number in range(STRANGERS_LIMIT)]
    with pytest.raises(LineFullError):
        line.enter(Arrival.at(99))
    line.enter(Arrival.at(99), order())
    line.withdraw(tickets[0])
    line.fill(tickets[1], order())
    line.enter(Arrival.at(100))
    line.enter(Arrival.at(101))
