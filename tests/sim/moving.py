"""The statement that moves matches, on the simulated tables: what it sees, what it locks, what it commits.

It sees the rows as of its beginning; then it takes row locks, leaving out what is locked or has moved meanwhile; the
rest becomes durable, all of it or nothing, at its commit.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

import asyncpg

from service.ports import Append, Credential, SeatRequest
from service.store.event_json import audience_of
from service.store.postgres_append_sql import ALSO, GIVEN
from service.store.rows import command_of, deal_of
from service.store.sealed_steps import sealed_step_of
from tests.sim.disk import LATEST_NS
from tests.sim.tables import SEAL, Arguments, Row, Tables

MOVING: Final = "UPDATE matches AS m SET version"
_COMPARES, _KNOWS, _FENCES, _REMEMBERS = (
    "m.version = given.expected",
    "FROM commands AS c",
    "FROM replicas WHERE replica_id = $1 AND epoch = $2 AND state IN",
    "FROM seat_requests AS r",
)
_KEEPS: Final = "INSERT INTO snapshots"
CONDITIONS: Final = (_COMPARES, _KNOWS, _FENCES, _REMEMBERS)
"""The pieces by which the statement takes care of something."""


@dataclass
class Move:
    """One such statement at work in `tables`, where matches in `locked` belong to others."""

    tables: Tables
    locked: set[str]
    text: str
    args: Arguments
    mine: set[str] = field(default_factory=set)
    """The matches that it has locked."""

    def __post_init__(self) -> None:
        name, epoch, *columns = self.args
        names = [column for column, _ in GIVEN]
        if len(columns) > len(GIVEN):
            names += [column for column, _ in ALSO]
        given: list[dict[str, Any]] = [
            dict(zip(names, row, strict=True)) for row in zip(*columns[: len(names)], strict=True)
        ]
        if any(row["due_ns"] is not None and row["due_ns"] > LATEST_NS for row in given):
            raise asyncpg.DataError("no instant is that late")
        self._name, self._was_live = name, self.tables.may_write(name, epoch)
        self._tokens = list(zip(*columns[len(names) :], strict=True)) if len(columns) > len(names) else []
        is_fenced = _FENCES in self.text and not self._was_live
        self._rows = [] if is_fenced else [row for row in given if self._stands(row) and not self._is_repeated(row)]

    def lock(self) -> None:
        """Take the row locks that are free; look at those rows again."""
        self._rows = [row for row in self._rows if row["match_id"] not in self.locked and self._stands(row)]
        self.mine = {row["match_id"] for row in self._rows}
        self.locked |= self.mine

    def commit(self) -> list[Row]:
        """Write. Raises UniqueViolationError when a row is there already; nothing is written then."""
        changes = [self._change(row) for row in self._rows]
        if any(self.tables.disk.refusal(change) for change in changes if change.expected_version):
            raise asyncpg.UniqueViolationError("a row of this key exists")
        if changes and not self._was_live:
            self.tables.on_stray_move(self._name)
        author, done = self.tables.author_of(self._name), []
        for row, change in zip(self._rows, changes, strict=True):
            if self.tables.disk.write(change, author) is None:  # of two new matches one may be in the other's way
                done.append(Row(number=row["number"]))
                if row["events"] is not None:
                    self.tables.texts[change.match_id, change.expected_version + 1] = row["events"]
                if row.get("snapshot") is not None and _KEEPS in self.text:
                    place = change.match_id, change.expected_version + 1
                    self.tables.snapshots[place] = (*place, row["snapshot_format"], row["snapshot"])
        return done

    def end(self) -> None:
        """Let the locks go."""
        self.locked -= self.mine

    def _stands(self, row: dict[str, Any]) -> bool:
        version = self.tables.version(row["match_id"])
        if not row["expected"]:
            return not version and row["invite_hash"] not in self.tables.disk.invites
        return version == row["expected"] or (_COMPARES not in self.text and bool(version))

    def _is_repeated(self, row: dict[str, Any]) -> bool:
        knows = _KNOWS in self.text and self.tables.has_command(row["match_id"], row["sender"], row["command_id"])
        return knows or (_REMEMBERS in self.text and row["request_id"] in self.tables.disk.requests)

    def _change(self, row: dict[str, Any]) -> Append:
        match_id, expected = row["match_id"], row["expected"]
        place = f"{match_id}/{expected + 1}"
        record = None
        if row["command_id"] is not None:
            names = ("match_id", "sender", "command_id", "body_hash", "command_version", "refusal", "receipt")
            record = command_of(tuple(row[name] for name in names))
        also: dict[str, Any] = {}
        if "request_id" in row:
            also = self._also(row)
        return Append(
            match_id=match_id,
            expected_version=expected,
            events=() if row["events"] is None else sealed_step_of(row["events"], SEAL, place),
            due_ns=row["due_ns"],
            live=row["live"],
            record=record,
            **also,
        )

    def _also(self, row: dict[str, Any]) -> dict[str, Any]:
        match_id, request_id = row["match_id"], row["request_id"]
        deal = match_id, row["rules_hash"], row["secret"], row["entropy_one"], row["entropy_two"]
        tokens = [token[1:] for token in self._tokens if token[0] == row["number"]]
        return {
            "credentials": tuple(
                Credential(hashed, match_id, audience_of(who), whose) for hashed, who, whose in tokens
            ),
            "seat_request": request_id and SeatRequest(request_id, match_id, audience_of(row["request_audience"])),
            "invite_hash": row["invite_hash"],
            "deal": None if row["rules_hash"] is None else deal_of(deal, SEAL),
        }
