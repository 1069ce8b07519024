"""The two seats and values kept per seat."""

from __future__ import annotations

from enum import Enum
from typing import Generic, NamedTuple, TypeVar

T = TypeVar("T")


class Seat(Enum):
    """A place at the table, fixed for the match."""

    ONE = 1
    TWO = 2

    __hash__ = object.__hash__  # members are singletons; Enum's own hash is Python code

    index: int
    """Where a `PerSeat` has the seat's value: a subscript is not Python code, as a method would be."""
    other: Seat
    """The opponent's seat."""

    def __init__(self, number: int) -> None:
        self.index = number - 1


Seat.ONE.other, Seat.TWO.other = Seat.TWO, Seat.ONE
SEATS = (Seat.ONE, Seat.TWO)


class PerSeat(NamedTuple, Generic[T]):
    """One value for each seat, in the order of `SEATS`; that of `seat` is at `seat.index`."""

    one: T
    two: T

    def having(self, seat: Seat, value: T) -> PerSeat[T]:
        """The same pair with another value for `seat`."""
        return PerSeat(self.one, value) if seat.index else PerSeat(value, self.two)
