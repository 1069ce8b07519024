"""What a load client is asked for and what it found, both as JSON between processes."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from enum import StrEnum


class UnderTest(StrEnum):
    """What is under load."""

    SERVICE = "service"
    FLOOR = "floor"


class Transport(StrEnum):
    """How a player talks to the server."""

    PLAY = "PlayMatch"
    SUBMIT = "SubmitCommand + WatchMatch"


@dataclass(frozen=True, slots=True)
class Job:
    """One run. `commands` are counted after `warm_up` others; at a pace of 0 each player moves as soon as it may.

    With `hold` the run is over when every match is started; its streams stay open until the client's input closes.
    `apart` has the players of a match on different servers, where there are several; otherwise they are on the same.
    """

    addresses: tuple[str, ...]
    server_pids: tuple[int, ...]
    under_test: UnderTest
    transport: Transport
    matches: int
    commands: int
    warm_up: int
    pace_per_second: int = 0
    request_bytes: int = 0
    hold: bool = False
    apart: bool = False
    database_pid: int | None = None
    seed: int = 1

    def to_text(self) -> str:
        """For the client's command line."""
        return json.dumps(asdict(self))

    @classmethod
    def from_text(cls, text: str) -> Job:
        """From the client's command line."""
        fields = json.loads(text)
        kinds = {"under_test": UnderTest(fields["under_test"]), "transport": Transport(fields["transport"])}
        return cls(**{**fields, **kinds})


@dataclass(frozen=True, slots=True)
class Sizes:
    """Mean length of the messages in bytes."""

    request: int = 0
    answer: int = 0
    push: int = 0


@dataclass(frozen=True, slots=True)
class Measured:
    """What a run took. Latency is from sending a command until its outcome was read.

    Delivery, measured with PlayMatch, is from sending a command until the other player has read what it made.
    """

    commands: int
    seconds: float
    server_cpu_seconds: float | None
    client_cpu_seconds: float
    p50_ms: float
    p99_ms: float
    views: int
    sizes: Sizes = field(default_factory=Sizes)
    database_cpu_seconds: float | None = None
    delivery_p50_ms: float = 0.0
    delivery_p99_ms: float = 0.0

    def to_text(self) -> str:
        """For the client's output."""
        return json.dumps(asdict(self))

    @classmethod
    def from_text(cls, text: str) -> Measured:
        """From the client's output."""
        fields = json.loads(text)
        return cls(**{**fields, "sizes": Sizes(**fields["sizes"])})
