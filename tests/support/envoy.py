"""A real Envoy in front of replicas, set up like the chart's: gRPC-Web, round robin, the arrival stamp of commands.

Replicas are reached by their ports for Envoy. Their gRPC health stands for readiness in a cluster.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeAlias

from tests.support.free_ports import free_port
from tests.support.programs import Program, answers

Tree: TypeAlias = dict[str, Any]  # Any: what JSON holds

ARRIVAL_HEADER = "x-specbid-arrival"
STAMPED = ("SubmitCommand", "LeaveMatch")
"""Methods of one message, which is buffered whole before the stamp is made."""
LARGEST_REQUEST_BYTES = 16_400
"""The service's greatest message and its frame."""
_EXTENSION = "type.googleapis.com/envoy.extensions"


class Envoy(Program):
    """A proxy that may be stopped, killed and started again on its port."""

    def __init__(self, folder: Path, replica_ports: Sequence[int]) -> None:
        self.port, self.admin_port = free_port(), free_port()
        config = folder / "envoy.json"
        config.write_text(json.dumps(_config(self.port, self.admin_port, replica_ports)), encoding="utf-8")
        command = (str(_binary()), "-c", str(config), "--use-dynamic-base-id", "--log-level", "warning")
        super().__init__((*command, "--concurrency", "1", "--drain-time-s", "1"), folder / "envoy.log", self._is_ready)

    @property
    def address(self) -> str:
        """Where clients of gRPC and of gRPC-Web connect to."""
        return f"127.0.0.1:{self.port}"

    async def _is_ready(self) -> bool:
        return await answers(self.admin_port) and await answers(self.port)


@asynccontextmanager
async def envoy(replica_ports: Sequence[int]) -> AsyncIterator[Envoy]:
    """Runs a proxy in front of replicas on these ports, whether they are there yet or not."""
    with TemporaryDirectory(prefix="specbid-envoy-") as folder:
        proxy = Envoy(Path(folder), replica_ports)
        async with proxy.running():
            yield proxy


def _binary() -> Path:
    """Where the package has the program."""
    package = find_spec("envoy")
    assert package is not None, "Envoy is not installed: it comes with `make dev`"
    assert package.origin is not None
    return Path(package.origin).parent / "_bin" / "envoy"


def _config(port: int, admin_port: int, replica_ports: Sequence[int]) -> Tree:
    return {
        "admin": {"address": _address(admin_port)},
        "static_resources": {
            "listeners": [{"name": "web", "address": _address(port), "filter_chains": [{"filters": [_connections()]}]}],
            "clusters": [_cluster(replica_ports)],
        },
    }


def _address(port: int) -> Tree:
    return {"socket_address": {"address": "127.0.0.1", "port_value": port}}


def _typed(name: str, kind: str, **fields: object) -> Tree:
    return {"name": name, "typed_config": {"@type": f"{_EXTENSION}.{kind}", **fields}}


def _connections() -> Tree:
    filters = "filters.http"
    return _typed(
        "envoy.filters.network.http_connection_manager",
        "filters.network.http_connection_manager.v3.HttpConnectionManager",
        stat_prefix="web",
        codec_type="AUTO",
        stream_idle_timeout="0s",  # a player may think for as long as the bank lasts
        http_filters=[
            _typed("envoy.filters.http.cors", f"{filters}.cors.v3.Cors"),
            _typed("envoy.filters.http.grpc_web", f"{filters}.grpc_web.v3.GrpcWeb"),
            {
                **_typed(
                    "envoy.filters.http.buffer", f"{filters}.buffer.v3.Buffer", max_request_bytes=LARGEST_REQUEST_BYTES
                ),
                "disabled": True,
            },
            _typed("envoy.filters.http.router", f"{filters}.router.v3.Router"),
        ],
        route_config={
            "name": "service",
            "most_specific_header_mutations_wins": True,  # otherwise the removal would undo the stamp of the route
            "virtual_hosts": [_host()],
        },
    )


def _host() -> Tree:
    stamped = [_stamped_route(f"/spectacularbid.v1.MatchService/{method}") for method in STAMPED]
    others: Tree = {"match": {"prefix": "/"}, "route": {"cluster": "service", "timeout": "0s"}}
    return {
        "name": "service",
        "domains": ["*"],
        "request_headers_to_remove": [ARRIVAL_HEADER],
        "typed_per_filter_config": {
            "envoy.filters.http.cors": {
                "@type": f"{_EXTENSION}.filters.http.cors.v3.CorsPolicy",
                "allow_origin_string_match": [{"prefix": "http://localhost"}, {"prefix": "http://127.0.0.1"}],
                "allow_methods": "POST, OPTIONS",
                "allow_headers": "authorization, content-type, grpc-timeout, x-grpc-web, x-user-agent",
                "expose_headers": "grpc-status, grpc-message, grpc-status-details-bin",
                "max_age": "600",
            }
        },
        "routes": [*stamped, others],
    }


def _stamped_route(path: str) -> Tree:
    """A route on which the time of a message's last byte goes with it, whatever a client claims."""
    value = "%START_TIME(%s.%9f)% %COMMON_DURATION(DS_RX_BEG:DS_RX_END:us)%"
    return {
        "match": {"path": path},
        "route": {"cluster": "service", "timeout": "0s"},
        "request_headers_to_add": [
            {"header": {"key": ARRIVAL_HEADER, "value": value}, "append_action": "OVERWRITE_IF_EXISTS_OR_ADD"}
        ],
        "typed_per_filter_config": {
            "envoy.filters.http.buffer": {
                "@type": "type.googleapis.com/envoy.config.route.v3.FilterConfig",
                "config": {},
            }
        },
    }


def _cluster(replica_ports: Sequence[int]) -> Tree:
    protocol = f"{_EXTENSION}.upstreams.http.v3.HttpProtocolOptions"
    return {
        "name": "service",
        "type": "STATIC",
        "lb_policy": "ROUND_ROBIN",
        "connect_timeout": "1s",
        "load_assignment": {
            "cluster_name": "service",
            "endpoints": [{"lb_endpoints": [{"endpoint": {"address": _address(port)}} for port in replica_ports]}],
        },
        "typed_extension_protocol_options": {
            "envoy.extensions.upstreams.http.v3.HttpProtocolOptions": {
                "@type": protocol,
                "explicit_http_config": {
                    "http2_protocol_options": {"connection_keepalive": {"interval": "20s", "timeout": "5s"}}
                },
            }
        },
        "common_lb_config": {"healthy_panic_threshold": {"value": 0}},
        "health_checks": [
            {
                "timeout": "1s",
                "interval": "0.5s",
                "no_traffic_interval": "0.5s",  # otherwise a replica that starts late stays out for a minute
                "unhealthy_interval": "0.2s",
                "unhealthy_threshold": 2,
                "healthy_threshold": 1,
                "grpc_health_check": {},
            }
        ],
    }
