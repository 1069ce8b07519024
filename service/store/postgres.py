"""The store in a PostgreSQL database that any number of processes share: it alone decides who moves a match."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Coroutine, Mapping, Sequence
from typing import Concatenate, Final, Literal, ParamSpec, TypeAlias, TypeVar

from engine.events import Step
from engine.state import MatchState
from engine.view import Audience
from service.ports import (
    STEPS_A_PAGE,
    Append,
    CommandRecord,
    Credential,
    DealSecrets,
    DueMatch,
    Heartbeat,
    LedgerRow,
    Others,
    Peer,
    SeatRequest,
    StoreUnavailableError,
    UnknownTokenError,
)
from service.secret import Secret
from service.store import postgres_read
from service.store.postgres_append import Appender
from service.store.postgres_append_sql import PLANNING
from service.store.postgres_lineage import PostgresLineage
from service.store.postgres_link import OWN_FAULT, TROUBLE, Connection, Link, NotReadyError, connect, trouble
from service.store.postgres_replicas import Replicas
from service.store.postgres_schema import require_schema
from service.store.rows import credential_row
from service.store.sealing import Seal, keys_in_use

P = ParamSpec("P")
T = TypeVar("T")
Durability: TypeAlias = Literal["synchronous-standby", "single-node"]

OLDEST_SERVER: Final = 150_000
"""The first version that this is tested on."""
READ_LINKS: Final = 4
KEY_IDS: Final = "sealing_key"
"""The ids of the keys that hidden tiles of this database may be sealed with, blanks between them."""

_CREDENTIAL: Final = (
    "INSERT INTO credentials (token_hash, match_id, audience, subject) VALUES ($1, $2, $3, $4)"
    " ON CONFLICT (token_hash) DO NOTHING"
)
_ROTATION: Final = "UPDATE credentials SET token_hash = $2 WHERE token_hash = $1 RETURNING token_hash"
_STANDBYS: Final = "SELECT count(*) FROM pg_stat_replication WHERE sync_state IN ('sync', 'quorum')"
KEEP: Final = "INSERT INTO meta (key, value) VALUES ($1, $2) ON CONFLICT (key) DO UPDATE SET value = excluded.value"


class PostgresStore:
    """The `Store` port on a PostgreSQL database, to be used from the event loop that opened it.

    Changes that wait at the same moment share one statement and one commit. An invite code that is taken counts as a
    version conflict.
    """

    def __init__(self, dsn: Secret[str], seal: Seal, replica_id: str) -> None:
        self._seal = seal
        self.lineage = PostgresLineage(dsn, seal, replica_id)
        self._replicas = Replicas(self.lineage, replica_id)
        self._appending = Link(dsn, self.lineage, PLANNING)
        self._appender = Appender(self._appending, seal, self._replicas.mine)
        self._writing = Link(dsn, self.lineage)
        self._reading = [Link(dsn, self.lineage) for _ in range(READ_LINKS)]
        self._timing = Link(dsn, self.lineage)
        self._tasks: set[asyncio.Task[object]] = set()
        self._closed = False

    @classmethod
    async def open(cls, dsn: Secret[str], *, seal: Seal, replica_id: str, durability: Durability) -> PostgresStore:
        """The store, if the database is there, up to date and as durable as promised. Raises NotReadyError."""
        try:
            connection = await connect(dsn)
            try:
                await _require_server(connection, durability)
                await require_schema(connection)
                await _require_keys(connection, seal)
            finally:
                await connection.close()
        except TROUBLE as error:
            raise NotReadyError(trouble(error)) from error
        return cls(dsn, seal, replica_id)

    @property
    def commits(self) -> int:
        """How many statements moved matches; when many changes share one, far fewer than changes."""
        return self._appender.commits

    async def append(self, change: Append) -> None:
        """Write one change, as the port says."""
        self._require_open()
        await self._appender.submit(change)

    async def steps(self, match_id: str, after_version: int = 0) -> Sequence[Step]:
        """A page of the log, as the port says."""
        return await self._read(postgres_read.steps, self._seal, match_id, after_version, STEPS_A_PAGE)

    async def snapshot(self, match_id: str) -> MatchState | None:
        """The last snapshot of a match, as the port says."""
        return await self._read(postgres_read.snapshot, self._seal, match_id)

    async def command(self, match_id: str, sender: Audience, command_id: str) -> CommandRecord | None:
        """The stored outcome of a command."""
        return await self._read(postgres_read.command, match_id, sender, command_id)

    async def credential(self, token_hash: bytes) -> Credential | None:
        """What a token is good for."""
        return await self._read(postgres_read.credential, token_hash)

    async def good_tokens(self, token_hashes: Collection[bytes]) -> set[bytes]:
        """Which of these tokens are good; one that was replaced is not."""
        return await self._read(postgres_read.good_tokens, token_hashes)

    async def add_credential(self, credential: Credential) -> None:
        """Store a further token of a match that exists, durably; doing it again is safe."""
        await self._own(self._write(_CREDENTIAL, *credential_row(credential)))

    async def replace_credential(self, token_hash: bytes, by: bytes) -> None:
        """Let another token (its hash) stand in the place of this one, durably. Raises UnknownTokenError."""
        if await self._own(self._write(_ROTATION, token_hash, by)) is None:
            raise UnknownTokenError

    async def holds(self, match_id: str, audience: Audience, subject: str) -> bool:
        """Whether this subject got a token of this match for this audience."""
        return await self._read(postgres_read.holds, match_id, audience, subject)

    async def seat_request(self, request_id: str) -> SeatRequest | None:
        """What a create or join request with this id got."""
        return await self._read(postgres_read.seat_request, request_id)

    async def match_for_invite(self, invite_hash: bytes) -> str | None:
        """The id of the match that can be joined with the invite code of this hash."""
        return await self._read(postgres_read.match_for_invite, invite_hash)

    async def deal_secrets(self, match_id: str) -> DealSecrets | None:
        """What fixes the tiles of a match, as it was appended last."""
        return await self._read(postgres_read.deal_secrets, self._seal, match_id)

    async def live_matches(self) -> Sequence[DueMatch]:
        """Every match that is not over, earliest due first."""
        return await self._read(postgres_read.live_matches)

    async def overdue(self, before_ns: int) -> Sequence[str]:
        """The ids of live matches that needed the service before this instant, a bounded number, the oldest first."""
        return await self._read(postgres_read.overdue, before_ns)

    async def versions(self, match_ids: Sequence[str]) -> Mapping[str, int]:
        """At which version each of these matches is."""
        return await self._read(postgres_read.versions, match_ids)

    async def beat(self, heartbeat: Heartbeat) -> Others:
        """Replace this replica's heartbeat, durably; one that was fenced comes back by it."""
        return await self._own(self._replicas.beat(heartbeat))

    async def others(self) -> Others:
        """What other replicas left."""
        return await self._own(self._replicas.others())

    async def fence(self, peer: Peer) -> None:
        """Let this replica write no more, unless it was seen since."""
        await self._own(self._replicas.fence(peer))

    async def record_fault(self, row: LedgerRow) -> None:
        """Add a row to the fault ledger, durably and before every later write."""
        await self._own(self._replicas.record_fault(row))

    async def faults(self, since_ns: int) -> Sequence[LedgerRow]:
        """The rows whose spans end at or after this instant, oldest first."""
        return await self._own(self._replicas.faults(since_ns))

    async def service_ns(self) -> int:
        """The time of the database's own clock, on a connection that nothing else uses."""
        async with self._timing.use(is_trusted=False) as connection:
            return await postgres_read.service_ns(connection)

    async def close(self) -> None:
        """Finish what was handed in and hang up."""
        self._closed = True
        await self._appender.finish()
        while self._tasks:
            await asyncio.wait(self._tasks)
        for link in (self._appending, self.lineage.link, self._writing, self._timing, *self._reading):
            await link.close()

    async def _read(
        self, query: Callable[Concatenate[Connection, P], Awaitable[T]], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """The answer of a query; it sees every change that was acknowledged."""

        async def answer() -> T:
            async with min(self._reading, key=lambda link: link.waiting).use() as connection:
                return await query(connection, *args, **kwargs)

        return await self._own(answer())

    async def _write(self, statement: str, *row: object) -> object:
        """Carry out one statement; what it returns. Raises AssertionError for what the schema does not allow."""
        try:
            async with self._writing.use() as connection:
                return await connection.fetchval(statement, *row)
        except OWN_FAULT as error:
            raise AssertionError("a write that the schema does not allow") from error

    async def _own(self, work: Coroutine[object, object, T]) -> T:
        """Do it as the store's own work: a client that goes away must not cost a connection."""
        try:
            self._require_open()
        except StoreUnavailableError:
            work.close()
            raise
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return await asyncio.shield(task)

    def _done(self, task: asyncio.Task[object]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # seen, so that nobody reports it as lost

    def _require_open(self) -> None:
        if self._closed:
            raise StoreUnavailableError("the store is closed")


async def _require_server(connection: Connection, durability: Durability) -> None:
    version = int(await connection.fetchval("SELECT current_setting('server_version_num')"))
    if version < OLDEST_SERVER:
        raise NotReadyError(f"PostgreSQL {version // 10_000} is too old: {OLDEST_SERVER // 10_000} or newer is needed")
    if durability == "synchronous-standby" and not await connection.fetchval(_STANDBYS):
        raise NotReadyError(
            "PostgreSQL has no synchronous standby: connect one that synchronous_standby_names names, or say"
            " SPECBID_DURABILITY=single-node"
        )


async def _require_keys(connection: Connection, seal: Seal) -> None:
    """See that everything stored can be opened, and note which key seals from now on."""
    known = await postgres_read.meta(connection, KEY_IDS) or ""
    if missing := seal.missing(known):
        raise NotReadyError(
            f"SPECBID_SEALING_KEY_FILE lacks the sealing key {', '.join(missing)}, with which this database was written"
        )
    if (used := keys_in_use(known, seal)) != known:
        await connection.execute(KEEP, KEY_IDS, used)
