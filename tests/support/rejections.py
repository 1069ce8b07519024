"""Errors on the wire, read as a client reads them: a status with exactly one ErrorInfo."""

from collections.abc import Awaitable
from dataclasses import dataclass

import grpc
import pytest
from google.rpc import error_details_pb2, status_pb2

DETAILS = "grpc-status-details-bin"
INTERNALS = ("Traceback", "Exception", "Error:", "service/", ".py", "sqlite", "protobuf", "assert")


@dataclass(frozen=True)
class Rejection:
    """A call that ended with a status of ours."""

    code: grpc.StatusCode
    reason: str
    message: str
    fields: tuple[str, ...] = ()
    retry_seconds: int | None = None
    variables: tuple[str, ...] = ()


def rejection_of(code: grpc.StatusCode, message: str, details: bytes) -> Rejection:
    """Reads a status; fails unless it is complete and tells nothing of our insides."""
    status = status_pb2.Status.FromString(details)
    assert (status.code, status.message) == (code.value[0], message)
    infos, fields, retry = [], [], None
    for detail in status.details:
        info, request, delay = (
            error_details_pb2.ErrorInfo(),
            error_details_pb2.BadRequest(),
            error_details_pb2.RetryInfo(),
        )
        if detail.Unpack(info):
            infos.append(info)
        elif detail.Unpack(request):
            fields += [violation.field for violation in request.field_violations]
        elif detail.Unpack(delay):
            retry = delay.retry_delay.seconds
    (info,) = infos
    assert info.domain == "spectacularbid"
    assert code is not grpc.StatusCode.UNKNOWN
    assert message[0].islower()
    for internal in INTERNALS:
        assert internal not in message.replace("a valid protobuf message", "")
    return Rejection(code, info.reason, message, tuple(fields), retry, tuple(info.metadata))


def rejection_in(error: grpc.aio.AioRpcError) -> Rejection:
    """Reads the status of a failed call."""
    details = [value for key, value in error.trailing_metadata() or () if key == DETAILS]
    assert len(details) == 1, error
    assert isinstance(details[0], bytes)
    return rejection_of(error.code(), error.details() or "", details[0])


async def rejection(call: Awaitable[object]) -> Rejection:
    """The status with which a call fails."""
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call
    return rejection_in(caught.value)
