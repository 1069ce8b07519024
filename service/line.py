"""One match's queue: commands in the order of their stamps, whatever happened to them on the way (K4)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import NamedTuple, Protocol

from engine.clock import Arrival
from engine.commands import Command, ServiceCommand
from engine.refusals import Refusal
from engine.seats import PerSeat, Seat
from engine.state import MatchState
from engine.view import Audience
from service.ports import CommandRecord, Credential, SeatRequest
from service.tracing import CommandTrace

LINE_LIMIT = 64
"""Requests of one sender that may wait for one match, so that nobody keeps the other player out of the line.

Players wait for answers, so more than a few is a fault or an attack.
"""
STRANGERS_LIMIT = 16
"""Requests of all senders who are still being checked: whoever knows a match's id must not fill its players' line."""


class LineFullError(Exception):
    """Too many requests of this sender wait for this match already."""


class PlayerOrder(NamedTuple):
    """A player's command with its stamp and the identity that makes a repeat recognisable.

    `seat` is the token's; None for a shared device, which acts for the seat on turn. `entropies` are what a Start
    opens.
    """

    command: Command
    arrival: Arrival
    seat: Seat | None
    sender: Audience
    command_id: str
    body_hash: bytes
    expected_version: int | None = None
    entropies: PerSeat[bytes] = PerSeat(b"", b"")
    trace: CommandTrace | None = None

    def __repr__(self) -> str:
        """Without the entropies, which no log may show."""
        return f"PlayerOrder({self.command!r}, {self.arrival!r}, {self.sender!r}, {self.command_id!r})"


class ServiceOrder(NamedTuple):
    """A command of the service, with the credential and the client's request that a joining player stores with it."""

    command: ServiceCommand
    credential: Credential | None = None
    seat_request: SeatRequest | None = None


class Done(NamedTuple):
    """An order that was carried out or refused: `state` is the match afterwards.

    A player's outcome is the stored `record`; a service command that was refused says so by `refusal`.
    """

    state: MatchState
    record: CommandRecord | None
    repeated: bool = False
    refusal: Refusal | None = None


class Waiter(Protocol):
    """Whoever waits for the end of an order and is told at once, as a future's callbacks are not."""

    def done(self) -> bool:
        """Whether it was told, or waits no longer."""

    def set_result(self, result: Done, /) -> None:
        """The order was carried out or refused."""

    def set_exception(self, exception: Exception, /) -> None:
        """It was not, or nobody knows."""


def _new_future() -> asyncio.Future[Done]:
    return asyncio.get_running_loop().create_future()


@dataclass(order=True, slots=True)
class Ticket:
    """A place in the line. It keeps its place from the stamp on, while its sender is still being checked."""

    stamp_ns: int
    number: int
    order: PlayerOrder | ServiceOrder | None = field(default=None, compare=False)
    waiter: Waiter = field(default_factory=_new_future, compare=False)
    withdrawn: bool = field(default=False, compare=False)

    @property
    def done(self) -> asyncio.Future[Done]:
        """The end of the order, where no other waiter came with it."""
        assert isinstance(self.waiter, asyncio.Future)
        return self.waiter


def _sender_of(order: PlayerOrder | ServiceOrder | None) -> Audience | type[ServiceOrder] | None:
    """Whose place it is: a player's, the service's, or a stranger's."""
    return order.sender if isinstance(order, PlayerOrder) else None if order is None else ServiceOrder


class Line:
    """Tickets by stamp, then by entry.

    `on_full` is told of everybody who finds it full, `on_left` of every ticket that was handled or withdrawn.
    """

    def __init__(
        self, on_full: Callable[[], None] = lambda: None, on_left: Callable[[Ticket], None] = lambda _: None
    ) -> None:
        self._on_full = on_full
        self._on_left = on_left
        self._tickets: list[Ticket] = []
        self._entered = 0
        self._changed = asyncio.Event()

    def __len__(self) -> int:
        return len(self._tickets)

    def enter(
        self, arrival: Arrival, order: PlayerOrder | ServiceOrder | None = None, waiter: Waiter | None = None
    ) -> Ticket:
        """Take a place for a command that arrived then; `order` may follow by `fill`. Raises LineFullError."""
        if self._tickets:
            sender = _sender_of(order)
            waiting = sum(not ticket.withdrawn and _sender_of(ticket.order) is sender for ticket in self._tickets)
            if waiting >= (STRANGERS_LIMIT if order is None else LINE_LIMIT):
                self._on_full()
                raise LineFullError
        return self.hold(arrival, order, waiter)

    def hold(
        self, arrival: Arrival, order: PlayerOrder | ServiceOrder | None = None, waiter: Waiter | None = None
    ) -> Ticket:
        """Take a place for the service itself, however long the line is."""
        self._entered += 1
        ticket = Ticket(arrival.earliest_ns, self._entered, order, waiter or _new_future())
        heappush(self._tickets, ticket)
        self._changed.set()
        return ticket

    def fill(self, ticket: Ticket, order: PlayerOrder | ServiceOrder) -> None:
        """The sender was checked: this is what it asks."""
        ticket.order = order
        self._changed.set()

    def withdraw(self, ticket: Ticket) -> None:
        """The sender was turned away; nobody waits for the answer."""
        self.leave(ticket)
        if not ticket.done.cancel():
            ticket.done.exception()  # seen, so that nobody reports it as lost
        self._changed.set()

    def first(self) -> Ticket | None:
        """The ticket with the earliest stamp, if any. It stays in the line until `leave`."""
        while self._tickets and self._tickets[0].withdrawn:
            heappop(self._tickets)
        return self._tickets[0] if self._tickets else None

    def leave(self, ticket: Ticket) -> None:
        """Take a handled ticket out, wherever it stands by now."""
        ticket.withdrawn = True
        self._on_left(ticket)

    async def changed(self) -> None:
        """Wait until somebody enters, is filled or withdraws."""
        self._changed.clear()
        await self._changed.wait()
