"""What a connection may be told: limits, sources of time and chance, and where to report trouble."""

from __future__ import annotations

import asyncio
import logging
import random
import time
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from enum import Enum

from spectacularbid.client.digest import Desync

_log = logging.getLogger("spectacularbid.client")


@dataclass(frozen=True, slots=True)
class Limits:
    """Every bound of the client. Attempts count the first one, too."""

    attempt_seconds: float = 5.0  # for one attempt of a unary call, and for the answer to a command on a stream
    attempts: int = 8  # of one call or command
    backoff_first_seconds: float = 0.1
    backoff_cap_seconds: float = 2.0
    retry_after_cap_seconds: float = 60.0  # no matter what the service wishes
    silence_seconds: float = 30.0  # two heartbeats: a stream silent for so long counts as dead
    stream_attempts: int = 60  # in a row without a sign of life
    commands_in_flight: int = 16  # on one stream; further ones wait
    merged_events: int = 1024  # kept for a reader that is slow; beyond that `events_complete` is false


class Connection(Enum):
    """How a stream stands."""

    CONNECTED = "connected"
    RECONNECTING = "reconnecting"


def warn_of_desync(desync: Desync) -> None:
    """Log a digest that does not match, unless fields unknown to this client explain it."""
    if not desync.has_unknown_fields:
        _log.warning("view of version %d does not match its digest", desync.version)


@dataclass(frozen=True, slots=True)
class Settings:
    """Limits, sources and hooks of a connection. Tests pass their own."""

    limits: Limits = field(default_factory=Limits)
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    jitter: Callable[[], float] = random.SystemRandom().random  # from 0 to 1
    new_id: Callable[[], str] = lambda: str(uuid.uuid4())
    monotonic_ns: Callable[[], int] = time.monotonic_ns
    on_desync: Callable[[Desync], None] = warn_of_desync
    platform_token: Callable[[], str] = lambda: ""  # asked for before each create and join; "" for a guest
    on_connection: Callable[[Connection], None] = lambda _: None  # told of changes, by each stream
