"""What every handler shares: malformed bytes, typed errors, metrics, and an opaque id for a mistake of ours."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Awaitable, Callable
from typing import Protocol, TypeAlias, TypeVar

import grpc
from google.protobuf.message import Message

from service.logs import get_logger
from service.metrics import MethodMetrics
from service.rpc.arrival import Stamped
from service.rpc.outbound import ProjectionError
from service.rpc.statuses import UNREADABLE, Status, StatusError, internal, status_of

M = TypeVar("M", bound=Message)
Context: TypeAlias = "grpc.aio.ServicerContext[Stamped[Message], bytes]"
UnaryHandler: TypeAlias = Callable[[Stamped[M], Context], Awaitable[bytes]]
StreamHandler: TypeAlias = Callable[[Stamped[M], Context], Awaitable[None]]


class Tracing(Protocol):
    """Makes calls, and the commands that come by them, parts of their callers' traces."""

    def unary(self, handler: UnaryHandler[M], service: str, method: str) -> UnaryHandler[M]:
        """A unary handler whose calls are traced."""

    def stream(self, handler: StreamHandler[M]) -> StreamHandler[M]:
        """A stream whose commands are traced."""

    async def close(self) -> None:
        """Send what is left."""


_GO_CODES = {
    code: "".join(word.capitalize() for word in code.name.split("_")).replace("Cancelled", "Canceled")
    for code in grpc.StatusCode
} | {grpc.StatusCode.OK: "OK"}


def message_of(stamped: Stamped[M]) -> M:
    """The message, or INVALID_ARGUMENT when the bytes were none."""
    if stamped.message is None:
        raise StatusError(UNREADABLE)
    return stamped.message


def unary(handler: UnaryHandler[M], metrics: MethodMetrics) -> UnaryHandler[M]:
    """A unary handler as grpc.aio calls it."""

    async def call(stamped: Stamped[M], context: Context) -> bytes:
        metrics.started()
        began_ns = time.perf_counter_ns()
        code = grpc.StatusCode.CANCELLED
        try:
            answer = await handler(stamped, context)
            code = grpc.StatusCode.OK
        except Exception as error:
            status = status_for(error)
            code = status.code
            await _abort(context, status)
            raise AssertionError from error
        else:
            return answer
        finally:
            metrics.handled(_GO_CODES[code], time.perf_counter_ns() - began_ns)

    return call


def stream(handler: StreamHandler[M], metrics: MethodMetrics) -> StreamHandler[M]:
    """A streaming handler as grpc.aio calls it. For a bidirectional one the first argument is unused."""

    async def call(stamped: Stamped[M], context: Context) -> None:
        metrics.started()
        code = grpc.StatusCode.CANCELLED
        try:
            await handler(stamped, context)
            code = grpc.StatusCode.OK
        except (asyncio.CancelledError, grpc.aio.BaseError, grpc.RpcError):
            raise  # the peer has gone
        except Exception as error:  # noqa: BLE001  every error gets its status
            status = status_for(error)
            code = status.code
            await _abort(context, status)
        finally:
            metrics.handled(_GO_CODES[code], 0)

    return call


def status_for(error: Exception) -> Status:
    """The status of any error. A mistake of ours is logged with the id that the caller gets."""
    known = status_of(error)
    if known is not None:
        return known
    error_id = secrets.token_hex(8)
    if isinstance(error, ProjectionError):  # neither its message nor a traceback: what it was about is secret
        get_logger().error("projection_violation", error_id=error_id, match_id=error.match_id)
        return internal(error_id)
    get_logger().error("internal_error", error_id=error_id, exc_info=error)
    return internal(error_id)


async def _abort(context: Context, status: Status) -> None:
    await context.abort(status.code, status.message, status.trailing_metadata())
