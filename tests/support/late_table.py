"""A match whose clock is nearly out on a process of its own, which may be stopped, killed or starved."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import grpc

from engine.view import Audience
from service.rpc.auth import ARRIVAL_HEADER
from service.system.time import ANCHOR_KEY, Anchor, boot_ns
from spectacularbid.v1 import events_pb2, outcomes_pb2
from spectacularbid.v1 import match_service_pb2 as pb
from spectacularbid.v1.commands_pb2 import Command
from spectacularbid.v1.match_service_pb2_grpc import MatchServiceStub
from tests.support.late_match import MATCH_ID, TOKENS, LateMatch, write_late_match
from tests.support.players import CONTINUE, Viewer, play
from tests.support.server import ServerProcess, server_process


async def end_of(viewer: Viewer) -> events_pb2.MatchWon | events_pb2.MatchAborted:
    """How a match ended, as this viewer is told by a stream."""
    async with viewer.watching() as call:
        while isinstance(response := await call.read(), pb.WatchMatchResponse):
            result = response.update.view.public.result
            if result.HasField("won"):
                return result.won
            if result.HasField("aborted"):
                return result.aborted
    raise AssertionError("the stream ended before the match")


@dataclass
class LateTable:
    """The late match on a running process, seen by its player on turn and by a spectator."""

    match: LateMatch
    server: ServerProcess
    database: Path
    offset_ns: int
    player: Viewer
    spectator: Viewer

    async def until_deadline(self, seconds: float) -> None:
        """Wait until so long before the deadline; negative: after it."""
        now_ns = boot_ns() + self.offset_ns
        await asyncio.sleep(max(0.0, (self.match.deadline_ns - now_ns) / 1e9 - seconds))

    def at(self, channel: grpc.aio.Channel) -> LateTable:
        """The same table by another door."""
        stub = MatchServiceStub(channel)
        return replace(self, player=replace(self.player, stub=stub), spectator=replace(self.spectator, stub=stub))

    async def play(self, command_id: str = "", *, stamp: str | None = None) -> outcomes_pb2.CommandOutcome:
        """Send the play that the rules allow, maybe with a stamp of arrival as a proxy makes it."""
        tile, end = self.match.command.tile, self.match.command.end.value
        return await self._submit(play(f"{tile.low}-{tile.high} {end}"), command_id, stamp)

    async def say_nothing(self, *, stamp: str | None = None) -> outcomes_pb2.CommandOutcome:
        """Send a command that is refused."""
        return await self._submit(CONTINUE, "", stamp)

    async def _submit(self, command: Command, command_id: str, stamp: str | None) -> outcomes_pb2.CommandOutcome:
        request = self.player.request(command, command_id=command_id)
        stamps = () if stamp is None else ((ARRIVAL_HEADER, stamp),)
        answer = await self.player.stub.SubmitCommand(request, metadata=(*self.player.metadata, *stamps))
        return answer.outcome

    async def result(self) -> events_pb2.MatchWon | events_pb2.MatchAborted:
        """How the match ended, as a spectator is told."""
        async with asyncio.timeout(20):
            return await end_of(self.spectator)

    def causes(self) -> set[str]:
        """The causes in the fault ledger."""
        with sqlite3.connect(f"file:{self.database}?mode=ro", uri=True) as connection:
            return {cause for (cause,) in connection.execute("SELECT cause FROM faults")}


def offset_of(database: Path) -> int:
    """What service time is ahead of boot time by, in this file."""
    with sqlite3.connect(f"file:{database}?mode=ro", uri=True) as connection:
        ((text,),) = connection.execute("SELECT value FROM meta WHERE key = ?", (ANCHOR_KEY,))
    return Anchor.from_text(text).offset_ns


@asynccontextmanager
async def running(match: LateMatch, database: Path, **settings: str) -> AsyncIterator[LateTable]:
    """A process that serves the late match."""
    async with server_process(database, **settings) as server, grpc.aio.insecure_channel(server.address) as channel:
        stub = MatchServiceStub(channel)
        yield LateTable(
            match,
            server,
            database,
            offset_of(database),
            Viewer(stub, MATCH_ID, match.token),
            Viewer(stub, MATCH_ID, TOKENS[Audience.SPECTATOR]),
        )


@asynccontextmanager
async def late_table(
    folder: Path, *, deadline_in_seconds: float = 5.0, wall_step_seconds: int = 0, **settings: str
) -> AsyncIterator[LateTable]:
    """A fresh late match on a fresh process."""
    database = folder / "late.sqlite3"
    match = await write_late_match(
        database, deadline_in_seconds=deadline_in_seconds, wall_step_seconds=wall_step_seconds
    )
    async with running(match, database, **settings) as table:
        yield table
