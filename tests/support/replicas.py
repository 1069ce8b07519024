"""Several processes on one store in memory, in virtual time, with the registry of replicas that PostgreSQL keeps."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
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
    mine = sharing(store, name)
    async with Process.running(mine, PollingBus(), MemoryLineage(mine)) as process:
        yield process


@dataclass
class MemoryLineage:
    """What a replica knows of the server behind its rows."""

    store: ReplicaStore
    turn: int = 0
    has_lost: bool = False
    kept_until_ns: int = 0

    def doubt(self, kept_until_ns: int, *, has_lost: bool = False) -> None:
        """The server was started anew."""
        self.turn += 1
        self.has_lost, self.kept_until_ns = has_lost, kept_until_ns
        self.store.is_down = True

    async def steps_at(self, versions: Mapping[str, int]) -> Mapping[str, Step]:
        """The steps of these versions that are there."""
        logs = self.store.logs
        return {
            match_id: logs[match_id][number - 1]
            for match_id, number in versions.items()
            if _has(logs, match_id, number)
        }

    def trust(self, turn: int, *, is_whole: bool) -> None:
        """It may be used."""
        assert turn == self.turn
        assert not (is_whole and self.has_lost)
        self.store.is_down = self.has_lost = False


def _has(logs: Mapping[str, Sequence[Step]], match_id: str, version: int) -> bool:
    return len(logs.get(match_id, ())) >= version
