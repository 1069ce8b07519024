"""Playing a match by PlayMatch: commands out, outcomes and updates in, on one stream that mends itself."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeAlias

import grpc

from spectacularbid.client.deal_part import DealPart
from spectacularbid.client.errors import ClientError, ConnectionClosedError, UnavailableError, from_command_error
from spectacularbid.client.mailbox import Mailbox
from spectacularbid.client.resume import PatientReader, Resumption
from spectacularbid.client.retry import Backoff, Metadata
from spectacularbid.client.settings import Settings
from spectacularbid.v1.commands_pb2 import Command
from spectacularbid.v1.match_service_pb2 import (
    MatchUpdate,
    PlayMatchCommand,
    PlayMatchOpen,
    PlayMatchRequest,
    PlayMatchResponse,
    Presence,
)
from spectacularbid.v1.outcomes_pb2 import CommandOutcome

if TYPE_CHECKING:
    from spectacularbid.v1.match_service_pb2_grpc import MatchServiceAsyncStub

PlayCall: TypeAlias = "grpc.aio.StreamStreamCall[PlayMatchRequest, PlayMatchResponse]"
Outbox: TypeAlias = "asyncio.Queue[PlayMatchRequest]"  # holds the opening and at most `commands_in_flight` commands


class PlaySession:
    """One seat's stream. Use it as an asynchronous context manager; one task at a time may read the updates.

    When the stream breaks it is opened again, resumes after the last version, and every command without an answer is
    sent again with its id.
    """

    def __init__(
        self, stub: MatchServiceAsyncStub, match_id: str, *, metadata: Metadata, settings: Settings, part: DealPart
    ) -> None:
        self._stub = stub
        self._match_id = match_id
        self._metadata = metadata
        self._settings = settings
        self._part = part
        self._resumption = Resumption(settings)
        self._reader = PatientReader(settings)
        self._mailbox = Mailbox(settings.limits.merged_events)
        self._may_send = asyncio.Semaphore(settings.limits.commands_in_flight)
        self._unanswered: dict[str, tuple[PlayMatchCommand, asyncio.Future[CommandOutcome]]] = {}
        self._outbox: Outbox | None = None
        self._presence = Presence()
        self._failure: BaseException | None = None
        self._runner: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._runner = asyncio.create_task(self._run())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._runner is not None  # set on entry
        self._runner.cancel()
        await asyncio.gather(self._runner, return_exceptions=True)
        self._fail(ConnectionClosedError())

    async def updates(self) -> AsyncGenerator[MatchUpdate, None]:
        """Yields whole views, also those that came with outcomes, until one has a result. Raises `ClientError`."""
        while True:
            update = await self._mailbox.take()
            yield update
            if update.view.public.HasField("result"):
                return

    async def submit(self, command: Command, expected_version: int | None = None) -> CommandOutcome:
        """Send a command and wait for its outcome. Raises `ClientError` when it is unknown after all attempts."""
        request = PlayMatchCommand(
            command_id=self._settings.new_id(), expected_version=expected_version, command=self._part.opened(command)
        )
        backoff = Backoff(self._settings.limits, self._settings.jitter)
        async with self._may_send:
            while True:
                try:
                    return await self._answer_to(request)
                except ClientError as error:
                    if not error.is_retriable or backoff.failures + 1 >= self._settings.limits.attempts:
                        raise
                    pause = backoff.next_seconds(error)
                await self._settings.sleep(pause)

    async def _answer_to(self, request: PlayMatchCommand) -> CommandOutcome:
        """Send once, or more often over streams that break; wait for the answer. A stream that owes it is given up."""
        if self._failure is not None:
            raise self._failure
        future: asyncio.Future[CommandOutcome] = asyncio.get_running_loop().create_future()
        self._unanswered[request.command_id] = (request, future)
        if self._outbox is not None:
            self._outbox.put_nowait(PlayMatchRequest(command=request))
        try:
            async with asyncio.timeout(self._settings.limits.attempt_seconds):
                return await future
        except TimeoutError:
            self._reader.lose_patience()
            raise UnavailableError("no answer in time", code=grpc.StatusCode.DEADLINE_EXCEEDED) from None
        finally:
            del self._unanswered[request.command_id]

    async def _run(self) -> None:
        try:
            while True:
                try:
                    await self._one_stream()
                except ClientError as error:
                    await self._resumption.broken(error)
        except Exception as error:  # noqa: BLE001 - whoever waits must hear of it, whatever it is
            self._fail(error)

    async def _one_stream(self) -> None:
        """Returns after a goodbye; raises `ClientError` when the stream broke."""
        self._resumption.opened()
        opening = PlayMatchOpen(match_id=self._match_id, after_version=self._resumption.version)
        self._outbox = asyncio.Queue()
        self._outbox.put_nowait(PlayMatchRequest(open=opening))
        for request, _ in self._unanswered.values():
            self._outbox.put_nowait(PlayMatchRequest(command=request))
        call = self._stub.PlayMatch(metadata=self._metadata)
        writer = asyncio.create_task(_write(call, self._outbox))
        try:
            while await self._goes_on_after(await self._reader.read(call)):
                pass
        finally:
            self._outbox = None
            writer.cancel()
            call.cancel()
            await asyncio.gather(writer, return_exceptions=True)

    async def _goes_on_after(self, message: PlayMatchResponse) -> bool:
        """Handle a message; says whether another one may follow."""
        kind = message.WhichOneof("message")
        if kind == "going_away":
            await self._resumption.going_away(message.going_away)
            return False
        self._resumption.alive()
        match kind:
            case "update":
                self._presence = message.update.presence
                self._part.see(message.update.view.public.fair_deal)
                if self._resumption.admit(message.update):
                    self._mailbox.put(message.update)
            case "outcome":
                self._show(message.outcome)
                self._settle(message.outcome.command_id, message.outcome)
            case "error":
                self._settle(message.error.command_id, from_command_error(message.error))
            case _:
                pass  # a heartbeat, or something newer than this client
        return True

    def _show(self, outcome: CommandOutcome) -> None:
        """Make an update of an outcome's view: its version is not sent again."""
        last, version = self._resumption.version, outcome.view.public.version
        if version <= last:
            return
        self._part.see(outcome.view.public.fair_deal)
        update = MatchUpdate(
            view=outcome.view,
            events=outcome.accepted.events,
            events_complete=outcome.accepted.version == version == last + 1,
            service_now_unix_ns=outcome.service_now_unix_ns,
            view_digest=outcome.view_digest,
            presence=self._presence,
        )
        if self._resumption.admit(update):
            self._mailbox.put(update)

    def _settle(self, command_id: str, answer: CommandOutcome | ClientError) -> None:
        _, future = self._unanswered.get(command_id, (None, None))
        if future is None or future.done():
            return
        if isinstance(answer, ClientError):
            future.set_exception(answer)
        else:
            future.set_result(answer)

    def _fail(self, error: BaseException) -> None:
        self._failure = error
        self._mailbox.fail(error)
        for _, future in self._unanswered.values():
            if not future.done():
                future.set_exception(error)


async def _write(call: PlayCall, outbox: Outbox) -> None:
    """Write until the stream breaks; why it broke, the reader learns."""
    try:
        while True:
            await call.write(await outbox.get())
    except (grpc.aio.AioRpcError, asyncio.InvalidStateError):
        pass
