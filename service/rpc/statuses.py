"""Errors on the wire: one table from what went wrong to a gRPC status with its google.rpc details."""

from __future__ import annotations

from dataclasses import dataclass

import grpc
from google.protobuf import any_pb2, duration_pb2
from google.rpc import error_details_pb2, status_pb2

from engine.clock import SECOND_NS
from service.dealing import EntropyNotMatchingError
from service.limits import LimitedError, StreamReplacedError, TokenRevokedError, TooManySpectatorsError
from service.line import LineFullError
from service.match import VersionsLostError
from service.matches import CannotJoinError, NotForSubjectError
from service.ports import StoreUnavailableError, UnknownTokenError
from service.writer import ClocksStandError, UnknownMatchError

DOMAIN = "spectacularbid"
RETRY_SECONDS = 1
_DETAILS_KEY = "grpc-status-details-bin"


@dataclass(frozen=True, slots=True)
class Status:
    """An answer other than an outcome. `reason` is ErrorInfo's, `message` is for people and holds no internals."""

    code: grpc.StatusCode
    reason: str
    message: str
    field: str = ""
    error_id: str = ""
    retry: bool = False
    retry_ns: int = RETRY_SECONDS * SECOND_NS

    @property
    def retry_after(self) -> duration_pb2.Duration:
        """When to try again, if `retry` says so."""
        return duration_pb2.Duration(seconds=self.retry_ns // SECOND_NS, nanos=self.retry_ns % SECOND_NS)

    def trailing_metadata(self) -> tuple[tuple[str, bytes], ...]:
        """The rich error model's trailer: ErrorInfo always, BadRequest and RetryInfo where they fit."""
        variables = {"error_id": self.error_id} if self.error_id else {}
        details = [_packed(error_details_pb2.ErrorInfo(reason=self.reason, domain=DOMAIN, metadata=variables))]
        if self.field:
            violation = error_details_pb2.BadRequest.FieldViolation(field=self.field, description=self.message)
            details.append(_packed(error_details_pb2.BadRequest(field_violations=[violation])))
        if self.retry:
            details.append(_packed(error_details_pb2.RetryInfo(retry_delay=self.retry_after)))
        status = status_pb2.Status(code=self.code.value[0], message=self.message, details=details)
        return ((_DETAILS_KEY, status.SerializeToString()),)


class StatusError(Exception):
    """Ends a call with `status`."""

    def __init__(self, status: Status) -> None:
        super().__init__(status.reason)
        self.status = status


def _packed(
    detail: error_details_pb2.ErrorInfo | error_details_pb2.BadRequest | error_details_pb2.RetryInfo,
) -> any_pb2.Any:
    packed = any_pb2.Any()
    packed.Pack(detail)
    return packed


def malformed(field: str, message: str) -> StatusError:
    """A request that no client of ours would send."""
    return StatusError(Status(grpc.StatusCode.INVALID_ARGUMENT, "MALFORMED_REQUEST", message, field))


UNREADABLE = Status(
    grpc.StatusCode.INVALID_ARGUMENT, "MALFORMED_REQUEST", "the request is not a valid protobuf message of this method"
)
UNAUTHENTICATED = Status(
    grpc.StatusCode.UNAUTHENTICATED,
    "INVALID_TOKEN",
    "send the metadata 'authorization: Bearer <token>' exactly once, with the token of this match",
)
TOKEN_EXPIRED = Status(
    grpc.StatusCode.UNAUTHENTICATED, "TOKEN_EXPIRED", "the token was good until a day after the match had ended"
)
PERMISSION_DENIED = Status(grpc.StatusCode.PERMISSION_DENIED, "NOT_FOR_THIS_TOKEN", "this token does not allow that")
SPECTATE_INSTEAD = Status(
    grpc.StatusCode.PERMISSION_DENIED, "SPECTATOR_TOKEN", "a spectator's token is good for SpectateMatch only"
)
COMMAND_ID_REUSED = Status(
    grpc.StatusCode.ALREADY_EXISTS, "COMMAND_ID_REUSED", "this command id was used for another command"
)
CANNOT_LEAVE = Status(
    grpc.StatusCode.FAILED_PRECONDITION, "ALREADY_STARTED", "the match has started: resign instead of leaving"
)
CANNOT_JOIN = Status(grpc.StatusCode.NOT_FOUND, "INVITE_NOT_VALID", "no match can be joined with this invite code")
FUTURE_VERSION = Status(
    grpc.StatusCode.OUT_OF_RANGE, "VERSION_IN_THE_FUTURE", "after_version is beyond the match's version"
)
ENTROPY_NOT_MATCHING = Status(
    grpc.StatusCode.INVALID_ARGUMENT,
    "ENTROPY_NOT_MATCHING",
    "the entropy of a start must be what its seat committed to; without a commitment there is none",
    "command.start.entropy",
)
NOT_OVER = Status(
    grpc.StatusCode.FAILED_PRECONDITION, "MATCH_NOT_OVER", "the deal is proven when the match is over, not before"
)
NO_SUCH_MATCH = Status(grpc.StatusCode.NOT_FOUND, "NO_SUCH_MATCH", "there is no match with this id")
MATCH_OVER = Status(grpc.StatusCode.FAILED_PRECONDITION, "MATCH_OVER", "the match is over already")
SLOW_READER = Status(
    grpc.StatusCode.RESOURCE_EXHAUSTED, "SLOW_READER", "the stream was not read for too long", retry=True
)
TOO_MANY_COMMANDS = Status(
    grpc.StatusCode.RESOURCE_EXHAUSTED, "TOO_MANY_COMMANDS", "too many commands wait for this match", retry=True
)
TOO_MANY_SPECTATORS = Status(
    grpc.StatusCode.RESOURCE_EXHAUSTED, "TOO_MANY_SPECTATORS", "the match has as many spectators as it may", retry=True
)
STREAM_REPLACED = Status(
    grpc.StatusCode.RESOURCE_EXHAUSTED,
    "STREAM_REPLACED",
    "a newer stream of the same seat or spectator took the place of this one: do not open it again",
)
MISSING_SCOPE = Status(
    grpc.StatusCode.PERMISSION_DENIED, "MISSING_SCOPE", "the platform credential lacks the scope match:create"
)
NOT_FOR_SUBJECT = Status(
    grpc.StatusCode.PERMISSION_DENIED,
    "NOT_FOR_THIS_SUBJECT",
    "one subject cannot hold both seats, nor repeat what another one asked for",
)
UNAVAILABLE = Status(
    grpc.StatusCode.UNAVAILABLE, "TRY_AGAIN", "the service cannot answer now: repeat with the same id", retry=True
)


_STATUSES: tuple[tuple[tuple[type[Exception], ...], Status], ...] = (
    ((StoreUnavailableError, ClocksStandError), UNAVAILABLE),
    ((EntropyNotMatchingError,), ENTROPY_NOT_MATCHING),
    ((LineFullError,), TOO_MANY_COMMANDS),
    ((UnknownTokenError, TokenRevokedError), UNAUTHENTICATED),
    ((StreamReplacedError,), STREAM_REPLACED),
    ((TooManySpectatorsError,), TOO_MANY_SPECTATORS),
    ((NotForSubjectError,), NOT_FOR_SUBJECT),
    ((UnknownMatchError,), PERMISSION_DENIED),
    ((VersionsLostError,), FUTURE_VERSION),
    ((CannotJoinError,), CANNOT_JOIN),
)


def status_of(error: Exception) -> Status | None:
    """The status of a known error, None for a mistake of ours."""
    if isinstance(error, StatusError):
        return error.status
    if isinstance(error, LimitedError):
        return too_fast(error.wait_ns)
    return next((status for kinds, status in _STATUSES if isinstance(error, kinds)), None)


def too_fast(wait_ns: int) -> Status:
    """More in a second than the caller may ask for."""
    text = "too much in too short a time: wait as RetryInfo says, then repeat with the same id"
    return Status(grpc.StatusCode.RESOURCE_EXHAUSTED, "TOO_FAST", text, retry=True, retry_ns=wait_ns)


def internal(error_id: str) -> Status:
    """A mistake of ours: an opaque id that the log explains, never the exception's text."""
    message = "an internal error; report its error_id"
    return Status(grpc.StatusCode.INTERNAL, "INTERNAL", message, error_id=error_id)
