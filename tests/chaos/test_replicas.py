"""Processes that share a PostgreSQL and a NATS: any of them serves any match, and none is needed."""

import asyncio
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import TypeVar

import grpc
import pytest

from engine.clock import SECOND_NS
from engine.faults import FaultCause
from engine.view import Audience
from service.paging import pages
from service.ports import Heartbeat, Store
from spectacularbid.v1 import events_pb2
from spectacularbid.v1 import match_service_pb2 as pb
from spectacularbid.v1.match_service_pb2_grpc import MatchServiceStub
from tests.support.cluster import NO_FILE, Cluster, Replica, cluster
from tests.support.late_match import MATCH_ID, TOKENS, LateMatch, append_late_match
from tests.support.late_table import end_of
from tests.support.players import (
    RESIGN,
    Situation,
    Table,
    Viewer,
    choose,
    is_over,
    new_id,
    new_table,
    play_until,
    read_to_end,
    read_update,
)
from tests.support.postgres import PostgresServer, postgres_server
from tests.support.rejections import rejection
from tests.support.server import run_command, starting_process
from tests.support.waiting import until

T = TypeVar("T")
PATIENCE_SECONDS = 60


@pytest.fixture(scope="module")
def postgres() -> Iterator[PostgresServer]:
    """A server."""
    with postgres_server() as server:
        yield server


@pytest.fixture
async def shared(postgres: PostgresServer, tmp_path: Path) -> AsyncIterator[Cluster]:
    """What replicas share."""
    async with cluster(postgres, tmp_path) as shared:
        yield shared


def spread(table: Table, *replicas: Replica) -> Table:
    """The same match, each seat and the spectator at the next replica."""
    at = [table.at(replica.channel) for replica in (*replicas, *replicas, *replicas)[:3]]
    return Table(at[0].one, at[1].two, at[2].spectator, table.invite_code, table.chance)


async def version_of(store: Store, table: Table) -> int:
    """At which version the table's match is."""
    return sum([len(page) async for page in pages(store, table.one.match_id)])


async def versions_seen(viewer: Viewer) -> list[int]:
    """The versions that a stream shows until the match is over."""
    seen = []
    async with viewer.watching() as call, asyncio.timeout(PATIENCE_SECONDS):
        while isinstance(response := await call.read(), pb.WatchMatchResponse):
            if response.HasField("update"):
                seen.append(response.update.view.public.version)
                if is_over(response.update.view):
                    break
    return seen


async def test_players_on_different_replicas_finish_a_match(shared: Cluster) -> None:
    """Each sees what the other does; streams everywhere go forward only and see the end."""
    async with shared.replicas(2) as replicas:
        table = spread(await new_table(replicas[0].channel, start=True), *replicas)
        watching = [asyncio.create_task(versions_seen(viewer)) for viewer in (*table.seats, table.spectator)]
        last = await play_until(table, is_over)
        for seen in await asyncio.gather(*watching):
            assert seen == sorted(set(seen))
            assert seen[-1] == last.public.version


async def test_a_stream_hears_at_once_what_another_replica_stored(shared: Cluster) -> None:
    """By NATS, long before anybody would have looked."""
    async with shared.replicas(2) as replicas:
        table = spread(await new_table(replicas[0].channel, start=True), *replicas)
        async with table.spectator.watching() as call:
            await call.read()
            view = await table.on_turn_view()
            delays = []
            loop = asyncio.get_running_loop()
            for _ in range(10):
                version = (await table.seat(view.own.seat).do(choose(Random(1), view))).public.version
                since = loop.time()
                async with asyncio.timeout(PATIENCE_SECONDS):
                    while True:
                        response = await call.read()
                        assert isinstance(response, pb.WatchMatchResponse)
                        if response.update.view.public.version >= version:
                            break
                delays.append(loop.time() - since)
                view = await table.on_turn_view()
        assert sorted(delays)[5] < 0.25


async def test_without_nats_the_match_goes_on_and_streams_are_late_only(shared: Cluster) -> None:
    """It is killed in the middle of a match; everybody looks into the database then."""
    async with shared.replicas(2) as replicas:
        table = spread(await new_table(replicas[0].channel, start=True), *replicas)
        watching = [asyncio.create_task(versions_seen(viewer)) for viewer in (*table.seats, table.spectator)]
        await play_until(table, at_least(20))
        shared.nats.kill()
        view = await play_until(table, at_least(40))
        last = await table.seat(view.own.seat).do(RESIGN)
        for seen in await asyncio.gather(*watching):
            assert seen == sorted(set(seen))
            assert seen[-1] == last.public.version


async def test_a_token_that_is_rotated_at_one_replica_ends_streams_at_another(shared: Cluster) -> None:
    """Within the time for which a token is believed; the fresh one is good everywhere."""
    async with shared.replicas(2) as (here, there):
        table = await new_table(here.channel, start=True)
        old = table.at(there.channel).one
        async with old.watching() as watch, asyncio.timeout(PATIENCE_SECONDS):
            await read_update(watch)
            answer = await table.one.stub.RotateToken(
                pb.RotateTokenRequest(match_id=old.match_id), metadata=old.metadata
            )
            assert (await rejection(read_to_end(watch))).reason == "INVALID_TOKEN"
        assert (await replace(old, token=answer.token).view()).own.seat == 1


async def test_a_repeat_at_another_replica_gets_the_first_outcome(shared: Cluster) -> None:
    """Also when both get it at the same moment."""
    async with shared.replicas(2) as replicas:
        table = await new_table(replicas[0].channel, start=True)
        for _ in range(10):
            view = await table.on_turn_view()
            command, command_id = choose(table.chance, view), new_id()
            outcomes = await asyncio.gather(
                *(
                    table.at(replica.channel).seat(view.own.seat).submit(command, command_id=command_id)
                    for replica in replicas
                )
            )
            assert outcomes[0].accepted.version == outcomes[1].accepted.version == view.public.version + 1
            assert outcomes[0].receipt == outcomes[1].receipt


async def test_replicas_are_replaced_one_by_one_while_a_match_is_played(shared: Cluster) -> None:
    """A rolling deploy: no clock is suspended, no command refused, no fault recorded."""
    async with shared.replica() as first, shared.replica() as second:
        table = await new_table(first.channel, start=True)
        await play_until(table.at(second.channel), at_least(10))
        async with shared.replica() as third:
            assert await first.server.stop() == 0
            await play_until(table.at(second.channel), at_least(20))
            assert await second.server.stop() == 0
            view = await play_until(table.at(third.channel), at_least(30))
            assert not view.public.HasField("result")
    async with shared.store() as store:
        events = [event async for page in pages(store, table.one.match_id) for step in page for event in step]
        assert not [event for event in events if "Suspended" in type(event).__name__]
        causes = {row.fault.cause.name for row in await store.faults(0)}
        assert causes <= {"REPLICA_LOST"}, "the third one was killed by leaving it"


async def late_match(shared: Cluster, *, deadline_in_seconds: float) -> LateMatch:
    """Store a match whose running decision expires so soon."""
    async with shared.store() as store:
        now_ns = await store.service_ns()
        await store.beat(Heartbeat(now_ns, now_ns))
        match = await append_late_match(store, deadline_ns=now_ns + int(deadline_in_seconds * SECOND_NS))
        await store.beat(Heartbeat(now_ns, now_ns, retired=True))
        return match


async def end_at(replica: Replica) -> events_pb2.MatchWon | events_pb2.MatchAborted:
    """How the late match ended, as a spectator at this replica is told."""
    spectator = Viewer(MatchServiceStub(replica.channel), MATCH_ID, TOKENS[Audience.SPECTATOR])
    async with asyncio.timeout(PATIENCE_SECONDS):
        return await end_of(spectator)


async def test_when_one_is_killed_the_other_settles_its_deadlines(postgres: PostgresServer, tmp_path: Path) -> None:
    """A deadline well behind the death is an ordinary loss on time, at the deadline itself."""
    async with (
        cluster(postgres, tmp_path, AFTERMATH_MS="0") as shared,
        shared.replica() as survivor,
        shared.replica() as victim,
    ):
        match = await late_match(shared, deadline_in_seconds=6)
        seen = Viewer(MatchServiceStub(victim.channel), MATCH_ID, match.token)
        assert not is_over(await seen.view())
        await victim.server.kill()
        result = await end_at(survivor)
    assert isinstance(result, events_pb2.MatchWon)
    assert result.reason == events_pb2.WIN_REASON_TIME
    assert result.at_unix_ns == match.deadline_ns


async def test_a_deadline_that_falls_into_a_death_is_nobodys_loss(shared: Cluster) -> None:
    """A command might have reached the one that was killed."""
    async with shared.replica() as survivor, shared.replica() as victim:
        await late_match(shared, deadline_in_seconds=2)
        await victim.server.kill()
        result = await end_at(survivor)
    assert isinstance(result, events_pb2.MatchAborted)
    assert result.reason == events_pb2.ABORT_REASON_TIMING_FAILURE
    assert "REPLICA_LOST" in result.evidence or "replica" in result.evidence.lower()


async def test_a_replica_that_stood_still_is_fenced_and_comes_back(shared: Cluster) -> None:
    """SIGSTOP for longer than the others wait: the match goes on elsewhere, then there again."""
    async with shared.replicas(2) as replicas, shared.store() as store:
        table = await new_table(replicas[0].channel, start=True)
        here, there = table.at(replicas[0].channel), table.at(replicas[1].channel)
        await play_until(there, at_least(10))
        replicas[1].server.process.send_signal(signal.SIGSTOP)
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                while FaultCause.REPLICA_LOST not in {row.fault.cause for row in await store.faults(0)}:
                    await play_until(here, at_least(await version_of(store, table) + 1))
                    await asyncio.sleep(0.1)
        finally:
            replicas[1].server.process.send_signal(signal.SIGCONT)
        version = await version_of(store, table)
        await patiently(lambda: play_until(there, at_least(version + 10)))
        await play_until(here, at_least(version + 20))


def at_least(version: int) -> Situation:
    """The match is that far."""
    return lambda view: view.public.version >= version


@asynccontextmanager
async def play_everywhere(shared: Cluster, number: int) -> AsyncIterator[list[Table]]:
    """Matches whose players are spread over two replicas."""
    async with shared.replicas(2) as replicas:
        yield [spread(await new_table(replicas[n % 2].channel, start=True), *replicas) for n in range(number)]


async def test_a_restart_of_postgresql_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    """It crashes while matches are played; commands are repeated until it is back."""
    with postgres_server() as server:
        async with cluster(server, tmp_path) as shared, play_everywhere(shared, 4) as tables:
            playing = [asyncio.create_task(play_on(table)) for table in tables]
            await asyncio.wait(playing, timeout=2)
            await asyncio.to_thread(server.stop, "immediate")
            await asyncio.to_thread(server.start)
            async with asyncio.timeout(PATIENCE_SECONDS):
                told = await asyncio.gather(*playing)
            async with shared.store() as store:
                for table, commands in zip(tables, told, strict=True):
                    for audience, command_id, version in commands:
                        stored = await store.command(table.one.match_id, audience, command_id)
                        assert stored is not None
                        assert stored.version == version


async def play_on(table: Table) -> list[tuple[Audience, str, int]]:
    """Play 60 commands, repeating each until it is answered; what was acknowledged."""
    told: list[tuple[Audience, str, int]] = []
    while len(told) < 60:
        view = await patiently(table.on_turn_view)
        if is_over(view):
            break
        player, command, command_id = table.seat(view.own.seat), choose(table.chance, view), new_id()
        outcome = await patiently(lambda: player.submit(command, command_id=command_id))  # noqa: B023  awaited here
        if outcome.HasField("accepted"):
            audience = Audience.SEAT_ONE if view.own.seat == 1 else Audience.SEAT_TWO
            told.append((audience, command_id, outcome.accepted.version))
    return told


async def patiently(call: Callable[[], Awaitable[T]]) -> T:
    """Call again while the service is unavailable."""
    while True:
        try:
            return await call()
        except grpc.aio.AioRpcError as error:
            if error.code() is not grpc.StatusCode.UNAVAILABLE:
                raise
            await asyncio.sleep(0.1)


async def test_a_process_waits_for_its_database_and_says_what_is_missing(tmp_path: Path) -> None:
    """First it is away, then it has no schema; then the process serves. No password is in its log."""
    with postgres_server() as server:
        async with cluster(server, tmp_path) as shared:
            empty = (await server.new_dsn()).reveal().replace("postgres@", "postgres:sesame@")
            settings = shared.shared | {"DATABASE_URL": empty}
            await asyncio.to_thread(server.stop)
            async with starting_process(NO_FILE, **settings) as process:
                started = asyncio.create_task(process.started())
                await until(lambda: "cannot be reached at the address" in "".join(process.log))
                await asyncio.to_thread(server.start)
                await until(lambda: "run `spectacular-bid migrate`" in "".join(process.log))
                migrated = await run_command("migrate", database=NO_FILE, **settings)
                assert (migrated.status, migrated.errors) == (0, "")
                await started
                async with grpc.aio.insecure_channel(process.address) as channel:
                    await new_table(channel, start=True)
                assert await process.stop() == 0
                assert "sesame" not in "".join(process.log)
            faults = await run_command("admin", "faults", database=NO_FILE, **settings)
            assert (faults.status, faults.output) == (0, "0 faults\n")
