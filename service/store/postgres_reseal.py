"""Sealing everything in a PostgreSQL database anew, so that an older key can be retired."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from service.ports import StoreOpenError
from service.secret import Secret
from service.store import postgres_read
from service.store.json_forms import StoredFormatError
from service.store.postgres import KEEP, KEY_IDS
from service.store.postgres_link import TROUBLE, Connection, NotReadyError, connect, trouble
from service.store.postgres_replicas import FENCE_AFTER_SECONDS
from service.store.postgres_schema import require_schema
from service.store.rows import deal_of, deal_row
from service.store.sealed_steps import SEALED, resealed
from service.store.sealing import Seal, existing_seal, missing_keys

# Heartbeats wait for the lock: nobody begins to serve meanwhile.
_LOCK: Final = "LOCK TABLE replicas IN SHARE MODE"
_SERVING: Final = f"""
    SELECT count(*) FROM replicas WHERE state IN ('live', 'leaving')
    AND seen_at > clock_timestamp() - interval '{FENCE_AFTER_SECONDS} s'
"""


async def reseal(dsn: Secret[str], *, key_path: Path) -> int:
    """Seal everything in a database with the first of the keys, so that the others can go; how many rows it was.

    No replica may serve. Raises StoreOpenError, and then nothing has changed.
    """
    seal = existing_seal(key_path)
    try:
        connection = await connect(dsn, statement_seconds=0)
        try:
            async with connection.transaction():
                await _require_all(connection, seal, key_path)
                rows = await _steps(connection, seal) + await _deals(connection, seal)
                await connection.execute("DELETE FROM snapshots")  # the next ones are under the new key
                await connection.execute(KEEP, KEY_IDS, seal.key_id)
                return rows
        finally:
            await connection.close()
    except NotReadyError as error:
        raise StoreOpenError(f"{error}.") from error
    except TROUBLE as error:
        raise StoreOpenError(f"{trouble(error)}.") from error
    except StoredFormatError as error:
        raise StoreOpenError(f"the database cannot be sealed anew: {error}.") from error


async def _require_all(connection: Connection, seal: Seal, key_path: Path) -> None:
    """The schema, every key, and nobody else."""
    await require_schema(connection)
    await connection.execute(_LOCK)
    if serving := await connection.fetchval(_SERVING):
        raise NotReadyError(f"replicas serve this database ({serving}): stop them first")
    if missing := missing_keys(seal, key_path, await postgres_read.meta(connection, KEY_IDS) or ""):
        raise StoreOpenError(" ".join(missing))


async def _steps(connection: Connection, seal: Seal) -> int:
    """A match at a time: all logs together may be more than fits into memory."""
    query = "SELECT version, events FROM steps WHERE match_id = $1 AND events LIKE $2"
    update = "UPDATE steps SET events = $3 WHERE match_id = $1 AND version = $2"
    count = 0
    for (match_id,) in await connection.fetch("SELECT match_id FROM matches"):
        rows = await connection.fetch(query, match_id, f'%"{SEALED}"%')
        anew = [(match_id, version, resealed(text, seal, f"{match_id}/{version}")) for version, text in rows]
        await connection.executemany(update, anew)
        count += len(anew)
    return count


async def _deals(connection: Connection, seal: Seal) -> int:
    rows = await connection.fetch("SELECT match_id, rules_hash, secret, entropy_one, entropy_two FROM deals")
    anew = [deal_row(row["match_id"], deal_of(tuple(row), seal), seal) for row in rows]
    update = "UPDATE deals SET rules_hash = $2, secret = $3, entropy_one = $4, entropy_two = $5 WHERE match_id = $1"
    await connection.executemany(update, anew)
    return len(anew)
