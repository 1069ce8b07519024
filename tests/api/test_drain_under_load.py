"""A planned stop while everybody plays and watches: what was acknowledged stands, everybody knows where to go on."""

import asyncio
import signal
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

import grpc

from service.core import GRACE_SECONDS
from spectacularbid.v1 import match_service_pb2 as pb
from spectacularbid.v1.commands_pb2 import Command
from spectacularbid.v1.outcomes_pb2 import CommandOutcome
from spectacularbid.v1.views_pb2 import MatchView
from tests.support.players import (
    PlayCall,
    StreamCall,
    Table,
    Viewer,
    choose,
    in_stream,
    is_over,
    new_id,
    new_table,
    read_play,
    read_update,
)
from tests.support.server import server_process
from tests.support.waiting import until

DRAIN_SECONDS = 1.0
TABLES = 3
"""Of each kind: with calls, and on one stream for both players of a shared device."""
COMMANDS_BEFORE_THE_STOP = 200
PATIENCE_SECONDS = 60.0
TRY_AGAIN = {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED}
"""What a call may meet at the very end; grpc itself cancels one that comes while the door is being closed."""


@dataclass
class Play:
    """What was sent at a table, and what of it was acknowledged with which version (0: refused)."""

    table: Table
    sent: dict[str, tuple[Viewer, Command]] = field(default_factory=dict)
    acknowledged: dict[str, int] = field(default_factory=dict)
    codes: list[grpc.StatusCode] = field(default_factory=list)

    def send(self, player: Viewer, view: MatchView) -> tuple[str, Command]:
        """Choose a command and note it."""
        command_id, command = new_id(), choose(self.table.chance, view)
        self.sent[command_id] = player, command
        return command_id, command

    def note(self, outcome: CommandOutcome) -> None:
        """It was acknowledged."""
        assert outcome.HasField("accepted"), outcome.refused
        self.acknowledged[outcome.command_id] = outcome.accepted.version

    async def by_calls(self) -> None:
        """Play by SubmitCommand until a call fails or the clocks stand, when there is nothing to do."""
        try:
            while (view := await self.table.on_turn_view()).own.legal_actions:
                player = self.table.seat(view.own.seat)
                command_id, command = self.send(player, view)
                self.note(await player.submit(command, command_id=command_id))
        except grpc.aio.AioRpcError as error:
            self.codes.append(error.code())

    async def on_a_stream(self) -> pb.GoingAway | None:
        """Play by PlayMatch until the server goes away; what it says then."""
        device, waits = self.table.one, False
        async with device.playing() as call:
            while True:
                message = await read_play(call)
                if message.HasField("going_away"):
                    await self.hear_out(call)
                    return message.going_away
                if message.HasField("error"):
                    self.codes.append(next(code for code in grpc.StatusCode if code.value[0] == message.error.code))
                    continue
                if message.HasField("outcome"):
                    self.note(message.outcome)
                    waits = False
                view = message.outcome.view if message.HasField("outcome") else message.update.view
                if is_over(view):
                    return None
                if view.own.legal_actions and not waits:
                    command_id, command = self.send(device, view)
                    await call.write(in_stream(command, command_id=command_id))
                    waits = True

    async def hear_out(self, call: PlayCall) -> None:
        """After the farewell: say one's last, and take the answers that were still owed."""
        await call.done_writing()
        while isinstance(message := await call.read(), pb.PlayMatchResponse):
            if message.HasField("outcome"):
                self.note(message.outcome)
            else:
                self.codes.append(next(code for code in grpc.StatusCode if code.value[0] == message.error.code))
        assert await call.code() is grpc.StatusCode.OK


async def watched(call: StreamCall) -> tuple[int, pb.GoingAway]:
    """Watch until the server goes away: the last version that was shown, and what it says then."""
    version = 0
    while isinstance(message := await call.read(), pb.WatchMatchResponse):
        if message.HasField("going_away"):
            assert await call.read() is grpc.aio.EOF
            assert await call.code() is grpc.StatusCode.OK
            return version, message.going_away
        version = max(version, message.update.view.public.version)
    raise AssertionError("the stream ended without a resume point")


async def test_a_stop_under_load_loses_no_command_and_tells_every_viewer_where_to_go_on(tmp_path: Path) -> None:
    """SIGTERM while six matches are played as fast as they can; the next process goes on with all of them."""
    database = tmp_path / "matches.sqlite3"
    loop = asyncio.get_running_loop()
    async with (
        server_process(database, DRAIN_SECONDS=str(DRAIN_SECONDS)) as server,
        grpc.aio.insecure_channel(server.address) as channel,
    ):
        tables = [await new_table(channel, start=True, shared_device=number < TABLES) for number in range(2 * TABLES)]
        plays = [Play(table) for table in tables]
        calls = [viewer.watch() for table in tables for viewer in dict.fromkeys((*table.seats, table.spectator))]
        watching = [asyncio.create_task(watched(call)) for call in calls]
        streams: list[Callable[[], Awaitable[object]]] = [play.on_a_stream for play in plays[:TABLES]]
        playing = [asyncio.ensure_future(play()) for play in (*streams, *(play.by_calls for play in plays[TABLES:]))]
        await until(lambda: sum(len(play.acknowledged) for play in plays) >= COMMANDS_BEFORE_THE_STOP)
        before = sum(len(play.acknowledged) for play in plays)
        began = loop.time()
        assert await server.stop(signal.SIGTERM) == 0
        assert DRAIN_SECONDS <= loop.time() - began < DRAIN_SECONDS + GRACE_SECONDS
        async with asyncio.timeout(PATIENCE_SECONDS):
            resume_points = await asyncio.gather(*watching)
            await asyncio.gather(*playing)
    assert sum(len(play.acknowledged) for play in plays) > before, "it served while it drained"
    assert {code for play in plays for code in play.codes} <= TRY_AGAIN
    assert all(version == away.resume_after_version > 0 for version, away in resume_points)
    async with server_process(database) as server, grpc.aio.insecure_channel(server.address) as channel:
        for play in plays:
            await assert_nothing_is_lost(play, play.table.at(channel))


async def assert_nothing_is_lost(play: Play, table: Table) -> None:
    """Each acknowledged command stands as it was; each other one, repeated with its id, has an outcome now."""
    versions = sorted(play.acknowledged.values())
    assert len(versions) == len(set(versions))
    for command_id, (player, command) in play.sent.items():
        outcome = await Viewer(table.one.stub, player.match_id, player.token).submit(command, command_id=command_id)
        if command_id in play.acknowledged:
            assert outcome.repeated
            assert outcome.accepted.version == play.acknowledged[command_id]
    assert len(play.sent) - len(play.acknowledged) <= 1, "a player waits for each answer"
    last = versions[-1]
    async with table.spectator.watching(last) as call:
        update = await read_update(call)
    assert update.events_complete
    assert update.view.public.version >= last
    assert not update.view.public.result.HasField("aborted")
