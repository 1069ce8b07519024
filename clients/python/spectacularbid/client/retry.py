"""When to try again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeAlias, TypeVar

import grpc

from spectacularbid.client.errors import ClientError, ConnectionClosedError, from_rpc_error
from spectacularbid.client.settings import Limits, Settings

Request = TypeVar("Request")
Response = TypeVar("Response")
Metadata: TypeAlias = tuple[tuple[str, str], ...]
Unary: TypeAlias = "grpc.aio.UnaryUnaryMultiCallable[Request, Response]"


class Backoff:
    """Pauses that double up to a cap, each shortened by chance to no less than half."""

    def __init__(self, limits: Limits, jitter: Callable[[], float]) -> None:
        self._limits = limits
        self._jitter = jitter
        self.failures = 0

    def reset(self) -> None:
        """Forget the failures: there was a sign of life."""
        self.failures = 0

    def count(self) -> None:
        """Count a failure without asking for a pause."""
        self.failures += 1

    def next_seconds(self, error: ClientError | None = None) -> float:
        """Count a failure; the pause before the next attempt, no less than the service wishes."""
        longest = min(self._limits.backoff_cap_seconds, self._limits.backoff_first_seconds * 2.0**self.failures)
        self.failures += 1
        wish = (error.retry_after_seconds if error else None) or 0.0
        return max(longest * (1 + self._jitter()) / 2, min(wish, self._limits.retry_after_cap_seconds))


async def call(
    method: Unary[Request, Response], request: Request, *, settings: Settings, metadata: Metadata = ()
) -> Response:
    """Call a unary method, again with the very same request while that may help. Raises `ClientError`."""
    backoff = Backoff(settings.limits, settings.jitter)
    while True:
        try:
            return await attempt(method, request, seconds=settings.limits.attempt_seconds, metadata=metadata)
        except ClientError as error:
            if not error.is_retriable or backoff.failures + 1 >= settings.limits.attempts:
                raise
            pause = backoff.next_seconds(error)
        await settings.sleep(pause)


async def attempt(
    method: Unary[Request, Response], request: Request, *, seconds: float, metadata: Metadata = ()
) -> Response:
    """Call a unary method once. Raises `ClientError`."""
    try:
        return await method(request, timeout=seconds, metadata=metadata)
    except grpc.aio.AioRpcError as error:
        raise from_rpc_error(error) from None
    except asyncio.CancelledError:
        if is_cancelled_from_outside():
            raise
        raise ConnectionClosedError from None


def is_cancelled_from_outside() -> bool:
    """Whether somebody cancelled this task. grpc raises CancelledError also when only its call was cancelled."""
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0
