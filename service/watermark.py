"""How far the past is closed: heartbeats in the store, each saying up to when every stamped command is in (K4).

An expiry is settled only behind the watermark, so behind a heartbeat that was stored after the deadline. A gap between
heartbeats is therefore known before any deadline inside it is judged. Where several processes serve, the watermark is
behind all of their heartbeats; one that is not seen any more is fenced, which is a fault, and counts no longer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Protocol

from engine.faults import Fault, FaultCause
from service.ledger import FaultLedger
from service.line import Ticket
from service.logs import get_logger
from service.ports import Clock, Heartbeat, Others, Peer, Store, StoreUnavailableError

BEAT_SECONDS = 0.2
EAGER_SECONDS = 0.05
"""How soon to look again for the heartbeats of others that somebody waits for."""
LOST_NS = 3_000_000_000
"""A process that was not seen for so long is fenced."""


class InFlight:
    """The commands of all matches that were stamped and are not handled yet: what a crash would take with it."""

    def __init__(self) -> None:
        self._stamps_ns: dict[int, int] = {}
        """By the identities of the tickets, none of which is kept alive here."""

    def __len__(self) -> int:
        """How many. From any thread."""
        return len(self._stamps_ns)

    def add(self, ticket: Ticket) -> None:
        """A command was stamped."""
        self._stamps_ns[id(ticket)] = ticket.stamp_ns

    def discard(self, ticket: Ticket) -> None:
        """A ticket has left its line; one of the service's own was not counted."""
        self._stamps_ns.pop(id(ticket), None)

    def oldest_ns(self) -> int | None:
        """The earliest stamp among them, if there are any."""
        return min(self._stamps_ns.values(), default=None)


class Doubts(Protocol):
    """Whether the store still has what it acknowledged, where it may not."""

    @property
    def is_doubtful(self) -> bool:
        """Whether it may not, and nobody has looked."""

    async def examine(self) -> None:
        """Look, and record what was found. Raises StoreUnavailableError."""


class Watermark:
    """Beats while the service lives. `gap_ns` without a stored heartbeat is a fault of the store."""

    def __init__(self, store: Store, clock: Clock, ledger: FaultLedger, *, gap_ns: int, outage_ns: int) -> None:
        self._store = store
        self._clock = clock
        self._ledger = ledger
        self._gap_ns = gap_ns
        self._outage_ns = outage_ns
        self.in_flight = InFlight()
        self.doubts: Doubts | None = None
        self._arrived_ns = self._closed_ns = 0
        self._peers: tuple[Peer, ...] = ()
        self._sought_ns = 0
        self._judged: dict[str, Heartbeat] = {}
        """The last heartbeats of processes whose loss was recorded here."""
        self.departures = 0
        """How many other processes have stopped as planned."""
        self.is_leaving = False
        """Whether a planned stop has begun here."""
        self._last_ns = self._told_ns = 0
        self._wanted = asyncio.Event()
        self._beaten = asyncio.Event()

    @property
    def closed_ns(self) -> int:
        """Every command stamped before this has been taken over here and handled elsewhere, and the store knows."""
        return self._closed_ns

    @property
    def stored_ns(self) -> int:
        """When the last heartbeat was stored."""
        return self._last_ns

    @property
    def staying(self) -> int:
        """How many other processes serve and are not about to stop."""
        return sum(not peer.heartbeat.leaving for peer in self._peers)

    async def begin(self) -> None:
        """Judge how those ended that are gone: without retiring, what they missed is the service's fault."""
        others = await self._store.others()
        now_ns = self._clock.now_ns()
        await self._fence(others.peers)
        newest_ns = max((peer.heartbeat.at_ns for peer in others.peers), default=now_ns)
        if now_ns - newest_ns >= self._outage_ns:
            self._record(FaultCause.OUTAGE, newest_ns, now_ns, "no service was running")
        self._last_ns = self._told_ns = now_ns
        await self._beat()

    async def run(self) -> None:
        """Beat until cancelled."""
        away_since_ns: int | None = None
        while True:
            self._wanted.clear()
            try:
                is_eager = self._closed_ns < self._sought_ns or self._is_doubtful
                async with asyncio.timeout(EAGER_SECONDS if is_eager else BEAT_SECONDS):
                    await self._wanted.wait()
            except TimeoutError:
                pass
            try:
                await self._beat()
                if away_since_ns is not None:
                    seconds = (self._clock.now_ns() - away_since_ns) / 1e9
                    get_logger().info("heartbeat_stored_again", seconds=round(seconds, 3))
                    away_since_ns = None
            except StoreUnavailableError:
                if away_since_ns is None:
                    get_logger().warning("heartbeat_not_stored")
                    away_since_ns = self._clock.now_ns()
                await asyncio.sleep(EAGER_SECONDS if self._is_doubtful else BEAT_SECONDS)
            except Exception as error:  # noqa: BLE001  a mistake of ours must not end all settling of what is due
                get_logger().error("heartbeat_failed", exc_info=error)
                await asyncio.sleep(BEAT_SECONDS)

    async def reach(self, instant_ns: int) -> None:
        """Wait until everything stamped before the instant is in; soon after it, unless the service is in trouble."""
        while self._closed_ns < instant_ns:
            await self.approach(instant_ns)

    async def approach(self, instant_ns: int) -> None:
        """Wait for the next step to there. Whoever holds up others meanwhile must not sleep through it."""
        ahead_ns = instant_ns - self._clock.arrival().earliest_ns
        if self._arrived_ns >= instant_ns:
            self._sought_ns = max(self._sought_ns, instant_ns)  # in the heartbeats of others
            self._beaten.clear()
            await self._beaten.wait()
        elif ahead_ns > 0:  # right after a stall nothing is vouched for, so what lies ahead may come sooner
            await asyncio.sleep(min(ahead_ns / 1e9, BEAT_SECONDS))
        else:
            self._wanted.set()
            self._beaten.clear()
            await self._beaten.wait()

    @property
    def _is_doubtful(self) -> bool:
        return self.doubts is not None and self.doubts.is_doubtful

    async def leave(self) -> None:
        """A planned stop has begun: others shall not count on this process."""
        self.is_leaving = True
        await self._beat()

    async def retire(self) -> None:
        """The last heartbeat of a planned stop: absence from now on is no fault."""
        await self._beat()  # what it finds is stored before the last one
        await self._beat(retired=True)
        await self._ledger.store()  # that one may have taken too long itself

    async def _beat(self, *, retired: bool = False) -> None:
        """Close a further piece of the past. The evidence about it must be stored before that is."""
        if self.doubts is not None and self.doubts.is_doubtful:
            self._closed_ns = 0  # what others had closed may be open again
            await self.doubts.examine()
        arrived_ns = max(self._arrived_ns, self._clock.arrival().earliest_ns)
        self._look_for_gap(self._gap_ns)
        await self._ledger.store()
        handled_ns = min(arrived_ns, self.in_flight.oldest_ns() or arrived_ns)
        others = await self._store.beat(Heartbeat(self._clock.now_ns(), handled_ns, retired, self.is_leaving))
        self._look_for_gap(1)
        self._last_ns = self._told_ns = self._clock.now_ns()
        self._arrived_ns = arrived_ns
        await self._hear(others)
        self._beaten.set()

    async def _hear(self, others: Others) -> None:
        """Close the past as far as all have. What they found is known before that."""
        self._ledger.learn(others.faults)
        stay = {peer.name for peer in others.peers}
        self.departures += sum(peer.heartbeat.leaving and peer.name not in stay for peer in self._peers)
        await self._fence(others.peers)
        self._peers = others.peers
        closed_ns = min((peer.heartbeat.closed_ns for peer in self._peers), default=self._arrived_ns)
        self._closed_ns = max(self._closed_ns, min(closed_ns, self._arrived_ns))

    async def _fence(self, peers: Sequence[Peer]) -> None:
        """Let those write no more that were not seen for too long. The evidence is stored before."""
        lost = [peer for peer in peers if peer.unseen_ns >= LOST_NS]
        for peer in lost:
            if self._judged.get(peer.name) == peer.heartbeat:
                continue
            self._judged[peer.name] = peer.heartbeat
            closed_ns, now_ns = peer.heartbeat.closed_ns, self._clock.now_ns()
            self._record(FaultCause.REPLICA_LOST, closed_ns, now_ns, "the service stopped without notice")
        if lost:
            await self._ledger.store()
        for peer in lost:
            await self._store.fence(peer)

    def _look_for_gap(self, least_ns: int) -> None:
        """Record what is known of a gap, piece by piece: what was not told yet, if that is at least so long."""
        now_ns = self._clock.now_ns()
        if now_ns - self._last_ns >= self._gap_ns and now_ns - self._told_ns >= least_ns:
            self._record(FaultCause.STORE_GAP, self._told_ns, now_ns, "no heartbeat could be stored")
            self._told_ns = now_ns

    def _record(self, cause: FaultCause, from_ns: int, to_ns: int, evidence: str) -> None:
        self._ledger.record(Fault(cause, from_ns, to_ns, evidence))
