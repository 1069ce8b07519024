"""Connections to PostgreSQL: how they are set, made anew when they are lost, and what trouble with them is called."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Final, NamedTuple, Protocol, TypeAlias

import asyncpg
from asyncpg.connect_utils import SessionAttribute

from service.ports import StoreOpenError, StoreUnavailableError
from service.secret import Secret

Connection: TypeAlias = "asyncpg.Connection[asyncpg.Record]"

STATEMENT_SECONDS: Final = 2
"""After so long the server gives a statement up."""
IDLE_SECONDS: Final = 2
"""After so long it ends a session that is idle in a transaction, so that no lock outlives a stopped process."""
ANSWER_SECONDS: Final = 3.0
"""After so long without an answer a connection is taken for lost."""
CONNECT_SECONDS: Final = 2.0
PATIENCE_SECONDS: Final = 1.0
"""How long to wait for a server that was started anew to be compared with what is known."""
MAX_WAITING: Final = 10_000
"""How many queries may wait for a connection before more are turned away."""
OWN_FAULT: Final = (asyncpg.DataError, asyncpg.IntegrityConstraintViolationError)
"""What whoever asked is to blame for; every other error is the environment's."""
TROUBLE: Final = (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError)


class NotReadyError(StoreOpenError):
    """The database cannot be used yet. The text is a sentence for the operator, without its final stop."""


async def connect(
    dsn: Secret[str], *, statement_seconds: int = STATEMENT_SECONDS, settings: Mapping[str, str] | None = None
) -> Connection:
    """A connection to the server that takes writes, on which a commit is durable."""
    try:
        connection: Connection = await asyncpg.connect(
            dsn.reveal(),
            timeout=CONNECT_SECONDS,
            command_timeout=ANSWER_SECONDS if statement_seconds else None,
            target_session_attrs=SessionAttribute.read_write,
            server_settings={
                "application_name": "spectacular-bid",
                "synchronous_commit": "on",
                "statement_timeout": f"{statement_seconds}s",
                "idle_in_transaction_session_timeout": f"{IDLE_SECONDS}s",
                **(settings or {}),
            },
        )
    except ValueError:  # whose text may hold the password
        raise asyncpg.exceptions.ClientConfigurationError("the address cannot be read") from None
    return connection


def trouble(error: BaseException) -> str:
    """What is wrong, as a sentence that holds nothing of the DSN and no text of the server."""
    match error:
        case asyncpg.InvalidAuthorizationSpecificationError():
            return "PostgreSQL refuses the user or the password of SPECBID_DATABASE_URL"
        case asyncpg.InvalidCatalogNameError():
            return "PostgreSQL has no database of the name in SPECBID_DATABASE_URL"
        case asyncpg.TooManyConnectionsError():
            return "PostgreSQL takes no more connections"
        case asyncpg.InsufficientPrivilegeError():
            return "the user of SPECBID_DATABASE_URL may not do what the service needs in PostgreSQL"
        case asyncpg.exceptions.TargetServerAttributeNotMatched():
            return "PostgreSQL takes no writes: no server of SPECBID_DATABASE_URL is a primary"
        case asyncpg.UndefinedTableError():
            return "PostgreSQL lacks a table of the service: run `spectacular-bid migrate`"
        case OSError() | TimeoutError():
            return "PostgreSQL cannot be reached at the address of SPECBID_DATABASE_URL"
        case asyncpg.exceptions.ClientConfigurationError():
            return "SPECBID_DATABASE_URL is no address such as postgresql://user@host:5432/database"
        case _:
            return f"PostgreSQL cannot be used: {type(error).__name__}"


def unavailable(cause: BaseException) -> StoreUnavailableError:
    """What a lost connection or a server in trouble is to those who use the store."""
    error = StoreUnavailableError("the store cannot answer now")
    error.__cause__ = cause
    return error


class Standing(NamedTuple):
    """How often the server became another one, or may have, and how often something was lost by that."""

    turn: int
    losses: int


class Server(Protocol):
    """Whom the connections lead to."""

    turn: int
    losses: int

    async def greet(self, connection: Connection) -> int:
        """Look whom a new connection leads to; the turn in which it may be used."""

    async def trusted(self, patience_seconds: float) -> None:
        """Returns when it was compared with what is known. Raises StoreUnavailableError after so long."""


class Link:
    """One connection, for one user at a time; others wait in order. When it is lost the next user makes a new one.

    With `patience_seconds` its users wait for so long until the server may be trusted.
    """

    def __init__(
        self,
        dsn: Secret[str],
        server: Server,
        settings: Mapping[str, str] | None = None,
        *,
        patience_seconds: float = PATIENCE_SECONDS,
    ) -> None:
        self._dsn = dsn
        self._server = server
        self._patience_seconds = patience_seconds
        self._connected_turn = 0
        self._settings = settings
        self._connection: Connection | None = None
        self._turn = asyncio.Lock()
        self._waiting = 0
        self._closed = False

    @property
    def waiting(self) -> int:
        """How many use it or wait for it."""
        return self._waiting

    @property
    def standing(self) -> Standing:
        """That of the server, as far as anybody here knows."""
        return Standing(self._server.turn, self._server.losses)

    @asynccontextmanager
    async def use(self, *, is_trusted: bool = True) -> AsyncIterator[Connection]:
        """The connection. Raises StoreUnavailableError for trouble; what the user is to blame for passes through.

        It raises that too while the server is not trusted, unless that does not matter, and when another one has taken
        over in the meantime: what this one said counts for nothing then.
        """
        if self._closed or self._waiting >= MAX_WAITING:
            raise StoreUnavailableError("the store is closed" if self._closed else "too much waits for the store")
        self._waiting += 1
        try:
            async with self._turn:
                connection = await self._connected()
                if is_trusted:
                    await self._server.trusted(self._patience_seconds)
                    self._require_turn()
                yield connection
                self._require_turn()
        except OWN_FAULT:
            raise
        except TROUBLE as error:
            self._abandon()
            raise unavailable(error) from error
        finally:
            self._waiting -= 1

    async def close(self) -> None:
        """Let those who use it or wait finish, then hang up."""
        self._closed = True
        async with self._turn:
            if self._connection is not None:
                with suppress(*TROUBLE):
                    await self._connection.close(timeout=ANSWER_SECONDS)
                self._connection = None

    async def _connected(self) -> Connection:
        if self._connected_turn != self._server.turn:
            self._abandon()
        if self._connection is None or self._connection.is_closed():
            self._connection = await connect(self._dsn, settings=self._settings)
            self._connected_turn = await self._server.greet(self._connection)
        return self._connection

    def _require_turn(self) -> None:
        if self._connected_turn != self._server.turn:
            raise StoreUnavailableError("another server has taken over")

    def _abandon(self) -> None:
        if self._connection is not None:
            self._connection.terminate()
            self._connection = None
