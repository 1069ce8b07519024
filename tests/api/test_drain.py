"""A planned stop in order: not ready, still serving, streams ended with a resume point, clocks suspended (F4)."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from unittest.mock import patch

import grpc
import pytest
from grpc_health.v1 import health_pb2

from service.core import GRACE_SECONDS
from service.ports import StoreUnavailableError
from service.rpc.server import LIVENESS, READINESS, STARTUP
from spectacularbid.v1 import match_service_pb2 as pb
from spectacularbid.v1.views_pb2 import STOP_REASON_SUSPENDED, MatchView
from tests.support.players import (
    START,
    StreamCall,
    Table,
    in_stream,
    legal_commands,
    new_table,
    play_until,
    read_play,
    read_update,
)
from tests.support.server import Server, served
from tests.support.waiting import until, until_gone

PATIENCE_SECONDS = 20
SERVICES = ("", *(f"spectacularbid.v1.{name}Service" for name in ("Match", "Rules", "Time")))
PROBES = (STARTUP, READINESS, LIVENESS)
SERVING, NOT_SERVING = health_pb2.HealthCheckResponse.SERVING, health_pb2.HealthCheckResponse.NOT_SERVING


async def health(server: Server, service: str) -> int:
    """What the health service says of a service."""
    call: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = server.channel.unary_unary("/grpc.health.v1.Health/Check")
    answer = await call(health_pb2.HealthCheckRequest(service=service).SerializeToString())
    return health_pb2.HealthCheckResponse.FromString(answer).status


@asynccontextmanager
async def draining(database: Path) -> AsyncIterator[tuple[Server, Table]]:
    """A server that has just begun to drain, with a match; leaving waits until it has stopped."""
    running = served(database, drain_seconds=2.0)
    server = await running.__aenter__()
    table = await new_table(server.channel, start=True)
    stopping = asyncio.create_task(running.__aexit__(None, None, None))
    await until_unready(server)
    yield server, table
    await stopping


async def until_unready(server: Server) -> None:
    """Wait until the health service says so; it sends every change."""
    call: grpc.aio.UnaryStreamMultiCallable[bytes, bytes] = server.channel.unary_stream("/grpc.health.v1.Health/Watch")
    watch = call(health_pb2.HealthCheckRequest().SerializeToString())
    async with asyncio.timeout(PATIENCE_SECONDS):
        async for answer in watch:
            if health_pb2.HealthCheckResponse.FromString(answer).status == NOT_SERVING:
                break
    watch.cancel()


async def until_open(server: Server, streams: int) -> None:
    """Wait until so many streams are open."""
    await until(lambda: server.sample("specbid_streams_open") >= streams)


@pytest.mark.parametrize("service", [*SERVICES, *PROBES])
async def test_a_running_server_is_healthy(server: Server, service: str) -> None:
    """As a whole, by service, and as each of the three probes asks."""
    assert await health(server, service) == SERVING


async def test_the_health_of_an_unknown_service_is_not_found(server: Server) -> None:
    """The health protocol's own answer."""
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await health(server, "spectacularbid.v1.NoService")
    assert caught.value.code() is grpc.StatusCode.NOT_FOUND


async def test_a_store_that_is_away_changes_no_probe(tmp_path: Path) -> None:
    """To be started again, or to get no calls, would help nobody: the store is the same for all."""
    async with served(tmp_path / "matches.sqlite3") as server:
        watermark = server.service._core._watermark
        with patch.object(watermark._store, "beat", side_effect=StoreUnavailableError):
            await until(lambda: server.sample("specbid_timing_failures_total", cause="store_gap") > 0)
            probes = [*SERVICES, *PROBES]
            assert [await health(server, probe) for probe in probes] == [SERVING] * len(probes)


@pytest.mark.parametrize("method", ["Check", "Watch"])
async def test_garbage_gets_its_status_from_the_health_service(server: Server, method: str) -> None:
    """Not UNKNOWN with the parser's text, and no traceback in the log."""
    call: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = server.channel.unary_unary(
        f"/grpc.health.v1.Health/{method}"
    )
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call(b"\xff\xff")
    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT


async def test_a_health_watch_does_not_hold_up_the_end_of_a_drain(tmp_path: Path) -> None:
    """The grace is for calls under way, and a watch never ends by itself."""
    async with served(tmp_path / "matches.sqlite3") as server:
        call: grpc.aio.UnaryStreamMultiCallable[bytes, bytes] = server.channel.unary_stream(
            "/grpc.health.v1.Health/Watch"
        )
        watch = call(health_pb2.HealthCheckRequest().SerializeToString())
        await watch.read()
        began = asyncio.get_running_loop().time()
    assert asyncio.get_running_loop().time() - began < GRACE_SECONDS


async def test_while_it_drains_a_server_is_not_ready_but_still_serves(tmp_path: Path) -> None:
    """Refusing commands then would lose some that come in time; new matches and streams are welcome too."""
    async with draining(tmp_path / "matches.sqlite3") as (server, table):
        assert [await health(server, service) for service in SERVICES] == [NOT_SERVING] * len(SERVICES)
        view = await table.on_turn_view()
        await table.seat(view.own.seat).do(legal_commands(view)[0])
        another = await new_table(server.channel, start=True)
        gone = asyncio.create_task(until_gone(another.spectator.watch(), PATIENCE_SECONDS))
    assert (await gone)[-1].HasField("going_away")


async def test_while_it_drains_no_probe_asks_for_a_restart(tmp_path: Path) -> None:
    """Only readiness changes; a restart would cut the drain short."""
    async with draining(tmp_path / "matches.sqlite3") as (server, _):
        said = {probe: await health(server, probe) for probe in PROBES}
    assert said == {STARTUP: SERVING, READINESS: NOT_SERVING, LIVENESS: SERVING}


async def test_a_server_that_goes_away_says_where_to_resume(tmp_path: Path) -> None:
    """Every stream hears that the clocks stand, then where to go on, and ends well; the next server goes on there."""
    database = tmp_path / "matches.sqlite3"
    async with served(database) as before:
        table = await new_table(before.channel, start=True)
        version = (await table.one.view()).public.version
        play = table.one.stub.PlayMatch(metadata=table.one.metadata)
        await play.write(pb.PlayMatchRequest(open=pb.PlayMatchOpen(match_id=table.one.match_id)))
        calls: list[StreamCall] = [play, *(viewer.watch() for viewer in (*table.seats, table.spectator))]
        streams = [asyncio.create_task(until_gone(call, PATIENCE_SECONDS)) for call in calls]
        await until_open(before, len(streams))
    for stream in streams:
        *_, standing, last = await stream
        assert standing.update.view.public.clock.stopped.reason == STOP_REASON_SUSPENDED
        assert last.going_away.resume_after_version == standing.update.view.public.version == version + 1
    async with served(database) as after, table.at(after.channel).one.watching(version + 1) as call:
        update = await read_update(call)
    assert update.events_complete
    assert [event.WhichOneof("event") for event in update.events] == ["clocks_resumed"]


def deadline_ns(view: MatchView) -> int:
    """When the running decision ends."""
    assert view.public.clock.HasField("running")
    return view.public.clock.running.deadline_unix_ns


async def test_a_planned_stop_takes_no_time_from_anybody(tmp_path: Path) -> None:
    """F4: the clock of the decision moves by exactly the length of the stop; a wait does too."""
    database = tmp_path / "matches.sqlite3"
    async with served(database) as before:
        playing, waiting = await new_table(before.channel, start=True), await new_table(before.channel)
        running, stopped = await playing.one.view(), await waiting.one.view()
    async with served(database) as after:
        playing, waiting = playing.at(after.channel), waiting.at(after.channel)
        stop_ns = await length_of_stop_ns(playing, running.public.version)
        resumed = await playing.one.view()
        assert deadline_ns(resumed) == deadline_ns(running) + stop_ns
        assert resumed.public.players == running.public.players
        assert resumed.public.version == running.public.version + 2
        wait_ns = await length_of_stop_ns(waiting, stopped.public.version)
        ends_ns = (await waiting.one.view()).public.clock.stopped.ends_at_unix_ns
        assert ends_ns == stopped.public.clock.stopped.ends_at_unix_ns + wait_ns
        await play_until(playing, lambda view: view.public.round_number == 2)


async def length_of_stop_ns(table: Table, version: int) -> int:
    """How long the clocks stood, by the events."""
    async with table.spectator.watching(version) as call:
        suspended, resumed = (await read_update(call)).events
    length_ns = resumed.clocks_resumed.at_unix_ns - suspended.clocks_suspended.at_unix_ns
    assert 0 < length_ns < 30 * 10**9
    return length_ns


async def test_a_stop_with_a_hundred_streams_open_is_quick(tmp_path: Path) -> None:
    """Fault 100: they end by themselves; nobody waits for the grace."""
    async with served(tmp_path / "matches.sqlite3") as server:
        table = await new_table(server.channel)
        streams = [asyncio.create_task(until_gone(table.spectator.watch(), PATIENCE_SECONDS)) for _ in range(100)]
        await until_open(server, len(streams))
        loop = asyncio.get_running_loop()
        began = loop.time()
    assert loop.time() - began < 5
    for stream in streams:
        assert (await stream)[-1].HasField("going_away")


async def test_a_command_under_way_is_answered_before_the_end(tmp_path: Path) -> None:
    """On a stream too: the outcome comes before the farewell."""
    async with served(tmp_path / "matches.sqlite3") as server:
        table = await new_table(server.channel)
        play = table.one.stub.PlayMatch(metadata=table.one.metadata)
        await play.write(pb.PlayMatchRequest(open=pb.PlayMatchOpen(match_id=table.one.match_id)))
        await read_play(play)
        await play.write(in_stream(START))
        assert (await read_play(play)).HasField("outcome")
        call = asyncio.create_task(table.two.submit(START))
        await until(lambda: server.sample("specbid_commands_total", kind="Start", outcome="accepted") == 2)
    assert (await call).HasField("accepted")


async def test_a_command_that_meets_the_farewell_of_its_stream_is_answered(tmp_path: Path) -> None:
    """It was sent before its client could know, and comes when the door is closed: here it is to be repeated."""
    async with draining(tmp_path / "matches.sqlite3") as (_, table), table.one.playing() as play:
        while not (await read_play(play)).HasField("going_away"):
            pass
        command = in_stream(START)
        await play.write(command)
        answer = await read_play(play)
        assert answer.error.command_id == command.command.command_id
        assert answer.error.code == grpc.StatusCode.UNAVAILABLE.value[0]
        assert await play.read() is grpc.aio.EOF
        assert await play.code() is grpc.StatusCode.OK
