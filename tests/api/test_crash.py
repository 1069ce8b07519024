"""A service process that is killed, stopped or misconfigured: nothing acknowledged is lost, errors are clear."""

import asyncio
import signal
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import grpc
import pytest

from spectacularbid.v1.commands_pb2 import Command
from spectacularbid.v1.views_pb2 import MatchView
from tests.support.players import (
    Situation,
    Table,
    Viewer,
    choose,
    is_over,
    legal_commands,
    new_id,
    new_table,
    play_until,
    read_update,
)
from tests.support.server import Finished, ServerProcess, run_command, server_process, without_grpc_noise
from tests.support.waiting import until, until_gone

PATIENCE_SECONDS = 60
LOADED_MATCHES = 4
COMMANDS_BEFORE_THE_CRASH = 150


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """The file that outlives the processes."""
    return tmp_path / "matches.sqlite3"


@asynccontextmanager
async def running(database: Path, **settings: str) -> AsyncIterator[tuple[ServerProcess, grpc.aio.Channel]]:
    """A service process and a channel to it."""
    async with server_process(database, **settings) as server, grpc.aio.insecure_channel(server.address) as channel:
        yield server, channel


@dataclass
class Acknowledged:
    """What a player was told: commands by their ids, with the versions that they made."""

    player: Viewer
    versions: dict[str, int] = field(default_factory=dict)
    commands: dict[str, Command] = field(default_factory=dict)


@dataclass
class Load:
    """Matches being played; every acknowledged command is kept."""

    tables: list[Table]
    by_seat: dict[str, Acknowledged] = field(default_factory=dict)
    last_views: dict[str, MatchView] = field(default_factory=dict)
    acknowledged: int = 0
    reached: asyncio.Event = field(default_factory=asyncio.Event)

    async def play(self, table: Table, chance: Random) -> None:
        """Play until the server is gone."""
        try:
            view = await table.on_turn_view()
            while not is_over(view):
                player, command, command_id = table.seat(view.own.seat), choose(chance, view), new_id()
                outcome = await player.submit(command, command_id=command_id)
                self._note(player, command, command_id, outcome.accepted.version, outcome.view)
                view = outcome.view if outcome.view.own.legal_actions else await table.on_turn_view()
        except grpc.aio.AioRpcError as error:
            assert error.code() is grpc.StatusCode.UNAVAILABLE  # noqa: PT017  the only way in which this ends

    def _note(self, player: Viewer, command: Command, command_id: str, version: int, view: MatchView) -> None:
        assert version
        told = self.by_seat.setdefault(player.token, Acknowledged(player))
        told.versions[command_id], told.commands[command_id] = version, command
        self.last_views[player.token] = view
        self.acknowledged += 1
        if self.acknowledged >= COMMANDS_BEFORE_THE_CRASH:
            self.reached.set()


async def test_a_crash_under_load_loses_nothing_that_was_acknowledged(database: Path) -> None:
    """Fault 64: kill -9; the same state to the byte, every acknowledged command once, and the matches go on."""
    async with running(database) as (server, channel):
        quiet = await new_table(channel, start=True)
        await play_until(quiet, beyond(20))
        before = [await viewer.view() for viewer in (*quiet.seats, quiet.spectator)]
        load = Load([await new_table(channel, start=True) for _ in range(LOADED_MATCHES)])
        players = [asyncio.create_task(load.play(table, Random(seed))) for seed, table in enumerate(load.tables)]
        async with asyncio.timeout(PATIENCE_SECONDS):
            await load.reached.wait()
            await server.kill()
            await asyncio.gather(*players)
    async with running(database) as (server, channel), asyncio.timeout(PATIENCE_SECONDS):
        quiet = quiet.at(channel)
        after = [await viewer.view() for viewer in (*quiet.seats, quiet.spectator)]
        assert [view.SerializeToString() for view in after] == [view.SerializeToString() for view in before]
        for told in load.by_seat.values():
            await assert_kept(channel, told)
        for table in load.tables:
            await assert_goes_on(table.at(channel), load)
        assert "internal_error" not in server.events()


async def assert_kept(channel: grpc.aio.Channel, told: Acknowledged) -> None:
    """Every command that was acknowledged to a player is there once, with the version that was told."""
    player = Table(told.player, told.player, told.player).at(channel).one
    for command_id, version in told.versions.items():
        again = await player.submit(told.commands[command_id], command_id=command_id)
        assert again.repeated
        assert again.accepted.version == version
    assert len(set(told.versions.values())) == len(told.versions)


async def assert_goes_on(table: Table, load: Load) -> None:
    """At most the one command that was under way came after what was acknowledged; the next ones are accepted."""
    told = max(
        (load.last_views[viewer.token] for viewer in table.seats if viewer.token in load.last_views),
        key=lambda view: view.public.version,
    )
    view = await table.on_turn_view()
    assert told.public.version <= view.public.version <= told.public.version + 1
    if view.public.version == told.public.version:
        assert (await table.view_of(told.own.seat)).SerializeToString() == told.SerializeToString()
    await play_until(table, beyond(view.public.version + 10))


def beyond(version: int) -> Situation:
    """The match has gone on beyond a version."""
    return lambda view: view.public.version > version


async def test_a_match_survives_many_crashes(database: Path) -> None:
    """Three times killed in the middle of a command, and played to its end."""
    table: Table | None = None
    for seed in range(3):
        async with running(database) as (server, channel):
            table = table.at(channel) if table else await new_table(channel, start=True)
            view = await play_until(table, beyond((seed + 1) * 15))
            under_way = asyncio.ensure_future(table.seat(view.own.seat).submit(legal_commands(view)[0]))
            await asyncio.sleep(0)
            await server.kill()
            await asyncio.gather(under_way, return_exceptions=True)
    assert table is not None
    async with running(database) as (_, channel):
        assert is_over(await play_until(table.at(channel), is_over))


async def test_a_terminated_service_drains_and_takes_no_time_from_anybody(database: Path) -> None:
    """Fault 101 and F4: streams are sent away, the exit status is 0, the clocks go on where they stood."""
    async with running(database, DRAIN_SECONDS="0.2") as (server, channel):
        table = await new_table(channel, start=True)
        view = await play_until(table, beyond(10))
        watch = table.spectator.watch()
        await read_update(watch)
        gone = asyncio.create_task(until_gone(watch, PATIENCE_SECONDS))
        assert await server.stop(signal.SIGTERM) == 0
        last = (await gone)[-1]
        assert last.going_away.resume_after_version == view.public.version + 1
        assert server.events() == ["serving", "draining", "drained"]
    async with running(database) as (_, channel):
        table = table.at(channel)
        async with table.spectator.watching(view.public.version) as watch:
            update = await read_update(watch)
        suspended, resumed = update.events
        stood_ns = resumed.clocks_resumed.at_unix_ns - suspended.clocks_suspended.at_unix_ns
        clock_before, clock_after = view.public.clock.running, update.view.public.clock.running
        assert clock_after.deadline_unix_ns - clock_before.deadline_unix_ns == stood_ns
        assert clock_after.started_at_unix_ns - clock_before.started_at_unix_ns == stood_ns
        assert clock_after.deadline_unix_ns - resumed.clocks_resumed.at_unix_ns == (
            clock_before.deadline_unix_ns - suspended.clocks_suspended.at_unix_ns
        )
        assert is_over(await play_until(table, is_over))


async def test_ctrl_c_ends_a_service_at_once_and_well(database: Path) -> None:
    """Nobody waits for load balancers, and there is no traceback."""
    async with running(database, DRAIN_SECONDS="60") as (server, channel):
        await new_table(channel, start=True)
        loop = asyncio.get_running_loop()
        began = loop.time()
        assert await server.stop(signal.SIGINT) == 0
        assert loop.time() - began < 20
    assert server.events() == ["serving", "draining", "drained"]
    assert not any("Traceback" in line for line in server.log)


async def test_ctrl_c_shortens_a_drain_that_has_begun(database: Path) -> None:
    """Whoever asked for a stop politely may still lose patience."""
    async with running(database, DRAIN_SECONDS="60") as (server, channel):
        await new_table(channel, start=True)
        server.process.send_signal(signal.SIGTERM)
        await until(lambda: "draining" in server.events())
        began = asyncio.get_running_loop().time()
        assert await server.stop(signal.SIGINT) == 0
        assert asyncio.get_running_loop().time() - began < 20
    assert server.events() == ["serving", "draining", "drained"]


def assert_cannot_start(finished: Finished, *, because: str) -> None:
    """Status 2 and one sentence."""
    assert finished.status == 2, finished
    (sentence,) = without_grpc_noise(finished.errors)
    assert sentence.startswith("spectacular-bid cannot start: ")
    assert because in sentence
    assert finished.output == ""


@contextmanager
def taken_port() -> Iterator[int]:
    """A port on which somebody else listens."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        yield taken.getsockname()[1]


async def test_a_port_that_is_taken_is_a_clear_error(database: Path) -> None:
    """Also when it is the metrics' port."""
    with taken_port() as port:
        assert_cannot_start(await run_command("serve", database=database, PORT=str(port)), because=str(port))
        assert_cannot_start(
            await run_command("serve", database=database, METRICS_PORT=str(port)), because="Address already in use"
        )


async def test_a_second_service_on_the_same_port_or_file_is_a_clear_error(database: Path, tmp_path: Path) -> None:
    """The first one serves on."""
    async with running(database) as (server, channel):
        table = await new_table(channel)
        port = server.address.rpartition(":")[2]
        same_port = await run_command("serve", database=tmp_path / "other.sqlite3", PORT=port)
        same_file = await run_command("serve", database=database)
        assert_cannot_start(same_port, because=port)
        assert_cannot_start(same_file, because="Another process serves")
        assert (await table.start()).public.version == 4


WRONG = {
    "a wrong port": ({"PORT": "http"}, "SPECBID_PORT='http'"),
    "a public address": ({"HOST": "0.0.0.0"}, "SPECBID_HOST='0.0.0.0'"),  # noqa: S104
    "a wrong level": ({"LOG_LEVEL": "loud"}, "SPECBID_LOG_LEVEL='loud'"),
}


@pytest.mark.parametrize("what", WRONG)
async def test_a_wrong_setting_is_a_clear_error(database: Path, what: str) -> None:
    """It names the variable; nothing was touched."""
    settings, because = WRONG[what]
    assert_cannot_start(await run_command("serve", database=database, **settings), because=because)
    assert not any(database.parent.iterdir())


@pytest.mark.parametrize("content", [b"not a database, but long enough to look like something", None])
async def test_a_file_that_is_no_store_is_a_clear_error(tmp_path: Path, content: bytes | None) -> None:
    """A text, or a folder."""
    database = tmp_path / "something"
    if content is None:
        database.mkdir()
    else:
        database.write_bytes(content)
    assert_cannot_start(await run_command("serve", database=database), because=str(database))
