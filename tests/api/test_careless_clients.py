"""Clients that do not read, hang up in the middle, or speak something else: no harm to anybody, and nothing is left."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import grpc
import pytest

from service import limits
from service.line import LINE_LIMIT
from service.rpc import streams
from service.rpc.play_stream import UNANSWERED_COMMANDS
from spectacularbid.v1 import match_service_pb2 as pb
from tests.support.http2 import Http2, http2, messages
from tests.support.players import (
    START,
    Table,
    Viewer,
    in_stream,
    is_over,
    legal_commands,
    new_id,
    new_table,
    play_until,
    read_play,
    read_update,
)
from tests.support.rejections import rejection, rejection_of
from tests.support.server import Server, served
from tests.support.unchanged import changing_nothing
from tests.support.waiting import PATIENCE_SECONDS, until

WIDE_OPEN = 2**20
MATCH_SERVICE = "spectacularbid.v1.MatchService"


def open_streams(server: Server) -> float:
    """How many streams are open, by the metric."""
    return server.sample("specbid_streams_open")


@asynccontextmanager
async def unread(server: Server, viewer: Viewer, method: str = "") -> AsyncIterator[tuple[Http2, int]]:
    """A stream whose client answers pings and takes in no data: not a byte may be sent to it."""
    before = open_streams(server)
    async with http2(server.port, window=0) as connection:
        method = method or ("SpectateMatch" if viewer.is_spectator else "WatchMatch")
        stream = await connection.call(method, viewer.token)
        watch = pb.WatchMatchRequest(match_id=viewer.match_id)
        opening = pb.PlayMatchRequest(open=pb.PlayMatchOpen(match_id=viewer.match_id))
        await connection.send(stream, (opening if method == "PlayMatch" else watch).SerializeToString())
        await until(lambda: open_streams(server) > before)
        yield connection, stream
    await until(lambda: open_streams(server) == before)


def versions(connection: Http2, stream: int) -> list[int]:
    """The versions of the updates that have arrived."""
    updates = [pb.WatchMatchResponse.FromString(data).update for data in messages(connection.data[stream])]
    return [update.view.public.version for update in updates]


async def test_a_slow_reader_is_kept_the_latest_view_only(server: Server) -> None:
    """Fault 109: a hundred versions later it gets the last one."""
    table = await new_table(server.channel, start=True)
    async with unread(server, table.spectator) as (connection, stream):
        end = await play_until(table, lambda view: view.public.version > 100)
        await connection.open_window(stream, WIDE_OPEN)
        await until(lambda: end.public.version in versions(connection, stream))
        seen = versions(connection, stream)
    assert seen == sorted(seen)
    assert len(seen) <= 3


async def test_a_reader_that_stopped_is_sent_off(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """As soon as it reads on: gRPC takes no status before what was written is gone. It may come back at once."""
    monkeypatch.setattr(streams, "STUCK_WRITE_SECONDS", 0.1)
    monkeypatch.setattr(streams, "LOOK_SECONDS", 0.05)
    table = await new_table(server.channel, start=True)
    async with unread(server, table.spectator) as (connection, stream):
        view = await table.on_turn_view()
        await table.seat(view.own.seat).do(legal_commands(view)[0])
        await asyncio.sleep(0.5)  # nothing announces that a write is stuck
        await connection.open_window(stream, WIDE_OPEN)
        code, message, details = await connection.status(stream)
    answer = rejection_of(grpc.StatusCode.RESOURCE_EXHAUSTED, message, details)
    assert code == grpc.StatusCode.RESOURCE_EXHAUSTED.value[0]
    assert (answer.reason, answer.retry_seconds) == ("SLOW_READER", 1)
    assert server.sample("specbid_streams_ended_total", kind="spectate", reason="slow_reader") >= 1


async def test_a_slow_reader_slows_nobody_else(server: Server) -> None:
    """Players and other watchers hear of every version while it stands."""
    table = await new_table(server.channel, start=True)
    async with unread(server, table.spectator), table.spectator.watching() as call:
        await read_update(call)
        for _ in range(10):
            view = await table.on_turn_view()
            played = await table.seat(view.own.seat).do(legal_commands(view)[0])
            assert (await read_update(call)).view.public.version == played.public.version


async def test_five_hundred_watchers_that_vanish_leave_nothing_behind(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fault 95: their sockets were cut without a word."""
    monkeypatch.setattr(limits, "SPECTATORS", 500)
    table = await new_table(server.channel)
    before = open_streams(server)
    for _ in range(2):
        async with http2(server.port) as one, http2(server.port) as two:
            for connection in (one, two):
                for _ in range(250):
                    stream = await connection.call("SpectateMatch", table.spectator.token)
                    request = pb.WatchMatchRequest(match_id=table.one.match_id)
                    await connection.send(stream, request.SerializeToString(), end=True)
            await until(lambda: open_streams(server) == before + 500)
        await until(lambda: open_streams(server) == before)
    match = server.service._core.matches.get(table.one.match_id)
    assert not match._watches
    assert match.presence == (False, False)


async def test_a_player_who_vanishes_is_shown_as_gone(table: Table, server: Server) -> None:
    """Presence follows the connection."""
    async with table.two.watching() as call:
        async with http2(server.port) as connection:
            stream = await connection.call("WatchMatch", table.one.token)
            await connection.send(stream, pb.WatchMatchRequest(match_id=table.one.match_id).SerializeToString())
            while not (await read_update(call)).presence.seat_one:
                pass
        assert not (await read_update(call)).presence.seat_one


HTTP_1 = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
NONSENSE = {
    "HTTP/1.1": HTTP_1,
    "an HTTP/1.1 upgrade": HTTP_1.replace(
        b"\r\n\r\n", b"\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n\r\n"
    ),
    "a TLS hello": bytes.fromhex("160301020001000001fc0303") + bytes(64),
    "garbage": bytes(range(256)) * 64,
    "half a preface": b"PRI * HTTP/2.0\r\n",
    "a preface and garbage": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\xff" * 512,
    "nothing": b"",
}


@pytest.mark.parametrize("what", NONSENSE)
async def test_whoever_speaks_something_else_on_the_port_does_no_harm(server: Server, table: Table, what: str) -> None:
    """The connection is refused or ignored; the others play on."""
    async with changing_nothing(table):
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(NONSENSE[what])
        await writer.drain()
    view = await table.on_turn_view()
    await table.seat(view.own.seat).do(legal_commands(view)[0])
    writer.transport.abort()
    assert reader.exception() is None


@contextmanager
def store_is_busy(database: Path) -> Iterator[None]:
    """Somebody else, such as a backup, keeps the file locked: every write waits."""
    stranger = sqlite3.connect(database, isolation_level=None)
    try:
        stranger.execute("BEGIN IMMEDIATE")
        yield
        stranger.execute("ROLLBACK")
    finally:
        stranger.close()


@asynccontextmanager
async def slow_table(tmp_path: Path) -> AsyncIterator[tuple[Server, Table, Path]]:
    """A started match on a server whose file can be locked."""
    database = tmp_path / "matches.sqlite3"
    async with served(database) as server:
        yield server, await new_table(server.channel, start=True), database


def calls(server: Server) -> float:
    """How many SubmitCommand calls were begun."""
    return server.sample("grpc_server_started_total", grpc_service=MATCH_SERVICE, grpc_method="SubmitCommand")


@pytest.mark.parametrize("how", ["cancel", "deadline", "reset", "drop"])
async def test_a_command_counts_although_its_caller_went_away(tmp_path: Path, how: str) -> None:
    """After it had arrived: the opponent sees it, and a repeat of its id tells what became of it."""
    async with slow_table(tmp_path) as (server, table, database):
        view = await table.on_turn_view()
        player, opponent = table.seat(view.own.seat), table.seat(3 - view.own.seat)
        request = player.request(legal_commands(view)[0])
        before = calls(server)
        async with opponent.watching() as watch:
            await read_update(watch)
            with store_is_busy(database):
                await leave(server, player, request, how, lambda: calls(server) > before)
            assert (await read_update(watch)).view.public.version == view.public.version + 1
        again = await player.submit(request.command, command_id=request.command_id)
        assert again.repeated
        assert again.accepted.version == view.public.version + 1


async def leave(
    server: Server, player: Viewer, request: pb.SubmitCommandRequest, how: str, has_begun: Callable[[], bool]
) -> None:
    """Sends a command and goes away while it is under way."""
    if how in ("reset", "drop"):
        async with http2(server.port) as connection:
            stream = await connection.call("SubmitCommand", player.token)
            await connection.send(stream, request.SerializeToString(), end=True)
            await until(has_begun)
            if how == "reset":
                await connection.reset(stream)
        return
    call = player.stub.SubmitCommand(request, metadata=player.metadata, timeout=0.2 if how == "deadline" else None)
    await until(has_begun)
    if how == "cancel":
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        return
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call
    assert caught.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED


async def test_a_deadline_of_a_millisecond_loses_no_command_that_arrived(server: Server, table: Table) -> None:
    """Whatever the caller is told: each command that reached the handler is carried out, once."""
    for _ in range(20):
        view = await table.on_turn_view()
        player = table.seat(view.own.seat)
        request, before = player.request(legal_commands(view)[0]), calls(server)
        call = player.stub.SubmitCommand(request, metadata=player.metadata, timeout=0.001)
        assert await call.code() in (grpc.StatusCode.OK, grpc.StatusCode.DEADLINE_EXCEEDED)
        await player.view()
        arrived = calls(server) > before
        outcome = await player.submit(request.command, command_id=request.command_id)
        assert outcome.repeated or not arrived
        assert outcome.accepted.version == view.public.version + 1
        if is_over(outcome.view):
            break


async def test_a_store_that_does_not_answer_is_unavailable_and_nothing_has_changed(tmp_path: Path) -> None:
    """Try again with the same id, says the status; then it works."""
    async with slow_table(tmp_path) as (_, table, database):
        view = await table.on_turn_view()
        player, command, command_id = table.seat(view.own.seat), legal_commands(view)[0], new_id()
        async with changing_nothing(table, opponent=table.seat(3 - view.own.seat)):
            with store_is_busy(database):
                answer = await rejection(player.submit(command, command_id=command_id))
            assert (answer.code, answer.reason, answer.retry_seconds) == (grpc.StatusCode.UNAVAILABLE, "TRY_AGAIN", 1)
        outcome = await player.submit(command, command_id=command_id)
        assert outcome.accepted.version == view.public.version + 1
        assert not outcome.repeated


async def test_more_commands_than_a_match_can_hold_are_turned_away(tmp_path: Path) -> None:
    """Calls: the whole line. The others are answered when the store is free again."""
    async with slow_table(tmp_path) as (_, table, database):
        with store_is_busy(database):
            submits = [asyncio.create_task(table.one.submit(START)) for _ in range(LINE_LIMIT + 20)]
            done, _ = await asyncio.wait(submits, return_when=asyncio.FIRST_COMPLETED, timeout=PATIENCE_SECONDS)
            answer = await rejection(next(iter(done)))
        assert (answer.code, answer.reason) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "TOO_MANY_COMMANDS")
        results = await asyncio.gather(*submits, return_exceptions=True)
        assert sum(not isinstance(result, BaseException) for result in results) >= LINE_LIMIT


async def test_more_commands_than_a_stream_can_hold_are_turned_away_one_by_one(tmp_path: Path) -> None:
    """In the stream: each with its id and when to try again; the others are answered later."""
    async with slow_table(tmp_path) as (_, table, database), table.one.playing() as call:
        assert (await read_play(call)).HasField("update")
        with store_is_busy(database):
            for _ in range(UNANSWERED_COMMANDS + 3):
                await call.write(in_stream(START))
            errors = [(await read_play(call)).error for _ in range(3)]
        outcomes = [(await read_play(call)).outcome for _ in range(UNANSWERED_COMMANDS)]
    assert {(error.code, error.reason, error.retry_after.seconds) for error in errors} == {(8, "TOO_MANY_COMMANDS", 1)}
    assert all(outcome.HasField("refused") for outcome in outcomes)
    assert len({outcome.command_id for outcome in outcomes} | {error.command_id for error in errors}) == 19


async def test_a_thousand_cancelled_streams_leave_nothing_behind(server: Server, table: Table) -> None:
    """Fault 97: handlers clean up whenever they are cancelled."""
    before = open_streams(server)
    for _ in range(20):
        opened = [table.spectator.watch() for _ in range(25)]
        for call in opened[::2]:
            await read_update(call)
        for call in opened:
            call.cancel()
    await until(lambda: open_streams(server) == before)
    view = await table.on_turn_view()
    await table.seat(view.own.seat).do(legal_commands(view)[0])
