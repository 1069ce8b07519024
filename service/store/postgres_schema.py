"""The schema of a PostgreSQL database: numbered migrations, applied by `spectacular-bid migrate` and by nothing else.

A migration only expands, or contracts what no service that may still run uses. Its first line says which services
that are, by the last migration that they know: so the version before the newest goes on while the database is ahead.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib.resources import files
from typing import Final

from service.secret import Secret
from service.store.postgres_link import TROUBLE, Connection, NotReadyError, connect, trouble

LOCK: Final = 5_730_101
"""The advisory lock under which one migration runs at a time."""
_TABLE: Final = """
CREATE TABLE IF NOT EXISTS migrations (
    number integer PRIMARY KEY,
    name text NOT NULL,
    works_from integer NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT now()
)
"""
_WORKS_FROM: Final = re.compile(r"-- Works with services from schema (\d+) on\.\n")


@dataclass(frozen=True, slots=True)
class Migration:
    """One script. Services that know `works_from` or a later migration work on what it leaves behind."""

    number: int
    name: str
    script: str

    @property
    def works_from(self) -> int:
        """From its first line."""
        first = _WORKS_FROM.match(self.script)
        assert first is not None, f"{self.name} does not say which services it works with"
        return int(first[1])


def migrations() -> tuple[Migration, ...]:
    """The scripts that lead from an empty database to the schema of this version; the first has number 1."""
    folder = files("service.store") / "migrations" / "postgres"
    scripts = sorted((entry.name, entry.read_text(encoding="utf-8")) for entry in folder.iterdir())
    found = tuple(Migration(int(name[:4]), name, script) for name, script in scripts)
    assert [migration.number for migration in found] == list(range(1, len(found) + 1)), "migrations have no gap"
    return found


async def migrate(dsn: Secret[str], known: tuple[Migration, ...] | None = None) -> tuple[str, ...]:
    """Bring the schema up to date; the names of what was applied. Doing it again, or twice at once, is safe.

    Raises NotReadyError with a sentence.
    """
    applied = []
    try:
        connection = await connect(dsn, statement_seconds=0)
        try:
            await connection.execute("SELECT pg_advisory_lock($1)", LOCK)
            await connection.execute(_TABLE)
            done = await connection.fetchval("SELECT coalesce(max(number), 0) FROM migrations")
            for migration in (known or migrations())[done:]:
                await _apply(connection, migration)
                applied.append(migration.name)
        finally:
            await connection.close()
    except TROUBLE as error:
        raise NotReadyError(trouble(error)) from error
    return tuple(applied)


async def _apply(connection: Connection, migration: Migration) -> None:
    async with connection.transaction():
        await connection.execute(migration.script)
        row = migration.number, migration.name, migration.works_from
        await connection.execute("INSERT INTO migrations (number, name, works_from) VALUES ($1, $2, $3)", *row)


async def require_schema(connection: Connection, known: int | None = None) -> None:
    """See that this version of the service works on the schema that is there. Raises NotReadyError."""
    knows = known or len(migrations())
    if await connection.fetchval("SELECT to_regclass('migrations')") is None:
        has, works_from = 0, 0
    else:
        row = await connection.fetchrow("SELECT coalesce(max(number), 0), coalesce(max(works_from), 0) FROM migrations")
        assert row is not None, "an aggregate has a row"
        has, works_from = row
    if has < knows:
        raise NotReadyError(f"PostgreSQL has schema {has}, but {knows} is needed: run `spectacular-bid migrate`")
    if works_from > knows:
        raise NotReadyError(
            f"PostgreSQL has schema {has}, which this version of the service does not know: it needs a newer one"
        )
