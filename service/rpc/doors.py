"""The ports of gRPC: for everybody, for Envoy alone, and for health alone."""

from __future__ import annotations

from typing import NamedTuple

import grpc

from service.rpc.tls import secure_door
from service.settings import Settings


class Door(NamedTuple):
    """Where to listen: `host` in brackets if it has colons, port 0 for a free one; with `credentials` TLS only."""

    host: str
    port: int
    credentials: grpc.ServerCredentials | None = None


class Doors(NamedTuple):
    """At `envoy` stamps of arrival are believed; `health` is in plaintext."""

    everybody: Door
    envoy: Door | None = None
    health: Door | None = None


def doors(settings: Settings) -> Doors:
    """Where these settings let the service listen. Raises OSError for files that cannot be read."""
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    envoy_port, health_port = settings.envoy_port, settings.plain_health_port
    certificate, key = settings.tls_certificate, settings.tls_key
    return Doors(
        Door(host, settings.port, secure_door(certificate, key, settings.tls_client_ca)),
        None if envoy_port is None else Door(host, envoy_port, secure_door(certificate, key, settings.envoy_client_ca)),
        None if health_port is None else Door(host, health_port),
    )
