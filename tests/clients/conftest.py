"""A scripted peer, and a client with made-up time, chance and ids."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace

import pytest

from spectacularbid.client import Connection, Desync, Limits, Service, Settings, Token, connect
from spectacularbid.client.session import MatchSession
from tests.clients.peer import Matches, serving


@dataclass
class Recorder:
    """What the client asked of its surroundings, and told them."""

    pauses: list[float] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)
    desyncs: list[Desync] = field(default_factory=list)
    connections: list[Connection] = field(default_factory=list)

    async def sleep(self, seconds: float) -> None:
        """Remember a pause instead of making it."""
        self.pauses.append(seconds)
        await asyncio.sleep(0)

    def new_id(self) -> str:
        """Count."""
        self.ids.append(f"00000000-0000-4000-8000-{len(self.ids):012}")
        return self.ids[-1]

    def settings(self, **limits: float) -> Settings:
        """Settings that report here: full pauses, and the client's own limits but for those given."""
        return Settings(
            limits=replace(Limits(), **limits),  # type: ignore[arg-type] # named by the tests
            sleep=self.sleep,
            jitter=lambda: 1.0,
            new_id=self.new_id,
            on_desync=self.desyncs.append,
            on_connection=self.connections.append,
        )


@pytest.fixture
def recorder() -> Recorder:
    """The client's surroundings."""
    return Recorder()


@pytest.fixture
def matches() -> Matches:
    """The peer's scripts and memory."""
    return Matches()


@pytest.fixture
async def address(matches: Matches) -> AsyncIterator[str]:
    """Where the peer listens."""
    async with serving(matches) as listening:
        yield listening


@pytest.fixture
def limits() -> dict[str, float]:
    """Limits that a test wants other than they are; overridden by parametrising."""
    return {}


@pytest.fixture
async def service(address: str, recorder: Recorder, limits: dict[str, float]) -> AsyncIterator[Service]:
    """A connection to the peer."""
    async with connect(address, settings=recorder.settings(**limits)) as connected:
        yield connected


@pytest.fixture
def session(service: Service) -> MatchSession:
    """A seat at the peer's match."""
    return service.resume("m", Token("secret-one"))
