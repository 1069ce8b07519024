"""The fault ledger: what the service failed to do, with its proof, and what of it concerns a match (F1, F2)."""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from collections.abc import Callable, Coroutine, Iterable

from engine.decide import Evidence
from engine.faults import Fault, Tolerances
from service.logs import get_logger
from service.metrics import Metrics
from service.ports import LedgerRow, Store, StoreUnavailableError

PERSIST_ATTEMPTS = 100
KEPT_NS = 3_600 * 1_000_000_000
"""How long a fault may still concern a running decision; no decision is that long."""


class FaultLedger:
    """The rows of the last hour in memory, all of them in the store."""

    def __init__(
        self,
        store: Store,
        metrics: Metrics,
        tolerances: Tolerances,
        spawn: Callable[[Coroutine[object, object, None]], object],
    ) -> None:
        self._store = store
        self._metrics = metrics
        self.tolerances = tolerances
        """How much doubt a verdict bears."""
        self._nothing = Evidence((), tolerances)
        self._spawn = spawn
        self._general: tuple[Fault, ...] = ()
        self._by_match: dict[str, tuple[Fault, ...]] = defaultdict(tuple)
        self._unstored: deque[LedgerRow] = deque()
        self._own: deque[LedgerRow] = deque()
        """What was recorded here in the last hour."""
        self._storing = asyncio.Lock()

    async def load(self, now_ns: int) -> None:
        """Read what is stored. What this process has recorded and is not there is to be stored, again if need be."""
        async with self._storing:
            rows = await self._store.faults(now_ns - KEPT_NS)
            stored = set(rows)
            self._unstored = deque(row for row in self._own if row not in stored)
            self._general, self._by_match = (), defaultdict(tuple)
            self.learn((*rows, *self._unstored))

    def record(self, fault: Fault, match_id: str | None = None) -> None:
        """Add a row: it counts at once. `store` must have returned before what is decided by it is stored."""
        row = LedgerRow(fault, match_id)
        self._keep(row)
        self._unstored.append(row)
        self._own.append(row)
        while self._own[0].fault.to_ns < fault.to_ns - KEPT_NS:
            self._own.popleft()
        self._metrics.clock.fault(fault.cause)
        get_logger().warning(
            "timing_fault",
            cause=fault.cause.value,
            match_id=match_id,
            from_ns=fault.from_ns,
            to_ns=fault.to_ns,
            evidence=fault.evidence,
        )
        self._spawn(self._persist(row))

    def learn(self, rows: Iterable[LedgerRow]) -> None:
        """Let what other processes recorded count here."""
        for row in rows:
            self._keep(row)

    async def store(self) -> None:
        """Store every row recorded so far, in order. Raises StoreUnavailableError."""
        async with self._storing:
            while self._unstored:
                await self._store.record_fault(self._unstored[0])
                self._unstored.popleft()

    def evidence(self, match_id: str) -> Evidence:
        """What is known against the clock of this match."""
        faults = self._general + self._by_match.get(match_id, ())
        return Evidence(faults, self.tolerances) if faults else self._nothing

    def forget(self, match_id: str) -> None:
        """The match is over."""
        self._by_match.pop(match_id, None)

    def _keep(self, row: LedgerRow) -> None:
        if row.match_id is not None:
            self._by_match[row.match_id] += (row.fault,)
            return
        oldest_ns = row.fault.to_ns - KEPT_NS
        self._general = (*(fault for fault in self._general if fault.to_ns > oldest_ns), row.fault)

    async def _persist(self, row: LedgerRow) -> None:
        for attempt in range(PERSIST_ATTEMPTS):
            try:
                await self.store()
            except StoreUnavailableError:
                await asyncio.sleep(min(2.0**attempt * 0.1, 5.0))
            else:
                return
        get_logger().error("fault_not_stored", cause=row.fault.cause.value)
