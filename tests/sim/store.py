"""The `Store` port on the disk, with a writing thread that commits what waits, and weather that disturbs it."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Protocol, TypeVar

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
)
from tests.sim.disk import Disk, Replacement, Write
from tests.sim.world import MS_NS, Event, World

T = TypeVar("T")
BUSY_TIMEOUT_NS = 2_000 * MS_NS
"""How long a write waits for a file that somebody keeps locked."""
US_NS = 1_000
GONE_NS = 1 << 62
"""For how long a process was not seen that is known to be gone."""


@dataclass
class Weather:
    """What the store is going through; it outlives a process. Instants are true time."""

    down_until_ns: int = 0
    is_locked: bool = False
    """While it is down: somebody holds the lock and writes wait for it; else they fail at once."""
    reads_fail: bool = False
    slow_until_ns: int = 0
    slowness_ns: int = 0
    slow_reads_until_ns: int = 0
    read_slowness_ns: int = 0
    least_read_slowness_ns: int = 0
    odds_of_dying_commit: float = 0.5
    """How likely a commit that is under way when the process dies is made all the same."""
    next_batches: deque[tuple[str, Callable[[], None]]] = field(default_factory=deque)
    """What becomes of the next batches with appends: "before" and "after" fail, the latter although it was written.
    The function is called when it happens."""


class Owner(Protocol):
    """The process that a store belongs to."""

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """Where its answers are delivered."""

    is_dead: bool
    stopped_until_ns: int
    """Until then no thread of it runs."""

    def effect(self, name: str) -> None:
        """Something is about to happen that the outside can see; the process may die of it."""

    def beaten(self) -> None:
        """A heartbeat of it was stored."""


class SimStore:
    """One process's store. `late` is told of every commit that is under way when the process dies."""

    def __init__(self, owner: Owner, world: World, disk: Disk, weather: Weather, chance: Random) -> None:
        self._owner, self._world, self._disk, self._weather, self._chance = owner, world, disk, weather, chance
        self._waiting: list[tuple[Write, asyncio.Future[None]]] = []
        self._is_closed = False
        self._batch: list[tuple[Write, asyncio.Future[None]]] = []
        self._commit_event: Event | None = None

    async def append(self, change: Append) -> None:
        assert change.events or change.expected_version, "a match begins with events"
        assert change.invite_hash is None or not change.expected_version, "the invite code comes with the first step"
        await self._submit(change)

    async def good_tokens(self, token_hashes: Collection[bytes]) -> set[bytes]:
        return await self._read(lambda: self._disk.credentials.keys() & token_hashes)

    async def add_credential(self, credential: Credential) -> None:
        await self._submit(credential)

    async def replace_credential(self, token_hash: bytes, by: bytes) -> None:
        await self._submit(Replacement(token_hash, by))

    async def holds(self, match_id: str, audience: Audience, subject: str) -> bool:
        return await self._read(lambda: self._disk.holds(match_id, audience, subject))

    async def overdue(self, before_ns: int) -> Sequence[str]:
        return await self._read(
            lambda: [match.match_id for match in self._disk.live() if (match.due_ns or before_ns) < before_ns]
        )

    async def versions(self, match_ids: Sequence[str]) -> Mapping[str, int]:
        return await self._read(lambda: {match_id: len(self._disk.logs.get(match_id, ())) for match_id in match_ids})

    async def beat(self, heartbeat: Heartbeat) -> Others:
        await self._submit(heartbeat)
        return Others()

    async def fence(self, _: Peer) -> None:
        self._require_open()

    async def record_fault(self, row: LedgerRow) -> None:
        await self._submit(row)

    async def steps(self, match_id: str, after_version: int = 0) -> Sequence[Step]:
        upto = after_version + STEPS_A_PAGE
        return await self._read(lambda: self._disk.logs.get(match_id, [])[after_version:upto])

    async def snapshot(self, match_id: str) -> MatchState | None:
        return await self._read(lambda: self._disk.snapshots.get(match_id))

    async def command(self, match_id: str, sender: Audience, command_id: str) -> CommandRecord | None:
        return await self._read(lambda: self._disk.commands.get((match_id, sender, command_id)))

    async def credential(self, token_hash: bytes) -> Credential | None:
        return await self._read(lambda: self._disk.credential(token_hash))

    async def seat_request(self, request_id: str) -> SeatRequest | None:
        return await self._read(lambda: self._disk.requests.get(request_id))

    async def match_for_invite(self, invite_hash: bytes) -> str | None:
        return await self._read(lambda: self._disk.invites.get(invite_hash))

    async def deal_secrets(self, match_id: str) -> DealSecrets | None:
        return await self._read(lambda: self._disk.deals.get(match_id))

    async def live_matches(self) -> Sequence[DueMatch]:
        return await self._read(self._disk.live)

    async def others(self) -> Others:
        """To be asked before the first heartbeat: what is there is the predecessor's."""
        last = await self._read(lambda: self._disk.heartbeat)
        return Others() if last is None or last.retired else Others((Peer("predecessor", 0, last, GONE_NS),))

    async def faults(self, since_ns: int) -> Sequence[LedgerRow]:
        return await self._read(lambda: [row for row in self._disk.ledger if row.fault.to_ns >= since_ns])

    async def close(self) -> None:
        self._is_closed = True
        while self._batch or self._waiting:  # noqa: ASYNC110  the thread's end is nothing that anybody tells
            await asyncio.sleep(0.001)

    def die(self) -> None:
        """The process is gone: what waited is lost; of the commit under way nobody knows."""
        if self._commit_event is not None:
            self._commit_event.cancel()
            if self._batch and self._weather.down_until_ns <= self._world.now_ns and self._commits_dying():
                for write, _ in self._batch:
                    self._write(write)
                self._world.note(f"disk: {len(self._batch)} written while the process died")

    def _write(self, write: Write) -> Exception | None:
        if isinstance(write, Heartbeat):
            self._owner.beaten()
        return self._disk.write(write)

    def _commits_dying(self) -> bool:
        return self._chance.random() < self._weather.odds_of_dying_commit

    def _submit(self, write: Write) -> asyncio.Future[None]:
        self._require_open()
        self._owner.effect(f"{type(write).__name__} called")
        future: asyncio.Future[None] = self._owner.loop.create_future()
        if not self._owner.is_dead:
            self._waiting.append((write, future))
            if not self._batch:
                self._begin()
        return future

    def _require_open(self) -> None:
        if self._is_closed:
            raise StoreUnavailableError("the store is closed")

    def _begin(self) -> None:
        self._batch, self._waiting = self._waiting, []
        self._commit_event = self._world.after(self._commit_ns(), self._commit)

    def _commit_ns(self) -> int:
        weather, now_ns = self._weather, self._world.now_ns
        usual_ns = self._chance.randrange(200 * US_NS, 3 * MS_NS)
        if weather.down_until_ns > now_ns and weather.is_locked:
            return min(BUSY_TIMEOUT_NS, weather.down_until_ns - now_ns) + usual_ns
        return usual_ns + (weather.slowness_ns if weather.slow_until_ns > now_ns else 0)

    def _commit(self) -> None:
        """The thread's work, as an event of the world; a stopped process has no running threads."""
        if self._owner.stopped_until_ns > self._world.now_ns:
            self._commit_event = self._world.at(self._owner.stopped_until_ns, self._commit)
            return
        batch, self._batch, self._commit_event = self._batch, [], None
        outcomes: list[Exception | None] = [StoreUnavailableError("weather") for _ in batch]
        trouble = self._trouble(batch)
        if trouble != "before":
            written = [self._write(write) for write, _ in batch]
            outcomes = outcomes if trouble == "after" else written
        names = ", ".join(type(write).__name__ for write, _ in batch)
        self._world.note(f"disk: {names} {trouble or 'committed'}")
        self._owner.effect(f"{names} durable")
        if not self._owner.is_dead:
            self._owner.loop.call_soon(self._deliver, batch, outcomes)
            if self._waiting:
                self._begin()

    def _trouble(self, batch: list[tuple[Write, asyncio.Future[None]]]) -> str:
        if self._weather.down_until_ns > self._world.now_ns:
            return "before"
        has_append = any(isinstance(write, Append) for write, _ in batch)
        if not (has_append and self._weather.next_batches):
            return ""
        trouble, happened = self._weather.next_batches.popleft()
        happened()
        return trouble

    def _deliver(self, batch: list[tuple[Write, asyncio.Future[None]]], outcomes: Sequence[Exception | None]) -> None:
        for (write, future), outcome in zip(batch, outcomes, strict=True):
            self._owner.effect(f"{type(write).__name__} answered")
            if self._owner.is_dead:
                return
            if future.done():
                continue
            if outcome is None:
                future.set_result(None)
            else:
                future.set_exception(outcome)

    async def _read(self, query: Callable[[], T]) -> T:
        self._require_open()
        future: asyncio.Future[T] = self._owner.loop.create_future()
        weather = self._weather
        delay_ns = self._chance.randrange(50 * US_NS, MS_NS)
        if weather.slow_reads_until_ns > self._world.now_ns:
            delay_ns += self._chance.randrange(weather.least_read_slowness_ns, weather.read_slowness_ns)
        self._world.after(delay_ns, lambda: self._answer(future, query))
        return await future

    def _answer(self, future: asyncio.Future[T], query: Callable[[], T]) -> None:
        if self._owner.is_dead:
            return
        if self._owner.stopped_until_ns > self._world.now_ns:
            self._world.at(self._owner.stopped_until_ns, lambda: self._answer(future, query))
        elif self._weather.reads_fail and self._weather.down_until_ns > self._world.now_ns:
            self._owner.loop.call_soon(_settle, future, StoreUnavailableError("weather"))
        else:
            self._owner.loop.call_soon(_settle, future, query())


def _settle(future: asyncio.Future[T], answer: T | StoreUnavailableError) -> None:
    if future.done():
        return
    if isinstance(answer, StoreUnavailableError):
        future.set_exception(answer)
    else:
        future.set_result(answer)
