"""A SQLite store read from outside, also while a service uses it: for the operator's questions and for backups."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, closing
from functools import cached_property
from pathlib import Path
from typing import Concatenate, Final, ParamSpec, TypeVar

from engine.events import Step
from service.ports import DealSecrets, LedgerRow, StoredMatch, StoreOpenError, StoreUnavailableError
from service.store import sqlite_read
from service.store.sealing import Seal, existing_seal, missing_keys
from service.store.sqlite import KEY_IDS
from service.store.sqlite_file import current_schema, key_path_of

P = ParamSpec("P")
T = TypeVar("T")

NAMED_DAMAGES: Final = 20
"""How many damages SQLite is asked to name."""


@asynccontextmanager
async def opened(path: Path, *, key_file: Path | None = None) -> AsyncIterator[SqliteRecords]:
    """The `Records` of a file. Raises StoreOpenError."""
    with closing(_reading(path)) as connection:
        yield SqliteRecords(connection, key_path_of(path, key_file))


def back_up(path: Path, to: Path) -> None:
    """Copy the file as it is at one instant to a new one for this user only, durably. Raises StoreOpenError."""
    with closing(_reading(path)) as source:
        try:
            os.close(os.open(to, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
        except OSError as error:
            raise StoreOpenError(f"{to} cannot be made: {error.strerror}.") from error
        try:
            with closing(sqlite3.connect(to)) as target:
                source.backup(target)  # in one go: a later write of the service is not in it
        except sqlite3.Error as error:
            to.unlink()
            raise StoreOpenError(f"{path} cannot be copied to {to}: {error}.") from error


def _reading(path: Path) -> sqlite3.Connection:
    if not path.is_file():
        raise StoreOpenError(f"There is no database {path}.")
    return sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True, isolation_level=None)


class SqliteRecords:
    """The `Records` port on a connection of its own: one transaction, so that all answers are of one instant."""

    def __init__(self, connection: sqlite3.Connection, key_path: Path) -> None:
        self._connection = connection
        self._key_path = key_path

    async def stored_matches(self) -> Sequence[StoredMatch]:
        """Every match, as its row says, by id."""
        return self._read(_stored_matches)

    async def steps(self, match_id: str) -> Sequence[Step]:
        """Every step of a match, in order."""
        return self._read(sqlite_read.steps, self._seal, match_id, 0)

    async def deal_secrets(self, match_id: str) -> DealSecrets | None:
        """What fixes the tiles of a match."""
        return self._read(sqlite_read.deal_secrets, self._seal, match_id)

    async def faults(self) -> Sequence[LedgerRow]:
        """The whole fault ledger, oldest first."""
        return self._read(sqlite_read.faults, 0)

    async def damages(self) -> Sequence[str]:
        """What is wrong with the file: its pages, its references, its schema, its key."""
        try:
            return self._read(_damages) or [*self._missing_key()]
        except StoreUnavailableError as error:
            return [f"SQLite cannot read the file: {error.__cause__}"]

    def _missing_key(self) -> Iterator[str]:
        try:
            yield from missing_keys(self._seal, self._key_path, self._read(sqlite_read.meta, KEY_IDS) or "")
        except StoreOpenError as error:
            yield str(error)

    @cached_property
    def _seal(self) -> Seal:
        return existing_seal(self._key_path)

    def _read(self, query: Callable[Concatenate[sqlite3.Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        try:
            if not self._connection.in_transaction:
                self._connection.execute("BEGIN")
            return query(self._connection, *args, **kwargs)
        except sqlite3.Error as error:
            raise StoreUnavailableError("the store cannot answer now") from error


def _stored_matches(connection: sqlite3.Connection) -> Sequence[StoredMatch]:
    rows = connection.execute("SELECT match_id, version, due_ns, live FROM matches ORDER BY match_id").fetchall()
    return [StoredMatch(match_id, version, due_ns, bool(live)) for match_id, version, due_ns, live in rows]


def _damages(connection: sqlite3.Connection) -> Sequence[str]:
    (schema,) = connection.execute("PRAGMA user_version").fetchone()
    if schema != current_schema():
        return [f"The schema is {schema}, but this version of the service works with {current_schema()}."]
    found = [text for (text,) in connection.execute(f"PRAGMA integrity_check({NAMED_DAMAGES})").fetchall()]
    dangling = connection.execute("PRAGMA foreign_key_check").fetchall()
    return [
        *(f"SQLite says: {text}." for text in found if text != "ok"),
        *(f"A row of {table} belongs to no match." for table, *_ in dangling[:NAMED_DAMAGES]),
    ]
