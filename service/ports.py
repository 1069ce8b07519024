"""What the core needs of the outside world: a clock, a store, a bus, entropy. Adapters live in the sub-packages.

Three kinds of "no" stay apart: a `Refusal` answers a player's request, the exceptions here report the environment, an
assertion is a mistake of ours.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple, Protocol

from engine.clock import Arrival, Decision, Verdict
from engine.events import Step
from engine.faults import Fault
from engine.refusals import Refusal
from engine.seats import PerSeat
from engine.state import MatchState
from engine.view import Audience

STEPS_A_PAGE: Final = 256
"""Versions of a log that are read at once, and folded before the event loop gets its turn: some 7 ms of CPU."""


class StoreUnavailableError(Exception):
    """The store cannot answer now. Whether a write was made is unknown; repeating it is safe."""


class FencedError(StoreUnavailableError):
    """Another process took this one for lost: it may write again after its next heartbeat."""


class StoreOpenError(RuntimeError):
    """The store cannot be opened. The text is a sentence or two for the operator."""


class DamagedError(Exception):
    """What is stored is damaged, cannot be opened with the key, or is from a newer version."""


class UnknownFormatError(DamagedError):
    """What is stored is in the format of another version of the service."""


class OvertakenError(Exception):
    """Somebody else's change came first; nothing was written."""

    unmoved_at: float | None = None
    """When, by the loop's clock, its match was last found locked and not moved: what came first is younger."""


class VersionConflictError(OvertakenError):
    """The match is no longer at the expected version; nothing was written."""


class DuplicateCommandError(OvertakenError):
    """A command with this sender and id is stored already; nothing was written."""


class UnknownTokenError(Exception):
    """There is no such token, or there is none any more."""


class DuplicateRequestError(Exception):
    """A match or seat was already made for this request id; nothing was written."""


class Receipt(NamedTuple):
    """How a command stood to the clock when it was decided. `decision` is the one that ran for its sender, if any."""

    arrival: Arrival
    decision: Decision | None
    error_bound_ns: int
    verdict: Verdict


class CommandRecord(NamedTuple):
    """The outcome of a command, stored for good with the events that it brought, so that a repeat gets the same.

    `sender` is the credential's audience, `body_hash` 32 bytes over the command and its expected version. `version` is
    the version that the command made, or the current one when it was refused.
    """

    sender: Audience
    command_id: str
    body_hash: bytes
    version: int
    refusal: Refusal | None
    receipt: Receipt


@dataclass(frozen=True, slots=True)
class Credential:
    """A token, known by the SHA-256 of its text (32 bytes), and what it is good for.

    `subject` is who got it, as the platform names people; empty for guests and spectators. `ended_at_ns` is when its
    match ended, as the store knew when it was asked.
    """

    token_hash: bytes
    match_id: str
    audience: Audience
    subject: str = ""
    ended_at_ns: int | None = None


@dataclass(frozen=True, slots=True)
class SeatRequest:
    """A client's id for creating or joining, and what it got: kept so that a repeat gets the same."""

    request_id: str
    match_id: str
    audience: Audience


@dataclass(frozen=True, slots=True)
class DealSecrets:
    """What fixes the tiles of a match, with its public commitments; it is revealed only when the match is over.

    `entropies` are what the seats opened, empty for a seat that did not. `rules_hash` is that of the match's creation.
    """

    rules_hash: bytes
    secret: bytes = field(repr=False)
    entropies: PerSeat[bytes] = field(default=PerSeat(b"", b""), repr=False)


class Append(NamedTuple):
    """One change of a match, all or nothing, if it still stands at `expected_version` (0: it must not exist yet).

    With `events` the version rises by one; without, only the records are written. `due_ns` and `live` describe the
    match after the change. `invite_hash` is given once, with the first step of a match that can be joined. `deal`
    replaces the secrets of the match, `snapshot`, the state after the change, the last one.
    """

    match_id: str
    expected_version: int
    events: Step
    due_ns: int | None
    live: bool
    record: CommandRecord | None = None
    credentials: tuple[Credential, ...] = ()
    seat_request: SeatRequest | None = None
    invite_hash: bytes | None = None
    deal: DealSecrets | None = None
    snapshot: MatchState | None = None


@dataclass(frozen=True, slots=True)
class DueMatch:
    """A live match and when it needs the service next; None when it waits for a handover or is suspended."""

    match_id: str
    due_ns: int | None


@dataclass(frozen=True, slots=True)
class StoredMatch:
    """What the row of a match says beside its log. `live`: it is not over."""

    match_id: str
    version: int
    due_ns: int | None
    live: bool


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """A sign of life on the service's line of time: at `at_ns` every command stamped before `closed_ns` was handled.

    `retired` is the last one of a planned stop, which begins with those that are `leaving`.
    """

    at_ns: int
    closed_ns: int
    retired: bool = False
    leaving: bool = False


@dataclass(frozen=True, slots=True)
class LedgerRow:
    """A fault of the service; of one match only when `match_id` is given."""

    fault: Fault
    match_id: str | None = None


@dataclass(frozen=True, slots=True)
class Peer:
    """Another process of the service that has not retired: its last heartbeat, and how long ago the store got it."""

    name: str
    epoch: int
    heartbeat: Heartbeat
    unseen_ns: int


@dataclass(frozen=True, slots=True)
class Others:
    """What other processes of the service left in the store.

    `faults` are the rows that they added to the ledger since this process asked last, or loaded the ledger.
    """

    peers: tuple[Peer, ...] = ()
    faults: tuple[LedgerRow, ...] = ()


class Store(Protocol):
    """The system of record. Every method may raise `StoreUnavailableError`."""

    def append(self, change: Append) -> Awaitable[None]:
        """Write one change; with the answer it survives a crash of the machine. Cancelling it does not undo it.

        Raises VersionConflictError (also for an invite code that is taken), DuplicateCommandError or
        DuplicateRequestError without writing anything; of several the first of duplicate command, duplicate request,
        conflict.
        """

    async def steps(self, match_id: str, after_version: int = 0) -> Sequence[Step]:
        """A page of the log: the steps of versions after_version + 1 and on, in order, `STEPS_A_PAGE` of them at most.

        Empty when there are none. `service.paging` reads page after page.
        """

    async def snapshot(self, match_id: str) -> MatchState | None:
        """The snapshot of a match that was appended last: what its log folds to up to that version.

        A cache: the log alone counts. Raises DamagedError or UnknownFormatError.
        """

    async def command(self, match_id: str, sender: Audience, command_id: str) -> CommandRecord | None:
        """The stored outcome of a command."""

    async def credential(self, token_hash: bytes) -> Credential | None:
        """What a token is good for."""

    async def good_tokens(self, token_hashes: Collection[bytes]) -> set[bytes]:
        """Which of these tokens (their hashes) are good; one that was replaced is not."""

    async def add_credential(self, credential: Credential) -> None:
        """Store a further token of a match that exists, durably; doing it again is safe."""

    async def replace_credential(self, token_hash: bytes, by: bytes) -> None:
        """Let another token (its hash) stand in the place of this one, durably. Raises UnknownTokenError."""

    async def holds(self, match_id: str, audience: Audience, subject: str) -> bool:
        """Whether this subject got a token of this match for this audience."""

    async def seat_request(self, request_id: str) -> SeatRequest | None:
        """What a create or join request with this id got."""

    async def match_for_invite(self, invite_hash: bytes) -> str | None:
        """The id of the match that can be joined with the invite code of this hash."""

    async def deal_secrets(self, match_id: str) -> DealSecrets | None:
        """What fixes the tiles of a match, as it was appended last."""

    async def live_matches(self) -> Sequence[DueMatch]:
        """Every match that is not over, earliest due first."""

    async def overdue(self, before_ns: int) -> Sequence[str]:
        """The ids of live matches that needed the service before this instant, a bounded number, the oldest first."""

    async def versions(self, match_ids: Sequence[str]) -> Mapping[str, int]:
        """At which version each of these matches is."""

    async def beat(self, heartbeat: Heartbeat) -> Others:
        """Replace this process's heartbeat, durably; says what others have left, as of the same moment or later."""

    async def others(self) -> Others:
        """The same without a heartbeat. Where a store has room for one process, the one before is a peer until then."""

    async def fence(self, peer: Peer) -> None:
        """Let this process write no more, unless it was seen since; to be called when the evidence of it is stored."""

    async def record_fault(self, row: LedgerRow) -> None:
        """Add a row to the fault ledger, durably; what is appended after this call is stored after it."""

    async def faults(self, since_ns: int) -> Sequence[LedgerRow]:
        """The rows whose spans end at or after this instant, oldest first."""

    async def close(self) -> None:
        """Finish what was handed in and release the store."""


class Records(Protocol):
    """What a service has stored, only read, as of one instant; the service may be running. No method changes anything.

    Every method may raise `StoreUnavailableError`.
    """

    async def stored_matches(self) -> Sequence[StoredMatch]:
        """Every match, as its row says, by id."""

    async def steps(self, match_id: str) -> Sequence[Step]:
        """Every step of a match, in order; empty when there is no such match. Raises DamagedError."""

    async def deal_secrets(self, match_id: str) -> DealSecrets | None:
        """What fixes the tiles of a match. Raises DamagedError."""

    async def faults(self) -> Sequence[LedgerRow]:
        """The whole fault ledger, oldest first."""

    async def damages(self) -> Sequence[str]:
        """What is wrong with the store as a whole, a sentence each; empty when nothing is."""


class Clock(Protocol):
    """Service time: nanoseconds since the Unix epoch on one line that never steps back, also across a restart."""

    def now_ns(self) -> int:
        """The service's time now."""

    def arrival(self) -> Arrival:
        """The stamp of a command whose last byte has just been taken over: an interval that holds its true arrival."""

    def error_bound_ns(self) -> int:
        """How far this line may be from the store's."""


class Entropy(Protocol):
    """Chance from the operating system."""

    def token(self, prefix: str) -> str:
        """A fresh unguessable token with this prefix (256 bits)."""

    def match_id(self) -> str:
        """A fresh random match id."""

    def secret(self) -> bytes:
        """32 fresh random bytes for the deals of a match."""


class Bus(Protocol):
    """Tells watchers, here and on other replicas, that a match has a new version. It may lose a message, never more."""

    @property
    def poll_seconds(self) -> float | None:
        """How often to look in the store for what the bus may have lost; None when no other process moves matches."""

    def publish(self, match_id: str, version: int) -> None:
        """Say that the match is at this version."""

    def subscribe(self, match_id: str, wake: Callable[[int | None], None]) -> Callable[[], None]:
        """Call `wake(version)` at each new version until the returned function is called.

        `wake(None)` says that versions may have been missed.
        """
