"""What can go wrong between client and service, as one family of exceptions.

What the rules do not allow is no error: it comes as a `Refused` outcome.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

import grpc
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import DecodeError
from google.rpc.error_details_pb2 import ErrorInfo, RetryInfo
from google.rpc.status_pb2 import Status

from spectacularbid.v1.match_service_pb2 import CommandError

DETAILS_KEY = "grpc-status-details-bin"
NANOSECONDS = 1_000_000_000

Code = grpc.StatusCode


class ClientError(Exception):
    """A call failed.

    `code` is the gRPC status code, `reason` and `details` are those of `google.rpc.ErrorInfo` ("" and empty when the
    answer had none), `message` is for people, `retry_after_seconds` is the service's wish, if it named one. `is_final`
    says that a stream which ended so is not worth opening again; `is_retriable` that the same request with the same id
    may be sent again, as nobody knows whether it was carried out.
    """

    def __init__(
        self,
        message: str,
        *,
        code: Code = Code.UNKNOWN,
        reason: str = "",
        details: Mapping[str, str] | None = None,
        retry_after_seconds: float | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.reason = reason
        self.details = dict(details or {})
        self.retry_after_seconds = retry_after_seconds

        self.is_final = code in FINAL_CODES or reason in FINAL_REASONS
        self.is_retriable = code in RETRIABLE_CODES or (retry_after_seconds is not None and not self.is_final)


class InvalidRequestError(ClientError):
    """The request was malformed. Sending it again will not help."""


class UnauthenticatedError(ClientError):
    """The token is missing or unknown."""


class PermissionDeniedError(ClientError):
    """The token is good for another match, or may not do this."""


class NotFoundError(ClientError):
    """There is no such thing, such as a match for this invite code."""


class CommandIdReusedError(ClientError):
    """The id was used before for something else."""


class InviteNotValidError(NotFoundError):
    """No match can be joined with this invite code: it is wrong, or the seat is taken."""


class NotPossibleNowError(ClientError):
    """The state of things does not allow it."""


class AlreadyStartedError(NotPossibleNowError):
    """The match has started: resign instead of leaving."""


class ResumePointGoneError(ClientError):
    """The version to resume after lies in the future: start from 0."""


class LimitedError(ClientError):
    """A limit was reached; try again later."""


class TooManyCommandsError(LimitedError):
    """Too many commands wait for this match."""


class StreamReplacedError(LimitedError):
    """A newer stream of the same seat took the place of this one. Opening it again would only replace that one."""


class UnavailableError(ClientError):
    """The service did not answer, or says: try again with the same id."""


class ConnectionClosedError(ClientError):
    """The connection was closed on this side while the call was under way."""

    def __init__(self) -> None:
        super().__init__("the connection was closed", code=Code.CANCELLED)
        self.is_final, self.is_retriable = True, False


BY_REASON: Mapping[str, type[ClientError]] = {
    "ALREADY_STARTED": AlreadyStartedError,
    "COMMAND_ID_REUSED": CommandIdReusedError,
    "INVITE_NOT_VALID": InviteNotValidError,
    "STREAM_REPLACED": StreamReplacedError,
    "TOO_MANY_COMMANDS": TooManyCommandsError,
}
BY_CODE: Mapping[Code, type[ClientError]] = {
    Code.INVALID_ARGUMENT: InvalidRequestError,
    Code.UNAUTHENTICATED: UnauthenticatedError,
    Code.PERMISSION_DENIED: PermissionDeniedError,
    Code.NOT_FOUND: NotFoundError,
    Code.ALREADY_EXISTS: CommandIdReusedError,
    Code.FAILED_PRECONDITION: NotPossibleNowError,
    Code.OUT_OF_RANGE: ResumePointGoneError,
    Code.RESOURCE_EXHAUSTED: LimitedError,
    Code.UNAVAILABLE: UnavailableError,
    Code.DEADLINE_EXCEEDED: UnavailableError,
    Code.CANCELLED: UnavailableError,
}
FINAL_CODES = frozenset({Code.UNAUTHENTICATED, Code.PERMISSION_DENIED, Code.NOT_FOUND, Code.INVALID_ARGUMENT})
FINAL_REASONS = frozenset({"STREAM_REPLACED"})
RETRIABLE_CODES = frozenset(
    {Code.UNAVAILABLE, Code.INTERNAL, Code.UNKNOWN, Code.DEADLINE_EXCEEDED, Code.CANCELLED},
)
_CODE_BY_NUMBER: Mapping[int, Code] = {code.value[0]: code for code in Code}


def from_rpc_error(error: grpc.aio.AioRpcError) -> ClientError:
    """The error for a failed call, with what its `google.rpc.ErrorInfo` and `RetryInfo` say."""
    info, retry = _details_of(error)
    return _make(
        code=error.code(),
        message=error.details() or "",
        reason=info.reason,
        details=info.metadata,
        retry_after_seconds=_seconds(retry.retry_delay) if retry is not None else None,
    )


def from_command_error(error: CommandError) -> ClientError:
    """The error for a command that got one on a stream: retriable only when the answer says so."""
    made = _make(
        code=_CODE_BY_NUMBER.get(error.code, Code.UNKNOWN),
        message=error.message,
        reason=error.reason,
        retry_after_seconds=_seconds(error.retry_after) if error.HasField("retry_after") else None,
    )
    made.is_retriable = error.HasField("retry_after")
    return made


def _make(
    *,
    code: Code,
    message: str,
    reason: str,
    details: Mapping[str, str] | None = None,
    retry_after_seconds: float | None,
) -> ClientError:
    kind = BY_REASON.get(reason) or BY_CODE.get(code, ClientError)
    return kind(
        message or reason or code.name,
        code=code,
        reason=reason,
        details=details,
        retry_after_seconds=retry_after_seconds,
    )


def _details_of(error: grpc.aio.AioRpcError) -> tuple[ErrorInfo, RetryInfo | None]:
    """What the trailers say in google.rpc terms; as good as nothing when they are damaged."""
    info, retry, found = ErrorInfo(), RetryInfo(), False
    for key, value in error.trailing_metadata() or ():
        if key == DETAILS_KEY and isinstance(value, bytes):
            with suppress(DecodeError):
                for detail in Status.FromString(value).details:
                    found = detail.Unpack(retry) or found
                    detail.Unpack(info)
    return info, retry if found else None


def _seconds(duration: Duration) -> float:
    return max(0.0, duration.seconds + duration.nanos / NANOSECONDS)
