"""One slot between a stream and its reader: the latest view, with all events since the reader last looked."""

from __future__ import annotations

import asyncio

from spectacularbid.v1.match_service_pb2 import MatchUpdate


class Mailbox:
    """A writer never waits; a slow reader gets one update in place of several.

    The events of those updates are joined as long as there are no more than `merged_events`.
    """

    def __init__(self, merged_events: int) -> None:
        self._merged_events = merged_events
        self._update: MatchUpdate | None = None
        self._error: BaseException | None = None
        self._filled = asyncio.Event()

    def put(self, update: MatchUpdate) -> None:
        """Leave an update that is newer than all before."""
        self._update = update if self._update is None else self._joined(self._update, update)
        self._filled.set()

    def fail(self, error: BaseException) -> None:
        """Let readers have this error once the last update is taken."""
        self._error = error
        self._filled.set()

    async def take(self) -> MatchUpdate:
        """Wait for an update."""
        await self._filled.wait()
        update, self._update = self._update, None
        if update is None:
            assert self._error is not None  # nothing else sets the event
            raise self._error
        if self._error is None:
            self._filled.clear()
        return update

    def _joined(self, earlier: MatchUpdate, later: MatchUpdate) -> MatchUpdate:
        """`later` with the events of both; both are this client's own copies."""
        if len(earlier.events) + len(later.events) > self._merged_events:
            del later.events[:]
            later.events_complete = False
            return later
        events = [*earlier.events, *later.events]
        del later.events[:]
        later.events.extend(events)
        later.events_complete = earlier.events_complete and later.events_complete
        return later
