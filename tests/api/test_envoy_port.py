"""The port that only Envoy reaches: the same service, at which Envoy's stamp of arrival is no forgery."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import grpc
import pytest
import pytest_asyncio
from grpc_health.v1 import health_pb2

from service.rpc.auth import ARRIVAL_HEADER
from service.settings import Settings
from spectacularbid.v1 import match_service_pb2 as pb
from spectacularbid.v1.match_service_pb2_grpc import MatchServiceStub
from spectacularbid.v1.outcomes_pb2 import CommandOutcome
from spectacularbid.v1.views_pb2 import MATCH_MODE_ONLINE
from tests.support.platform import Authority, Certificate
from tests.support.players import START, Table, Viewer, in_stream, new_id, new_table, play_until, read_play
from tests.support.server import UNHURRIED, Server, served
from tests.support.waiting import PATIENCE_SECONDS, until_gone

BY_ENVOY = UNHURRIED.model_copy(update={"envoy_port": 0})
AUTHORITY, STRANGER = Authority(), Authority()
STAMP = (ARRIVAL_HEADER, "1.000000000 1")
OTHER = ("x-timestamp", "1")


@pytest_asyncio.fixture(loop_scope="session")
async def server(tmp_path: Path) -> AsyncIterator[Server]:
    """A service with such a port."""
    async with served(tmp_path / "m.sqlite3", chosen=BY_ENVOY) as running:
        yield running


@asynccontextmanager
async def tables(server: Server) -> AsyncIterator[tuple[Table, Table]]:
    """A fresh match by everybody's port, and the same match by Envoy's."""
    assert server.service.addresses.envoy is not None
    async with grpc.aio.insecure_channel(server.service.addresses.envoy) as channel:
        table = await new_table(server.channel)
        yield table, table.at(channel)


async def start(player: Viewer, *headers: tuple[str, str]) -> CommandOutcome:
    """A command with further headers."""
    request = player.request(START)
    return (await player.stub.SubmitCommand(request, metadata=(*player.metadata, *headers))).outcome


def forged(server: Server) -> float:
    """How many headers were counted as forged."""
    return server.sample("specbid_forged_arrival_headers_total")


def told(server: Server) -> dict[str, float]:
    """Commands by Envoy's port, by what became of the stamp."""
    name = "specbid_arrival_testimonies_total"
    families = [family for family in server.service._metrics.registry.collect() if f"{family.name}_total" == name]
    (samples,) = ([one for one in family.samples if one.name == name] for family in families)
    return {sample.labels["outcome"]: sample.value for sample in samples if sample.value}


async def test_a_match_is_played_by_the_port_for_envoy(server: Server) -> None:
    """All of it, and begun by one port it goes on by the other."""
    async with tables(server) as (table, behind):
        await table.start()
        view = await play_until(behind, lambda view: view.public.version > 20)
        assert (await table.on_turn_view()).public.version == view.public.version
        async with behind.one.watching() as watch, behind.spectator.watching() as spectating:
            await watch.read()
            await spectating.read()


async def test_health_is_answered_at_it(server: Server) -> None:
    """For Envoy's own checks."""
    assert server.service.addresses.envoy is not None
    async with grpc.aio.insecure_channel(server.service.addresses.envoy) as channel:
        check: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary("/grpc.health.v1.Health/Check")
        answer = health_pb2.HealthCheckResponse.FromString(await check(b""))
    assert answer.status == health_pb2.HealthCheckResponse.SERVING


async def test_a_stamp_is_a_forgery_everywhere_but_there(server: Server) -> None:
    """Where it belongs it is counted by what became of it, and other claims are forgeries all the same."""
    async with tables(server) as (table, behind):
        assert (await start(table.one, STAMP)).HasField("accepted")
        assert (forged(server), told(server)) == (1, {})
        assert (await start(behind.two, STAMP)).HasField("accepted")
        assert (forged(server), sum(told(server).values())) == (1, 1)
        await start(behind.two, STAMP, OTHER)
    assert forged(server) == 2


@pytest.mark.parametrize("headers", [(), (STAMP, STAMP), ((ARRIVAL_HEADER, "soon"),)], ids=["none", "two", "malformed"])
async def test_a_stamp_that_cannot_be_read_is_counted_and_has_no_effect(
    server: Server, headers: tuple[tuple[str, str], ...]
) -> None:
    async with tables(server) as (_, behind):
        outcome = await start(behind.one, *headers)
    assert outcome.HasField("accepted")
    assert not outcome.receipt.HasField("own_earliest_unix_ns")
    assert (told(server), forged(server)) == ({"unreadable": 1}, 0)


async def test_commands_of_a_stream_have_no_stamp_but_the_services(server: Server) -> None:
    """The header belongs to the call, which may be hours old."""
    async with tables(server) as (_, behind):
        call = behind.one.stub.PlayMatch(metadata=(*behind.one.metadata, STAMP))
        await call.write(pb.PlayMatchRequest(open=pb.PlayMatchOpen(match_id=behind.one.match_id)))
        await call.write(in_stream(START))
        while not (said := await read_play(call)).HasField("outcome"):
            pass
        call.cancel()
    assert abs(said.outcome.receipt.arrival_latest_unix_ns - time.time_ns()) < 60_000_000_000
    assert (told(server), forged(server)) == ({}, 0)


async def test_a_service_without_such_a_port_has_none(tmp_path: Path) -> None:
    async with served(tmp_path / "m.sqlite3") as server:
        assert server.service.addresses.envoy is None


def mutual(folder: Path) -> Settings:
    """Everybody may connect by TLS; to Envoy's port only who has a certificate of this authority."""
    certificate, key = AUTHORITY.issue("localhost").write(folder, "server")
    authorities = folder / "envoy-ca.pem"
    authorities.write_bytes(AUTHORITY.pem)
    chosen = {"tls_certificate": certificate, "tls_key": key, "envoy_client_ca": authorities}
    return BY_ENVOY.model_copy(update=chosen)


async def created(address: str, client: Certificate | None) -> pb.CreateMatchResponse:
    """CreateMatch with this certificate."""
    key, certificate = (None, None) if client is None else (client.key, client.certificate)
    credentials = grpc.ssl_channel_credentials(AUTHORITY.pem, key, certificate)
    async with grpc.aio.secure_channel(address, credentials) as channel:
        return await MatchServiceStub(channel).CreateMatch(
            pb.CreateMatchRequest(request_id=new_id(), mode=MATCH_MODE_ONLINE)
        )


async def test_only_who_has_a_certificate_for_it_reaches_it(tmp_path: Path) -> None:
    """Neither everybody nor a stranger's Envoy."""
    async with served(tmp_path / "m.sqlite3", chosen=mutual(tmp_path)) as server:
        envoy = server.service.addresses.envoy
        assert envoy is not None
        assert (await created(envoy, AUTHORITY.issue("envoy.example"))).match_id
        assert (await created(server.address, None)).match_id
        for client in (None, STRANGER.issue("envoy.example")):
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await created(envoy, client)
            assert caught.value.code() is grpc.StatusCode.UNAVAILABLE


async def test_a_drain_waits_for_calls_at_it_too(tmp_path: Path) -> None:
    """A watch at Envoy's port ends with its resume point."""
    async with served(tmp_path / "m.sqlite3", chosen=BY_ENVOY) as server:
        assert server.service.addresses.envoy is not None
        channel = grpc.aio.insecure_channel(server.service.addresses.envoy)
        watch = (await new_table(channel)).one.watch()
        await watch.read()
        ending = asyncio.create_task(until_gone(watch, PATIENCE_SECONDS))
    assert (await ending)[-1].HasField("going_away")
    await channel.close()
