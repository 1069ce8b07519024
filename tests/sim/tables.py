"""What PostgreSQL answers to the service's statements by READ COMMITTED; the rows are a `Disk`'s.

A statement is known by a piece of its text, and what it takes care of by another: where such a piece is missing that is
not taken care of, so that a statement which forgets a condition shows it. An unknown statement is an error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import asyncpg

from service.ports import Credential
from service.store.event_json import audience_of, audience_text
from service.store.rows import command_row, deal_row, fault_of, fault_row
from service.store.sealed_steps import sealed_step_text
from service.store.sealing import Seal
from service.store.snapshot_rows import SnapshotRow, snapshot_row
from tests.sim.disk import Disk, Replacement
from tests.sim.world import SECOND_NS

# Any: columns of every type, as a driver has them.
Arguments: TypeAlias = Sequence[Any]
SEAL: Final = Seal(bytes(32))
FENCE_AFTER_NS: Final = 3 * SECOND_NS


class Row:
    """A row as the driver gives it: columns by place or by name."""

    def __init__(self, **columns: object) -> None:
        self._columns = columns

    def __getitem__(self, name: str | int) -> object:
        return self._columns[name] if isinstance(name, str) else list(self._columns.values())[name]

    def __iter__(self) -> Iterator[object]:
        return iter(self._columns.values())

    def __len__(self) -> int:
        return len(self._columns)


@dataclass(frozen=True, slots=True)
class Replica:
    """A row of the registry."""

    epoch: int
    state: str
    at_ns: int
    closed_ns: int
    seen_ns: int

    @property
    def is_live(self) -> bool:
        """Whether it may write."""
        return self.state in ("live", "leaving")


@dataclass
class Tables:
    """The rows. `now_ns` is the database's own clock; `author_of` knows the process that a replica's name is of."""

    disk: Disk
    now_ns: Callable[[], int]
    author_of: Callable[[str], int] = lambda _: 0
    on_beat: Callable[[str], None] = lambda _: None
    on_fence: Callable[[str, int], None] = lambda _, __: None
    """Hears how long ago a replica was seen that is fenced."""
    on_stray_move: Callable[[str], None] = lambda _: None
    """Hears of the matches that a replica moves although it was fenced before it asked."""
    replicas: dict[str, Replica] = field(default_factory=dict)
    finders: list[str] = field(default_factory=list)
    """Who added each row of the ledger."""
    incarnation: int = 0
    """How often the server was started anew."""
    texts: dict[tuple[str, int], str] = field(default_factory=dict)
    """Steps as they are stored, by match and version."""
    snapshots: dict[tuple[str, int], SnapshotRow] = field(default_factory=dict)
    """As they are stored, by match and version; the last one of a match counts."""

    _registered: list[tuple[int, str, Replica]] = field(default_factory=list)

    @property
    def first_beat_ns(self) -> int:
        """When (true time) the first heartbeat was stored; now before that."""
        return self._registered[0][0] if self._registered else self.disk.now_ns()

    def register(self, name: str, replica: Replica) -> None:
        """Write a row of the registry."""
        self.replicas[name] = replica
        self._registered.append((self.disk.now_ns(), name, replica))

    def rewind(self, to_ns: int) -> None:
        """Lose what was written after this instant (true time)."""
        self.disk.rewind(to_ns)
        self._registered = [row for row in self._registered if row[0] <= to_ns]
        self.replicas = {name: replica for _, name, replica in self._registered}
        del self.finders[len(self.disk.ledger) :]
        self.texts = {place: text for place, text in self.texts.items() if place[1] <= self.version(place[0])}
        self.snapshots = {place: row for place, row in self.snapshots.items() if place[1] <= self.version(place[0])}

    def version(self, match_id: str) -> int:
        """At which version a match is; 0 when there is none."""
        return len(self.disk.logs.get(match_id, ()))

    def may_write(self, name: str, epoch: int) -> bool:
        """Whether this replica is live under this epoch."""
        replica = self.replicas.get(name)
        return replica is not None and replica.is_live and replica.epoch == epoch

    def has_command(self, match_id: str, sender: str | None, command_id: str | None) -> bool:
        """Whether a command is recorded."""
        return sender is not None and (match_id, audience_of(sender), command_id) in self.disk.commands

    def step_text(self, match_id: str, version: int) -> str:
        """The step that made a version, as it is stored."""
        place = match_id, version
        if place not in self.texts:
            self.texts[place] = sealed_step_text(self.disk.logs[match_id][version - 1], SEAL, f"{match_id}/{version}")
        return self.texts[place]

    def fault_rows(self) -> Iterator[tuple[str, Row]]:
        """The ledger: who added a row, and the row."""
        for number, (finder, row) in enumerate(zip(self.finders, self.disk.ledger, strict=True), start=1):
            cause, match_id, from_ns, to_ns, evidence = fault_row(row)
            yield (
                finder,
                Row(fault_id=number, cause=cause, match_id=match_id, from_ns=from_ns, to_ns=to_ns, evidence=evidence),
            )


Answer: TypeAlias = Callable[[Tables, str, Arguments], list[Row]]
"""What a statement with these arguments returns; one that writes has written then."""


def answer_of(text: str) -> tuple[bool, Answer]:
    """Whether a statement writes, and what carries it out."""
    for writes, answers in ((False, _READS), (True, _WRITES)):
        for piece, answer in answers.items():
            if piece in text:
                return writes, answer
    raise AssertionError(f"the simulated database does not know this statement: {text}")


def _steps(tables: Tables, _: str, args: Arguments) -> list[Row]:
    match_id, after, at_most = args
    versions = range(after + 1, min(after + at_most, tables.version(match_id)) + 1)
    return [Row(version=version, events=tables.step_text(match_id, version)) for version in versions]


def _snapshot(tables: Tables, _: str, args: Arguments) -> list[Row]:
    (match_id,) = args
    rows = [row for (of_match, _), row in tables.snapshots.items() if of_match == match_id]
    if not rows and (prepared := tables.disk.snapshots.get(match_id)) is not None:
        rows = [snapshot_row(match_id, prepared, SEAL)]
    names = ("match_id", "version", "format", "state")
    return [Row(**dict(zip(names, row, strict=True))) for row in rows[-1:]]


def _steps_at(tables: Tables, _: str, args: Arguments) -> list[Row]:
    asked = [
        (match_id, version) for match_id, version in zip(*args, strict=True) if version <= tables.version(match_id)
    ]
    return [Row(match_id=one, version=version, events=tables.step_text(one, version)) for one, version in asked]


def _greeting(tables: Tables, _: str, args: Arguments) -> list[Row]:
    own = tables.replicas.get(args[0])
    newest_ns = max((replica.at_ns for replica in tables.replicas.values()), default=None)
    beat_ns = None if own is None else own.at_ns
    return [Row(started_at=tables.incarnation, database=0, beat_ns=beat_ns, newest_ns=newest_ns)]


def _command(tables: Tables, _: str, args: Arguments) -> list[Row]:
    match_id, sender, command_id = args
    record = tables.disk.commands.get((match_id, audience_of(sender), command_id))
    names = ("match_id", "sender", "command_id", "body_hash", "version", "refusal", "receipt")
    return [] if record is None else [Row(**dict(zip(names, command_row(match_id, record), strict=True)))]


def _credential(tables: Tables, _: str, args: Arguments) -> list[Row]:
    found = tables.disk.credential(args[0])
    if found is None:
        return []
    return [
        Row(
            match_id=found.match_id,
            audience=audience_text(found.audience),
            subject=found.subject,
            ended_at_ns=found.ended_at_ns,
        )
    ]


def _good_tokens(tables: Tables, _: str, args: Arguments) -> list[Row]:
    (asked,) = args
    return [Row(token_hash=token_hash) for token_hash in asked if token_hash in tables.disk.credentials]


def _holds(tables: Tables, _: str, args: Arguments) -> list[Row]:
    subject, match_id, audience = args
    return [Row(exists=tables.disk.holds(match_id, audience_of(audience), subject))]


def _seat_request(tables: Tables, _: str, args: Arguments) -> list[Row]:
    found = tables.disk.requests.get(args[0])
    return [] if found is None else [Row(match_id=found.match_id, audience=audience_text(found.audience))]


def _invited(tables: Tables, _: str, args: Arguments) -> list[Row]:
    found = tables.disk.invites.get(args[0])
    return [] if found is None else [Row(match_id=found)]


def _deal(tables: Tables, _: str, args: Arguments) -> list[Row]:
    found = tables.disk.deals.get(args[0])
    names = ("match_id", "rules_hash", "secret", "entropy_one", "entropy_two")
    return [] if found is None else [Row(**dict(zip(names, deal_row(args[0], found, SEAL), strict=True)))]


def _live_matches(tables: Tables, _: str, __: Arguments) -> list[Row]:
    return [Row(match_id=match.match_id, due_ns=match.due_ns) for match in tables.disk.live()]


def _overdue(tables: Tables, _: str, args: Arguments) -> list[Row]:
    before_ns, limit = args
    due = [match for match in tables.disk.live() if match.due_ns is not None and match.due_ns < before_ns]
    return [Row(match_id=match.match_id) for match in due[:limit]]


def _versions(tables: Tables, _: str, args: Arguments) -> list[Row]:
    found = [(match_id, tables.version(match_id)) for match_id in args[0]]
    return [Row(match_id=match_id, version=version) for match_id, version in found if version]


def _time(tables: Tables, _: str, __: Arguments) -> list[Row]:
    return [Row(now_ns=tables.now_ns() // 1_000 * 1_000)]


def _reason(tables: Tables, _: str, args: Arguments) -> list[Row]:
    name, epoch, match_id, version, sender, command_id, request_id, invite_hash = args
    stands = tables.version(match_id) == version and (bool(version) or invite_hash not in tables.disk.invites)
    return [
        Row(
            repeated=tables.has_command(match_id, sender, command_id),
            requested=request_id in tables.disk.requests,
            stands=stands,
            is_live=tables.may_write(name, epoch),
        )
    ]


def _others(tables: Tables, _: str, args: Arguments) -> list[Row]:
    return [
        Row(
            replica_id=name,
            epoch=replica.epoch,
            state=replica.state,
            at_ns=replica.at_ns,
            closed_ns=replica.closed_ns,
            unseen_ns=tables.now_ns() - replica.seen_ns,
        )
        for name, replica in sorted(tables.replicas.items())
        if name != args[0] and replica.is_live
    ]


def _news(tables: Tables, _: str, args: Arguments) -> list[Row]:
    known, name = args
    return [row for number, (finder, row) in enumerate(tables.fault_rows(), 1) if number > known and finder != name]


def _last_fault(tables: Tables, _: str, __: Arguments) -> list[Row]:
    return [Row(last=len(tables.disk.ledger))]


def _faults(tables: Tables, _: str, args: Arguments) -> list[Row]:
    rows = zip(tables.disk.ledger, tables.fault_rows(), strict=True)
    return [row for stored, (_, row) in rows if stored.fault.to_ns >= args[0]]


def _beat(tables: Tables, text: str, args: Arguments) -> list[Row]:
    name, state, at_ns, closed_ns = args
    before = tables.replicas.get(name)
    is_back = before is not None and before.state == "fenced" and "(r.state = 'fenced')::int" in text
    epoch = 1 if before is None else before.epoch + is_back
    tables.register(name, Replica(epoch, state, at_ns, closed_ns, tables.now_ns()))
    tables.on_beat(name)
    return [Row(epoch=epoch)]


def _fence(tables: Tables, text: str, args: Arguments) -> list[Row]:
    name, epoch = args
    before = tables.replicas[name]
    unseen_ns = tables.now_ns() - before.seen_ns
    was_seen = "seen_at <" in text and unseen_ns <= FENCE_AFTER_NS
    if tables.may_write(name, epoch) and not was_seen:
        tables.register(name, Replica(before.epoch, "fenced", before.at_ns, before.closed_ns, before.seen_ns))
        tables.on_fence(name, unseen_ns)
    return []


def _fault(tables: Tables, _: str, args: Arguments) -> list[Row]:
    finder, *row = args
    tables.disk.write(fault_of(tuple(row)), tables.author_of(finder))
    tables.finders.append(finder)
    return []


def _add_credential(tables: Tables, _: str, args: Arguments) -> list[Row]:
    token_hash, match_id, audience, subject = args
    refusal = tables.disk.write(Credential(token_hash, match_id, audience_of(audience), subject))
    if refusal is not None:
        raise asyncpg.ForeignKeyViolationError(str(refusal))
    return []


def _rotate(tables: Tables, _: str, args: Arguments) -> list[Row]:
    refusal = tables.disk.write(Replacement(*args))
    return [] if refusal is not None else [Row(token_hash=args[1])]


def _nothing(_: Tables, __: str, ___: Arguments) -> list[Row]:
    return []


_READS: Final[dict[str, Answer]] = {
    "SELECT version, events FROM steps": _steps,
    "state FROM snapshots": _snapshot,
    "JOIN unnest($1::text[], $2::int8[]) AS asked": _steps_at,
    "pg_postmaster_start_time()": _greeting,
    "refusal, receipt FROM commands": _command,
    "FROM credentials JOIN matches": _credential,
    "FROM credentials WHERE token_hash = ANY": _good_tokens,
    "FROM credentials WHERE subject": _holds,
    "FROM seat_requests WHERE request_id = $1": _seat_request,
    "FROM matches WHERE invite_hash = $1": _invited,
    "entropy_two FROM deals": _deal,
    "FROM matches WHERE live ORDER BY": _live_matches,
    "WHERE live AND due_ns < $1": _overdue,
    "SELECT match_id, version FROM matches": _versions,
    "SELECT (extract(epoch FROM clock_timestamp())": _time,
    "SELECT EXISTS (SELECT FROM commands WHERE match_id = $3": _reason,
    "AS unseen_ns": _others,
    "FROM faults\n    WHERE fault_id > $1": _news,
    "FROM faults WHERE to_ns >= $1": _faults,
    "SELECT coalesce(max(fault_id), 0)": _last_fault,
}
_WRITES: Final[dict[str, Answer]] = {
    "INSERT INTO replicas": _beat,
    "UPDATE replicas SET state = 'fenced'": _fence,
    "INSERT INTO faults": _fault,
    "INSERT INTO credentials": _add_credential,
    "UPDATE credentials SET token_hash": _rotate,
    "DELETE FROM replicas": _nothing,
}
