"""A stream to one viewer: outcomes in order, then the latest view; heartbeats; a resume point at the end."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Protocol, TypeAlias

from engine.clock import SECOND_NS
from engine.state import MatchState
from engine.view import Audience
from service.line import Done
from service.match import Match
from service.metrics.streams import StreamMetrics
from service.ports import Clock, Store
from service.rpc import facts
from service.rpc.auth import TOKEN_LIFE_NS
from service.rpc.edge import Context
from service.rpc.outbound import Addressed, Guard
from service.rpc.render import News, Renderer, Version
from service.rpc.requests import CommandFields
from service.rpc.statuses import COMMAND_ID_REUSED, FUTURE_VERSION, SLOW_READER, TOKEN_EXPIRED, StatusError
from service.rpc.wire import sub_message
from service.watches import Watch
from spectacularbid.v1 import match_service_pb2 as pb
from spectacularbid.v1 import outcomes_pb2

StreamResponse: TypeAlias = "type[pb.WatchMatchResponse | pb.PlayMatchResponse | pb.SpectateMatchResponse]"
"""The messages of a stream. Their fields share names and, with those of the updates, numbers."""
HEARTBEAT_SECONDS = 15.0
"""The longest silence of a stream."""
STUCK_WRITE_SECONDS = 5.0
LISTENING_SECONDS = 1.0
"""How long a stream that goes away takes commands on: they were sent before its client could know."""
LOOK_SECONDS = 5.0
"""How often a stream's timer looks, and so how much later it may find a write stuck."""
_update_view = sub_message(pb.MatchUpdate.DESCRIPTOR, "view")
_outcome_accepted = sub_message(outcomes_pb2.CommandOutcome.DESCRIPTOR, "accepted")
_outcome_refused = sub_message(outcomes_pb2.CommandOutcome.DESCRIPTOR, "refused")
_outcome_receipt = sub_message(outcomes_pb2.CommandOutcome.DESCRIPTOR, "receipt")
_outcome_view = sub_message(outcomes_pb2.CommandOutcome.DESCRIPTOR, "view")


@cache
def _presence_bytes(seat_one: bool, seat_two: bool) -> bytes:  # noqa: FBT001  unpacked from a pair
    presence = pb.Presence(seat_one=seat_one, seat_two=seat_two)
    return pb.MatchUpdate(presence=presence).SerializeToString()


class Presenter:
    """Turns states and outcomes into serialized messages for one viewer of one match."""

    def __init__(self, match: Match, audience: Audience, *, renderer: Renderer, clock: Clock, store: Store) -> None:
        self._match = match
        self._audience = audience
        self._renderer = renderer
        self._clock = clock
        self._store = store

    def presence(self) -> tuple[bool, bool]:
        """Which seats have a stream open here."""
        return self._match.presence

    def update(self, state: MatchState, cursor: int) -> Addressed:
        """A serialized MatchUpdate (for spectators a SpectatorUpdate) with the events after `cursor`."""
        version = self._renderer.version(self._match.match_id, state)
        view = version.view(self._audience)
        events, complete = version.news.get(cursor) or self._news(version, cursor)
        envelope = pb.MatchUpdate(
            events_complete=complete, service_now_unix_ns=self._clock.now_ns(), view_digest=view.digest
        )
        presence = _presence_bytes(*self._match.presence)
        data = (envelope.SerializeToString(), presence, events, _update_view[len(view.data)], view.data)
        return b"".join(data), view

    async def outcome(self, fields: CommandFields, done: Done) -> Addressed:
        """A serialized CommandOutcome. Raises ALREADY_EXISTS when the id was used for another command."""
        record = done.record
        assert record is not None
        if done.repeated and record.body_hash != fields.body_hash:
            raise StatusError(COMMAND_ID_REUSED)
        version = self._renderer.version(self._match.match_id, done.state)
        view = version.view(self._audience)
        message = outcomes_pb2.CommandOutcome(
            command_id=fields.command_id,
            service_now_unix_ns=self._clock.now_ns(),
            repeated=done.repeated,
            view_digest=view.digest,
        )
        receipt = facts.receipt_message(record.receipt).SerializeToString()
        if record.refusal is None:
            field, answer = _outcome_accepted, await self._accepted(record.version, version)
        else:
            field, answer = _outcome_refused, facts.refused_message(record.refusal).SerializeToString()
        data = message.SerializeToString() + _outcome_receipt[len(receipt)] + receipt
        return b"".join((data, field[len(answer)], answer, _outcome_view[len(view.data)], view.data)), view

    async def _accepted(self, made: int, version: Version) -> bytes:
        """A serialized Accepted of the command that made the version `made`."""
        if made == version.state.version:
            events, complete = version.news.get(made - 1) or self._news(version, made - 1)
        else:
            steps, complete = self._match.recent.since(made - 1, made)
            events = facts.event_fields(steps)
        if not complete:
            events = facts.event_fields((await self._store.steps(self._match.match_id, made - 1))[0])
        return facts.accepted_version(made) + events

    def _news(self, version: Version, cursor: int) -> News:
        """The events after `cursor`, from here on known to the version."""
        number = version.state.version
        events, complete = self._match.recent.since(cursor, number) if cursor else ((), False)
        news = version.news[cursor] = facts.event_fields(events), complete
        return news


class Pump:
    """Writes one stream: what `guard` lets through, in messages of the type `response`."""

    def __init__(
        self,
        context: Context,
        match: Match,
        presenter: Presenter,
        *,
        guard: Guard,
        clock: Clock,
        response: StreamResponse,
        metrics: StreamMetrics,
    ) -> None:
        self._context = context
        self._match = match
        self._presenter = presenter
        self._guard = guard
        self._clock = clock
        self._response = response
        self._metrics = metrics
        self._update = sub_message(response.DESCRIPTOR, "update")
        self._presence: tuple[bool, bool] | None = None
        self._watch: Watch | None = None
        self._lifeline = Lifeline()
        self._expiry: asyncio.TimerHandle | None = None
        self._is_expired = False

    async def run(self, watch: Watch, outbox: Outbox | None = None) -> None:
        """Write until the service goes away, the token expires or, with an outbox, until the reader is done."""
        self._watch = watch
        try:
            with self._lifeline.watching(watch.wake):
                while True:
                    await watch.woken()
                    if watch.ending is not None:
                        raise watch.ending
                    if self._lifeline.is_silent:
                        beat = pb.Heartbeat(service_now_unix_ns=self._clock.now_ns(), version=watch.cursor)
                        await self._write(self._response(heartbeat=beat).SerializeToString())
                    if outbox is not None:
                        if outbox.answers:
                            await self._send_outcomes(watch, outbox)
                        if outbox.is_finished:
                            return
                    await self._send_update(watch)
                    if watch.going_away:
                        await self._go_away(watch, outbox)
                        return
        finally:
            if self._expiry is not None:
                self._expiry.cancel()

    async def _go_away(self, watch: Watch, outbox: Outbox | None) -> None:
        away = pb.GoingAway(resume_after_version=watch.cursor)
        await self._write(self._response(going_away=away).SerializeToString())
        if self._is_expired:
            raise StatusError(TOKEN_EXPIRED)
        if outbox is not None:
            await self._listen_on(watch, outbox)

    async def _listen_on(self, watch: Watch, outbox: Outbox) -> None:
        """Answer what still comes, until the client has said its last or had the time to hear that it should.

        Whatever arrives on a stream that has ended nobody can read, be it in time or not.
        """
        is_time_up = False

        def end() -> None:
            nonlocal is_time_up
            is_time_up = True
            watch.wake()

        timer = asyncio.get_running_loop().call_later(LISTENING_SECONDS, end)
        try:
            while not (outbox.is_finished or is_time_up):
                await watch.woken()
                if watch.ending is not None:
                    raise watch.ending
                await self._send_outcomes(watch, outbox)
        finally:
            timer.cancel()

    def _expire_at(self, watch: Watch, at_ns: int) -> None:
        """Have the stream end at this instant of service time, with a resume point for a better token."""
        left_ns = at_ns - self._clock.now_ns()
        if left_ns > 0:  # also where the loop's timer was early by service time
            self._expiry = asyncio.get_running_loop().call_later(left_ns / SECOND_NS, self._expire_at, watch, at_ns)
            return
        self._is_expired = watch.going_away = True
        watch.wake()

    async def _send_update(self, watch: Watch) -> None:
        state = self._match.known or await self._match.known_state()
        presence = self._match.presence
        if self._presence is None and watch.cursor > state.version:
            raise StatusError(FUTURE_VERSION)
        if state.result is not None and self._expiry is None:
            self._expire_at(watch, state.result.at_ns + TOKEN_LIFE_NS)
        if state.version > watch.cursor or presence != self._presence:
            data, view = self._presenter.update(state, watch.cursor)
            is_news = self._presence is not None and state.version > watch.cursor
            watch.cursor, self._presence = max(watch.cursor, state.version), presence
            await self._write(self._guard.release((self._update[len(data)] + data, view)))
            if is_news and (durable_ns := self._match.durable_ns(state.version)) is not None:
                self._metrics.delivered(self._clock.now_ns() - durable_ns)

    async def _send_outcomes(self, watch: Watch, outbox: Outbox) -> None:
        while outbox.answers:
            version, message = await outbox.answers.popleft().made()
            if version is not None:
                if watch.cursor < version - 1:  # the other player's events come first
                    await self._send_update(watch)
                watch.cursor = max(watch.cursor, version)
            await self._write(self._guard.release(message))

    async def _write(self, data: bytes) -> None:
        if self._watch is not None and self._watch.ending is not None:
            raise self._watch.ending
        self._lifeline.writing()
        await self._context.write(data)
        if self._lifeline.is_stuck:
            raise StatusError(SLOW_READER)
        self._lifeline.written()


class Lifeline:
    """One slow timer a stream: asks for a heartbeat when it is silent, and notes when a write is stuck.

    A timer for every message would cost more than the message's rules. A stuck write cannot be given up: while it is
    under way gRPC takes no status either, and cancelling it leaves the client without an end. So a reader that stopped
    is sent off when it reads on; until then it costs the one message that it was sent last.
    """

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._last = self._loop.time()
        self._is_writing = False
        self.is_silent = False
        self.is_stuck = False

    @contextmanager
    def watching(self, wake: Callable[[], None]) -> Iterator[None]:
        """Look after the stream inside the block; `wake` makes the writer look at `is_silent`."""
        timer: asyncio.TimerHandle

        def look() -> None:
            nonlocal timer
            quiet_seconds = self._loop.time() - self._last
            if self._is_writing and quiet_seconds >= STUCK_WRITE_SECONDS:
                self.is_stuck = True
                return
            if not self._is_writing and quiet_seconds > HEARTBEAT_SECONDS - LOOK_SECONDS:
                self.is_silent = True
                wake()
            timer = self._loop.call_later(LOOK_SECONDS, look)

        timer = self._loop.call_later(LOOK_SECONDS, look)
        try:
            yield
        finally:
            timer.cancel()

    def writing(self) -> None:
        """A write begins."""
        self._is_writing = True
        self._last = self._loop.time()

    def written(self) -> None:
        """The write was taken over by the transport."""
        self._is_writing = self.is_silent = False


class Answer(Protocol):
    """What a command of a stream came to."""

    async def made(self) -> tuple[int | None, Addressed]:
        """A serialized response, and the version that it brings the viewer to, if it does."""


class Outbox:
    """Answers to the commands of one stream, in the order in which they were decided.

    An answer is here at the same instant as the version that its command made, so it is sent before that version is.
    """

    def __init__(self, wake: Callable[[], None]) -> None:
        self._wake = wake
        self._closed = False
        self.answers: deque[Answer] = deque()
        """Those that can be made and are to be written."""
        self.expected = 0
        """Commands that wait for their answers."""

    @property
    def is_finished(self) -> bool:
        """Whether the client said its last and has every answer."""
        return self._closed and not self.expected and not self.answers

    def put(self, answer: Answer) -> None:
        """An answer can be made."""
        self.answers.append(answer)
        self._wake()

    def close(self) -> None:
        """The client will send no more."""
        self._closed = True
        self._wake()
