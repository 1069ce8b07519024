"""The match clock: simple delay, a bank for the match, a strict deadline (clauses clock.*, readings K1 to K6).

Instants and lengths are integer nanoseconds on the service's line of time.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from engine.seats import Seat

SECOND_NS = 1_000_000_000
BANK_NS = 120 * SECOND_NS
DELAY_NS = 10 * SECOND_NS


class Arrival(NamedTuple):
    """When a whole command reached the server: not before `earliest_ns`, not after `latest_ns`.

    Where a witness outside narrowed what the service can vouch for by itself, that is in the `own_` bounds.
    """

    earliest_ns: int
    latest_ns: int
    own_earliest_ns: int | None = None
    own_latest_ns: int | None = None

    @classmethod
    def at(cls, instant_ns: int) -> Arrival:
        """An arrival known exactly."""
        return cls(instant_ns, instant_ns)


class Verdict(Enum):
    """How a command stands to the running decision."""

    NOT_TIMED = "not timed"
    IN_TIME = "in time"
    IN_TIME_BY_DOUBT = "in time by doubt"
    LATE = "late"
    UNPROVABLE = "unprovable"

    __hash__ = object.__hash__  # as Seat


@dataclass(frozen=True, slots=True)
class Decision:
    """A running decision: whose, since when, and the bank with which it began.

    A planned stop moves it by its length (F4); `standstills` are those that have, from when to when.
    """

    seat: Seat
    started_at_ns: int
    bank_ns: int
    standstills: tuple[tuple[int, int], ...] = field(default=(), compare=False)
    delay_ends_at_ns: int = field(init=False, repr=False, compare=False)
    """Until then the bank stands still (clock.delay-first)."""
    deadline_ns: int = field(init=False, repr=False, compare=False)
    """The first instant that is too late (clock.expiry, K5)."""

    def __post_init__(self) -> None:
        delay_ends_at_ns = self.started_at_ns + DELAY_NS
        object.__setattr__(self, "delay_ends_at_ns", delay_ends_at_ns)  # every command asks for both several times
        object.__setattr__(self, "deadline_ns", delay_ends_at_ns + self.bank_ns)

    def moved_ns(self, instant_ns: int) -> int:
        """An instant of earlier, moved as far as the planned stops after it have moved the decision."""
        for from_ns, to_ns in self.standstills:
            if instant_ns < to_ns:
                instant_ns = min(instant_ns, from_ns) + to_ns - from_ns
        return instant_ns

    def bank_used_ns(self, instant_ns: int) -> int:
        """What the decision takes from the bank when it ends at `instant_ns` (K1), at most the bank."""
        return min(self.bank_ns, max(0, instant_ns - self.delay_ends_at_ns))

    def judge(self, arrival: Arrival, widest_stamp_ns: int) -> Verdict:
        """The verdict on a command of the player whose decision this is (clock.before-deadline, K4, K5, F1)."""
        deadline = self.deadline_ns
        if arrival.latest_ns < deadline:
            return Verdict.IN_TIME
        if arrival.earliest_ns >= deadline:
            return Verdict.LATE
        narrow = arrival.latest_ns - arrival.earliest_ns <= widest_stamp_ns
        return Verdict.IN_TIME_BY_DOUBT if narrow else Verdict.UNPROVABLE
