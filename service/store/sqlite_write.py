"""Writing to SQLite: changes as statements, and many changes in one commit."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, TypeAlias

from service.ports import (
    Append,
    Credential,
    DuplicateCommandError,
    DuplicateRequestError,
    LedgerRow,
    StoreUnavailableError,
    UnknownTokenError,
    VersionConflictError,
)
from service.store.batches import Outcome
from service.store.event_json import audience_text
from service.store.rows import command_row, credential_row, deal_row, ended_at_ns, fault_row
from service.store.sealed_steps import sealed_step_text
from service.store.sealing import Seal
from service.store.snapshot_rows import snapshot_row

Statement: TypeAlias = tuple[str, tuple[object, ...]]

_CREATE: Final = "INSERT INTO matches (match_id, version, due_ns, live, invite_hash) VALUES (?, 1, ?, ?, ?)"
_ADVANCE: Final = "UPDATE matches SET version = version + 1, due_ns = ?, live = ? WHERE match_id = ? AND version = ?"
_STAND: Final = "UPDATE matches SET version = version WHERE match_id = ? AND version = ?"
_STEP: Final = "INSERT INTO steps VALUES (?, ?, ?)"
_COMMAND: Final = "INSERT INTO commands VALUES (?, ?, ?, ?, ?, ?, ?)"
_END: Final = "UPDATE matches SET ended_at_ns = ? WHERE match_id = ?"
_CREDENTIAL: Final = "INSERT INTO credentials (token_hash, match_id, audience, subject) VALUES (?, ?, ?, ?)"
_ROTATION: Final = "UPDATE credentials SET token_hash = ? WHERE token_hash = ?"
_CREDENTIAL_AGAIN: Final = f"{_CREDENTIAL} ON CONFLICT (token_hash) DO UPDATE SET token_hash = token_hash"
_DEAL: Final = (
    "INSERT INTO deals VALUES (?, ?, ?, ?, ?) ON CONFLICT (match_id) DO UPDATE "
    "SET entropy_one = excluded.entropy_one, entropy_two = excluded.entropy_two"
)
_SNAPSHOT: Final = (
    "INSERT INTO snapshots VALUES (?, ?, ?, ?) ON CONFLICT (match_id) DO UPDATE "
    "SET version = excluded.version, format = excluded.format, state = excluded.state"
)
_SEAT_REQUEST: Final = "INSERT INTO seat_requests VALUES (?, ?, ?)"
_META: Final = "INSERT INTO meta VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value"
_FAULT: Final = "INSERT INTO faults (cause, match_id, from_ns, to_ns, evidence) VALUES (?, ?, ?, ?, ?)"

_SAME_COMMAND: Final = "SELECT 1 FROM commands WHERE match_id = ? AND sender = ? AND command_id = ?"
_SAME_REQUEST: Final = "SELECT 1 FROM seat_requests WHERE request_id = ?"
_SAME_MATCH: Final = "SELECT 1 FROM matches WHERE match_id = ?"
_SAME_INVITE: Final = "SELECT 1 FROM matches WHERE invite_hash = ?"


class Write(NamedTuple):
    """Statements that are carried out together or not at all; each changes exactly one row.

    `change` is the append that they are, if they are one: it explains why they could not be carried out. Otherwise
    `missing` is what it means when there is no such row.
    """

    statements: Sequence[Statement]
    change: Append | None = None
    missing: type[UnknownTokenError] | None = None


def append_write(change: Append, seal: Seal) -> Write:
    """The write of an append, hidden tiles and deal secrets sealed.

    First the match: if that changes no row, nothing else is tried.
    """
    assert change.events or change.expected_version, "a match begins with events"
    assert change.invite_hash is None or not change.expected_version, "the invite code comes with the first step"
    match_id, version, step = change.match_id, change.expected_version, change.events
    statements: list[Statement] = []
    if not step:
        statements.append((_STAND, (match_id, version)))
    elif version:
        statements.append((_ADVANCE, (change.due_ns, change.live, match_id, version)))
    else:
        statements.append((_CREATE, (match_id, change.due_ns, change.live, change.invite_hash)))
    if step:
        text = sealed_step_text(step, seal, f"{match_id}/{version + 1}")
        statements.append((_STEP, (match_id, version + 1, text)))
    if not change.live and (ended_ns := ended_at_ns(step)) is not None:
        statements.append((_END, (ended_ns, match_id)))
    if change.record is not None:
        statements.append((_COMMAND, command_row(match_id, change.record)))
    if change.credentials:
        statements.extend([(_CREDENTIAL, credential_row(credential)) for credential in change.credentials])
    if (request := change.seat_request) is not None:
        statements.append((_SEAT_REQUEST, (request.request_id, request.match_id, audience_text(request.audience))))
    if (deal := change.deal) is not None:
        statements.append((_DEAL, deal_row(match_id, deal, seal)))
    if change.snapshot is not None:
        statements.append((_SNAPSHOT, snapshot_row(match_id, change.snapshot, seal)))
    return Write(statements, change)


def credential_write(credential: Credential) -> Write:
    """The write of a further token; repeating it changes nothing."""
    return Write(((_CREDENTIAL_AGAIN, credential_row(credential)),))


def rotation_write(token_hash: bytes, by: bytes) -> Write:
    """The write of a token that another one replaces."""
    return Write(((_ROTATION, (by, token_hash)),), missing=UnknownTokenError)


def meta_write(key: str, value: str) -> Write:
    """The write of a fact about the service."""
    return Write(((_META, (key, value)),))


def fault_write(row: LedgerRow) -> Write:
    """The write of a row of the fault ledger."""
    return Write(((_FAULT, fault_row(row)),))


class _NotCarriedOutError(Exception):
    """A statement did not change exactly one row."""


_OWN_FAULT: Final = (
    _NotCarriedOutError,
    sqlite3.IntegrityError,
    sqlite3.DataError,
    sqlite3.InterfaceError,
    sqlite3.ProgrammingError,
    OverflowError,
    UnicodeError,
)
"""What the write itself is to blame for; every other error is the environment's."""


class Writer:
    """Carries out batches of writes, one commit each."""

    def __init__(self, connect: Callable[[], sqlite3.Connection]) -> None:
        self._connect = connect
        self._connection: sqlite3.Connection | None = None
        self.commits = 0

    def write(self, batch: Sequence[Write]) -> Sequence[Outcome]:
        """What became of each write; those that were carried out are durable. To be called by one thread."""
        try:
            return self._write(batch)
        except sqlite3.Error as error:
            self._abandon()
            return [_unavailable(error) for _ in batch]

    def close(self) -> None:
        """Release the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _write(self, batch: Sequence[Write]) -> Sequence[Outcome]:
        if self._connection is None:
            self._connection = self._connect()
        cursor = self._connection.cursor()
        outcomes: list[Outcome] = [None] * len(batch)
        cursor.execute("BEGIN IMMEDIATE")
        try:
            for write in batch:
                _carry_out(cursor, write)
        except _OWN_FAULT:
            cursor.execute("ROLLBACK")
            cursor.execute("BEGIN IMMEDIATE")
            outcomes = [_carry_out_alone(cursor, write) for write in batch]
        cursor.execute("COMMIT")
        self.commits += 1
        return outcomes

    def _abandon(self) -> None:
        """Leave the failed transaction; with a connection that cannot do even that, begin anew."""
        if self._connection is None:
            return
        try:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
        except sqlite3.Error:
            self.close()


def _unavailable(cause: Exception) -> StoreUnavailableError:
    error = StoreUnavailableError("the store cannot answer now")
    error.__cause__ = cause
    return error


def _carry_out(cursor: sqlite3.Cursor, write: Write) -> None:
    for statement, row in write.statements:
        if cursor.execute(statement, row).rowcount != 1:
            raise _NotCarriedOutError


def _carry_out_alone(cursor: sqlite3.Cursor, write: Write) -> Outcome:
    """Carry out the write so that its failure leaves the rest of the batch standing."""
    outcome: Outcome = None
    cursor.execute("SAVEPOINT write")
    try:
        _carry_out(cursor, write)
    except _OWN_FAULT as error:
        cursor.execute("ROLLBACK TO write")
        missing = write.missing() if write.missing is not None and isinstance(error, _NotCarriedOutError) else None
        outcome = _reason(cursor, write.change) or missing or _mistake(error)
    cursor.execute("RELEASE write")
    return outcome


def _reason(cursor: sqlite3.Cursor, change: Append | None) -> Outcome:
    """Why an append does not stand, the first reason in the port's order; None when it is none of them."""

    def found(query: str, *key: object) -> bool:
        return cursor.execute(query, key).fetchone() is not None

    if change is None:
        return None
    match_id, record, request = change.match_id, change.record, change.seat_request
    if record and found(_SAME_COMMAND, match_id, audience_text(record.sender), record.command_id):
        return DuplicateCommandError(record.command_id)
    if request and found(_SAME_REQUEST, request.request_id):
        return DuplicateRequestError(request.request_id)
    if change.expected_version == 0:
        taken = found(_SAME_MATCH, match_id) or found(_SAME_INVITE, change.invite_hash)
        return VersionConflictError(match_id) if taken else None
    stands = found(f"{_SAME_MATCH} AND version = ?", match_id, change.expected_version)
    return None if stands else VersionConflictError(match_id)


def _mistake(cause: Exception) -> AssertionError:
    error = AssertionError("a write that the schema does not allow")
    error.__cause__ = cause
    return error
