"""Several processes on one store in memory, in virtual time, with the registry of replicas that PostgreSQL keeps."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, fields

from engine.events import Step
from service.fanout.polling import PollingBus
from service.ports import Append, FencedError, Heartbeat, LedgerRow, Others, Peer
from tests.support.ports import MemoryStore, Process
from tests.support.virtual_time import virtual_now_ns


@dataclass
class Row:
    """A replica as the store knows it."""

    heartbeat: Heartbeat
    seen_ns: int
    epoch: int = 1
    is_fenced: bool = False


@dataclass
class ReplicaStore(MemoryStore):
    """The store as one replica sees it; the rows are shared."""

    name: str = ""
    replicas: dict[str, Row] = field(default_factory=dict)
    finders: list[str] = field(default_factory=list)
    """Who found each row of the ledger."""
    heard: int = 0
    read_seconds: float = 0.0
    """How long reading a log takes."""

    async def append(self, change: Append) -> None:
        row = self.replicas.get(self.name)
        if row is None or row.is_fenced:
            raise FencedError
        await super().append(change)

    async def steps(self, match_id: str, after_version: int = 0) -> Sequence[Step]:
        found = await super().steps(match_id, after_version)
        if self.read_seconds:
            await asyncio.sleep(self.read_seconds)
        return found

    async def beat(self, heartbeat: Heartbeat) -> Others:
        self._require()
        row = self.replicas.setdefault(self.name, Row(heartbeat, virtual_now_ns()))
        row.epoch += row.is_fenced
        row.heartbeat, row.seen_ns, row.is_fenced = heartbeat, virtual_now_ns(), False
        return await self.others()

    async def others(self) -> Others:
        self._require()
        peers = tuple(
            Peer(name, row.epoch, row.heartbeat, virtual_now_ns() - row.seen_ns)
            for name, row in self.replicas.items()
            if name != self.name and not (row.is_fenced or row.heartbeat.retired)
        )
        news = zip(self.ledger[self.heard :], self.finders[self.heard :], strict=True)
        self.heard = len(self.ledger)
        return Others(peers, tuple(row for row, finder in news if finder != self.name))

    async def fence(self, peer: Peer) -> None:
        self._require()
        row = self.replicas[peer.name]
        row.is_fenced = row.epoch == peer.epoch and virtual_now_ns() - row.seen_ns >= peer.unseen_ns

    async def record_fault(self, row: LedgerRow) -> None:
        await super().record_fault(row)
        self.finders.append(self.name)


def sharing(store: MemoryStore, name: str) -> ReplicaStore:
    """Another replica's view of the rows of this store."""
    kind = ReplicaStore if isinstance(store, ReplicaStore) else MemoryStore
    shared = {one.name: getattr(store, one.name) for one in fields(kind)}
    return ReplicaStore(**shared | {"name": name, "heard": 0, "is_down": False})


@asynccontextmanager
async def replica(store: MemoryStore, name: str) -> AsyncIterator[Process]:
    """A replica that has started, on these rows; leaving stops it dead, as a crash would."""
    async with Process.running(sharing(store, name), PollingBus()) as process:
        yield process
