"""Players and spectators of a trial: what fails they try again as a good client does; what they see is recorded."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random
from typing import TypeVar

import grpc
from google.protobuf.duration_pb2 import Duration

from engine.view import Audience
from spectacularbid.v1 import commands_pb2, views_pb2
from spectacularbid.v1 import match_service_pb2 as pb
from spectacularbid.v1.match_service_pb2_grpc import MatchServiceStub
from spectacularbid.v1.views_pb2 import MatchView
from tests.chaos.history import Answered, History, Seen, Sent, now_ns
from tests.support.players import Viewer, choose, is_over, new_id

T = TypeVar("T")

ATTEMPT_SECONDS = 3.0
RETRY_SECONDS = 0.1
ATTEMPTS = 100
RETRIABLE = (
    *(grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED),
    *(grpc.StatusCode.INTERNAL, grpc.StatusCode.UNKNOWN, grpc.StatusCode.CANCELLED),
)
"""What a connection that broke, or a service that is away, may look like."""
CONTINUE_SECONDS = 2
START_SECONDS = 5


@dataclass(frozen=True)
class Habits:
    """How often, by chance, a player does something else than answer soon. `think_seconds`: from, to."""

    think_seconds: tuple[float, float] = (0.1, 0.5)
    aims_at_the_deadline: float = 0.05
    lets_it_pass: float = 0.02
    sends_twice: float = 0.1
    """The same command by two ways at once."""
    hangs_up: float = 0.02
    """Takes the call back right after sending it, and sends it again."""
    drops_the_stream: float = 0.02
    talks_nonsense: float = 0.02
    """A command that is malformed, out of turn, or for an old version."""


CAREFUL = Habits()
CARELESS = Habits(hangs_up=0.3, drops_the_stream=0.2, talks_nonsense=0.4, sends_twice=0.3, aims_at_the_deadline=0.1)


@dataclass
class Person:
    """Somebody with a token: one stream at a time, opened again whenever it ends, and calls by any of the ways in."""

    name: str
    audience: Audience
    match_id: str
    token: str
    ways: Sequence[grpc.aio.Channel]
    history: History
    chance: Random
    habits: Habits = CAREFUL
    update: pb.MatchUpdate = field(default_factory=pb.MatchUpdate)
    """The newest one."""
    _news: asyncio.Event = field(default_factory=asyncio.Event)
    _stream: asyncio.Task[None] | None = None
    is_playing: bool = True

    @property
    def view(self) -> MatchView:
        """What is on the table now."""
        return self.update.view

    async def watch(self) -> None:
        """Follow the match to its end."""
        while not is_over(self.view):
            self._stream = asyncio.create_task(self._read())
            try:
                await asyncio.wait((self._stream,))
            finally:
                self._stream.cancel()
            await asyncio.sleep(RETRY_SECONDS)

    async def play(self) -> None:
        """Play by chance until the match is over or `is_playing` ends."""
        while not is_over(self.view):
            self._news.clear()
            if self.is_playing and self.view.own.legal_actions:
                await self._decide(self.view)
            with suppress(TimeoutError):
                async with asyncio.timeout(1.0):  # after a refusal nothing new may come
                    await self._news.wait()

    async def _read(self) -> None:
        viewer = Viewer(MatchServiceStub(self.chance.choice(self.ways)), self.match_id, self.token)
        call = viewer.watch(self.view.public.version)
        try:
            while not is_over(self.view) and isinstance(message := await call.read(), pb.WatchMatchResponse):
                if message.HasField("update"):
                    self._see(message.update)
        except grpc.aio.AioRpcError as error:
            self.history.failures[f"stream {error.code().name}"] += 1
        finally:
            call.cancel()

    def _see(self, update: pb.MatchUpdate) -> None:
        self.history.seen.append(Seen(self.name, self.match_id, self.audience, update, now_ns()))
        self.update = update
        self._news.set()

    async def _decide(self, view: MatchView) -> None:
        habits, chance = self.habits, self.chance
        await asyncio.sleep(chance.uniform(*habits.think_seconds))
        if chance.random() < habits.drops_the_stream and self._stream is not None:
            self._stream.cancel()
        if chance.random() < habits.talks_nonsense:
            await self._talk_nonsense(view)
        deadline_ns = view.public.clock.running.deadline_unix_ns
        if deadline_ns and chance.random() < habits.lets_it_pass:
            await asyncio.sleep((deadline_ns - now_ns()) / 1e9 + 0.5)
        elif deadline_ns and chance.random() < habits.aims_at_the_deadline:
            await asyncio.sleep(max(0.0, (deadline_ns - now_ns()) / 1e9 - chance.uniform(0.02, 0.4)))
        if self.view.public.version != view.public.version:
            return
        await self._submit(choose(chance, view), view.public.version, new_id())

    async def _submit(self, command: commands_pb2.Command, version: int | None, command_id: str) -> None:
        """Send it until it is answered, always with the same id."""
        if self.chance.random() < self.habits.hangs_up:
            hurried = asyncio.create_task(self._send(command, version, command_id))
            await asyncio.sleep(self.chance.uniform(0.0, 0.02))
            hurried.cancel()
            await asyncio.wait((hurried,))
        twice = 2 if self.chance.random() < self.habits.sends_twice else 1
        sendings = [self._until_answered(command, version, command_id) for _ in range(twice)]
        await asyncio.gather(*sendings)

    async def _until_answered(self, command: commands_pb2.Command, version: int | None, command_id: str) -> None:
        for _ in range(ATTEMPTS):
            if await self._send(command, version, command_id):
                return
            await asyncio.sleep(RETRY_SECONDS)
        raise AssertionError("the service never answered")

    async def _send(self, command: commands_pb2.Command, version: int | None, command_id: str) -> bool:
        """One attempt; whether it was answered for good."""
        request = pb.SubmitCommandRequest(
            match_id=self.match_id, command_id=command_id, expected_version=version, command=command
        )
        metadata = (("authorization", f"Bearer {self.token}"),)
        sent = Sent(self.match_id, self.audience, command_id, version, command, now_ns())
        self.history.sent.append(sent)
        stub = MatchServiceStub(self.chance.choice(self.ways))
        try:
            response = await stub.SubmitCommand(request, metadata=metadata, timeout=ATTEMPT_SECONDS)
        except grpc.aio.AioRpcError as error:
            self.history.failures[f"command {error.code().name}"] += 1
            return error.code() in (grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.ALREADY_EXISTS)
        self.history.answered.append(Answered(sent, response.outcome, now_ns()))
        return True

    async def _talk_nonsense(self, view: MatchView) -> None:
        """What no good client sends; the answer does not matter, the match must bear it."""
        nonsense = self.chance.choice(("malformed", "stale", "again"))
        if nonsense == "malformed":
            await self._send(commands_pb2.Command(), None, new_id())
        elif nonsense == "stale":
            await self._send(choose(self.chance, view), 1, new_id())
        else:
            mine = [sent for sent in self.history.sent[-200:] if sent.match_id == self.match_id]
            sent = next((one for one in mine if one.sender is self.audience), None)
            if sent is not None:
                await self._send(sent.command, sent.expected_version, sent.command_id)


@dataclass(frozen=True)
class Table:
    """A match and everybody at it."""

    match_id: str
    players: tuple[Person, Person]
    spectator: Person

    @property
    def people(self) -> tuple[Person, ...]:
        """All three."""
        return (*self.players, self.spectator)


async def seat(number: int, ways: Sequence[grpc.aio.Channel], history: History, habits: Habits) -> Table:
    """A fresh match with two players and a spectator."""
    stub = MatchServiceStub(ways[0])
    request = pb.CreateMatchRequest(
        request_id=new_id(),
        mode=views_pb2.MATCH_MODE_ONLINE,
        continue_timeout=Duration(seconds=CONTINUE_SECONDS),
        start_timeout=Duration(seconds=START_SECONDS),
    )
    created = await insisting(lambda: stub.CreateMatch(request, timeout=ATTEMPT_SECONDS))
    joining = pb.JoinMatchRequest(request_id=new_id(), invite_code=created.invite_code)
    joined = await insisting(lambda: stub.JoinMatch(joining, timeout=ATTEMPT_SECONDS))
    tokens = {
        Audience.SEAT_ONE: created.token,
        Audience.SEAT_TWO: joined.token,
        Audience.SPECTATOR: created.spectator_token,
    }
    one, two, spectator = (
        Person(f"{number} {audience.name}", audience, created.match_id, token, ways, history, Random(number), habits)
        for audience, token in tokens.items()
    )
    return Table(created.match_id, (one, two), spectator)


async def insisting(call: Callable[[], Awaitable[T]]) -> T:
    """The answer of a call that is made again, with the same id, while the service is away."""
    for _ in range(ATTEMPTS):
        try:
            return await call()
        except grpc.aio.AioRpcError as error:
            if error.code() not in RETRIABLE:
                raise
            await asyncio.sleep(RETRY_SECONDS)
    raise AssertionError("the service never answered")
