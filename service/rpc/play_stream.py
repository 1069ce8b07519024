"""Commands on their way in: who may send what, and the reading side of PlayMatch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Never

from engine.clock import Arrival
from engine.commands import Resign
from engine.seats import PerSeat, Seat
from engine.view import Audience
from service.limits import Holder, LimitedError, Limits, holder_of
from service.line import Done, LineFullError, PlayerOrder
from service.match import Match
from service.metrics.process import Limit
from service.ports import Credential, StoreUnavailableError
from service.rpc import requests
from service.rpc.arrival import Stamped
from service.rpc.edge import Context, message_of, status_for
from service.rpc.outbound import Addressed
from service.rpc.statuses import (
    PERMISSION_DENIED,
    SLOW_READER,
    TOO_MANY_COMMANDS,
    StatusError,
    malformed,
)
from service.rpc.streams import Outbox, Presenter
from service.rpc.wire import sub_message
from service.tracing import begin_command
from service.watches import Watch
from spectacularbid.v1 import match_service_pb2 as pb

UNANSWERED_COMMANDS = 16
"""Commands of one PlayMatch stream that may wait for their answers."""
UNSENT_ANSWERS = 256
"""Answers of one PlayMatch stream that its client may leave unread."""
_SEATS = {Audience.SEAT_ONE: Seat.ONE, Audience.SEAT_TWO: Seat.TWO, Audience.DEVICE: None}
_played_outcome = sub_message(pb.PlayMatchResponse.DESCRIPTOR, "outcome")


def seat_of(credential: Credential) -> Seat | None:
    """The seat that a token may act for, None for a shared device. Raises PERMISSION_DENIED for a spectator."""
    if credential.audience not in _SEATS:
        raise StatusError(PERMISSION_DENIED)
    return _SEATS[credential.audience]


def order_of(credential: Credential, fields: requests.CommandFields, arrival: Arrival) -> PlayerOrder:
    """The command as the match's line takes it."""
    seat = seat_of(credential)
    entropies = fields.entropies
    if credential.audience is not Audience.DEVICE:
        if fields.named_seat is not None:
            name = "resign" if isinstance(fields.command, Resign) else "commit_entropy"
            raise malformed(f"command.{name}.seat", f"{name}.seat is for a shared device only")
        if entropies.two:
            raise malformed("command.start.second_entropy", "second_entropy is for a shared device only")
        entropies = PerSeat(b"", entropies.one) if seat is Seat.TWO else entropies
    return PlayerOrder(
        command=fields.command,
        arrival=arrival,
        seat=fields.named_seat or seat,
        sender=credential.audience,
        command_id=fields.command_id,
        body_hash=fields.body_hash,
        expected_version=fields.expected_version,
        entropies=entropies,
        trace=begin_command(type(fields.command).__name__, arrival.latest_ns),
    )


async def opening_of(context: Context) -> pb.PlayMatchOpen:
    """The first message of a PlayMatch stream."""
    stamped: object = await context.read()
    message: pb.PlayMatchRequest | None = message_of(stamped) if isinstance(stamped, Stamped) else None
    if message is None or message.WhichOneof("message") != "open":
        raise malformed("open", "the first message of PlayMatch must be open")
    return message.open


@dataclass(frozen=True, slots=True)
class CommandReader:
    """Stamps and enters the commands of one stream; the answers go to its outbox."""

    match: Match
    credential: Credential
    presenter: Presenter
    outbox: Outbox
    watch: Watch
    limits: Limits

    async def read(self, context: Context) -> None:
        """Read to the end. Nothing here waits for an answer, so no stamp is late by one."""
        holder = holder_of(self.credential)
        try:
            while isinstance(stamped := await context.read(), Stamped):  # as grpc's sign of the end is not
                message: pb.PlayMatchRequest = message_of(stamped)
                if self.watch.ending is not None:
                    return  # the writing side says why
                if len(self.outbox.answers) >= UNSENT_ANSWERS:
                    raise StatusError(SLOW_READER)
                if message.WhichOneof("message") != "command":
                    raise malformed("command", "every message of PlayMatch but the first must be a command")
                self._enter(message.command, stamped.arrival, holder)
        finally:
            self.outbox.close()

    def _enter(self, message: pb.PlayMatchCommand, arrival: Arrival, holder: Holder) -> None:
        try:
            self.limits.commands.take(holder)
            if self.outbox.expected >= UNANSWERED_COMMANDS:
                self._shed()
            fields = requests.command_fields(message)
            order = order_of(self.credential, fields, arrival)
            self.match.enter(arrival, order, ExpectedOutcome(fields, self.presenter, self.outbox))
        except (StatusError, LineFullError, LimitedError, StoreUnavailableError) as error:
            self.outbox.put(NoOutcome(message.command_id, error))
            return
        self.outbox.expected += 1

    def _shed(self) -> Never:
        self.limits.shed(Limit.UNANSWERED)
        raise StatusError(TOO_MANY_COMMANDS)


class NoOutcome:
    """The answer to a command that was turned away or could not be carried out."""

    def __init__(self, command_id: str, error: Exception) -> None:
        self._command_id = command_id
        self._error = error

    async def made(self) -> tuple[int | None, Addressed]:
        """A serialized CommandError."""
        return None, _command_error(self._command_id, self._error)


class ExpectedOutcome:
    """Waits for the end of a command that was entered, and is then the answer to it."""

    __slots__ = ("_done", "_fields", "_outbox", "_presenter")

    def __init__(self, fields: requests.CommandFields, presenter: Presenter, outbox: Outbox) -> None:
        self._fields = fields
        self._presenter = presenter
        self._outbox = outbox
        self._done: Done | None = None

    def done(self) -> bool:
        """Never before it was told, which is once."""
        return False

    def set_result(self, done: Done, /) -> None:
        """The command was carried out or refused."""
        self._done = done
        self._outbox.expected -= 1
        self._outbox.put(self)

    def set_exception(self, error: Exception, /) -> None:
        """It was not, or nobody knows."""
        self._outbox.expected -= 1
        self._outbox.put(NoOutcome(self._fields.command_id, error))

    async def made(self) -> tuple[int | None, Addressed]:
        """A serialized CommandOutcome with the version that is new by it, or a CommandError."""
        done = self._done
        assert done is not None
        try:
            data, view = await self._presenter.outcome(self._fields, done)
        except Exception as error:  # noqa: BLE001  an answer of its own, so that the stream goes on
            return None, _command_error(self._fields.command_id, error)
        assert done.record is not None
        is_new = done.record.refusal is None and not done.repeated
        return (done.record.version if is_new else None), (_played_outcome[len(data)] + data, view)


def _command_error(command_id: str, error: Exception) -> Addressed:
    status = status_for(error)
    message = pb.CommandError(
        command_id=command_id, code=status.code.value[0], reason=status.reason, message=status.message
    )
    if status.retry:
        message.retry_after.CopyFrom(status.retry_after)
    return pb.PlayMatchResponse(error=message).SerializeToString(), None
