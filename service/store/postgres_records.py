"""A PostgreSQL store read from outside, also while replicas use it: for the operator's questions."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

from engine.events import Step
from service.ports import DealSecrets, LedgerRow, StoredMatch, StoreOpenError, StoreUnavailableError
from service.secret import Secret
from service.store import postgres_read
from service.store.postgres import KEY_IDS
from service.store.postgres_link import TROUBLE, Connection, NotReadyError, connect, trouble
from service.store.postgres_schema import require_schema
from service.store.rows import fault_of
from service.store.sealing import Seal, existing_seal, missing_keys

P = ParamSpec("P")
T = TypeVar("T")


@asynccontextmanager
async def opened(dsn: Secret[str], *, key_path: Path) -> AsyncIterator[PostgresRecords]:
    """The `Records` of a database. Raises StoreOpenError."""
    try:
        connection = await connect(dsn, statement_seconds=0)
        await connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
    except TROUBLE as error:
        raise StoreOpenError(f"{trouble(error)}.") from error
    try:
        yield PostgresRecords(connection, key_path)
    finally:
        with suppress(*TROUBLE):
            await connection.close()


class PostgresRecords:
    """The `Records` port on a connection of its own: one transaction, so that all answers are of one instant."""

    def __init__(self, connection: Connection, key_path: Path) -> None:
        self._connection = connection
        self._key_path = key_path

    async def stored_matches(self) -> Sequence[StoredMatch]:
        """Every match, as its row says, by id."""
        return await self._read(_stored_matches)

    async def steps(self, match_id: str) -> Sequence[Step]:
        """Every step of a match, in order."""
        return await self._read(postgres_read.steps, self._seal, match_id, 0)

    async def deal_secrets(self, match_id: str) -> DealSecrets | None:
        """What fixes the tiles of a match."""
        return await self._read(postgres_read.deal_secrets, self._seal, match_id)

    async def faults(self) -> Sequence[LedgerRow]:
        """The whole fault ledger, oldest first."""
        return await self._read(_faults)

    async def damages(self) -> Sequence[str]:
        """What is wrong with the database as a whole: its schema, its key. Its pages are PostgreSQL's own affair."""
        try:
            await self._read(require_schema)
            needed = await self._read(postgres_read.meta, KEY_IDS)
            return missing_keys(self._seal, self._key_path, needed or "")
        except NotReadyError as error:
            return [f"{error}."]
        except StoreOpenError as error:
            return [str(error)]

    @cached_property
    def _seal(self) -> Seal:
        return existing_seal(self._key_path)

    async def _read(
        self, query: Callable[Concatenate[Connection, P], Awaitable[T]], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        try:
            return await query(self._connection, *args, **kwargs)
        except TROUBLE as error:
            raise StoreUnavailableError("the store cannot answer now") from NotReadyError(trouble(error))


async def _stored_matches(connection: Connection) -> Sequence[StoredMatch]:
    rows = await connection.fetch("SELECT match_id, version, due_ns, live FROM matches ORDER BY match_id")
    return [StoredMatch(*row) for row in rows]


async def _faults(connection: Connection) -> Sequence[LedgerRow]:
    rows = await connection.fetch("SELECT cause, match_id, from_ns, to_ns, evidence FROM faults ORDER BY fault_id")
    return [fault_of(tuple(row)) for row in rows]
