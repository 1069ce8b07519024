"""Sealing everything in a SQLite file anew, so that an older key can be retired."""

from __future__ import annotations

from sqlite3 import Connection

from service.store.sealed_steps import SEALED, sealed_step_of, sealed_step_text
from service.store.sealing import Seal


def reseal(connection: Connection, seal: Seal, key: str) -> int:
    """Write every sealed value anew, and under `key` in meta the id of the only key left; how many rows it was.

    In one transaction. What was overwritten is not left in free pages or in the write-ahead log.
    """
    connection.execute("PRAGMA secure_delete = ON")
    connection.execute("BEGIN IMMEDIATE")
    matches = [match_id for (match_id,) in connection.execute("SELECT match_id FROM matches").fetchall()]
    rows = sum(_steps(connection, seal, match_id) + _deal(connection, seal, match_id) for match_id in matches)
    connection.execute("UPDATE meta SET value = ? WHERE key = ?", (seal.key_id, key))
    connection.execute("COMMIT")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return rows


def _steps(connection: Connection, seal: Seal, match_id: str) -> int:
    query = "SELECT version, events FROM steps WHERE match_id = ? AND events LIKE ?"
    rows = connection.execute(query, (match_id, f'%"{SEALED}"%')).fetchall()
    for version, text in rows:
        place = f"{match_id}/{version}"
        anew = sealed_step_text(sealed_step_of(text, seal, place), seal, place)
        connection.execute("UPDATE steps SET events = ? WHERE match_id = ? AND version = ?", (anew, match_id, version))
    return len(rows)


def _deal(connection: Connection, seal: Seal, match_id: str) -> int:
    def anew(sealed: bytes, name: str) -> bytes:
        place = f"{match_id}/{name}"
        return seal.close(seal.open(sealed, place), place) if sealed else sealed

    query = "SELECT secret, entropy_one, entropy_two FROM deals WHERE match_id = ?"
    rows = connection.execute(query, (match_id,)).fetchall()
    for secret, one, two in rows:
        values = anew(secret, "secret"), anew(one, "one"), anew(two, "two")
        connection.execute(
            "UPDATE deals SET secret = ?, entropy_one = ?, entropy_two = ? WHERE match_id = ?", (*values, match_id)
        )
    return len(rows)
