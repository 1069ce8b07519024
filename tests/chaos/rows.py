"""Reads the whole database of a run, by the service's own reading of rows."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import asyncpg

from engine.events import Step
from service.ports import CommandRecord
from service.store.rows import command_of, fault_of
from service.store.sealed_steps import sealed_step_of
from service.store.sealing import Seal
from tests.chaos.history import Stored, StoredMatch, now_ns

Rows: TypeAlias = Sequence[Sequence[Any]]  # Any: what a driver gives

QUERIES = (
    "SELECT match_id, version, due_ns, live FROM matches",
    "SELECT match_id, version, events FROM steps ORDER BY match_id, version",
    "SELECT match_id, sender, command_id, body_hash, version, refusal, receipt FROM commands",
    "SELECT cause, match_id, from_ns, to_ns, evidence FROM faults ORDER BY fault_id",
)


def of_file(database: Path, seal: Seal) -> Stored:
    """What a SQLite file holds, also while the service uses it."""
    with sqlite3.connect(f"file:{database}?mode=ro", uri=True) as connection:
        connection.execute("BEGIN")
        return _stored([connection.execute(query).fetchall() for query in QUERIES], seal)


async def of_server(dsn: str, seal: Seal) -> Stored:
    """What a PostgreSQL database holds at one moment."""
    connection = await asyncpg.connect(dsn)
    try:
        async with connection.transaction(isolation="repeatable_read", readonly=True):
            return _stored([[tuple(row) for row in await connection.fetch(query)] for query in QUERIES], seal)
    finally:
        await connection.close()


def _stored(tables: Sequence[Rows], seal: Seal) -> Stored:
    matches, steps, commands, faults = tables
    steps_of, records_of = _steps(steps, seal), _records(commands)
    stored = {
        match_id: StoredMatch(version, due_ns, bool(live), steps_of[match_id], records_of[match_id])
        for match_id, version, due_ns, live in matches
    }
    return Stored(now_ns(), stored, [fault_of(tuple(row)) for row in faults])


def _steps(rows: Rows, seal: Seal) -> dict[str, list[tuple[int, Step]]]:
    found: dict[str, list[tuple[int, Step]]] = defaultdict(list)
    for match_id, version, text in rows:
        found[match_id].append((version, sealed_step_of(text, seal, f"{match_id}/{version}")))
    return found


def _records(rows: Iterable[Sequence[Any]]) -> dict[str, list[CommandRecord]]:
    found: dict[str, list[CommandRecord]] = defaultdict(list)
    for row in rows:
        found[row[0]].append(command_of(tuple(row)))
    return found
