"""A store whose operations are counted and measured; otherwise the store that it stands for."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import TypeVar

from engine.events import Step
from engine.state import MatchState
from engine.view import Audience
from service.metrics.store import Operation, StoreMetrics, StoreOutcome
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
    Others,
    Peer,
    SeatRequest,
    Store,
    StoreUnavailableError,
    UnknownFormatError,
    UnknownTokenError,
    VersionConflictError,
)

T = TypeVar("T")

_CONFLICTS = (VersionConflictError, DuplicateCommandError, DuplicateRequestError, UnknownTokenError)


def outcome_of(error: BaseException) -> StoreOutcome:
    """What an error of the store means."""
    if isinstance(error, StoreUnavailableError):
        return StoreOutcome.UNAVAILABLE
    if isinstance(error, _CONFLICTS):
        return StoreOutcome.CONFLICT
    if isinstance(error, UnknownFormatError):  # an upgrade, no trouble
        return StoreOutcome.OK
    return StoreOutcome.CANCELLED if isinstance(error, asyncio.CancelledError) else StoreOutcome.ERROR


class MeasuredStore(Store):
    """The `Store` port around another one. Every method does what the port says."""

    def __init__(self, store: Store, metrics: StoreMetrics, now_ns: Callable[[], int]) -> None:
        self._store = store
        self._metrics = metrics
        self._now_ns = now_ns

    async def append(self, change: Append) -> None:
        """Measured."""
        await self._measured(Operation.APPEND, self._store.append(change))

    async def steps(self, match_id: str, after_version: int = 0) -> Sequence[Step]:
        """Measured."""
        return await self._measured(Operation.STEPS, self._store.steps(match_id, after_version))

    async def snapshot(self, match_id: str) -> MatchState | None:
        """Measured."""
        return await self._measured(Operation.SNAPSHOT, self._store.snapshot(match_id))

    async def command(self, match_id: str, sender: Audience, command_id: str) -> CommandRecord | None:
        """Measured."""
        return await self._measured(Operation.COMMAND, self._store.command(match_id, sender, command_id))

    async def credential(self, token_hash: bytes) -> Credential | None:
        """Measured."""
        return await self._measured(Operation.CREDENTIAL, self._store.credential(token_hash))

    async def good_tokens(self, token_hashes: Collection[bytes]) -> set[bytes]:
        """Measured."""
        return await self._measured(Operation.GOOD_TOKENS, self._store.good_tokens(token_hashes))

    async def add_credential(self, credential: Credential) -> None:
        """Measured."""
        await self._measured(Operation.ADD_CREDENTIAL, self._store.add_credential(credential))

    async def replace_credential(self, token_hash: bytes, by: bytes) -> None:
        """Measured."""
        await self._measured(Operation.REPLACE_CREDENTIAL, self._store.replace_credential(token_hash, by))

    async def holds(self, match_id: str, audience: Audience, subject: str) -> bool:
        """Measured."""
        return await self._measured(Operation.HOLDS, self._store.holds(match_id, audience, subject))

    async def seat_request(self, request_id: str) -> SeatRequest | None:
        """Measured."""
        return await self._measured(Operation.SEAT_REQUEST, self._store.seat_request(request_id))

    async def match_for_invite(self, invite_hash: bytes) -> str | None:
        """Measured."""
        return await self._measured(Operation.MATCH_FOR_INVITE, self._store.match_for_invite(invite_hash))

    async def deal_secrets(self, match_id: str) -> DealSecrets | None:
        """Measured."""
        return await self._measured(Operation.DEAL_SECRETS, self._store.deal_secrets(match_id))

    async def live_matches(self) -> Sequence[DueMatch]:
        """Measured."""
        return await self._measured(Operation.LIVE_MATCHES, self._store.live_matches())

    async def overdue(self, before_ns: int) -> Sequence[str]:
        """Measured."""
        return await self._measured(Operation.OVERDUE, self._store.overdue(before_ns))

    async def versions(self, match_ids: Sequence[str]) -> Mapping[str, int]:
        """Measured."""
        return await self._measured(Operation.VERSIONS, self._store.versions(match_ids))

    async def beat(self, heartbeat: Heartbeat) -> Others:
        """Measured."""
        return await self._measured(Operation.BEAT, self._store.beat(heartbeat))

    async def others(self) -> Others:
        """Measured."""
        return await self._measured(Operation.OTHERS, self._store.others())

    async def fence(self, peer: Peer) -> None:
        """Measured."""
        await self._measured(Operation.FENCE, self._store.fence(peer))

    async def record_fault(self, row: LedgerRow) -> None:
        """Measured."""
        await self._measured(Operation.RECORD_FAULT, self._store.record_fault(row))

    async def faults(self, since_ns: int) -> Sequence[LedgerRow]:
        """Measured."""
        return await self._measured(Operation.FAULTS, self._store.faults(since_ns))

    async def close(self) -> None:
        """Not measured: nobody looks any more."""
        await self._store.close()

    async def _measured(self, operation: Operation, answer: Awaitable[T]) -> T:
        began_ns = self._now_ns()
        outcome = StoreOutcome.OK
        try:
            return await answer
        except BaseException as error:
            outcome = outcome_of(error)
            raise
        finally:
            self._metrics.done(operation, outcome, self._now_ns() - began_ns)
