"""The store in one SQLite file, for one process: all writes on one thread, all reads on another."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Concatenate, Final, ParamSpec, TypeVar

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
    StoreOpenError,
    StoreUnavailableError,
)
from service.store import sqlite_read, sqlite_reseal
from service.store.batches import BatchThread
from service.store.event_json import heartbeat_of, heartbeat_text
from service.store.json_forms import StoredFormatError
from service.store.sealing import Seal, SealingKeyError, keys_in_use, seal_from
from service.store.sqlite_file import SqliteFile, key_path_of
from service.store.sqlite_read import Reader
from service.store.sqlite_write import Writer, append_write, credential_write, fault_write, meta_write, rotation_write

P = ParamSpec("P")
T = TypeVar("T")

HEARTBEAT_KEY: Final = "heartbeat"
KEY_IDS: Final = "sealing_key"
"""The ids of the keys that hidden tiles of this file may be sealed with, blanks between them."""
BUSY_TIMEOUT_MS: Final = 2_000
"""How long a stranger, such as a backup or a shell, may keep the file locked before the store is unavailable."""
GONE_NS: Final = 1 << 62
"""For how long a process was not seen that is known to be gone."""
MAX_READS: Final = 10_000
"""How many reads may wait or be under way before more are turned away."""


def reseal(path: Path, *, key_file: Path | None = None) -> int:
    """Seal everything in a file with the first of its keys, so that the others can go; how many rows it was.

    No service may be using the file. Raises StoreOpenError, and then nothing has changed.
    """
    if not path.exists():
        raise StoreOpenError(f"there is no database {path}.")
    file = SqliteFile(path, busy_timeout_ms=BUSY_TIMEOUT_MS)
    try:
        seal = _seal_of(file, key_path_of(path, key_file))
        with closing(file.connect(read_only=False)) as connection:
            return sqlite_reseal.reseal(connection, seal, KEY_IDS)
    except (sqlite3.Error, StoredFormatError) as error:
        raise StoreOpenError(f"{path} cannot be sealed anew: {error}.") from error
    finally:
        file.release()


def _seal_of(file: SqliteFile, key_path: Path) -> Seal:
    try:
        with closing(file.connect(read_only=True)) as connection:
            return seal_from(key_path, sqlite_read.meta(connection, KEY_IDS) or "")
    except SealingKeyError as error:
        raise StoreOpenError(str(error)) from error


class SqliteStore:
    """The `Store` port on a SQLite file, to be used from the event loop that opened it.

    Changes that wait at the same moment share one commit. An invite code that is taken counts as a version conflict.
    """

    def __init__(self, file: SqliteFile, seal: Seal) -> None:
        self._file = file
        self._seal = seal
        self._reader = Reader(partial(file.connect, read_only=True))
        self._writer = Writer(partial(file.connect, read_only=False))
        self._write_thread = BatchThread("store-writes", self._writer.write)
        self._read_thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="store-reads")
        self._reads = 0
        self._has_beaten = False
        self._closed = False

    @classmethod
    async def open(
        cls, path: Path, *, key_file: Path | None = None, busy_timeout_ms: int = BUSY_TIMEOUT_MS
    ) -> SqliteStore:
        """Take the file for this process; make it or bring it up to date if need be. Raises StoreOpenError.

        Hidden tiles are sealed with the first key in `key_file`, by default the database's name with `.key` behind it.
        """
        file = await asyncio.to_thread(SqliteFile, path, busy_timeout_ms=busy_timeout_ms)
        try:
            seal = _seal_of(file, key_path_of(path, key_file))
        except BaseException:
            file.release()
            raise
        store = cls(file, seal)
        known = await store.meta(KEY_IDS) or ""
        if (used := keys_in_use(known, seal)) != known:
            await store.set_meta(KEY_IDS, used)
        return store

    @property
    def commits(self) -> int:
        """How many commits there were; when many changes share one, far fewer than changes."""
        return self._writer.commits

    def append(self, change: Append) -> Awaitable[None]:
        """Write one change, as the port says."""
        return self._write_thread.submit(append_write(change, self._seal))

    async def steps(self, match_id: str, after_version: int = 0) -> Sequence[Step]:
        """A page of the log, as the port says."""
        return await self._read(sqlite_read.steps, self._seal, match_id, after_version, STEPS_A_PAGE)

    async def snapshot(self, match_id: str) -> MatchState | None:
        """The last snapshot of a match, as the port says."""
        return await self._read(sqlite_read.snapshot, self._seal, match_id)

    async def command(self, match_id: str, sender: Audience, command_id: str) -> CommandRecord | None:
        """The stored outcome of a command."""
        return await self._read(sqlite_read.command, match_id, sender, command_id)

    async def credential(self, token_hash: bytes) -> Credential | None:
        """What a token is good for."""
        return await self._read(sqlite_read.credential, token_hash)

    async def good_tokens(self, token_hashes: Collection[bytes]) -> set[bytes]:
        """Which of these tokens are good; one that was replaced is not."""
        return await self._read(sqlite_read.good_tokens, token_hashes)

    async def add_credential(self, credential: Credential) -> None:
        """Store a further token of a match that exists, durably; doing it again is safe."""
        await self._write_thread.submit(credential_write(credential))

    async def replace_credential(self, token_hash: bytes, by: bytes) -> None:
        """Let another token (its hash) stand in the place of this one, durably. Raises UnknownTokenError."""
        await self._write_thread.submit(rotation_write(token_hash, by))

    async def holds(self, match_id: str, audience: Audience, subject: str) -> bool:
        """Whether this subject got a token of this match for this audience."""
        return await self._read(sqlite_read.holds, match_id, audience, subject)

    async def seat_request(self, request_id: str) -> SeatRequest | None:
        """What a create or join request with this id got."""
        return await self._read(sqlite_read.seat_request, request_id)

    async def match_for_invite(self, invite_hash: bytes) -> str | None:
        """The id of the match that can be joined with the invite code of this hash."""
        return await self._read(sqlite_read.match_for_invite, invite_hash)

    async def deal_secrets(self, match_id: str) -> DealSecrets | None:
        """What fixes the tiles of a match, as it was appended last."""
        return await self._read(sqlite_read.deal_secrets, self._seal, match_id)

    async def live_matches(self) -> Sequence[DueMatch]:
        """Every match that is not over, earliest due first."""
        return await self._read(sqlite_read.live_matches)

    async def meta(self, key: str) -> str | None:
        """A fact about the service itself, such as the anchor of its line of time."""
        return await self._read(sqlite_read.meta, key)

    async def set_meta(self, key: str, value: str) -> None:
        """Store a fact about the service, durably, in place of what was there."""
        await self._write_thread.submit(meta_write(key, value))

    async def overdue(self, before_ns: int) -> Sequence[str]:
        """The ids of live matches that needed the service before this instant, a bounded number, the oldest first."""
        return await self._read(sqlite_read.overdue, before_ns)

    async def versions(self, match_ids: Sequence[str]) -> Mapping[str, int]:
        """At which version each of these matches is."""
        return await self._read(sqlite_read.versions, match_ids)

    async def beat(self, heartbeat: Heartbeat) -> Others:
        """Replace the heartbeat of this process or the one before, durably; there are no others."""
        await self.set_meta(HEARTBEAT_KEY, heartbeat_text(heartbeat))
        self._has_beaten = True
        return Others()

    async def others(self) -> Others:
        """The process before this one, which is gone, since the file is ours; none when it retired."""
        last = None if self._has_beaten else await self.last_beat()
        return Others() if last is None or last.retired else Others((Peer("predecessor", 0, last, GONE_NS),))

    async def fence(self, peer: Peer) -> None:
        """The lock on the file has done it; this process's heartbeat takes the place of the other's."""

    async def last_beat(self) -> Heartbeat | None:
        """The heartbeat that was stored last, maybe by an earlier process."""
        text = await self.meta(HEARTBEAT_KEY)
        return None if text is None else heartbeat_of(text)

    async def record_fault(self, row: LedgerRow) -> None:
        """Add a row to the fault ledger, durably and before every later write."""
        await self._write_thread.submit(fault_write(row))

    async def faults(self, since_ns: int) -> Sequence[LedgerRow]:
        """The rows whose spans end at or after this instant, oldest first."""
        return await self._read(sqlite_read.faults, since_ns)

    async def close(self) -> None:
        """Finish what was handed in and release the file."""
        if self._closed:
            return
        self._closed = True
        await self._write_thread.close()
        await asyncio.to_thread(self._release)

    def _release(self) -> None:
        self._read_thread.shutdown()
        self._reader.close()
        self._writer.close()
        self._file.release()

    async def _read(
        self, query: Callable[Concatenate[sqlite3.Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """The answer of a query, on the thread for reading; it sees every change that was acknowledged."""
        if self._closed or self._reads >= MAX_READS:
            raise StoreUnavailableError("the store is closed" if self._closed else "too much waits for the store")
        self._reads += 1
        try:
            call = partial(self._reader.read, query, *args, **kwargs)
            return await asyncio.get_running_loop().run_in_executor(self._read_thread, call)
        finally:
            self._reads -= 1
