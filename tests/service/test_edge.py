"""What a caller is told when something goes wrong: one status for each kind of error, and never our own words."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import cast

import grpc
import pytest
from structlog.testing import capture_logs

from engine.clock import Arrival
from service.line import LineFullError
from service.matches import CannotJoinError
from service.metrics import Metrics
from service.ports import StoreUnavailableError
from service.rpc import edge
from service.rpc.arrival import Stamped, stamping
from service.rpc.edge import Context
from service.rpc.statuses import StatusError, malformed
from service.writer import ClocksStandError, UnknownMatchError
from spectacularbid.v1.match_service_pb2 import GetMatchRequest
from tests.support.ports import VirtualClock
from tests.support.rejections import Rejection, rejection_of
from tests.support.virtual_time import in_virtual_time

SECRET = "the hand is 5-5 6-6"
REQUEST = Stamped(Arrival.at(0), GetMatchRequest())
CODE = grpc.StatusCode


class AbortedError(Exception):
    """What a fake context raises where grpc.aio ends the call."""


class FakeContext:
    """The part of grpc.aio's context that ends a call."""

    def __init__(self) -> None:
        self.rejection: Rejection | None = None

    async def abort(self, code: grpc.StatusCode, message: str, trailers: tuple[tuple[str, bytes], ...]) -> None:
        ((key, details),) = trailers
        assert key == "grpc-status-details-bin"
        self.rejection = rejection_of(code, message, details)
        raise AbortedError


class Call:
    """One call of a handler that fails, unary or streaming, with its metrics."""

    def __init__(self) -> None:
        self.metrics = Metrics()
        self.context = FakeContext()

    async def unary(self, handler: Callable[..., Awaitable[bytes]]) -> Rejection:
        """How a unary call ends."""
        call = edge.unary(handler, self.metrics.method("s", "m"))
        with pytest.raises(AbortedError):
            await call(REQUEST, cast("Context", self.context))
        assert self.context.rejection is not None
        return self.context.rejection

    async def stream(self, error: BaseException) -> Rejection | None:
        """How a stream ends whose handler raises this."""

        async def handler(_: Stamped[GetMatchRequest], __: object) -> None:
            raise error

        call = edge.stream(handler, self.metrics.method("s", "m"))
        try:
            await call(REQUEST, cast("Context", self.context))
        except AbortedError:
            return self.context.rejection
        return None

    def handled(self, code: str) -> float | None:
        """How many calls ended so, by the metrics."""
        labels = {"grpc_type": "unary", "grpc_service": "s", "grpc_method": "m", "grpc_code": code}
        return self.metrics.registry.get_sample_value("grpc_server_handled_total", labels)


def raising(error: BaseException) -> Callable[..., Awaitable[bytes]]:
    """A handler that fails."""

    async def handler(*_: object) -> bytes:
        raise error

    return handler


KNOWN: list[tuple[Exception, grpc.StatusCode, str, int | None]] = [
    (StoreUnavailableError(SECRET), CODE.UNAVAILABLE, "TRY_AGAIN", 1),
    (ClocksStandError(SECRET), CODE.UNAVAILABLE, "TRY_AGAIN", 1),
    (LineFullError(SECRET), CODE.RESOURCE_EXHAUSTED, "TOO_MANY_COMMANDS", 1),
    (UnknownMatchError(SECRET), CODE.PERMISSION_DENIED, "NOT_FOR_THIS_TOKEN", None),
    (CannotJoinError(SECRET), CODE.NOT_FOUND, "INVITE_NOT_VALID", None),
    (malformed("field", "it is wrong"), CODE.INVALID_ARGUMENT, "MALFORMED_REQUEST", None),
]
KNOWN_IDS = [type(row[0]).__name__ for row in KNOWN]
OURS = [ValueError(SECRET), AssertionError(SECRET), KeyError(SECRET), TimeoutError(SECRET), OSError(5, SECRET)]


@pytest.mark.parametrize(("error", "code", "reason", "retry_seconds"), KNOWN, ids=KNOWN_IDS)
async def test_a_known_error_has_its_status(
    error: Exception, code: grpc.StatusCode, reason: str, retry_seconds: int | None
) -> None:
    """The same for calls and streams, counted under its code, and nothing is logged as a mistake."""
    with capture_logs() as logs:
        call, stream = Call(), Call()
        told = await call.unary(raising(error))
        assert (told.code, told.reason, told.retry_seconds) == (code, reason, retry_seconds)
        assert await stream.stream(error) == told
    assert SECRET not in told.message
    assert logs == []
    name = "".join(word.capitalize() for word in code.name.split("_"))
    assert call.handled(name) == stream.handled(name) == 1


@pytest.mark.parametrize("error", OURS, ids=[type(error).__name__ for error in OURS])
async def test_a_mistake_of_ours_is_an_opaque_id_that_the_log_explains(error: Exception) -> None:
    """Channel 10: grpc would send the exception's text to the client."""
    with capture_logs() as logs:
        call, stream = Call(), Call()
        told = [await call.unary(raising(error)), await stream.stream(error)]
    for each in told:
        assert each is not None
        assert (each.code, each.reason, each.variables) == (CODE.INTERNAL, "INTERNAL", ("error_id",))
        assert SECRET not in each.message
    assert [entry["event"] for entry in logs] == ["internal_error"] * 2
    assert len({entry["error_id"] for entry in logs}) == 2
    assert call.handled("Internal") == stream.handled("Internal") == 1


@pytest.mark.parametrize("gone", [asyncio.CancelledError(), grpc.aio.AbortError(), grpc.aio.InternalError("x")])
async def test_a_peer_that_has_gone_is_no_error_of_a_stream(gone: BaseException) -> None:
    """Fault 97: what ends the handler is raised on, whatever it is."""
    call = Call()
    with capture_logs() as logs, pytest.raises(type(gone)):
        await call.stream(gone)
    assert logs == []
    assert call.context.rejection is None
    assert call.handled("Canceled") == 1


async def test_a_call_that_is_cancelled_is_counted_so() -> None:
    """And raised on."""
    call = Call()
    with pytest.raises(asyncio.CancelledError):
        await edge.unary(raising(asyncio.CancelledError()), call.metrics.method("s", "m"))(
            REQUEST, cast("Context", call.context)
        )
    assert call.handled("Canceled") == 1


async def test_bytes_that_are_no_message_are_the_callers_mistake() -> None:
    """The deserializer never raises: grpc would answer UNKNOWN with the parser's text."""
    call = Call()

    async def handler(stamped: Stamped[GetMatchRequest], _: object) -> bytes:
        return edge.message_of(stamped).SerializeToString()

    stamped = Stamped[GetMatchRequest](Arrival.at(0), None)
    with pytest.raises(AbortedError):
        await edge.unary(handler, call.metrics.method("s", "m"))(stamped, cast("Context", call.context))
    assert call.context.rejection is not None
    assert (call.context.rejection.code, call.context.rejection.reason) == (CODE.INVALID_ARGUMENT, "MALFORMED_REQUEST")


@pytest.mark.parametrize("data", [b"", b"\xff", b"\x0a\x02\xc3\x28", b"\x0a\x05hello"])
@in_virtual_time
async def test_every_message_is_stamped_readable_or_not(data: bytes) -> None:
    """The stamp comes first."""
    stamped = stamping(GetMatchRequest, VirtualClock())(data)
    assert stamped.arrival == VirtualClock().arrival()
    assert (stamped.message is None) == (data in (b"\xff", b"\x0a\x02\xc3\x28"))


def test_a_status_error_names_its_reason() -> None:
    """For the log."""
    assert str(malformed("field", "it is wrong")) == "MALFORMED_REQUEST"
    assert isinstance(malformed("field", "it is wrong"), StatusError)
