"""The replicas that share a PostgreSQL database: their heartbeats, and who is fenced."""

from __future__ import annotations

from typing import Final

from asyncpg import Record

from service.ports import Heartbeat, LedgerRow, Others, Peer
from service.store.postgres_lineage import PostgresLineage
from service.store.postgres_link import Connection
from service.store.rows import fault_of, fault_row

FENCE_AFTER_SECONDS: Final = 3
"""A replica that was seen since is not fenced."""
FAULT_LOCK: Final = 5_730_102
"""The advisory lock under which one row is added to the ledger at a time: so a later row has a larger id."""
KEPT: Final = "1 day"
"""How long the rows of replicas that are gone are kept, for whoever looks."""

_FORGET: Final = f"DELETE FROM replicas WHERE state IN ('retired', 'fenced') AND seen_at < now() - interval '{KEPT}'"
_OTHERS: Final = """
    SELECT replica_id, epoch, state, at_ns, closed_ns,
        (extract(epoch FROM clock_timestamp() - seen_at) * 1000000000)::int8 AS unseen_ns
    FROM replicas WHERE replica_id <> $1 AND state IN ('live', 'leaving') ORDER BY replica_id
"""
# A fenced replica comes back under a new epoch: what it handed in under the old one stays refused.
_BEAT: Final = """
    INSERT INTO replicas AS r (replica_id, epoch, state, at_ns, closed_ns, seen_at)
    VALUES ($1, 1, $2, $3, $4, clock_timestamp())
    ON CONFLICT (replica_id) DO UPDATE SET
        epoch = r.epoch + (r.state = 'fenced')::int, state = excluded.state,
        at_ns = excluded.at_ns, closed_ns = excluded.closed_ns, seen_at = excluded.seen_at
    RETURNING epoch
"""
_FENCE: Final = f"""
    UPDATE replicas SET state = 'fenced' WHERE replica_id = $1 AND epoch = $2 AND state IN ('live', 'leaving')
    AND seen_at < clock_timestamp() - interval '{FENCE_AFTER_SECONDS} s'
"""
_NEWS: Final = """
    SELECT fault_id, cause, match_id, from_ns, to_ns, evidence FROM faults
    WHERE fault_id > $1 AND replica_id <> $2 ORDER BY fault_id
"""
_FAULT: Final = f"""
    WITH alone AS MATERIALIZED (SELECT pg_advisory_xact_lock({FAULT_LOCK}))
    INSERT INTO faults (replica_id, cause, match_id, from_ns, to_ns, evidence)
    SELECT $1, $2, $3, $4, $5, $6 FROM alone
"""
_LAST_FAULT: Final = "SELECT coalesce(max(fault_id), 0) FROM faults"
_FAULTS: Final = """
    SELECT fault_id, cause, match_id, from_ns, to_ns, evidence FROM faults WHERE to_ns >= $1 ORDER BY fault_id
"""


class Replicas:
    """This replica among the others, on a link of its own: a heartbeat waits behind no match."""

    def __init__(self, lineage: PostgresLineage, replica_id: str) -> None:
        self._lineage, self._link = lineage, lineage.link
        self._replica_id = replica_id
        self._epoch = 0
        self._known_fault = 0

    def mine(self) -> tuple[str, int]:
        """This replica and its epoch, which is none before the first heartbeat."""
        return self._replica_id, self._epoch

    async def beat(self, heartbeat: Heartbeat) -> Others:
        """Store the heartbeat; what others left by then."""
        state = "retired" if heartbeat.retired else "leaving" if heartbeat.leaving else "live"
        row = self._replica_id, state, heartbeat.at_ns, heartbeat.closed_ns
        async with self._link.use() as connection:
            self._lineage.beating(heartbeat.at_ns)
            self._epoch = await connection.fetchval(_BEAT, *row)
            self._lineage.beaten(heartbeat.at_ns)
            return await self._others(connection)

    async def others(self) -> Others:
        """What others left by now. Forgets those that are gone for long."""
        async with self._link.use() as connection:
            await connection.execute(_FORGET)
            return await self._others(connection)

    async def fence(self, peer: Peer) -> None:
        """Let this replica write no more under its epoch, unless it was seen since."""
        async with self._link.use() as connection:
            await connection.execute(_FENCE, peer.name, peer.epoch)

    async def record_fault(self, row: LedgerRow) -> None:
        """Add a row to the ledger."""
        async with self._link.use() as connection:
            await connection.execute(_FAULT, self._replica_id, *fault_row(row))

    async def faults(self, since_ns: int) -> list[LedgerRow]:
        """The rows whose spans end at or after this instant, oldest first; they are no news any more."""
        async with self._link.use() as connection:
            last: int = await connection.fetchval(_LAST_FAULT)  # before the rows: one in between is news, or both
            rows = await connection.fetch(_FAULTS, since_ns)
        self._known_fault = max((row["fault_id"] for row in rows), default=last)
        return [fault_of(tuple(row)[1:]) for row in rows]

    async def _others(self, connection: Connection) -> Others:
        """First the heartbeats, then the ledger: what a replica found before its heartbeat is not missed."""
        peers = await connection.fetch(_OTHERS, self._replica_id)
        news = await connection.fetch(_NEWS, self._known_fault, self._replica_id)
        if news:
            self._known_fault = news[-1]["fault_id"]
        return Others(
            tuple(map(_peer, peers)),
            tuple(fault_of(tuple(row)[1:]) for row in news),
        )


def _peer(row: Record) -> Peer:
    name, epoch, state, at_ns, closed_ns, unseen_ns = row
    return Peer(name, epoch, Heartbeat(at_ns, closed_ns, leaving=state == "leaving"), unseen_ns)
