"""Settings that contradict each other, as one sentence each."""

from __future__ import annotations

import ssl
from collections.abc import Iterator, Mapping
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import urlsplit

from service.scopes import Scope
from service.secret import Secret

_PLATFORM_ONLY = ("jwks_file", "jwks_url", "jwt_issuer", "jwt_audience", "client_scopes")


def contradictions(settings: Mapping[str, object]) -> list[str]:
    """What is wrong with these settings together; empty when nothing is. Reads the certificate files."""
    tls = list(_tls(settings))
    others = (_envoy, _platform, _jwt, _scopes, _database, _nats)
    return [*tls, *(text for check in others for text in check(settings)), *([] if tls else _files(settings))]


def _tls(settings: Mapping[str, object]) -> Iterator[str]:
    certificate, key = settings["tls_certificate"], settings["tls_key"]
    if certificate and not key:
        yield "SPECBID_TLS_CERTIFICATE needs SPECBID_TLS_KEY"
    if key and not certificate:
        yield "SPECBID_TLS_KEY needs SPECBID_TLS_CERTIFICATE"
    if settings["tls_client_ca"] and not certificate:
        yield "SPECBID_TLS_CLIENT_CA needs SPECBID_TLS_CERTIFICATE"
    if settings["health_port"] is not None and not certificate:
        yield "SPECBID_HEALTH_PORT needs SPECBID_TLS_CERTIFICATE: without TLS the gRPC port answers health checks"
    names = ("port", "plain_health_port", "envoy_port", "metrics_port")
    ports = [settings[name] for name in names if settings[name]]
    if len(set(ports)) < len(ports):
        yield "SPECBID_PORT, SPECBID_HEALTH_PORT, SPECBID_ENVOY_PORT and SPECBID_METRICS_PORT must differ"


def _envoy(settings: Mapping[str, object]) -> Iterator[str]:
    has_port, authorities = settings["envoy_port"] is not None, settings["envoy_client_ca"]
    if authorities and not has_port:
        yield "SPECBID_ENVOY_CLIENT_CA needs SPECBID_ENVOY_PORT"
    if authorities and not settings["tls_certificate"]:
        yield "SPECBID_ENVOY_CLIENT_CA needs SPECBID_TLS_CERTIFICATE"
    if has_port and not authorities and not ip_address(str(settings["host"])).is_loopback:
        yield "SPECBID_ENVOY_PORT beyond loopback needs SPECBID_ENVOY_CLIENT_CA: who reaches it is believed about time"


def _platform(settings: Mapping[str, object]) -> Iterator[str]:
    given = [f"SPECBID_{name.upper()}" for name in _PLATFORM_ONLY if settings[name]]
    if settings["auth"] == "guest" and given:
        verb = "needs" if len(given) == 1 else "need"
        yield f"{', '.join(given)} {verb} SPECBID_AUTH=platform"
    if settings["auth"] == "platform" and not (
        settings["jwks_file"] or settings["jwks_url"] or settings["client_scopes"]
    ):
        yield "SPECBID_AUTH=platform needs SPECBID_JWKS_FILE, SPECBID_JWKS_URL or SPECBID_CLIENT_SCOPES"


def _jwt(settings: Mapping[str, object]) -> Iterator[str]:
    file, url = settings["jwks_file"], settings["jwks_url"]
    if file and url:
        yield "only one of SPECBID_JWKS_FILE and SPECBID_JWKS_URL can be set"
    for name in ("jwt_issuer", "jwt_audience"):
        if (file or url) and not settings[name]:
            yield f"SPECBID_JWKS_{'FILE' if file else 'URL'} needs SPECBID_{name.upper()}"
        if settings[name] and not (file or url):
            yield f"SPECBID_{name.upper()} needs SPECBID_JWKS_FILE or SPECBID_JWKS_URL"
    if isinstance(url, str) and not _is_safe(url):
        yield "SPECBID_JWKS_URL must begin with https://, or with http:// and a loopback address"


def _is_safe(url: str) -> bool:
    parts = urlsplit(url)
    if parts.scheme == "https":
        return bool(parts.hostname)
    try:
        return parts.scheme == "http" and ip_address(parts.hostname or "").is_loopback
    except ValueError:
        return False


def _scopes(settings: Mapping[str, object]) -> Iterator[str]:
    scopes = settings["client_scopes"]
    assert isinstance(scopes, dict)
    if scopes and not settings["tls_client_ca"]:
        yield "SPECBID_CLIENT_SCOPES needs SPECBID_TLS_CLIENT_CA"
    known = {scope.value for scope in Scope}
    unknown = sorted({scope for granted in scopes.values() for scope in granted} - known)
    if unknown:
        yield f"SPECBID_CLIENT_SCOPES names unknown scopes: {', '.join(unknown)}"


def _database(settings: Mapping[str, object]) -> Iterator[str]:
    url = settings["database_url"]
    if isinstance(url, Secret):
        if not url.reveal().startswith(("postgresql://", "postgres://")):
            yield "SPECBID_DATABASE_URL must be an address such as postgresql://user@host:5432/database"
        if not settings["sealing_key_file"]:
            yield "SPECBID_DATABASE_URL needs SPECBID_SEALING_KEY_FILE: all replicas share one key"
    elif settings["durability"] == "single-node":
        yield "SPECBID_DURABILITY needs SPECBID_DATABASE_URL"


def _nats(settings: Mapping[str, object]) -> Iterator[str]:
    url = settings["nats_url"]
    if isinstance(url, Secret):
        if not url.reveal().startswith(("nats://", "tls://")):
            yield "SPECBID_NATS_URL must be an address such as nats://host:4222"
        if not settings["database_url"]:
            yield "SPECBID_NATS_URL needs SPECBID_DATABASE_URL: a SQLite file has one process"
    elif settings["nats_credentials_file"]:
        yield "SPECBID_NATS_CREDENTIALS_FILE needs SPECBID_NATS_URL"


def _files(settings: Mapping[str, object]) -> Iterator[str]:
    certificate, key = settings["tls_certificate"], settings["tls_key"]
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    if isinstance(certificate, Path) and isinstance(key, Path):
        try:
            context.load_cert_chain(certificate, key, password=lambda: "")
        except (OSError, ValueError):  # an ssl.SSLError is an OSError
            yield "SPECBID_TLS_CERTIFICATE and SPECBID_TLS_KEY must be readable PEM files that belong together"
    for name in ("tls_client_ca", "envoy_client_ca"):
        authorities = settings[name]
        try:
            if isinstance(authorities, Path):
                context.load_verify_locations(authorities)
        except (OSError, ValueError):
            yield f"SPECBID_{name.upper()} must be a readable PEM file"
