"""The two seats and values kept per seat."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Generic, TypeVar

T = TypeVar("T")


class Seat(Enum):
    """A place at the table, fixed for the match."""

    ONE = 1
    TWO = 2

    __hash__ = object.__hash__  # members are singletons; Enum's own hash is Python code

    @property
    def other(self) -> Seat:
        """The opponent's seat."""
        return Seat.TWO if self is Seat.ONE else Seat.ONE


SEATS = (Seat.ONE, Seat.TWO)


@dataclass(frozen=True, slots=True)
class PerSeat(Generic[T]):
    """One value for each seat."""

    one: T
    two: T

    def __getitem__(self, seat: Seat) -> T:
        """The value of `seat`."""
        return self.one if seat is Seat.ONE else self.two

    def having(self, seat: Seat, value: T) -> PerSeat[T]:
        """The same pair with another value for `seat`."""
        return PerSeat(value, self.two) if seat is Seat.ONE else PerSeat(self.one, value)
