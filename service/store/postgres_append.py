"""Appends in PostgreSQL: the changes that wait at a moment share a statement and a commit, but not their fate."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from service.ports import (
    Append,
    DuplicateCommandError,
    DuplicateRequestError,
    FencedError,
    OvertakenError,
    StoreUnavailableError,
    VersionConflictError,
)
from service.store.batches import MAX_BATCH, MAX_WAITING
from service.store.event_json import audience_text
from service.store.postgres_append_sql import CREDENTIALS, EVERYTHING, MOVES, REASON
from service.store.postgres_link import OWN_FAULT, Connection, Link, Standing
from service.store.rows import command_row, credential_row, deal_row, ended_at_ns
from service.store.sealed_steps import sealed_step_text
from service.store.sealing import Seal
from service.store.snapshot_rows import snapshot_row

SETTLE_SECONDS: Final = 2.0
"""How long a change is tried again because its match is locked, or because the connection was lost under it."""
RETRY_SECONDS: Final = 0.01


@dataclass(slots=True, eq=False)
class _Job:
    """A change, who waits for its outcome, until when it is tried, and the server that it was decided on.

    `locked_at` is when its match was found locked last.
    """

    change: Append
    future: asyncio.Future[None]
    gives_up: float
    server: Standing
    locked_at: float | None = None

    def settle(self, outcome: Exception | None) -> None:
        if self.future.done():  # cancelled by its waiter
            return
        if outcome is None:
            self.future.set_result(None)
        else:
            self.future.set_exception(outcome)


class Appender:
    """Takes all changes that wait at a moment as one batch; it never waits for more.

    `mine` names the replica and its epoch. To be used from the running event loop.
    """

    def __init__(self, link: Link, seal: Seal, mine: Callable[[], tuple[str, int]]) -> None:
        self._link = link
        self._seal = seal
        self._mine = mine
        self._loop = asyncio.get_running_loop()
        self._waiting: deque[_Job] = deque()
        self._unfinished = 0
        self._work: asyncio.Task[None] | None = None
        self.commits = 0

    def submit(self, change: Append) -> asyncio.Future[None]:
        """Hand in a change; the future has its outcome. Cancelling the future does not stop the change."""
        assert change.events or change.expected_version, "a match begins with events"
        assert change.invite_hash is None or not change.expected_version, "the invite code comes with the first step"
        if self._unfinished >= MAX_WAITING:
            raise StoreUnavailableError("too much waits for the store")
        self._unfinished += 1
        gives_up = self._loop.time() + SETTLE_SECONDS
        job = _Job(change, self._loop.create_future(), gives_up, self._link.standing)
        self._waiting.append(job)
        self._go_on()
        return job.future

    async def finish(self) -> None:
        """Wait until everything that was handed in has its outcome."""
        while self._work is not None:
            await self._work

    def _go_on(self) -> None:
        if self._work is None:
            self._work = self._loop.create_task(self._run())

    async def _run(self) -> None:
        try:
            while self._waiting:
                await self._run_batch(self._take())
        finally:
            self._work = None

    def _take(self) -> list[_Job]:
        """What waits, in order, but of each match only the first."""
        batch: dict[str, _Job] = {}
        left: deque[_Job] = deque()
        while self._waiting and len(batch) < MAX_BATCH:
            job = self._waiting.popleft()
            if job.change.match_id in batch:
                left.append(job)
            else:
                batch[job.change.match_id] = job
        self._waiting.extendleft(reversed(left))
        return list(batch.values())

    async def _run_batch(self, jobs: Sequence[_Job]) -> None:
        outcomes: Mapping[_Job, Exception | None] = {}
        late: Exception = StoreUnavailableError("somebody keeps the match locked")
        try:
            async with self._link.use() as connection:
                if current := [job for job in jobs if not self._has_aged(job)]:
                    outcomes = await self._attempt(connection, current)
        except StoreUnavailableError as error:  # whether it was carried out is unknown: a repeat will tell
            outcomes, late = {}, error
        except Exception as error:  # noqa: BLE001  a mistake of ours must reach its waiters
            outcomes = dict.fromkeys(jobs, error)
        again = []
        for job in jobs:
            if job in outcomes or self._has_aged(job) or self._loop.time() >= job.gives_up:
                self._unfinished -= 1
                job.settle(outcomes.get(job, late))
            else:
                again.append(job)
        if again:
            self._waiting.extendleft(reversed(again))
            await asyncio.sleep(RETRY_SECONDS)

    def _has_aged(self, job: _Job) -> bool:
        """Whether it was decided on what may be lost since: what others said, or the match if anything was lost."""
        now, record = self._link.standing, job.change.record
        is_players_own = record is not None and record.refusal is None  # which follows from its match alone
        return job.server.losses != now.losses if is_players_own else job.server != now

    async def _attempt(self, connection: Connection, jobs: Sequence[_Job]) -> dict[_Job, Exception | None]:
        """The outcomes that are known now; none for a match that somebody else keeps locked."""
        try:
            stood = await self._carry_out(connection, jobs)
        except OWN_FAULT as error:
            if len(jobs) == 1:
                reason = await self._reason(connection, jobs[0].change)
                return {jobs[0]: reason or _mistake(error)}
            outcomes: dict[_Job, Exception | None] = {}
            for job in jobs:  # one is to blame: each gets a statement of its own
                outcomes |= await self._attempt(connection, [job])
            return outcomes
        outcomes = dict.fromkeys(stood)
        for job in jobs:
            if job in outcomes:
                continue
            asked_at = self._loop.time()
            reason = await self._reason(connection, job.change)
            if reason is None:
                job.locked_at = asked_at
                continue
            if isinstance(reason, OvertakenError):
                reason.unmoved_at = job.locked_at
            outcomes[job] = reason
        return outcomes

    async def _carry_out(self, connection: Connection, jobs: Sequence[_Job]) -> list[_Job]:
        """The jobs whose changes are durable now."""
        changes = [job.change for job in jobs]
        rows = [_row(number, change, self._seal) for number, change in enumerate(changes)]
        if all(map(_only_moves, changes)):
            found = await connection.fetch(MOVES, *self._mine(), *zip(*rows, strict=True))
        else:
            rows = [row + _also(change, self._seal) for row, change in zip(rows, changes, strict=True)]
            columns = [*zip(*rows, strict=True), *_token_columns(changes)]
            found = await connection.fetch(EVERYTHING, *self._mine(), *columns)
        self.commits += 1
        return [jobs[row["number"]] for row in found]

    async def _reason(self, connection: Connection, change: Append) -> Exception | None:
        """Why a change was not carried out, the first reason in the port's order; None if its match was locked."""
        record, request = change.record, change.seat_request
        row = await connection.fetchrow(
            REASON,
            *self._mine(),
            change.match_id,
            change.expected_version,
            None if record is None else audience_text(record.sender),
            None if record is None else record.command_id,
            None if request is None else request.request_id,
            change.invite_hash,
        )
        assert row is not None, "what exists or not is one row"
        repeated, requested, stands, is_live = row
        if repeated:
            return DuplicateCommandError()
        if requested:
            return DuplicateRequestError()
        if not stands:
            return VersionConflictError(change.match_id)
        return None if is_live else FencedError("another replica has fenced this one")


def _only_moves(change: Append) -> bool:
    return bool(change.expected_version) and not (
        change.credentials or change.seat_request or change.deal or change.snapshot
    )


def _row(number: int, change: Append, seal: Seal) -> tuple[object, ...]:
    """The columns of `GIVEN`."""
    match_id, version, step = change.match_id, change.expected_version, change.events
    events = sealed_step_text(step, seal, f"{match_id}/{version + 1}") if step else None
    command = (None,) * 6 if change.record is None else command_row(match_id, change.record)[1:]
    return number, match_id, version, events, change.due_ns, change.live, ended_at_ns(step), *command


def _also(change: Append, seal: Seal) -> tuple[object, ...]:
    """The columns of `ALSO`."""
    request = change.seat_request
    asked = (None, None) if request is None else (request.request_id, audience_text(request.audience))
    deal = (None,) * 4 if change.deal is None else deal_row(change.match_id, change.deal, seal)[1:]
    kept = (None,) * 2 if change.snapshot is None else snapshot_row(change.match_id, change.snapshot, seal)[2:]
    return change.invite_hash, *asked, *deal, *kept


def _token_columns(changes: Sequence[Append]) -> Sequence[tuple[object, ...]]:
    """The columns of `CREDENTIALS`."""
    tokens = [
        (number, token_hash, audience, subject)
        for number, change in enumerate(changes)
        for token_hash, _, audience, subject in map(credential_row, change.credentials)
    ]
    return list(zip(*tokens, strict=True)) if tokens else [()] * len(CREDENTIALS)


def _mistake(cause: Exception) -> AssertionError:
    error = AssertionError("a write that the schema does not allow")
    error.__cause__ = cause
    return error
