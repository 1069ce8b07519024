"""Reading from SQLite: each function is one query, read to its end at once, since an open one holds up checkpoints."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from sqlite3 import Connection, Error
from typing import Concatenate, ParamSpec, TypeVar

from engine.events import Step
from engine.faults import Fault
from engine.seats import PerSeat
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
from service.store.event_json import audience_of, audience_text, cause_of, receipt_of, refusal_of
from service.store.sealed_steps import sealed_step_of
from service.store.sealing import Seal

P = ParamSpec("P")
T = TypeVar("T")


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


def steps(connection: Connection, seal: Seal, match_id: str, after_version: int) -> Sequence[Step]:
    """The steps of versions after_version + 1 and on, in order."""
    query = "SELECT version, events FROM steps WHERE match_id = ? AND version > ? ORDER BY version"
    rows = connection.execute(query, (match_id, after_version)).fetchall()
    return [sealed_step_of(text, seal, f"{match_id}/{version}") for version, text in rows]


def command(connection: Connection, match_id: str, sender: Audience, command_id: str) -> CommandRecord | None:
    """The stored outcome of a command."""
    query = (
        "SELECT body_hash, version, refusal, receipt FROM commands WHERE match_id = ? AND sender = ? AND command_id = ?"
    )
    found = connection.execute(query, (match_id, audience_text(sender), command_id)).fetchall()
    if not found:
        return None
    ((body_hash, version, refusal, receipt),) = found
    return CommandRecord(
        sender=sender,
        command_id=command_id,
        body_hash=body_hash,
        version=version,
        refusal=None if refusal is None else refusal_of(refusal),
        receipt=receipt_of(receipt),
    )


def credential(connection: Connection, token_hash: bytes) -> Credential | None:
    """What a token is good for."""
    query = (
        "SELECT match_id, audience, subject, ended_at_ns FROM credentials JOIN matches USING (match_id)"
        " WHERE token_hash = ?"
    )
    for match_id, audience, subject, ended_at_ns in connection.execute(query, (token_hash,)).fetchall():
        return Credential(token_hash, match_id, audience_of(audience), subject, ended_at_ns)
    return None


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

    def opened(sealed: bytes, name: str) -> bytes:
        return seal.open(sealed, f"{match_id}/{name}") if sealed else sealed

    query = "SELECT rules_hash, secret, entropy_one, entropy_two FROM deals WHERE match_id = ?"
    for rules_hash, secret, one, two in connection.execute(query, (match_id,)).fetchall():
        return DealSecrets(rules_hash, opened(secret, "secret"), PerSeat(opened(one, "one"), opened(two, "two")))
    return None


def live_matches(connection: Connection) -> Sequence[DueMatch]:
    """Every match that is not over, earliest due first; SQLite sorts NULL before numbers."""
    query = "SELECT match_id, due_ns FROM matches WHERE live ORDER BY due_ns, match_id"
    return [DueMatch(match_id, due_ns) for match_id, due_ns in connection.execute(query).fetchall()]


def meta(connection: Connection, key: str) -> str | None:
    """A fact about the service itself."""
    query = "SELECT value FROM meta WHERE key = ?"
    return next((value for (value,) in connection.execute(query, (key,)).fetchall()), None)


def faults(connection: Connection, since_ns: int) -> Sequence[LedgerRow]:
    """The rows of the fault ledger whose spans end at or after this instant, oldest first."""
    query = "SELECT cause, match_id, from_ns, to_ns, evidence FROM faults WHERE to_ns >= ? ORDER BY fault_id"
    return [
        LedgerRow(Fault(cause_of(cause), from_ns, to_ns, evidence), match_id)
        for cause, match_id, from_ns, to_ns, evidence in connection.execute(query, (since_ns,)).fetchall()
    ]
