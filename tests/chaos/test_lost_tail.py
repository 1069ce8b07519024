"""A machine that is restored from a copy of its disk under running replicas: they notice, tell, and go on with it."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

import grpc

from engine.faults import FaultCause
from service.ports import LedgerRow
from spectacularbid.v1 import events_pb2
from spectacularbid.v1 import match_service_pb2 as pb
from spectacularbid.v1.views_pb2 import MatchView
from tests.support.cluster import Cluster, cluster
from tests.support.players import Table, Viewer, is_over, new_table, play_until
from tests.support.postgres import postgres_server

PATIENCE_SECONDS = 60


async def patiently(call: Callable[[], Awaitable[object]]) -> None:
    """Call again while the service is unavailable."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            try:
                await call()
            except grpc.aio.AioRpcError as error:
                if error.code() is not grpc.StatusCode.UNAVAILABLE:
                    raise
                await asyncio.sleep(0.1)
            else:
                return


async def play_to(table: Table, version: int) -> None:
    """Play on until the match is at this version, or over."""
    await patiently(lambda: play_until(table, lambda view: view.public.version >= version or is_over(view)))


async def watch_to_the_end(viewer: Viewer) -> tuple[int, grpc.StatusCode]:
    """The last version that a stream shows, and how it ends."""
    last = 0
    async with viewer.watching() as call:
        with suppress(grpc.aio.AioRpcError):
            while isinstance(message := await call.read(), pb.WatchMatchResponse | pb.SpectateMatchResponse):
                if message.HasField("update"):
                    assert message.update.view.public.version >= last
                    last = message.update.view.public.version
        return last, await call.code()


async def lost_commits(shared: Cluster) -> list[LedgerRow]:
    """The rows that say so."""
    async with shared.store() as store:
        return [row for row in await store.faults(0) if row.fault.cause is FaultCause.COMMITS_LOST]


async def test_replicas_notice_that_the_database_is_an_older_one_and_go_on_with_it(tmp_path: Path) -> None:
    """Streams end, so that nobody waits before a view that is no more; the match goes on, or has no result."""
    with postgres_server() as server:
        async with cluster(server, tmp_path) as shared, shared.replicas(2) as (one, two):
            table = await new_table(one.channel, start=True)
            await play_to(table, 12)
            await asyncio.to_thread(server.stop)
            server.keep()
            await asyncio.to_thread(server.start)
            await play_to(table, 24)
            there = table.at(two.channel)
            watching = [asyncio.create_task(watch_to_the_end(each)) for each in (there.spectator, table.one)]
            await play_to(there, 36)
            assert await lost_commits(shared) == []
            await asyncio.to_thread(server.stop, "immediate")
            server.put_back()
            await asyncio.to_thread(server.start)
            async with asyncio.timeout(PATIENCE_SECONDS):
                for last, code in await asyncio.gather(*watching):
                    assert (last >= 36, code) == (True, grpc.StatusCode.OUT_OF_RANGE)
            views: list[MatchView] = []

            async def look() -> None:
                views.append(await there.one.view())

            await patiently(look)
            assert views[-1].public.version < 24
            await play_to(there, 36)
            await patiently(look)
            result = views[-1].public.result
            assert views[-1].public.version >= 36 or result.aborted.reason == events_pb2.ABORT_REASON_TIMING_FAILURE
            assert 1 <= len(await lost_commits(shared)) <= 2
