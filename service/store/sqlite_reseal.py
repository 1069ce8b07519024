"""Sealing everything in a SQLite file anew, so that an older key can be retired."""

from __future__ import annotations

from sqlite3 import Connection

from service.store.rows import deal_of, deal_row
from service.store.sealed_steps import SEALED, resealed
from service.store.sealing import Seal


def reseal(connection: Connection, seal: Seal, key: str) -> int:
    """Write every sealed value anew, and under `key` in meta the id of the only key left; how many rows it was.

    In one transaction. What was overwritten is not left in free pages or in the write-ahead log.
    """
    connection.execute("PRAGMA secure_delete = ON")
    connection.execute("BEGIN IMMEDIATE")
    matches = [match_id for (match_id,) in connection.execute("SELECT match_id FROM matches").fetchall()]
    rows = sum(_steps(connection, seal, match_id) + _deal(connection, seal, match_id) for match_id in matches)
    connection.execute("DELETE FROM snapshots")  # the next ones are under the new key
    connection.execute("UPDATE meta SET value = ? WHERE key = ?", (seal.key_id, key))
    connection.execute("COMMIT")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return rows


def _steps(connection: Connection, seal: Seal, match_id: str) -> int:
    query = "SELECT version, events FROM steps WHERE match_id = ? AND events LIKE ?"
    rows = connection.execute(query, (match_id, f'%"{SEALED}"%')).fetchall()
    for version, text in rows:
        place = f"{match_id}/{version}"
        anew = resealed(text, seal, place)
        connection.execute("UPDATE steps SET events = ? WHERE match_id = ? AND version = ?", (anew, match_id, version))
    return len(rows)


def _deal(connection: Connection, seal: Seal, match_id: str) -> int:
    rows = connection.execute("SELECT * FROM deals WHERE match_id = ?", (match_id,)).fetchall()
    for row in rows:
        anew = deal_row(match_id, deal_of(row, seal), seal)
        connection.execute("REPLACE INTO deals VALUES (?, ?, ?, ?, ?)", anew)
    return len(rows)
