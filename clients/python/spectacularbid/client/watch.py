"""Watching a match: a player by WatchMatch, a spectator by SpectateMatch."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from typing import TYPE_CHECKING, Protocol, TypeAlias

from spectacularbid.client.errors import ClientError
from spectacularbid.client.resume import PatientReader, Readable, Resumption
from spectacularbid.client.retry import Metadata
from spectacularbid.client.settings import Settings
from spectacularbid.v1.match_service_pb2 import (
    MatchUpdate,
    SpectateMatchRequest,
    SpectateMatchResponse,
    WatchMatchRequest,
    WatchMatchResponse,
)

if TYPE_CHECKING:
    from spectacularbid.v1.match_service_pb2_grpc import MatchServiceAsyncStub


StreamMessage: TypeAlias = WatchMatchResponse | SpectateMatchResponse


class Stream(Readable[StreamMessage], Protocol):
    """One stream, as it is needed here."""

    def cancel(self) -> bool:
        """Hang up."""


Open: TypeAlias = Callable[[int], Stream]
"""Opens a stream that goes on after a version."""


def watching(stub: MatchServiceAsyncStub, match_id: str, metadata: Metadata) -> Open:
    """How a player watches."""
    return lambda version: stub.WatchMatch(
        WatchMatchRequest(match_id=match_id, after_version=version), metadata=metadata
    )


def spectating(stub: MatchServiceAsyncStub, match_id: str, metadata: Metadata) -> Open:
    """How a spectator watches."""
    return lambda version: stub.SpectateMatch(
        SpectateMatchRequest(match_id=match_id, after_version=version), metadata=metadata
    )


async def watch(open_stream: Open, *, settings: Settings, after_version: int = 0) -> AsyncGenerator[MatchUpdate, None]:
    """Yields whole views until one has a result. Resumes by itself; raises `ClientError` when that is hopeless."""
    resumption = Resumption(settings, after_version)
    reader = PatientReader(settings)
    while True:
        resumption.opened()
        call = open_stream(resumption.version)
        try:
            while (update := await _next_update(call, reader, resumption)) is not None:
                yield update
                if update.view.public.HasField("result"):
                    return
        except ClientError as error:
            await resumption.broken(error)
        finally:
            call.cancel()


async def _next_update(
    call: Readable[StreamMessage], reader: PatientReader, resumption: Resumption
) -> MatchUpdate | None:
    """The next update worth showing, or None after a goodbye."""
    while True:
        message = await reader.read(call)
        if message.WhichOneof("message") == "going_away":
            await resumption.going_away(message.going_away)
            return None
        resumption.alive()
        # Anything else is a heartbeat, or newer than this client.
        if message.HasField("update") and resumption.admit(update := _match_update(message)):
            return update


def _match_update(message: StreamMessage) -> MatchUpdate:
    """The update. A spectator's has the same fields but one, with the same numbers, so that one type is enough here."""
    if isinstance(message, SpectateMatchResponse):
        return MatchUpdate.FromString(message.update.SerializeToString(deterministic=True))
    return message.update
