"""What a process does when the server of its store was started anew, or another one took over: it may lack the tail.

Nothing that was acknowledged should be missing then, but a lone machine that is restored from a backup, or a standby
that was behind, has lost the last of it. A match that is ahead of the store here is proof; so is a heartbeat that is
not there. What was lost is forgotten. The proof goes into the ledger before this process closes any more of the past,
and so before anybody settles a deadline by that.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from typing import Protocol

from engine.events import Step
from engine.faults import Fault, FaultCause
from service.ledger import FaultLedger
from service.logs import get_logger
from service.match import Match
from service.matches import Matches
from service.ports import Clock, StoreUnavailableError

COMPARED_AT_ONCE = 256
"""Matches in one question to the store."""


class Lineage(Protocol):
    """Whether the server of a store is the one that acknowledged what is known here, or one that may lack some of it.

    `turn` rises when that becomes doubtful. From then on the store answers nothing until `trust`.
    """

    turn: int
    has_lost: bool
    """Whether a heartbeat of this process is missing that was acknowledged."""
    kept_until_ns: int
    """When `turn` rose: everything is there that was acknowledged before this instant."""

    async def steps_at(self, versions: Mapping[str, int]) -> Mapping[str, Step]:
        """The steps that made these versions of matches, of those that are there; answered in any case."""

    def trust(self, turn: int, *, is_whole: bool) -> None:
        """What is known here is what the server of this turn has; `is_whole`: nothing was lost.

        Without effect when that turn is over already.
        """


class Tails:
    """Compares what is known here with what the store has, whenever that may lack some of it."""

    def __init__(
        self,
        lineage: Lineage,
        matches: Matches,
        ledger: FaultLedger,
        clock: Clock,
        spawn: Callable[[Coroutine[object, object, None]], object],
    ) -> None:
        self._lineage = lineage
        self._matches = matches
        self._ledger = ledger
        self._clock = clock
        self._spawn = spawn
        self._examined = lineage.turn
        lineage.trust(self._examined, is_whole=True)  # nothing is known yet

    @property
    def is_doubtful(self) -> bool:
        """Whether the store may have lost something, and nobody has looked."""
        return self._lineage.turn != self._examined

    async def examine(self) -> None:
        """Compare, forget what is lost, record that, and let the store be used again. Raises StoreUnavailableError."""
        turn = self._lineage.turn
        known = self._matches.known()
        lost: list[Match] = []
        for first in range(0, len(known), COMPARED_AT_ONCE):
            some = known[first : first + COMPARED_AT_ONCE]
            kept = await self._lineage.steps_at({match.match_id: version for match, version, _ in some})
            lost += [match for match, _, step in some if kept.get(match.match_id) != step]
        if turn != self._lineage.turn:
            raise StoreUnavailableError("another server has taken over")
        get_logger().info("database_compared", matches=len(known))
        is_whole = not (lost or self._lineage.has_lost)
        if not is_whole:
            self._tell(lost)
        self._examined = turn
        self._lineage.trust(turn, is_whole=is_whole)
        await self._ledger.load(self._clock.now_ns())
        self._spawn(self._go_on())

    def _tell(self, lost: Sequence[Match]) -> None:
        """From here on nothing is decided without this fault."""
        from_ns, now_ns = self._lineage.kept_until_ns, self._clock.now_ns()
        get_logger().error("commits_lost", matches=len(lost), from_ns=from_ns, to_ns=now_ns)
        evidence = f"the database came back without what it had acknowledged; {len(lost)} matches were ahead of it here"
        self._ledger.record(Fault(FaultCause.COMMITS_LOST, from_ns, max(from_ns, now_ns), evidence))
        for match in lost:
            match.start_over()

    async def _go_on(self) -> None:
        """Deadlines and suspended clocks are what the store says now. Orphans are looked for in any case."""
        with suppress(StoreUnavailableError):
            await self._matches.look_anew()
