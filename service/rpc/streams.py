"""A stream to one viewer: outcomes in order, then the latest view; heartbeats; a resume point at the end."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from engine.events import Event
from engine.state import MatchState
from engine.view import Audience
from service.line import Done
from service.match import Match
from service.ports import Clock, CommandRecord, Store
from service.rpc import facts
from service.rpc.edge import Context
from service.rpc.render import RenderedView, Renderer
from service.rpc.requests import CommandFields
from service.rpc.statuses import COMMAND_ID_REUSED, FUTURE_VERSION, SLOW_READER, StatusError
from service.rpc.wire import SubMessage
from service.watches import Watch
from spectacularbid.v1 import match_service_pb2 as pb
from spectacularbid.v1 import outcomes_pb2

Answer: TypeAlias = Callable[[], Awaitable[tuple[int | None, bytes]]]
"""Makes a serialized response, and the version that it brings the viewer to, if it does."""
HEARTBEAT_SECONDS = 15.0
STUCK_WRITE_SECONDS = 5.0
_update_view = SubMessage(pb.MatchUpdate.DESCRIPTOR, "view")
_outcome_view = SubMessage(outcomes_pb2.CommandOutcome.DESCRIPTOR, "view")


class Presenter:
    """Turns states and outcomes into serialized messages for one viewer of one match."""

    def __init__(self, match: Match, audience: Audience, *, renderer: Renderer, clock: Clock, store: Store) -> None:
        self._match = match
        self._audience = audience
        self._renderer = renderer
        self._clock = clock
        self._store = store

    def view(self, state: MatchState) -> RenderedView:
        """The serialized MatchView."""
        return self._renderer.view(self._match.match_id, state, self._audience)

    def presence(self) -> tuple[bool, bool]:
        """Which seats have a stream open here."""
        watched = self._match.is_watched_by
        return watched(Audience.SEAT_ONE, Audience.DEVICE), watched(Audience.SEAT_TWO, Audience.DEVICE)

    def update(self, state: MatchState, cursor: int) -> bytes:
        """A serialized MatchUpdate with the events after `cursor`."""
        events, complete = self._match.recent.since(cursor, state.version) if cursor else ((), False)
        view = self.view(state)
        one, two = self.presence()
        envelope = pb.MatchUpdate(
            events=[facts.event_message(event) for event in events],
            events_complete=complete,
            service_now_unix_ns=self._clock.now_ns(),
            view_digest=view.digest,
            presence=pb.Presence(seat_one=one, seat_two=two),
        )
        return envelope.SerializeToString() + _update_view(view.data)

    async def outcome(self, fields: CommandFields, done: Done) -> bytes:
        """A serialized CommandOutcome. Raises ALREADY_EXISTS when the id was used for another command."""
        record = done.record
        assert record is not None
        if done.repeated and record.body_hash != fields.body_hash:
            raise StatusError(COMMAND_ID_REUSED)
        view = self.view(done.state)
        message = outcomes_pb2.CommandOutcome(
            command_id=fields.command_id,
            receipt=facts.receipt_message(record.receipt),
            service_now_unix_ns=self._clock.now_ns(),
            repeated=done.repeated,
            view_digest=view.digest,
        )
        if record.refusal is not None:
            message.refused.CopyFrom(facts.refused_message(record.refusal))
        else:
            message.accepted.version = record.version
            message.accepted.events.extend([facts.event_message(event) for event in await self._events(record)])
        return message.SerializeToString() + _outcome_view(view.data)

    async def _events(self, record: CommandRecord) -> tuple[Event, ...]:
        events, complete = self._match.recent.since(record.version - 1, record.version)
        if complete:
            return events
        return tuple((await self._store.steps(self._match.match_id, record.version - 1))[0])


class Pump:
    """Writes one stream. `Response` is WatchMatchResponse or PlayMatchResponse, whose fields share their names."""

    def __init__(
        self,
        context: Context,
        match: Match,
        presenter: Presenter,
        *,
        clock: Clock,
        response: type[pb.WatchMatchResponse | pb.PlayMatchResponse],
    ) -> None:
        self._context = context
        self._match = match
        self._presenter = presenter
        self._clock = clock
        self._response = response
        self._update = SubMessage(response.DESCRIPTOR, "update")
        self._presence: tuple[bool, bool] | None = None

    async def run(self, watch: Watch, outbox: Outbox | None = None) -> None:
        """Write until the service goes away or, with an outbox, until the reader is done."""
        while True:
            if not await watch.woken(HEARTBEAT_SECONDS):
                beat = pb.Heartbeat(service_now_unix_ns=self._clock.now_ns(), version=watch.cursor)
                await self._write(self._response(heartbeat=beat).SerializeToString())
                continue
            if outbox is not None:
                await self._send_outcomes(watch, outbox)
                if outbox.is_finished:
                    return
            await self._send_update(watch)
            if watch.going_away:
                away = pb.GoingAway(resume_after_version=watch.cursor)
                await self._write(self._response(going_away=away).SerializeToString())
                return

    async def _send_update(self, watch: Watch) -> None:
        state = await self._match.state()
        presence = self._presenter.presence()
        if self._presence is None and watch.cursor > state.version:
            raise StatusError(FUTURE_VERSION)
        if state.version > watch.cursor or presence != self._presence:
            data = self._presenter.update(state, watch.cursor)
            watch.cursor, self._presence = max(watch.cursor, state.version), presence
            await self._write(self._update(data))

    async def _send_outcomes(self, watch: Watch, outbox: Outbox) -> None:
        while (item := outbox.next()) is not None:
            version, data = await item()
            if version is not None:
                if watch.cursor < version - 1:  # the other player's events come first
                    await self._send_update(watch)
                watch.cursor = max(watch.cursor, version)
            await self._write(data)

    async def _write(self, data: bytes) -> None:
        try:
            async with asyncio.timeout(STUCK_WRITE_SECONDS):
                await self._context.write(data)
        except TimeoutError as error:
            raise StatusError(SLOW_READER) from error


class Outbox:
    """Answers to the commands of one stream, in the order in which they were decided."""

    def __init__(self, wake: Callable[[], None]) -> None:
        self._wake = wake
        self._items: deque[Answer] = deque()
        self._pending = 0
        self._closed = False

    @property
    def pending(self) -> int:
        """Commands that wait for their answers."""
        return self._pending

    @property
    def is_finished(self) -> bool:
        """Whether the client said its last and has every answer."""
        return self._closed and not self._pending and not self._items

    def expect(self) -> None:
        """A command was entered."""
        self._pending += 1

    def put(self, answer: Answer, *, expected: bool) -> None:
        """An answer is there; `expected` if its command was entered."""
        self._pending -= expected
        self._items.append(answer)
        self._wake()

    def next(self) -> Answer | None:
        """The next answer to send."""
        return self._items.popleft() if self._items else None

    def close(self) -> None:
        """The client will send no more."""
        self._closed = True
        self._wake()
