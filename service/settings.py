"""Settings from `SPECBID_*` environment variables. A wrong one stops the start with one clear sentence."""

from __future__ import annotations

import ipaddress
from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from engine.faults import Tolerances

MS_NS = 1_000_000


class SettingsError(Exception):
    """The environment does not make sense; the text says what to change."""


class Settings(BaseSettings):
    """What an operator may choose. Everything else is a constant beside its use."""

    model_config = SettingsConfigDict(env_prefix="SPECBID_", extra="ignore", frozen=True)

    host: str = Field("127.0.0.1", description="address to listen on; loopback only, while players are guests")
    port: int = Field(50051, ge=0, le=65535, description="gRPC port; 0 picks a free one")
    metrics_port: int = Field(9464, ge=0, le=65535, description="Prometheus port; 0 picks a free one")
    database: Path = Field(Path("spectacular-bid.sqlite3"), description="the SQLite file")
    log_level: Literal["debug", "info", "warning", "error"] = Field("info", description="least level to log")
    log_format: Literal["json", "console"] = Field("json", description="json for machines, console for people")
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

    @field_validator("host")
    @classmethod
    def _only_loopback(cls, host: str) -> str:
        """Guests carry no proof of who they are, so only this machine may reach them."""
        name = "127.0.0.1" if host == "localhost" else host
        try:
            address = ipaddress.ip_address(name)
        except ValueError as error:
            raise ValueError("must be an IP address or localhost") from error
        if not address.is_loopback:
            raise ValueError("players are guests, so the address must be a loopback one such as 127.0.0.1")
        return name


def load_settings() -> Settings:
    """The settings of this process. Raises SettingsError."""
    try:
        return Settings()
    except ValidationError as error:
        sentences = []
        for problem in error.errors():
            name = "SPECBID_" + "_".join(str(part) for part in problem["loc"]).upper()
            text = problem["msg"].removeprefix("Value error, ")
            sentences.append(f"{name}={problem['input']!r}: {text}")
        raise SettingsError("; ".join(sentences)) from error
