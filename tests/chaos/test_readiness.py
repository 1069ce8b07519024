"""Real processes whose database or NATS cannot be used: a sentence, not ready, and ready once it is mended."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeAlias

import grpc
import pytest
from grpc_health.v1 import health_pb2

from spectacularbid.v1 import match_service_pb2 as pb
from spectacularbid.v1 import views_pb2
from spectacularbid.v1.match_service_pb2_grpc import MatchServiceStub
from tests.support.cluster import NO_FILE, Cluster, cluster
from tests.support.free_ports import free_port
from tests.support.nats import nats_server
from tests.support.players import new_id, new_table
from tests.support.postgres import PostgresServer, postgres_server
from tests.support.proxy import Proxy, proxy_to
from tests.support.rejections import Rejection, rejection
from tests.support.server import ServerProcess, run_command, starting_process
from tests.support.waiting import until

Check: TypeAlias = "grpc.aio.UnaryUnaryMultiCallable[bytes, bytes]"
READY = {"startup": "SERVING", "liveness": "SERVING", "readiness": "SERVING", "": "SERVING"}
WAITING = READY | {"readiness": "NOT_SERVING", "": "NOT_SERVING"}
BOTH_SEE_SECONDS = 6.0
"""Longer than a process waits before it takes a trouble for one."""


@dataclass
class Watched:
    """A process on a port that is known before it serves."""

    server: ServerProcess
    address: str

    async def health(self) -> dict[str, str]:
        """What probes are told."""
        async with grpc.aio.insecure_channel(self.address) as channel:
            check: Check = channel.unary_unary("/grpc.health.v1.Health/Check")
            asked = [health_pb2.HealthCheckRequest(service=service).SerializeToString() for service in READY]
            answers = [health_pb2.HealthCheckResponse.FromString(await check(each, timeout=5)) for each in asked]
        names = [health_pb2.HealthCheckResponse.ServingStatus.Name(answer.status) for answer in answers]
        return dict(zip(READY, names, strict=True))

    async def becomes(self, wanted: dict[str, str]) -> None:
        """Returns when probes are told this."""
        async with asyncio.timeout(30):
            while True:
                try:
                    if await self.health() == wanted:
                        return
                except grpc.aio.AioRpcError as error:
                    if error.code() is not grpc.StatusCode.UNAVAILABLE:
                        raise
                await asyncio.sleep(0.05)

    async def says(self, *sentences: str) -> None:
        """Returns when its log holds these."""
        await until(lambda: all(sentence in "".join(self.server.log) for sentence in sentences))


@asynccontextmanager
async def watched(shared: Cluster, **settings: str) -> AsyncIterator[Watched]:
    """A process that has been started, and may have to wait."""
    port = free_port()
    async with starting_process(NO_FILE, **shared.shared | {"PORT": str(port)} | settings) as server:
        serving = asyncio.create_task(server.started())
        try:
            yield Watched(server, f"127.0.0.1:{port}")
        finally:
            serving.cancel()


async def creation_refused(channel: grpc.aio.Channel) -> Rejection:
    """What somebody is told who wants a match."""
    request = pb.CreateMatchRequest(request_id=new_id(), display_name="Ada", mode=views_pb2.MATCH_MODE_ONLINE)
    return await rejection(MatchServiceStub(channel).CreateMatch(request))


@pytest.fixture
def server() -> Iterator[PostgresServer]:
    """A server of one's own, to be stopped."""
    with postgres_server() as server:
        yield server


@pytest.fixture
async def shared(server: PostgresServer, tmp_path: Path) -> AsyncIterator[Cluster]:
    """What replicas share."""
    async with cluster(server, tmp_path) as shared:
        yield shared


async def test_while_the_database_cannot_be_reached_a_process_is_not_ready(
    server: PostgresServer, shared: Cluster
) -> None:
    """It lives, says what is missing more and more seldom, tells callers to repeat, and then serves, all by itself."""
    await asyncio.to_thread(server.stop)
    async with watched(shared) as process:
        await process.becomes(WAITING)
        async with grpc.aio.insecure_channel(process.address) as channel:
            refused = await creation_refused(channel)
            assert (refused.code, refused.reason) == (grpc.StatusCode.UNAVAILABLE, "TRY_AGAIN")
        await until(lambda: process.server.events().count("store_not_ready") >= 3)
        await process.says("PostgreSQL cannot be reached at the address of SPECBID_DATABASE_URL")
        assert await process.health() == WAITING
        await asyncio.to_thread(server.start)
        await process.becomes(READY)
        async with grpc.aio.insecure_channel(process.address) as channel:
            await new_table(channel, start=True)
        assert set(process.server.events()) <= {"store_not_ready", "serving", "bus_connected"}


async def test_while_the_schema_is_too_old_a_process_is_not_ready(server: PostgresServer, shared: Cluster) -> None:
    """Until somebody brings it up to date."""
    empty = (await server.new_dsn()).reveal()
    async with watched(shared, DATABASE_URL=empty) as process:
        await process.becomes(WAITING)
        await process.says("run `spectacular-bid migrate`")
        migrated = await run_command("migrate", database=NO_FILE, **shared.shared | {"DATABASE_URL": empty})
        assert migrated.status == 0
        await process.becomes(READY)


async def test_while_there_is_no_standby_a_process_is_not_ready(server: PostgresServer, shared: Cluster) -> None:
    """Unless it was said that none is needed; when one has come it serves."""
    async with watched(shared, DURABILITY="synchronous-standby") as process:
        await process.becomes(WAITING)
        await process.says("PostgreSQL has no synchronous standby")
        with TemporaryDirectory(prefix="specbid-pg-") as folder:
            standby = PostgresServer(server.binaries, Path(folder))
            await asyncio.to_thread(server.copy_to, standby.folder)
            await asyncio.to_thread(standby.start)
            try:
                await server.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
                await server.execute("SELECT pg_reload_conf()")
                await process.becomes(READY)
                async with grpc.aio.insecure_channel(process.address) as channel:
                    await new_table(channel, start=True)
            finally:
                await process.server.kill()
                await asyncio.to_thread(standby.stop, "immediate")


async def test_wrong_credentials_for_nats_are_said_and_cost_no_readiness(shared: Cluster) -> None:
    """Without it news are half a second late, which is no reason to send anybody away; then it is let in."""
    async with (
        nats_server("--auth=sesame") as nats,
        watched(shared, NATS_URL=f"nats://wrong@127.0.0.1:{nats.port}") as process,
    ):
        await process.becomes(READY)
        await process.says("NATS refuses the credentials of SPECBID_NATS_URL or SPECBID_NATS_CREDENTIALS_FILE")
        assert "sesame" not in "".join(process.server.log)
        async with grpc.aio.insecure_channel(process.address) as channel:
            await new_table(channel, start=True)
        nats.kill()
        nats.options = ("--auth=wrong",)
        nats.start()
        await until(lambda: "bus_connected" in process.server.events())
        assert process.server.events().count("bus_not_connected") <= 2


async def test_while_the_time_cannot_be_told_a_process_is_not_ready(server: PostgresServer, shared: Cluster) -> None:
    """The database answers, but takes so long that nothing could be stamped; a faster network is enough."""
    async with proxy_to(server.port) as proxy:
        proxy.delay_seconds = 0.06
        dsn = shared.dsn.reveal().replace(f":{server.port}/", f":{proxy.port}/")
        async with watched(shared, DATABASE_URL=dsn) as process:
            await process.becomes(WAITING)
            await process.says("PostgreSQL answers too slowly: its time cannot be told within 25 ms")
            proxy.delay_seconds = 0.0
            await process.becomes(READY)
            async with grpc.aio.insecure_channel(process.address) as channel:
                await new_table(channel, start=True)
            assert "commands_not_stamped" not in process.server.events()


@asynccontextmanager
async def behind_proxies(
    server: PostgresServer, shared: Cluster, number: int
) -> AsyncIterator[list[tuple[Watched, Proxy]]]:
    """So many processes that serve, each with a network of its own to the database."""
    async with AsyncExitStack() as running:
        pairs = []
        for _ in range(number):
            proxy = await running.enter_async_context(proxy_to(server.port))
            dsn = shared.dsn.reveal().replace(f":{server.port}/", f":{proxy.port}/")
            process = await running.enter_async_context(watched(shared, DATABASE_URL=dsn))
            await process.becomes(READY)
            pairs.append((process, proxy))
        yield pairs


async def test_a_process_that_alone_is_cut_off_is_not_ready_until_it_is_back(
    server: PostgresServer, shared: Cluster
) -> None:
    """Its clients are better off elsewhere; it goes on without a restart."""
    async with behind_proxies(server, shared, 2) as ((lucky, _), (unlucky, proxy)):
        async with proxy.unplugged():
            await unlucky.becomes(WAITING)
            assert await lucky.health() == READY
        await unlucky.becomes(READY)
        await unlucky.says("cut_off_from_store", "store_reached_again")
        assert "cut_off_from_store" not in lucky.server.events()


async def test_an_outage_of_the_database_makes_nobody_unready(server: PostgresServer, shared: Cluster) -> None:
    """It is no better elsewhere: callers are told to repeat, and what they repeat is stored when it is back."""
    async with behind_proxies(server, shared, 2) as pairs:
        processes = [process for process, _ in pairs]
        await asyncio.to_thread(server.stop, "immediate")
        assert await kept_ready(processes, BOTH_SEE_SECONDS)
        async with grpc.aio.insecure_channel(processes[0].address) as channel:
            refused = await creation_refused(channel)
            assert (refused.code, refused.reason) == (grpc.StatusCode.UNAVAILABLE, "TRY_AGAIN")
        await asyncio.to_thread(server.start)
        assert await kept_ready(processes, BOTH_SEE_SECONDS)
        assert "cut_off_from_store" not in processes[0].server.events() + processes[1].server.events()


async def kept_ready(processes: Sequence[Watched], seconds: float) -> bool:
    """Whether all of them are ready for so long."""
    gives_up = asyncio.get_running_loop().time() + seconds
    while asyncio.get_running_loop().time() < gives_up:
        if any([await process.health() != READY for process in processes]):
            return False
        await asyncio.sleep(0.2)
    return True
