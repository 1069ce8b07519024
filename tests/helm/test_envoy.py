"""The configuration of Envoy in the chart, read and run by a real Envoy in front of an echo."""

from __future__ import annotations

import asyncio
import http.client
import re
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import pytest
import pytest_asyncio
import yaml

from tests.helm.chart import NAME, SQLITE, STAMPING, Object, Values, merged, only, profile, rendered
from tests.support.free_ports import free_port
from tests.support.platform import Authority

ENVOY = Path(sys.executable).parent / "envoy"
AUTHORITY = Authority()
in_one_loop = pytest.mark.asyncio(loop_scope="module")
SERVICE = "/spectacularbid.v1.MatchService/"
HEADER = "x-specbid-arrival"
FORGED = ((HEADER, "1.000000000 0"),)
STAMP = re.compile(r"(?P<seconds>\d{10}\.\d{9}) (?P<microseconds>\d+)")
PATIENCE_SECONDS = 20.0
EMPTY_FRAME = b"\0\0\0\0\0"
TRAILERS = 0x80
PAGE = "https://play.example"


def configuration(objects: tuple[Object, ...] | list[Object], folder: Path) -> dict[str, Any]:
    """Envoy's configuration in a profile, with the files of its Secrets in a folder."""
    for name, subject in (("ca", "ca"), ("client", "envoy.example"), ("web", "web.example")):
        secret = folder / f"envoy-{name}"
        secret.mkdir()
        made = AUTHORITY.issue(subject)
        (secret / "ca.crt").write_bytes(AUTHORITY.pem)
        (secret / "tls.crt").write_bytes(made.certificate)
        (secret / "tls.key").write_bytes(made.key)
    text = only(objects, "ConfigMap", f"{NAME}-envoy")["data"]["envoy.yaml"]
    whole: dict[str, Any] = yaml.safe_load(text.replace("/etc/envoy-", f"{folder}/envoy-"))
    return whole


def written(config: dict[str, Any], folder: Path) -> Path:
    """The configuration as a file."""
    file = folder / "envoy.yaml"
    file.write_text(yaml.safe_dump(config), encoding="utf-8")
    return file


@pytest.mark.parametrize("name", ["envoy-web", "tls"])
def test_envoy_accepts_its_configuration(name: str, tmp_path: Path) -> None:
    file = written(configuration(profile(name), tmp_path), tmp_path)
    answer = subprocess.run([str(ENVOY), "--mode", "validate", "-c", str(file)], check=False, capture_output=True)
    assert answer.returncode == 0, answer.stderr


@pytest.mark.parametrize(
    ("values", "port", "makes_stamps"), [({"envoy": {"enabled": True}}, 50051, False), (STAMPING, 50053, True)]
)
def test_envoy_stamps_where_it_is_believed_and_takes_forgeries_away_everywhere(
    values: Values, port: int, *, makes_stamps: bool, tmp_path: Path
) -> None:
    resources = configuration(rendered({**SQLITE, **values}), tmp_path)["static_resources"]
    (endpoint,) = resources["clusters"][0]["load_assignment"]["endpoints"][0]["lb_endpoints"]
    assert socket_address(endpoint["endpoint"])["port_value"] == port
    manager = resources["listeners"][0]["filter_chains"][0]["filters"][0]["typed_config"]
    (host,) = manager["route_config"]["virtual_hosts"]
    assert host["request_headers_to_remove"] == [HEADER]
    assert ["request_headers_to_add" in route for route in host["routes"]] == [makes_stamps, makes_stamps, False]


def test_envoy_is_the_version_that_the_chart_names() -> None:
    (container,) = only(profile("envoy-web"), "Deployment", f"{NAME}-envoy")["spec"]["template"]["spec"]["containers"]
    said = subprocess.run([str(ENVOY), "--version"], check=True, capture_output=True, text=True).stdout
    assert f"/{container['image'].rpartition('-v')[2]}/" in said


@dataclass(frozen=True)
class Running:
    """An Envoy in front of an upstream that answers with the arrival headers that it got, joined by a bar."""

    channel: grpc.aio.Channel
    web_port: int
    status_port: int

    async def arrival(self, method: str) -> str:
        """What a call with a forged header came with."""
        call: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = self.channel.unary_unary(f"{SERVICE}{method}")
        answer: bytes = await call(b"", metadata=FORGED, timeout=PATIENCE_SECONDS, wait_for_ready=True)
        return answer.decode()


class Echo(grpc.GenericRpcHandler):
    """Answers every method with the arrival headers of the call."""

    def service(self, _: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler[bytes, bytes]:
        """The one handler."""
        return grpc.unary_unary_rpc_method_handler(_arrival_headers)


async def _arrival_headers(_: bytes, context: grpc.aio.ServicerContext[bytes, bytes]) -> bytes:
    values = [str(value) for key, value in context.invocation_metadata() or () if key == HEADER]
    return "|".join(values).encode()


def socket_address(listener: dict[str, Any]) -> dict[str, Any]:
    """Where something listens or is."""
    address: dict[str, Any] = listener["address"]["socket_address"]
    return address


def moved_here(config: dict[str, Any], *, web: int, status: int, admin: int, upstream: int) -> None:
    """Change the addresses of a configuration to ports of this machine."""
    resources = config["static_resources"]
    for listener, port in zip(resources["listeners"], (web, status), strict=True):
        socket_address(listener)["port_value"] = port
    socket_address(config["admin"])["port_value"] = admin
    for cluster, port in zip(resources["clusters"], (upstream, admin), strict=True):
        endpoint = cluster["load_assignment"]["endpoints"][0]["lb_endpoints"][0]["endpoint"]
        socket_address(endpoint).update({"address": "127.0.0.1", "port_value": port})


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def running(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Running]:
    """Envoy as in a cluster, but for addresses; it has answered once."""
    folder = tmp_path_factory.mktemp("envoy")
    async with AsyncExitStack() as stack:
        upstream = grpc.aio.server()
        upstream.add_generic_rpc_handlers((Echo(),))
        own = AUTHORITY.issue(f"{NAME}.default.svc")
        credentials = grpc.ssl_server_credentials([(own.key, own.certificate)], AUTHORITY.pem, require_client_auth=True)
        upstream_port = upstream.add_secure_port("127.0.0.1:0", credentials)
        await upstream.start()
        stack.push_async_callback(upstream.stop, 0)
        config = configuration(rendered(merged(SQLITE, STAMPING, {"envoy": {"allowOrigins": [PAGE]}})), folder)
        web, status, admin = (free_port() for _ in range(3))
        moved_here(config, web=web, status=status, admin=admin, upstream=upstream_port)
        command = [str(ENVOY), "-c", str(written(config, folder)), "--use-dynamic-base-id", "--log-level", "error"]
        envoy = await asyncio.create_subprocess_exec(*command)
        stack.push_async_callback(envoy.wait)
        stack.callback(envoy.kill)
        channel = await stack.enter_async_context(grpc.aio.insecure_channel(f"127.0.0.1:{web}"))
        started = Running(channel, web, status)
        await started.arrival("SubmitCommand")
        yield started


def arrived(text: str) -> float:
    """When a message had arrived whole by a stamp, in seconds since 1970."""
    stamp = STAMP.fullmatch(text)
    assert stamp is not None, text
    return float(stamp["seconds"]) + int(stamp["microseconds"]) / 1e6


@in_one_loop
@pytest.mark.parametrize("method", ["SubmitCommand", "LeaveMatch"])
async def test_a_command_comes_with_the_stamp_of_its_arrival_and_no_other(running: Running, method: str) -> None:
    before = time.time()
    stamp = arrived(await running.arrival(method))
    assert before <= stamp <= time.time()


@in_one_loop
async def test_a_message_that_comes_later_than_its_headers_is_stamped_when_it_comes(running: Running) -> None:
    """Otherwise early headers would gain time for a late decision."""
    begin: grpc.aio.StreamUnaryMultiCallable[bytes, bytes] = running.channel.stream_unary(f"{SERVICE}SubmitCommand")
    call = begin(timeout=PATIENCE_SECONDS)
    await call.wait_for_connection()
    await running.arrival("SubmitCommand")  # came later on the same connection, so the headers are there
    between = time.time()
    await call.write(b"")
    await call.done_writing()
    answer: bytes = await call
    stamp = answer.decode()
    assert float(stamp.partition(" ")[0]) < between <= arrived(stamp)


@in_one_loop
@pytest.mark.parametrize("method", ["WatchMatch", "PlayMatch", "CreateMatch"])
async def test_what_is_no_command_comes_without_a_stamp(running: Running, method: str) -> None:
    assert await running.arrival(method) == ""


@in_one_loop
async def test_only_the_services_of_the_game_are_reached(running: Running) -> None:
    call: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = running.channel.unary_unary("/grpc.health.v1.Health/Check")
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call(b"", timeout=PATIENCE_SECONDS)
    assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED


@dataclass(frozen=True)
class Answer:
    """An HTTP answer."""

    status: int
    headers: http.client.HTTPMessage
    body: bytes


async def asked(port: int, verb: str, path: str, headers: dict[str, str], body: bytes = b"") -> Answer:
    """What a plain HTTP client gets; in a thread, as the echo lives in this loop."""

    def ask() -> Answer:
        with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_SECONDS)) as connection:
            connection.request(verb, path, body, headers)
            answer = connection.getresponse()
            return Answer(answer.status, answer.headers, answer.read())

    return await asyncio.to_thread(ask)


@in_one_loop
async def test_a_browser_is_answered_in_grpc_web(running: Running) -> None:
    """With the stamp of its arrival, and headers that let the page read the status."""
    headers = {"content-type": "application/grpc-web+proto", "origin": PAGE, HEADER: "1.000000000 0"}
    answer = await asked(running.web_port, "POST", f"{SERVICE}SubmitCommand", headers, EMPTY_FRAME)
    length = int.from_bytes(answer.body[1:5])
    assert STAMP.fullmatch(answer.body[5 : 5 + length].decode())
    assert answer.body[5 + length] == TRAILERS
    assert b"grpc-status:0" in answer.body[5 + length :]
    assert answer.headers["access-control-allow-origin"] == PAGE
    assert "grpc-status-details-bin" in answer.headers["access-control-expose-headers"]


@in_one_loop
@pytest.mark.parametrize(("origin", "allowed"), [(PAGE, PAGE), ("https://elsewhere.example", None)])
async def test_only_the_pages_that_are_named_may_call(running: Running, origin: str, allowed: str | None) -> None:
    preflight = {"origin": origin, "access-control-request-method": "POST"}
    answer = await asked(running.web_port, "OPTIONS", f"{SERVICE}SubmitCommand", preflight)
    assert answer.headers["access-control-allow-origin"] == allowed


@in_one_loop
async def test_readiness_and_metrics_are_there_and_nothing_else_of_the_admin(running: Running) -> None:
    paths = ("/ready", "/stats/prometheus", "/")
    statuses = [(await asked(running.status_port, "GET", path, {})).status for path in paths]
    assert statuses == [200, 200, 404]
