"""When a failure of the service may not cost a player the match (readings F1 to F5).

A fault is a span, proven by the fault ledger, in which the service could not have stamped, stored or shown a command
properly. It counts only where it could have changed a verdict or a bank; then the match has no result.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from engine.clock import SECOND_NS, Decision


class FaultCause(Enum):
    """What the service failed to do."""

    STAMP_STRADDLES = "stamp straddles"
    REPLICA_LOST = "replica lost"
    STORE_GAP = "store gap"
    CLOCK_FAULT = "clock fault"
    NOT_COMMITTED = "not committed"
    PUBLISH_STALL = "publish stall"
    OUTAGE = "outage"
    COMMITS_LOST = "commits lost"

    __hash__ = object.__hash__  # as Seat


_BURNING = frozenset({FaultCause.OUTAGE, FaultCause.CLOCK_FAULT, FaultCause.PUBLISH_STALL, FaultCause.COMMITS_LOST})
"""While these last a player cannot move or cannot see that it is time to, or again."""


@dataclass(frozen=True, slots=True)
class Tolerances:
    """How much doubt a verdict bears, in nanoseconds."""

    widest_stamp_ns: int = SECOND_NS // 10
    """A stamp across the deadline proves nothing when it is wider."""
    charge_ns: int = SECOND_NS
    """A bank charge must be known better than this."""
    aftermath_ns: int = 5 * SECOND_NS
    """How long after a failure a player may still be cut off by it."""


TOLERANCES = Tolerances()


class Fault(NamedTuple):
    """A row of the fault ledger: the span and what proves it."""

    cause: FaultCause
    from_ns: int
    to_ns: int
    evidence: str

    def covers_deadline(self, decision: Decision, tolerances: Tolerances) -> bool:
        """Whether a loss on time at the decision's deadline could be this fault's doing (F2).

        A step of the clock, or a command of the decision that was lost, puts the whole of it in doubt; other faults a
        deadline in their span or right behind it, or one that came sooner because they took time away.
        """
        started, deadline = decision.started_at_ns, decision.deadline_ns
        from_ns, to_ns = decision.moved_ns(self.from_ns), decision.moved_ns(self.to_ns)
        if self.cause is FaultCause.NOT_COMMITTED:
            return started <= from_ns < deadline
        if self.cause is FaultCause.CLOCK_FAULT:
            return from_ns < deadline and to_ns > started
        if from_ns < deadline <= to_ns + tolerances.aftermath_ns:
            return True
        return self._lost_ns(decision, deadline) > tolerances.charge_ns

    def burned_ns(self, decision: Decision, until_ns: int) -> int:
        """How much of the bank this fault may have burned by then.

        What it took from the delay counts too: without it everything after would have come earlier.
        """
        used_ns = decision.bank_used_ns(until_ns)
        return min(used_ns, self._lost_ns(decision, until_ns)) if used_ns else 0

    def _lost_ns(self, decision: Decision, until_ns: int) -> int:
        """How much of the decision's time the player could not use by then; all since a command that was lost."""
        from_ns, to_ns = decision.moved_ns(self.from_ns), decision.moved_ns(self.to_ns)
        if self.cause is FaultCause.NOT_COMMITTED and from_ns >= decision.started_at_ns:
            return max(0, until_ns - from_ns)
        if self.cause not in _BURNING:
            return 0
        return max(0, min(to_ns, until_ns) - max(from_ns, decision.started_at_ns))

    def __str__(self) -> str:
        return f"{self.cause.value} from {self.from_ns} to {self.to_ns}: {self.evidence}"
