"""A store whose operations are counted and measured; otherwise the store that it stands for."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import ParamSpec, TypeVar

from service.metrics.store import Operation, StoreMetrics, StoreOutcome
from service.ports import (
    DuplicateCommandError,
    DuplicateRequestError,
    Store,
    StoreUnavailableError,
    UnknownFormatError,
    UnknownTokenError,
    VersionConflictError,
)

P = ParamSpec("P")
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


class MeasuredStore:
    """The `Store` port around another one. Every method does what the port says and is measured, but `close`."""

    def __init__(self, store: Store, metrics: StoreMetrics, now_ns: Callable[[], int]) -> None:
        def measured(operation: Operation, ask: Callable[P, Awaitable[T]]) -> Callable[P, Coroutine[object, object, T]]:
            counts, observe_ns = metrics.of(operation)

            async def answer(*args: P.args, **kwargs: P.kwargs) -> T:
                began_ns = now_ns()
                outcome = StoreOutcome.OK
                try:
                    return await ask(*args, **kwargs)
                except BaseException as error:
                    outcome = outcome_of(error)
                    raise
                finally:
                    counts[outcome].count += 1
                    observe_ns(now_ns() - began_ns)

            return answer

        self.append = measured(Operation.APPEND, store.append)
        self.steps = measured(Operation.STEPS, store.steps)
        self.snapshot = measured(Operation.SNAPSHOT, store.snapshot)
        self.command = measured(Operation.COMMAND, store.command)
        self.credential = measured(Operation.CREDENTIAL, store.credential)
        self.good_tokens = measured(Operation.GOOD_TOKENS, store.good_tokens)
        self.add_credential = measured(Operation.ADD_CREDENTIAL, store.add_credential)
        self.replace_credential = measured(Operation.REPLACE_CREDENTIAL, store.replace_credential)
        self.holds = measured(Operation.HOLDS, store.holds)
        self.seat_request = measured(Operation.SEAT_REQUEST, store.seat_request)
        self.match_for_invite = measured(Operation.MATCH_FOR_INVITE, store.match_for_invite)
        self.deal_secrets = measured(Operation.DEAL_SECRETS, store.deal_secrets)
        self.live_matches = measured(Operation.LIVE_MATCHES, store.live_matches)
        self.overdue = measured(Operation.OVERDUE, store.overdue)
        self.versions = measured(Operation.VERSIONS, store.versions)
        self.beat = measured(Operation.BEAT, store.beat)
        self.others = measured(Operation.OTHERS, store.others)
        self.fence = measured(Operation.FENCE, store.fence)
        self.record_fault = measured(Operation.RECORD_FAULT, store.record_fault)
        self.faults = measured(Operation.FAULTS, store.faults)
        self.close = store.close
