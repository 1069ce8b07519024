"""Turns that were stored long after they began: each has burned its player's time, unseen (K3, F2).

The store need not have answered for that: it may have made a write after its connection was lost, or after somebody
else had given up. What proves how late a turn came is when the match was last known to stand without it.
"""

from __future__ import annotations

import asyncio

from engine.events import ClocksResumed, ClockStarted, Step
from engine.faults import Fault, FaultCause
from service.ledger import FaultLedger
from service.ports import Clock, OvertakenError

_BEGINNINGS = (ClockStarted, ClocksResumed)


class LateTurns:
    """Watches the writes and the reads of one match, and records a PUBLISH_STALL for a turn that came late."""

    def __init__(self, match_id: str, clock: Clock, ledger: FaultLedger) -> None:
        self._match_id = match_id
        self._clock = clock
        self._ledger = ledger
        self._handed_in: Step = ()
        """The step of a write whose outcome is not known."""
        self._absent_ns = 0
        """When the store last had nothing behind what is known here."""

    def handing_in(self, step: Step) -> None:
        """A write of this step begins, behind what is known here."""
        self._handed_in = step

    def stored(self, step: Step, known_ns: int) -> None:
        """It was made, as is known since this instant."""
        self._handed_in = ()
        self._judge(step, known_ns)

    def overtaken(self, error: OvertakenError) -> None:
        """A write found that something is behind what is known here; it may have waited for that to come."""
        if error.unmoved_at is not None:
            waited_seconds = asyncio.get_running_loop().time() - error.unmoved_at
            self._absent_ns = max(self._absent_ns, self._clock.now_ns() - round(waited_seconds * 1e9))

    def found(self, step: Step, asked_ns: int) -> None:
        """The store, asked then, has this step behind what was known here, or none."""
        if not step:  # so a write under way is as late as that already, and may come later still
            if self._judge(self._handed_in, asked_ns):
                self._handed_in = ()
        elif step == self._handed_in:  # nobody was told before now
            self.stored(step, self._clock.now_ns())
        else:
            self._handed_in = ()
            self._judge(step, self._absent_ns)
        self._absent_ns = asked_ns

    def _judge(self, step: Step, until_ns: int) -> bool:
        """Record what began so long before this instant that a charge would be wrong; whether that is so."""
        began_ns = next((event.at_ns for event in step if isinstance(event, _BEGINNINGS)), until_ns)
        is_late = until_ns - began_ns >= self._ledger.tolerances.charge_ns
        if is_late:
            evidence = "a turn was stored long after it began"
            self._ledger.record(Fault(FaultCause.PUBLISH_STALL, began_ns, until_ns, evidence), self._match_id)
        return is_late
