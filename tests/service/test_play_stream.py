"""The reading side of PlayMatch on fakes: commands are entered as they come, within limits."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import cast

import grpc
import pytest

from engine.view import Audience
from service.limits import UNLIMITED, Limits
from service.ports import Credential
from service.rpc.arrival import Stamped
from service.rpc.edge import Context
from service.rpc.play_stream import UNANSWERED_COMMANDS, UNSENT_ANSWERS, CommandReader
from service.rpc.render import Renderer
from service.rpc.statuses import StatusError
from service.rpc.streams import Outbox, Presenter
from service.watches import Watch
from spectacularbid.v1 import match_service_pb2 as pb
from tests.support.players import START, in_stream
from tests.support.ports import Process
from tests.support.server import sample_of
from tests.support.virtual_matches import MATCH_ID, log_of, seated, state_of
from tests.support.virtual_time import in_virtual_time, settle

MALFORMED = pb.PlayMatchRequest(command=pb.PlayMatchCommand(command_id="x"))


@dataclass
class Stream:
    """A stream on which a client has sent all of this, and reads nothing."""

    process: Process
    sent: Sequence[pb.PlayMatchRequest]
    taken: int = 0
    wakes: list[None] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.outbox = Outbox(lambda: self.wakes.append(None))
        match = self.process.matches.get(MATCH_ID)
        clock, store = self.process.core.clock, self.process.store
        presenter = Presenter(match, Audience.SEAT_ONE, renderer=Renderer(), clock=clock, store=store)
        credential = Credential(b"", MATCH_ID, Audience.SEAT_ONE)
        watch, limits = Watch(Audience.SEAT_ONE, 0), Limits(lambda: 0, UNLIMITED, self.process.metrics.process.shed)
        self.reader = CommandReader(match, credential, presenter, self.outbox, watch, limits)

    async def read(self) -> object:
        """The next message, as grpc.aio hands it over."""
        await asyncio.sleep(0)
        if self.taken == len(self.sent):
            return grpc.aio.EOF
        self.taken += 1
        return Stamped(self.process.core.clock.arrival(), self.sent[self.taken - 1])

    async def read_all(self) -> None:
        """Read as long as the reader does."""
        await self.reader.read(cast("Context", self))

    async def answers(self) -> list[pb.PlayMatchResponse]:
        """What waits to be written."""
        made = []
        while self.outbox.answers:
            _, (data, _) = await self.outbox.answers.popleft().made()
            made.append(pb.PlayMatchResponse.FromString(data))
        return made


@in_virtual_time
async def test_the_stream_is_finished_when_the_last_answer_is_taken() -> None:
    """Not when the client has said its last, nor when the last command was decided."""
    async with Process.running(seated()) as process:
        stream = Stream(process, [in_stream(START)])
        await stream.read_all()
        assert not stream.outbox.is_finished
        await settle()
        assert (stream.outbox.expected, len(stream.outbox.answers), stream.outbox.is_finished) == (0, 1, False)
        (answer,) = await stream.answers()
        assert answer.outcome.accepted.version == 2
        finished: bool = stream.outbox.is_finished
        assert finished
        assert stream.wakes


@in_virtual_time
async def test_an_answer_is_there_at_the_same_instant_as_the_version_that_it_made() -> None:
    """Otherwise a stream that is awake just then would send the version as an update first."""
    async with Process.running(seated()) as process:
        stream = Stream(process, [in_stream(START)])
        seen: list[int] = []
        process.bus.subscribe(MATCH_ID, lambda version: seen.append((version == 2) * len(stream.outbox.answers)))
        await stream.read_all()
        await settle()
        assert seen[-1] == 1


@in_virtual_time
async def test_commands_that_wait_for_their_answers_are_limited() -> None:
    """Each further one is turned away with its id, and the others are still decided."""
    async with Process.running(seated()) as process:
        process.store.before_append = never
        commands = [in_stream(START) for _ in range(UNANSWERED_COMMANDS + 3)]
        stream = Stream(process, commands)
        await stream.read_all()
        turned_away = [answer.error for answer in await stream.answers()]
        assert [error.command_id for error in turned_away] == [
            message.command.command_id for message in commands[UNANSWERED_COMMANDS:]
        ]
        assert {error.reason for error in turned_away} == {"TOO_MANY_COMMANDS"}
        assert stream.outbox.expected == UNANSWERED_COMMANDS
        assert sample_of(process.metrics.registry, "specbid_load_shed_total", limit="unanswered") == 3


async def never(_: object) -> None:
    """A store that does not answer."""
    await asyncio.Event().wait()


@in_virtual_time
async def test_answers_that_nobody_reads_are_limited() -> None:
    """A client that only sends is sent off; what it sent before is carried out, what comes after is not read."""
    async with Process.running(seated()) as process:
        stream = Stream(process, [in_stream(START), *[MALFORMED] * (UNSENT_ANSWERS + 100)])
        with pytest.raises(StatusError, match="SLOW_READER"):
            await stream.read_all()
        assert stream.taken <= UNSENT_ANSWERS + 2
        assert len(stream.outbox.answers) <= UNSENT_ANSWERS
        assert state_of(process).ready.one
        assert len(log_of(process)) == 2
