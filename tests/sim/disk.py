"""What survives a process: the rows, with the rules by which the SQLite store writes them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeAlias

from engine.events import MatchAborted, MatchWon, Step
from engine.state import MatchState
from engine.view import Audience
from service.ports import (
    Append,
    CommandRecord,
    Credential,
    DealSecrets,
    DueMatch,
    DuplicateCommandError,
    DuplicateRequestError,
    Heartbeat,
    LedgerRow,
    SeatRequest,
    UnknownTokenError,
    VersionConflictError,
)

CommandKey: TypeAlias = tuple[str, Audience, str]
ChangeKey: TypeAlias = tuple[int, str, int, Step, str | None]
LATEST_NS = (1 << 63) - 1
_ROWS = (
    *("logs", "due", "commands", "credentials", "requests", "invites", "deals", "snapshots"),
    *("ledger", "noted", "heartbeat", "history"),
)


class Replacement(NamedTuple):
    """Another token (its hash) in the place of one."""

    token_hash: bytes
    by: bytes


Write: TypeAlias = Append | Credential | Replacement | Heartbeat | LedgerRow


@dataclass(frozen=True, slots=True)
class Written:
    """A change that was made durable, when (true time), how many ledger rows were there before, and whose it was.

    It was decided at `decided_ns` or before; what was found later it cannot know.
    """

    at_ns: int
    change: Append
    rows_before: int
    author: int
    decided_ns: int


class Noted(NamedTuple):
    """When (true time) a row of the ledger was written, and whose it was."""

    at_ns: int
    author: int


@dataclass
class Disk:
    """The rows. `on_append` hears of every change of a match that was written."""

    now_ns: Callable[[], int]
    on_append: Callable[[Append], None] = lambda _: None
    on_rewind: Callable[[], None] = lambda: None
    """Hears that the last of it is gone."""
    logs: dict[str, list[Step]] = field(default_factory=dict)
    due: dict[str, DueMatch] = field(default_factory=dict)
    """The live matches."""
    commands: dict[CommandKey, CommandRecord] = field(default_factory=dict)
    credentials: dict[bytes, Credential] = field(default_factory=dict)
    requests: dict[str, SeatRequest] = field(default_factory=dict)
    invites: dict[bytes, str] = field(default_factory=dict)
    deals: dict[str, DealSecrets] = field(default_factory=dict)
    snapshots: dict[str, MatchState] = field(default_factory=dict)
    ledger: list[LedgerRow] = field(default_factory=list)
    noted: list[Noted] = field(default_factory=list)
    """For each of these rows."""
    heartbeat: Heartbeat | None = None
    history: list[Written] = field(default_factory=list)
    handed_in: dict[ChangeKey, int] = field(default_factory=dict)
    """When changes were handed in whose commits may come much later."""

    def hand_in(self, change: Append, author: int) -> None:
        """A process has decided on a change."""
        self.handed_in.setdefault(_key(change, author), self.now_ns())

    lost: list[Written] = field(default_factory=list)
    """What was durable, and is gone since the last of it was lost."""
    _journal: list[tuple[int, Write, int]] = field(default_factory=list)
    _first: dict[str, Any] = field(default_factory=dict)

    def keep(self) -> None:
        """From here on what is written can be lost again."""
        self._journal.clear()
        self._first = {name: _copied(getattr(self, name)) for name in _ROWS}

    def rewind(self, to_ns: int) -> None:
        """Lose what was written after this instant (true time)."""
        self.lost += [written for written in self.history if written.at_ns > to_ns]
        for name in _ROWS:
            setattr(self, name, _copied(self._first[name]))
        self._journal = [entry for entry in self._journal if entry[0] <= to_ns]
        for at_ns, change, author in self._journal:
            self._put(change, at_ns, author)
        self.on_rewind()

    def write(self, change: Write, author: int = 0) -> Exception | None:
        """Write a change, or say why not; nothing of it is written then. Processes of one disk have one author."""
        match change:
            case Append() if (refusal := self.refusal(change)) is not None:
                return refusal
            case Credential() if change.match_id not in self.logs:
                return AssertionError("a token for no match")
            case Replacement(token_hash, _) if token_hash not in self.credentials:
                return UnknownTokenError()
        self._put(change, self.now_ns(), author)
        self._journal.append((self.now_ns(), change, author))
        if isinstance(change, Append):
            self.on_append(change)
        return None

    def _put(self, change: Write, at_ns: int, author: int) -> None:
        match change:
            case Append():
                self._carry_out(change)
                decided_ns = self.handed_in.get(_key(change, author), at_ns)
                self.history.append(Written(at_ns, change, len(self.ledger), author, decided_ns))
            case Credential():
                self.credentials[change.token_hash] = change
            case Replacement(token_hash, by):
                self.credentials[by] = replace(self.credentials.pop(token_hash), token_hash=by)
            case Heartbeat():
                self.heartbeat = change
            case LedgerRow():
                self.ledger.append(change)
                self.noted.append(Noted(at_ns, author))

    def credential(self, token_hash: bytes) -> Credential | None:
        """What a token is good for, and when its match ended."""
        found = self.credentials.get(token_hash)
        if found is None:
            return None
        ends = [event for event in self.logs[found.match_id][-1] if isinstance(event, MatchWon | MatchAborted)]
        return replace(found, ended_at_ns=ends[-1].at_ns) if ends else found

    def holds(self, match_id: str, audience: Audience, subject: str) -> bool:
        """Whether this subject got a token of this match for this audience."""
        wanted = match_id, audience, subject
        return any((one.match_id, one.audience, one.subject) == wanted for one in self.credentials.values())

    def live(self) -> list[DueMatch]:
        """Every match that is not over, earliest due first, those without a due time before all."""
        return sorted(
            self.due.values(), key=lambda match: (match.due_ns is not None, match.due_ns or 0, match.match_id)
        )

    def refusal(self, change: Append) -> Exception | None:
        """Why a change of a match cannot be written, if so."""
        record, request = change.record, change.seat_request
        if record is not None and (change.match_id, record.sender, record.command_id) in self.commands:
            return DuplicateCommandError(record.command_id)
        if request is not None and request.request_id in self.requests:
            return DuplicateRequestError(request.request_id)
        if len(self.logs.get(change.match_id, ())) != change.expected_version or change.invite_hash in self.invites:
            return VersionConflictError(change.match_id)
        if change.due_ns is not None and change.due_ns > LATEST_NS:
            return AssertionError("no instant is that late")
        return None

    def _carry_out(self, change: Append) -> None:
        match_id = change.match_id
        if change.events:
            self.logs.setdefault(match_id, []).append(change.events)
            self.due.pop(match_id, None)
            if change.live:
                self.due[match_id] = DueMatch(match_id, change.due_ns)
        if change.record is not None:
            self.commands[match_id, change.record.sender, change.record.command_id] = change.record
        for credential in change.credentials:
            self.credentials[credential.token_hash] = credential
        if change.seat_request is not None:
            self.requests[change.seat_request.request_id] = change.seat_request
        if change.invite_hash is not None:
            self.invites[change.invite_hash] = match_id
        if change.deal is not None:
            self.deals[match_id] = change.deal
        if change.snapshot is not None:
            self.snapshots[match_id] = change.snapshot


def _key(change: Append, author: int) -> ChangeKey:
    command_id = None if change.record is None else change.record.command_id
    return author, change.match_id, change.expected_version, change.events, command_id


def _copied(rows: Any) -> Any:  # noqa: ANN401  rows of every kind
    """Rows that may be added to; of logs the steps of each match as well."""
    if isinstance(rows, dict):
        return {key: list(row) if isinstance(row, list) else row for key, row in rows.items()}
    return list(rows) if isinstance(rows, list) else rows
