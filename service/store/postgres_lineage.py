"""Which server the connections lead to, and whether it has kept what was acknowledged.

A server that was not started anew has lost nothing. One that was may be the same, or a standby that took over, or hold
a backup: what is known of matches must be compared with it before anything else is asked of it. Above all it must have
this replica's last heartbeat, which is looked for on every new connection, as a whole machine may have been put back.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

from engine.events import Step
from service.ports import StoreUnavailableError
from service.secret import Secret
from service.store import postgres_read
from service.store.postgres_link import Connection, Link
from service.store.sealing import Seal

MOST_UNANSWERED: Final = 64
"""Heartbeats that were not answered and may still be carried out."""
_GREETING: Final = """
    SELECT pg_postmaster_start_time() AS started_at,
        (SELECT oid FROM pg_database WHERE datname = current_database()) AS database,
        (SELECT at_ns FROM replicas WHERE replica_id = $1) AS beat_ns,
        (SELECT max(at_ns) FROM replicas) AS newest_ns
"""


class PostgresLineage:
    """What `service.tails` asks about the server, and the link of the heartbeats, by which it asks."""

    def __init__(self, dsn: Secret[str], seal: Seal, replica_id: str) -> None:
        self.link = Link(dsn, self, patience_seconds=0)  # a heartbeat would wait for itself
        self.turn = self.losses = self._trusted = 0
        self.kept_until_ns = 0
        self.has_lost = False
        self._seal = seal
        self._replica_id = replica_id
        self._server: tuple[object, object] | None = None
        self._acknowledged_ns: int | None = None
        self._unanswered: dict[int, None] = {}
        self._compared = asyncio.Event()

    def beating(self, at_ns: int) -> None:
        """A heartbeat sets out."""
        self._unanswered[at_ns] = None
        if len(self._unanswered) > MOST_UNANSWERED:
            del self._unanswered[next(iter(self._unanswered))]

    def beaten(self, at_ns: int) -> None:
        """It was acknowledged."""
        self._unanswered.pop(at_ns, None)
        self._acknowledged_ns = at_ns

    async def greet(self, connection: Connection) -> int:
        """Look whom a new connection leads to; the turn in which it may be used."""
        expected = self._beats()
        row = await connection.fetchrow(_GREETING, self._replica_id)
        assert row is not None, "what is there or not is one row"
        started_at, database, beat_ns, newest_ns = row
        before, self._server = self._server, (started_at, database)
        is_lost = self._acknowledged_ns is not None and beat_ns not in expected | self._beats()
        if is_lost or before not in (None, self._server):
            self.turn += 1
            kept_ns = newest_ns or 0 if beat_ns is None else beat_ns
            self.kept_until_ns = min(kept_ns, self.kept_until_ns) if self.has_lost else kept_ns
            self.has_lost = self.has_lost or is_lost
        if is_lost:
            self._acknowledged_ns = beat_ns
        return self.turn

    async def trusted(self, patience_seconds: float) -> None:
        """Returns when it was compared with what is known. Raises StoreUnavailableError after so long."""
        with suppress(TimeoutError):
            async with asyncio.timeout(patience_seconds):
                while self._trusted != self.turn:
                    self._compared.clear()
                    await self._compared.wait()
        if self._trusted != self.turn:
            raise StoreUnavailableError("what the server has kept must be looked at first")

    def trust(self, turn: int, *, is_whole: bool) -> None:
        """What is known is what the server of this turn has; `is_whole`: nothing was lost."""
        if turn == self.turn:
            self.losses += not is_whole
            self._trusted, self.has_lost = turn, False
            self._compared.set()

    async def steps_at(self, versions: Mapping[str, int]) -> Mapping[str, Step]:
        """The steps that made these versions of matches, as far as they are there; also before it is trusted."""
        async with self.link.use(is_trusted=False) as connection:
            return await postgres_read.steps_at(connection, self._seal, versions)

    def _beats(self) -> set[int | None]:
        """What the row of this replica may hold."""
        return {self._acknowledged_ns, *self._unanswered}
