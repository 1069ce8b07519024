"""Settings from `SPECBID_*` environment variables. A wrong one stops the start with one clear sentence."""

from __future__ import annotations

import ipaddress
from pathlib import Path
from typing import Annotated, Literal, Self, TypeAlias

from pydantic import BeforeValidator, Field, ValidationError, ValidationInfo, field_validator, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict
from pydantic_settings import SettingsError as UnreadableError

from engine.faults import Tolerances
from service.secret import Secret
from service.settings_checks import contradictions

MS_NS = 1_000_000
HEALTH_PORT = 50052
"""The port of the plaintext health service, where there is one and none is named."""


Hidden: TypeAlias = Annotated[Secret[str], BeforeValidator(Secret)]
"""An address that may hold a password."""


class SettingsError(Exception):
    """The environment does not make sense; the text says what to change."""


class Settings(BaseSettings):
    """What an operator may choose. Everything else is a constant beside its use."""

    model_config = SettingsConfigDict(env_prefix="SPECBID_", extra="ignore", frozen=True, arbitrary_types_allowed=True)

    auth: Literal["guest", "platform"] = Field("guest", description="who may create and join matches")
    tls_certificate: Path | None = Field(None, description="PEM file: the server's certificate and its chain")
    tls_key: Path | None = Field(None, description="PEM file: the key of the certificate")
    tls_client_ca: Path | None = Field(None, description="PEM file: clients need a certificate of these authorities")
    host: str = Field("127.0.0.1", description="address to listen on; beyond loopback only with TLS and platform auth")
    port: int = Field(50051, ge=0, le=65535, description="gRPC port; 0 picks a free one")
    health_port: int | None = Field(None, ge=0, le=65535, description="plaintext health port beside TLS; 50052 then")
    envoy_port: int | None = Field(None, ge=0, le=65535, description="gRPC port for Envoy alone, whose stamps count")
    envoy_client_ca: Path | None = Field(None, description="PEM file: that port needs a certificate of these")
    metrics_port: int = Field(9464, ge=0, le=65535, description="Prometheus port; 0 picks a free one")
    jwks_file: Path | None = Field(None, description="the platform's public keys (JWKS); read again when it changes")
    jwks_url: str | None = Field(None, description="the same from an address, fetched every five minutes")
    jwt_issuer: str | None = Field(None, description="the exact iss of the platform's tokens")
    jwt_audience: str | None = Field(None, description="the exact aud of the platform's tokens")
    jwt_type: str = Field("at+jwt", min_length=1, description="the exact typ of the platform's tokens")
    client_scopes: dict[str, list[str]] = Field({}, description="JSON: scopes by the name in a client certificate")
    commands_per_second: int = Field(10, ge=1, le=1_000_000, description="commands of a seat; twice as many at once")
    reads_per_second: int = Field(5, ge=1, le=1_000_000, description="views and streams that a token may open")
    guests_per_second: int = Field(200, ge=1, le=1_000_000, description="guests' creates and joins, for each address")
    creates_per_second: int = Field(50, ge=1, le=1_000_000, description="creates and joins of a platform subject")
    spectator_streams: int = Field(1, ge=1, le=1000, description="streams of one spectator token; more to share it")
    connection_streams: int = Field(32, ge=8, le=1_000_000, description="calls of one connection under way at once")
    database: Path = Field(Path("spectacular-bid.sqlite3"), description="the SQLite file")
    database_url: Hidden | None = Field(None, description="PostgreSQL instead of SQLite: postgresql://user@host/name")
    durability: Literal["synchronous-standby", "single-node"] = Field(
        "synchronous-standby", description="what PostgreSQL promises of a commit; checked at start"
    )
    nats_url: Hidden | None = Field(None, description="NATS between replicas; without it they look twice a second")
    nats_credentials_file: Path | None = Field(None, description="NATS credentials (.creds)")
    sealing_key_file: Path | None = Field(None, description="key for hidden tiles at rest; made if it is not there")
    admin_socket: Path | None = Field(None, description="socket of the admin commands; beside a SQLite file by default")
    log_level: Literal["debug", "info", "warning", "error"] = Field("info", description="least level to log")
    log_format: Literal["json", "console"] = Field("json", description="json for machines, console for people")
    traces: bool = Field(default=False, description="send OpenTelemetry traces as the OTEL_* variables say")
    drain_seconds: float = Field(5.0, ge=0, le=300, description="how long to keep accepting after SIGTERM")
    widest_stamp_ms: int = Field(100, ge=1, le=1000, description="a wider stamp across a deadline proves nothing")
    charge_tolerance_ms: int = Field(1000, ge=1, le=10_000, description="how exactly a bank charge must be known")
    aftermath_ms: int = Field(5000, ge=0, le=60_000, description="how long a failure may still cut players off")
    store_gap_ms: int = Field(1000, ge=300, le=60_000, description="so long without a stored heartbeat is a fault")
    publish_stall_ms: int = Field(2000, ge=100, le=60_000, description="so long a stall of the event loop is a fault")
    outage_ms: int = Field(5000, ge=300, le=600_000, description="so long without a service may have burned a bank")
    reflection: bool = Field(default=False, description="offer gRPC server reflection")

    @property
    def tolerances(self) -> Tolerances:
        """How much doubt a verdict bears."""
        return Tolerances(
            widest_stamp_ns=self.widest_stamp_ms * MS_NS,
            charge_ns=self.charge_tolerance_ms * MS_NS,
            aftermath_ns=self.aftermath_ms * MS_NS,
        )

    @property
    def plain_health_port(self) -> int | None:
        """The port of the plaintext health service; None without TLS, as the gRPC port answers then."""
        if self.tls_certificate is None:
            return None
        return HEALTH_PORT if self.health_port is None else self.health_port

    @property
    def own_address(self) -> str:
        """Where this machine reaches the service: the address it listens on, or the loopback one if that is any."""
        loopback = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}  # noqa: S104  compared with, not listened on
        return loopback.get(self.host, f"[{self.host}]" if ":" in self.host else self.host)

    @property
    def admin_path(self) -> Path | None:
        """Where the admin commands reach a running service; with PostgreSQL nowhere unless a place is named."""
        if self.admin_socket is None and self.database_url is None:
            return self.database.with_name(f"{self.database.name}.admin")
        return self.admin_socket

    @field_validator("host")
    @classmethod
    def _reachable_by_the_right_people(cls, host: str, info: ValidationInfo) -> str:
        """Guests carry no proof of who they are, and tokens must not travel in the clear."""
        name = "127.0.0.1" if host == "localhost" else host
        try:
            address = ipaddress.ip_address(name)
        except ValueError as error:
            raise ValueError("must be an IP address or localhost") from error
        if address.is_loopback:
            return name
        if info.data.get("auth") != "platform":
            raise ValueError("players are guests, so the address must be a loopback one such as 127.0.0.1")
        if info.data.get("tls_certificate") is None:
            raise ValueError("without SPECBID_TLS_CERTIFICATE the address must be a loopback one such as 127.0.0.1")
        return name

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        problems = contradictions({**self.model_dump(), "plain_health_port": self.plain_health_port})
        if problems:
            raise ValueError("; ".join(problems))
        return self


def load_settings() -> Settings:
    """The settings of this process. Raises SettingsError."""
    try:
        return Settings()
    except ValidationError as error:
        sentences = []
        for problem in error.errors():
            name = "SPECBID_" + "_".join(str(part) for part in problem["loc"]).upper()
            text = problem["msg"].removeprefix("Value error, ")
            sentences.append(f"{name}={problem['input']!r}: {text}" if problem["loc"] else text)
        raise SettingsError("; ".join(sentences)) from error
    except UnreadableError as error:  # a value that should be JSON and is none
        raise SettingsError('SPECBID_CLIENT_SCOPES must be a JSON object such as {"name": ["match:create"]}') from error
