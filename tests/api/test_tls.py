"""TLS and client certificates on the gRPC port, and health in plaintext beside it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import grpc
import pytest
from grpc_health.v1 import health_pb2

from service.settings import Settings
from spectacularbid.v1 import match_service_pb2 as pb
from spectacularbid.v1.match_service_pb2_grpc import MatchServiceStub
from spectacularbid.v1.views_pb2 import MATCH_MODE_ONLINE
from tests.support.platform import AUDIENCE, ISSUER, Authority, Certificate, Platform, bearer
from tests.support.players import START, new_id, new_table
from tests.support.rejections import rejection
from tests.support.server import UNHURRIED, Server, run_command, served, server_process

AUTHORITY, STRANGER = Authority(), Authority()
CLIENT = AUTHORITY.issue("lobby.platform.example")
READER = AUTHORITY.issue("reader.platform.example")
SCOPES = {"lobby.platform.example": ["match:create"], "reader.platform.example": ["match:read"]}
REQUEST_SECONDS = 5.0


def tls(folder: Path) -> Settings:
    """Settings with a certificate for this machine."""
    certificate, key = AUTHORITY.issue("localhost").write(folder, "server")
    return UNHURRIED.model_copy(update={"tls_certificate": certificate, "tls_key": key})


def mutual(folder: Path) -> Settings:
    """The same, and clients need certificates; their names say what they may do."""
    authorities = folder / "ca.pem"
    authorities.write_bytes(AUTHORITY.pem)
    chosen = {"auth": "platform", "tls_client_ca": authorities, "client_scopes": SCOPES}
    return tls(folder).model_copy(update=chosen)


@asynccontextmanager
async def channel_to(
    server: Server, client: Certificate | None = None, *, authority: Authority = AUTHORITY
) -> AsyncIterator[grpc.aio.Channel]:
    """A channel with TLS that trusts this authority."""
    key, certificate = (None, None) if client is None else (client.key, client.certificate)
    credentials = grpc.ssl_channel_credentials(authority.pem, key, certificate)
    async with grpc.aio.secure_channel(server.address, credentials) as channel:
        yield channel


async def created(channel: grpc.aio.Channel) -> pb.CreateMatchResponse:
    """CreateMatch without any token."""
    request = pb.CreateMatchRequest(request_id=new_id(), mode=MATCH_MODE_ONLINE)
    return await MatchServiceStub(channel).CreateMatch(request, timeout=REQUEST_SECONDS)


async def failure(channel: grpc.aio.Channel) -> grpc.StatusCode:
    """How CreateMatch fails where no connection comes about."""
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await created(channel)
    return caught.value.code()


async def test_a_match_is_played_over_tls_and_in_plaintext_nothing(tmp_path: Path) -> None:
    """The port takes no plaintext, and a client that trusts another authority hangs up."""
    async with served(tmp_path / "m.sqlite3", chosen=tls(tmp_path)) as server:
        async with channel_to(server) as channel:
            table = await new_table(channel)
            assert (await table.one.submit(START)).HasField("accepted")
        assert await failure(server.channel) is grpc.StatusCode.UNAVAILABLE
        async with channel_to(server, authority=STRANGER) as channel:
            assert await failure(channel) is grpc.StatusCode.UNAVAILABLE


async def test_health_is_answered_in_plaintext_beside_it_and_nothing_else(tmp_path: Path) -> None:
    """For a kubelet, which has no certificate of ours; under every name that it may ask for."""
    async with served(tmp_path / "m.sqlite3", chosen=tls(tmp_path)) as server:
        address = server.service.addresses.health
        assert address is not None
        async with grpc.aio.insecure_channel(address) as channel:
            check: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary("/grpc.health.v1.Health/Check")
            for name in ("", "startup", "readiness", "liveness", "spectacularbid.v1.MatchService"):
                asked = health_pb2.HealthCheckRequest(service=name).SerializeToString()
                answer = health_pb2.HealthCheckResponse.FromString(await check(asked))
                assert answer.status == health_pb2.HealthCheckResponse.SERVING
            assert await failure(channel) is grpc.StatusCode.UNIMPLEMENTED
        async with channel_to(server) as channel:
            check = channel.unary_unary("/grpc.health.v1.Health/Check")
            await check(b"")


async def test_a_renewed_certificate_is_taken_from_its_file(tmp_path: Path) -> None:
    """By new connections, without a restart."""
    chosen = tls(tmp_path)
    async with served(tmp_path / "m.sqlite3", chosen=chosen) as server:
        STRANGER.issue("localhost").write(tmp_path, "server")
        async with channel_to(server, authority=STRANGER) as channel:
            await created(channel)


async def test_a_client_certificate_names_who_may_create(tmp_path: Path) -> None:
    """By the name in it, which the setting maps to scopes."""
    async with served(tmp_path / "m.sqlite3", chosen=mutual(tmp_path)) as server:
        async with channel_to(server, CLIENT) as channel:
            made = await created(channel)
            request = pb.JoinMatchRequest(request_id=new_id(), invite_code=made.invite_code)
            refused = await rejection(MatchServiceStub(channel).JoinMatch(request))
            assert refused.reason == "NOT_FOR_THIS_SUBJECT"
        async with channel_to(server, READER) as channel:
            refused = await rejection(created(channel))
            assert (refused.code, refused.reason) == (grpc.StatusCode.PERMISSION_DENIED, "MISSING_SCOPE")
        async with channel_to(server, AUTHORITY.issue("unknown.example")) as channel:
            assert (await rejection(created(channel))).reason == "INVALID_TOKEN"


async def test_without_a_certificate_of_the_authorities_there_is_no_connection(tmp_path: Path) -> None:
    """Neither with none nor with a stranger's of the same name."""
    async with served(tmp_path / "m.sqlite3", chosen=mutual(tmp_path)) as server:
        for client in (None, STRANGER.issue("lobby.platform.example")):
            async with channel_to(server, client) as channel:
                assert await failure(channel) is grpc.StatusCode.UNAVAILABLE


async def test_a_bad_token_is_not_mended_by_a_good_certificate(tmp_path: Path) -> None:
    """Who sends a token is judged by it."""
    async with (
        served(tmp_path / "m.sqlite3", chosen=mutual(tmp_path)) as server,
        channel_to(server, CLIENT) as channel,
    ):
        request = pb.CreateMatchRequest(request_id=new_id(), mode=MATCH_MODE_ONLINE)
        call = MatchServiceStub(channel).CreateMatch(request, metadata=(("authorization", "Bearer nonsense"),))
        assert (await rejection(call)).reason == "INVALID_TOKEN"


async def test_with_tls_and_a_platform_it_listens_beyond_this_machine(tmp_path: Path) -> None:
    """As a process with nothing but variables."""
    platform = Platform()
    platform.settings(tmp_path)
    certificate, key = AUTHORITY.issue("localhost").write(tmp_path, "server")
    variables = {
        "HOST": "0.0.0.0",  # noqa: S104  what this is about
        "HEALTH_PORT": "0",
        "TLS_CERTIFICATE": str(certificate),
        "TLS_KEY": str(key),
        "AUTH": "platform",
        "JWKS_FILE": str(tmp_path / "jwks.json"),
        "JWT_ISSUER": ISSUER,
        "JWT_AUDIENCE": AUDIENCE,
    }
    async with server_process(tmp_path / "m.sqlite3", **variables) as server:
        address = f"localhost:{server.address.rpartition(':')[2]}"
        async with grpc.aio.secure_channel(address, grpc.ssl_channel_credentials(AUTHORITY.pem)) as channel:
            assert (await rejection(created(channel))).reason == "INVALID_TOKEN"
            request = pb.CreateMatchRequest(request_id=new_id(), mode=MATCH_MODE_ONLINE)
            metadata = bearer(platform.token())
            assert (await MatchServiceStub(channel).CreateMatch(request, metadata=metadata)).match_id
        assert await server.stop() == 0
    (tmp_path / "jwks.json").write_text("{}", encoding="utf-8")
    failed = await run_command("serve", database=tmp_path / "m.sqlite3", **variables)
    assert failed.status == 2
    assert "SPECBID_JWKS_FILE=" in failed.errors
    assert "not a JSON Web Key Set" in failed.errors
