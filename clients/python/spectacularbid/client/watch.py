"""Watching a match by WatchMatch."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING

from spectacularbid.client.errors import ClientError
from spectacularbid.client.resume import PatientReader, Readable, Resumption
from spectacularbid.client.retry import Metadata
from spectacularbid.client.settings import Settings
from spectacularbid.v1.match_service_pb2 import MatchUpdate, WatchMatchRequest, WatchMatchResponse

if TYPE_CHECKING:
    from spectacularbid.v1.match_service_pb2_grpc import MatchServiceAsyncStub


async def watch(
    stub: MatchServiceAsyncStub, match_id: str, *, metadata: Metadata, settings: Settings, after_version: int = 0
) -> AsyncGenerator[MatchUpdate, None]:
    """Yields whole views until one has a result. Resumes by itself; raises `ClientError` when that is hopeless."""
    resumption = Resumption(settings, after_version)
    reader = PatientReader(settings)
    while True:
        resumption.opened()
        request = WatchMatchRequest(match_id=match_id, after_version=resumption.version)
        call = stub.WatchMatch(request, metadata=metadata)
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
    call: Readable[WatchMatchResponse], reader: PatientReader, resumption: Resumption
) -> MatchUpdate | None:
    """The next update worth showing, or None after a goodbye."""
    while True:
        message = await reader.read(call)
        if message.WhichOneof("message") == "going_away":
            await resumption.going_away(message.going_away)
            return None
        resumption.alive()
        # Anything else is a heartbeat, or newer than this client.
        if message.HasField("update") and resumption.admit(message.update):
            return message.update
