"""Fakes of the ports: a store in memory that can fail on request, virtual clocks, scripted chance."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from random import Random

from engine.clock import Arrival
from engine.events import Step
from engine.state import MatchState
from engine.tiles import DOUBLE_SIX, Tile
from engine.view import Audience
from service.core import Core
from service.fair_deal import order as fair_order
from service.fanout.local import LocalBus
from service.metrics import Metrics
from service.ports import (
    STEPS_A_PAGE,
    Append,
    CommandRecord,
    Credential,
    DealSecrets,
    DueMatch,
    DuplicateCommandError,
    DuplicateRequestError,
    Heartbeat,
    LedgerRow,
    Others,
    Peer,
    SeatRequest,
    StoreUnavailableError,
    UnknownTokenError,
    VersionConflictError,
)
from service.settings import Settings
from service.system.chance import SystemEntropy
from service.tails import Lineage
from tests.support.store import NOON_NS
from tests.support.virtual_time import virtual_now_ns

SETTINGS = Settings()
"""Made once: that costs more than the rest of a process of fakes."""
GONE_NS = 1 << 62
"""For how long a process was not seen that is known to be gone."""


def virtual_service_ns() -> int:
    """Service time that passes as the virtual loop's does, from noon on."""
    return NOON_NS + virtual_now_ns()


async def until(instant_ns: int, *, plus_seconds: float = 0.0) -> None:
    """Let service time pass until then."""
    await asyncio.sleep((instant_ns - virtual_service_ns()) / 1e9 + plus_seconds)


class VirtualClock:
    """The `Clock` port on virtual time, exact."""

    def now_ns(self) -> int:
        return virtual_service_ns()

    def arrival(self) -> Arrival:
        return Arrival.at(virtual_service_ns())

    def error_bound_ns(self) -> int:
        return 0


class ScriptedEntropy(SystemEntropy):
    """Real tokens and ids, secrets from a seed.

    `shuffle` stands in for the service's own: `order` when it is set, else shuffled with `chance`, whose deals are the
    same in every run although match ids are not; when `is_fair` it is the service's own.
    """

    def __init__(self, seed: int = 1) -> None:
        self.chance = Random(seed)
        self.secrets = Random(seed)
        self.order: tuple[Tile, ...] | None = None
        self.is_fair = False

    def secret(self) -> bytes:
        return self.secrets.randbytes(32)

    def shuffle(self, key: bytes) -> tuple[Tile, ...]:
        if self.is_fair:
            return fair_order(key)
        if self.order is not None:
            return self.order
        shuffled = list(DOUBLE_SIX)
        self.chance.shuffle(shuffled)
        return tuple(shuffled)


async def _nothing(_: Append) -> None:
    return


@dataclass
class MemoryStore:
    """The `Store` port. `is_down` fails everything, `lost_answers` so many appends after they were written."""

    logs: dict[str, list[Step]] = field(default_factory=dict)
    due: dict[str, tuple[int | None, bool]] = field(default_factory=dict)
    commands: dict[tuple[str, Audience, str], CommandRecord] = field(default_factory=dict)
    credentials: dict[bytes, Credential] = field(default_factory=dict)
    requests: dict[str, SeatRequest] = field(default_factory=dict)
    invites: dict[bytes, str] = field(default_factory=dict)
    deals: dict[str, DealSecrets] = field(default_factory=dict)
    snapshots: dict[str, MatchState] = field(default_factory=dict)
    beats: list[Heartbeat] = field(default_factory=list)
    ledger: list[LedgerRow] = field(default_factory=list)
    is_down: bool = False
    lost_answers: int = 0
    before_append: Callable[[Append], Awaitable[None]] = _nothing

    async def append(self, change: Append) -> None:
        await self.before_append(change)
        self._require()
        self._check(change)
        self._write(change)
        if self.lost_answers:
            self.lost_answers -= 1
            raise StoreUnavailableError

    async def steps(self, match_id: str, after_version: int = 0) -> Sequence[Step]:
        self._require()
        return self.logs.get(match_id, [])[after_version : after_version + STEPS_A_PAGE]

    async def snapshot(self, match_id: str) -> MatchState | None:
        self._require()
        return self.snapshots.get(match_id)

    async def command(self, match_id: str, sender: Audience, command_id: str) -> CommandRecord | None:
        self._require()
        return self.commands.get((match_id, sender, command_id))

    async def credential(self, token_hash: bytes) -> Credential | None:
        self._require()
        return self.credentials.get(token_hash)

    async def good_tokens(self, token_hashes: Collection[bytes]) -> set[bytes]:
        self._require()
        return self.credentials.keys() & token_hashes

    async def add_credential(self, credential: Credential) -> None:
        self._require()
        self.credentials[credential.token_hash] = credential

    async def replace_credential(self, token_hash: bytes, by: bytes) -> None:
        self._require()
        old = self.credentials.pop(token_hash, None)
        if old is None:
            raise UnknownTokenError
        self.credentials[by] = replace(old, token_hash=by)

    async def holds(self, match_id: str, audience: Audience, subject: str) -> bool:
        self._require()
        found = (match_id, audience, subject)
        return any(found == (known.match_id, known.audience, known.subject) for known in self.credentials.values())

    async def seat_request(self, request_id: str) -> SeatRequest | None:
        self._require()
        return self.requests.get(request_id)

    async def match_for_invite(self, invite_hash: bytes) -> str | None:
        self._require()
        return self.invites.get(invite_hash)

    async def deal_secrets(self, match_id: str) -> DealSecrets | None:
        """A match that was put here by hand has secrets of zeros."""
        self._require()
        return self.deals.get(match_id, DealSecrets(bytes(32), bytes(32)))

    async def live_matches(self) -> Sequence[DueMatch]:
        self._require()
        live = [DueMatch(match_id, due_ns) for match_id, (due_ns, is_live) in self.due.items() if is_live]
        return sorted(live, key=lambda match: match.due_ns or 0)

    async def overdue(self, before_ns: int) -> Sequence[str]:
        self._require()
        due = [(due_ns, match_id) for match_id, (due_ns, is_live) in self.due.items() if is_live and due_ns is not None]
        return [match_id for due_ns, match_id in sorted(due) if due_ns < before_ns]

    async def versions(self, match_ids: Sequence[str]) -> Mapping[str, int]:
        self._require()
        return {match_id: len(self.logs[match_id]) for match_id in match_ids if match_id in self.logs}

    async def beat(self, heartbeat: Heartbeat) -> Others:
        self._require()
        self.beats[:] = [heartbeat]
        return Others()

    async def others(self) -> Others:
        """To be asked before the first heartbeat: what is there is the predecessor's."""
        self._require()
        return Others(tuple(Peer("predecessor", 0, beat, GONE_NS) for beat in self.beats if not beat.retired))

    async def fence(self, _: Peer) -> None:
        self._require()

    async def record_fault(self, row: LedgerRow) -> None:
        self._require()
        self.ledger.append(row)

    async def faults(self, since_ns: int) -> Sequence[LedgerRow]:
        self._require()
        return [row for row in self.ledger if row.fault.to_ns >= since_ns]

    async def close(self) -> None:
        return

    def _require(self) -> None:
        if self.is_down:
            raise StoreUnavailableError

    def _check(self, change: Append) -> None:
        record, request = change.record, change.seat_request
        if record is not None and (change.match_id, record.sender, record.command_id) in self.commands:
            raise DuplicateCommandError
        if request is not None and request.request_id in self.requests:
            raise DuplicateRequestError
        if len(self.logs.get(change.match_id, [])) != change.expected_version:
            raise VersionConflictError

    def _write(self, change: Append) -> None:
        if change.events:
            self.logs.setdefault(change.match_id, []).append(change.events)
            self.due[change.match_id] = (change.due_ns, change.live)
        if change.record is not None:
            self.commands[change.match_id, change.record.sender, change.record.command_id] = change.record
        self.credentials |= {credential.token_hash: credential for credential in change.credentials}
        if change.seat_request is not None:
            self.requests[change.seat_request.request_id] = change.seat_request
        if change.invite_hash is not None:
            self.invites[change.invite_hash] = change.match_id
        if change.deal is not None:
            self.deals[change.match_id] = change.deal
        if change.snapshot is not None:
            self.snapshots[change.match_id] = change.snapshot


@dataclass
class Process:
    """The core of one server process on fakes, in virtual time. Several may share a store, one after the other."""

    store: MemoryStore = field(default_factory=MemoryStore)
    entropy: ScriptedEntropy = field(default_factory=ScriptedEntropy)
    bus: LocalBus = field(default_factory=LocalBus)
    now_ns: Callable[[], int] = virtual_service_ns
    error_bound_ns: Callable[[], int] = lambda: 0
    lineage: Lineage | None = None

    def __post_init__(self) -> None:
        self.metrics = Metrics()
        self.core = Core(
            SETTINGS,
            store=self.store,
            now_ns=self.now_ns,
            error_bound_ns=self.error_bound_ns,
            bus=self.bus,
            entropy=self.entropy,
            metrics=self.metrics,
            shuffle=self.entropy.shuffle,
            lineage=self.lineage,
        )
        self.matches = self.core.matches

    @classmethod
    @asynccontextmanager
    async def running(
        cls, store: MemoryStore | None = None, bus: LocalBus | None = None, lineage: Lineage | None = None
    ) -> AsyncIterator[Process]:
        """A process that has started; leaving stops it dead, as a crash would."""
        process = cls(store or MemoryStore(), bus=bus or LocalBus(), lineage=lineage)
        await process.core.start()
        try:
            yield process
        finally:
            process.core.release()
