"""Reading from SQLite: each function is one query, read to its end at once, since an open one holds up checkpoints."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from sqlite3 import Connection, Error
from typing import Concatenate, ParamSpec, TypeVar

from engine.events import Step
from engine.state import MatchState
from engine.view import Audience
from service.ports import (
    CommandRecord,
    Credential,
    DealSecrets,
    DueMatch,
    LedgerRow,
    SeatRequest,
    StoreUnavailableError,
)
from service.store.event_json import audience_of, audience_text
from service.store.rows import MOST_OVERDUE, command_of, deal_of, fault_of
from service.store.sealed_steps import sealed_step_of
from service.store.sealing import Seal
from service.store.snapshot_rows import snapshot_of

P = ParamSpec("P")
T = TypeVar("T")

NO_LIMIT = -1


class Reader:
    """A connection that only reads, made when it is needed. To be used by one thread at a time."""

    def __init__(self, connect: Callable[[], Connection]) -> None:
        self._connect = connect
        self._connection: Connection | None = None

    def read(self, query: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """The answer of a query. Raises StoreUnavailableError."""
        try:
            if self._connection is None:
                self._connection = self._connect()
            return query(self._connection, *args, **kwargs)
        except Error as error:
            self.close()
            raise StoreUnavailableError("the store cannot answer now") from error

    def close(self) -> None:
        """Release the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def steps(
    connection: Connection, seal: Seal, match_id: str, after_version: int, at_most: int | None = None
) -> Sequence[Step]:
    """The steps of versions after_version + 1 and on, in order, all of them or so many."""
    query = "SELECT version, events FROM steps WHERE match_id = ? AND version > ? ORDER BY version LIMIT ?"
    limit = NO_LIMIT if at_most is None else at_most
    rows = connection.execute(query, (match_id, after_version, limit)).fetchall()
    return [sealed_step_of(text, seal, f"{match_id}/{version}") for version, text in rows]


def snapshot(connection: Connection, seal: Seal, match_id: str) -> MatchState | None:
    """The last snapshot of a match."""
    query = "SELECT match_id, version, format, state FROM snapshots WHERE match_id = ?"
    found = connection.execute(query, (match_id,)).fetchall()
    return snapshot_of(found[0], seal) if found else None


def command(connection: Connection, match_id: str, sender: Audience, command_id: str) -> CommandRecord | None:
    """The stored outcome of a command."""
    query = "SELECT * FROM commands WHERE match_id = ? AND sender = ? AND command_id = ?"
    found = connection.execute(query, (match_id, audience_text(sender), command_id)).fetchall()
    return command_of(found[0]) if found else None


def credential(connection: Connection, token_hash: bytes) -> Credential | None:
    """What a token is good for."""
    query = (
        "SELECT match_id, audience, subject, ended_at_ns FROM credentials JOIN matches USING (match_id)"
        " WHERE token_hash = ?"
    )
    for match_id, audience, subject, ended_at_ns in connection.execute(query, (token_hash,)).fetchall():
        return Credential(token_hash, match_id, audience_of(audience), subject, ended_at_ns)
    return None


def good_tokens(connection: Connection, token_hashes: Collection[bytes]) -> set[bytes]:
    """Which of these tokens are good; one that was replaced is not."""
    query = "SELECT 1 FROM credentials WHERE token_hash = ?"
    return {hashed for hashed in token_hashes if connection.execute(query, (hashed,)).fetchall()}


def holds(connection: Connection, match_id: str, audience: Audience, subject: str) -> bool:
    """Whether a subject got a token of a match for an audience."""
    query = "SELECT 1 FROM credentials WHERE subject = ? AND match_id = ? AND audience = ?"
    return bool(connection.execute(query, (subject, match_id, audience_text(audience))).fetchall())


def seat_request(connection: Connection, request_id: str) -> SeatRequest | None:
    """What a create or join request got."""
    query = "SELECT match_id, audience FROM seat_requests WHERE request_id = ?"
    for match_id, audience in connection.execute(query, (request_id,)).fetchall():
        return SeatRequest(request_id, match_id, audience_of(audience))
    return None


def match_for_invite(connection: Connection, invite_hash: bytes) -> str | None:
    """The match that can be joined with an invite code."""
    query = "SELECT match_id FROM matches WHERE invite_hash = ?"
    return next((match_id for (match_id,) in connection.execute(query, (invite_hash,)).fetchall()), None)


def deal_secrets(connection: Connection, seal: Seal, match_id: str) -> DealSecrets | None:
    """What fixes the tiles of a match."""
    found = connection.execute("SELECT * FROM deals WHERE match_id = ?", (match_id,)).fetchall()
    return deal_of(found[0], seal) if found else None


def live_matches(connection: Connection) -> Sequence[DueMatch]:
    """Every match that is not over, earliest due first; SQLite sorts NULL before numbers."""
    query = "SELECT match_id, due_ns FROM matches WHERE live ORDER BY due_ns, match_id"
    return [DueMatch(match_id, due_ns) for match_id, due_ns in connection.execute(query).fetchall()]


def overdue(connection: Connection, before_ns: int) -> Sequence[str]:
    """Live matches that were due before an instant, the oldest first, a bounded number."""
    query = "SELECT match_id FROM matches WHERE live AND due_ns < ? ORDER BY due_ns, match_id LIMIT ?"
    return [match_id for (match_id,) in connection.execute(query, (before_ns, MOST_OVERDUE)).fetchall()]


def versions(connection: Connection, match_ids: Sequence[str]) -> Mapping[str, int]:
    """The versions of matches."""
    query = "SELECT match_id, version FROM matches JOIN json_each(?) ON match_id = value"
    return dict(connection.execute(query, (json.dumps(list(match_ids)),)).fetchall())


def meta(connection: Connection, key: str) -> str | None:
    """A fact about the service itself."""
    query = "SELECT value FROM meta WHERE key = ?"
    return next((value for (value,) in connection.execute(query, (key,)).fetchall()), None)


def faults(connection: Connection, since_ns: int) -> Sequence[LedgerRow]:
    """The rows of the fault ledger whose spans end at or after this instant, oldest first."""
    query = "SELECT cause, match_id, from_ns, to_ns, evidence FROM faults WHERE to_ns >= ? ORDER BY fault_id"
    return [fault_of(row) for row in connection.execute(query, (since_ns,)).fetchall()]
