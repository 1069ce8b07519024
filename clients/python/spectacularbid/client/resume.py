"""What a stream needs to go on after it broke: where it stands, how long to wait, when to give up."""

from __future__ import annotations

import asyncio
from typing import Protocol, TypeVar

import grpc

from spectacularbid.client.digest import check_digest
from spectacularbid.client.errors import (
    ClientError,
    ConnectionClosedError,
    ResumePointGoneError,
    UnavailableError,
    from_rpc_error,
)
from spectacularbid.client.retry import Backoff, is_cancelled_from_outside
from spectacularbid.client.settings import Connection, Settings
from spectacularbid.v1.match_service_pb2 import GoingAway, MatchUpdate

Message = TypeVar("Message")
Message_co = TypeVar("Message_co", covariant=True)


class Readable(Protocol[Message_co]):
    """The reading half of a stream."""

    async def read(self) -> Message_co | object:
        """The next message, or `grpc.aio.EOF`."""


class Resumption:
    """The course of one logical stream over the streams that carry it."""

    def __init__(self, settings: Settings, version: int = 0) -> None:
        self._settings = settings
        self._backoff = Backoff(settings.limits, settings.jitter)
        self._messages = 0
        self._connection: Connection | None = None
        self.version = version

    def opened(self) -> None:
        """A stream is being opened, to resume after `version`."""
        self._messages = 0

    def alive(self) -> None:
        """A message came, not a goodbye. The second one proves a stream good; the first may be all that it sends."""
        self._messages += 1
        if self._messages == 1:
            self._report(Connection.CONNECTED)
        else:
            self._backoff.reset()

    def admit(self, update: MatchUpdate) -> bool:
        """Whether the update is worth showing: it is not older than the last one. Checks its digest."""
        check_digest(update.view, update.view_digest, self._settings.on_desync)
        if update.view.public.version < self.version:
            return False
        self.version = update.view.public.version
        return True

    async def going_away(self, message: GoingAway) -> None:
        """The server said goodbye: resume at once, unless that was tried just now."""
        self.version = max(self.version, message.resume_after_version)
        self._report(Connection.RECONNECTING)
        if self._backoff.failures:
            await self._pause(None)
        else:
            self._backoff.count()

    async def broken(self, error: ClientError) -> None:
        """The stream broke: wait, or raise the error when it is final or was the last one allowed."""
        if error.is_final or self._backoff.failures >= self._settings.limits.stream_attempts:
            raise error
        if isinstance(error, ResumePointGoneError):
            self.version = 0
        self._report(Connection.RECONNECTING)
        await self._pause(error)

    def _report(self, connection: Connection) -> None:
        if connection is not self._connection:
            self._connection = connection
            self._settings.on_connection(connection)

    async def _pause(self, error: ClientError | None) -> None:
        await self._settings.sleep(self._backoff.next_seconds(error))


class PatientReader:
    """Reads a stream that may fall silent, and says in `ClientError`s how it broke."""

    def __init__(self, settings: Settings) -> None:
        self._silence_seconds = settings.limits.silence_seconds
        self._patience: asyncio.Timeout | None = None

    async def read(self, call: Readable[Message]) -> Message:
        """The next message. Raises `ClientError`, also at the end of the stream and after too long a silence."""
        try:
            async with asyncio.timeout(self._silence_seconds) as self._patience:
                message = await call.read()
        except TimeoutError:
            raise UnavailableError("the stream fell silent", code=grpc.StatusCode.UNAVAILABLE) from None
        except grpc.aio.AioRpcError as error:
            raise from_rpc_error(error) from None
        except asyncio.CancelledError:
            if is_cancelled_from_outside():
                raise
            raise ConnectionClosedError from None
        finally:
            self._patience = None
        if message is grpc.aio.EOF:
            raise UnavailableError("the stream ended", code=grpc.StatusCode.UNAVAILABLE)
        return message  # type: ignore[return-value] # all but EOF are messages

    def lose_patience(self) -> None:
        """Make the read that is under way fail now."""
        if self._patience is not None:
            self._patience.reschedule(asyncio.get_running_loop().time())
