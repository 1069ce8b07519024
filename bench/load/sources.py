"""Where matches come from."""

from __future__ import annotations

import asyncio
from itertools import count
from random import Random
from typing import Protocol
from uuid import UUID

from bench.load.hands import FloorHand, Hand, ServiceHand
from bench.load.job import Job, UnderTest
from bench.load.wires import Wire
from spectacularbid.v1 import match_service_pb2 as pb
from spectacularbid.v1.views_pb2 import MATCH_MODE_ONLINE


class Source(Protocol):
    """Makes matches."""

    async def new_match(self) -> tuple[Hand, Hand]:
        """Both players of a fresh match."""


def source_of(job: Job, wire: Wire, door: asyncio.Semaphore) -> Source:
    """The source that a job asks for."""
    return ServiceMatches(job, wire, door) if job.under_test is UnderTest.SERVICE else FloorMatches(job)


class ServiceMatches:
    """Matches of the service, created and joined, not yet started."""

    def __init__(self, job: Job, wire: Wire, door: asyncio.Semaphore) -> None:
        self._transport = job.transport
        self._wire = wire
        self._door = door
        self._chance = Random(job.seed)

    async def new_match(self) -> tuple[Hand, Hand]:
        """Create and join one."""
        create = pb.CreateMatchRequest(request_id=self._uuid(), display_name="Ada", mode=MATCH_MODE_ONLINE)
        async with self._door:
            created = pb.CreateMatchResponse.FromString(await self._wire.create(create.SerializeToString()))
            join = pb.JoinMatchRequest(request_id=self._uuid(), invite_code=created.invite_code, display_name="Bo")
            joined = pb.JoinMatchResponse.FromString(await self._wire.join(join.SerializeToString()))
        return self._hand(created.match_id, created.token), self._hand(joined.match_id, joined.token)

    def _hand(self, match_id: str, token: str) -> Hand:
        chance = Random(self._chance.getrandbits(64))
        return ServiceHand(match_id, token, transport=self._transport, chance=chance)

    def _uuid(self) -> str:
        return str(UUID(int=self._chance.getrandbits(128)))


class FloorMatches:
    """Matches of the floor: two names."""

    def __init__(self, job: Job) -> None:
        self._request_bytes = job.request_bytes
        self._numbers = count()

    async def new_match(self) -> tuple[Hand, Hand]:
        """The next two names."""
        name = f"{next(self._numbers):026}"
        one, two = (FloorHand(name, seat, request_bytes=self._request_bytes) for seat in (0, 1))
        return one, two
