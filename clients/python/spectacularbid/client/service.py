"""The way in: connect to a service, then create, join, resume or watch matches."""

from __future__ import annotations

from types import TracebackType
from typing import Self

import grpc
from google.protobuf.duration_pb2 import Duration

from spectacularbid.client.clock import ClockSync
from spectacularbid.client.deal_part import DealPart
from spectacularbid.client.retry import Metadata, attempt, call
from spectacularbid.client.session import MatchSession, WatchSession
from spectacularbid.client.settings import Settings
from spectacularbid.client.token import Token
from spectacularbid.v1.match_service_pb2 import (
    CreateMatchRequest,
    CreateMatchResponse,
    JoinMatchRequest,
    JoinMatchResponse,
    MatchUpdate,
)
from spectacularbid.v1.match_service_pb2_grpc import MatchServiceStub
from spectacularbid.v1.rules_service_pb2 import GetRulesRequest, GetRulesResponse
from spectacularbid.v1.rules_service_pb2_grpc import RulesServiceStub
from spectacularbid.v1.tiles_pb2 import SEAT_ONE, SEAT_TWO
from spectacularbid.v1.time_service_pb2 import SyncRequest, SyncResponse
from spectacularbid.v1.time_service_pb2_grpc import TimeServiceStub
from spectacularbid.v1.views_pb2 import MATCH_MODE_ONLINE, MATCH_MODE_SHARED_DEVICE

DEFAULT_TARGET = "127.0.0.1:50051"
PROBE_SECONDS = 2.0

CHANNEL_OPTIONS = (
    # A ping every 20 s, which the server allows, finds a dead peer; without the second it would take a minute.
    ("grpc.keepalive_time_ms", 20_000),
    ("grpc.http2.ping_timeout_ms", 5_000),
    ("grpc.http2.max_pings_without_data", 0),
    # Otherwise calls fail for up to two minutes after the server is back.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 1_000),
    ("grpc.max_reconnect_backoff_ms", 2_000),
)


def connect(
    target: str = DEFAULT_TARGET,
    *,
    credentials: grpc.ChannelCredentials | None = None,
    settings: Settings | None = None,
) -> Service:
    """A connection to the service at `target`, made when first needed. Without `credentials` it is not encrypted."""
    if credentials is None:
        channel = grpc.aio.insecure_channel(target, options=CHANNEL_OPTIONS)
    else:
        channel = grpc.aio.secure_channel(target, credentials, options=CHANNEL_OPTIONS)
    return Service(channel, settings or Settings())


class Service:
    """One connection. Use it as an asynchronous context manager, or call `close`."""

    def __init__(self, channel: grpc.aio.Channel, settings: Settings) -> None:
        self._channel = channel
        self._settings = settings
        self._matches = MatchServiceStub(channel)
        self._rules = RulesServiceStub(channel)
        self._time = TimeServiceStub(channel)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Hang up. Calls under way end with `ConnectionClosedError`."""
        await self._channel.close()

    async def create_match(
        self,
        display_name: str,
        *,
        continue_timeout_seconds: int | None = None,
        start_timeout_seconds: int | None = None,
    ) -> MatchSession:
        """Make an online match and take seat ONE. Raises `ClientError`."""
        return await self._create(
            CreateMatchRequest(
                request_id=self._settings.new_id(),
                display_name=display_name,
                mode=MATCH_MODE_ONLINE,
                continue_timeout=_duration(continue_timeout_seconds),
                start_timeout=_duration(start_timeout_seconds),
            )
        )

    async def create_shared_match(self, display_name: str, second_display_name: str) -> MatchSession:
        """Make a match for two players who pass one device between them. Raises `ClientError`."""
        return await self._create(
            CreateMatchRequest(
                request_id=self._settings.new_id(),
                display_name=display_name,
                mode=MATCH_MODE_SHARED_DEVICE,
                second_display_name=second_display_name,
            )
        )

    async def _create(self, request: CreateMatchRequest) -> MatchSession:
        made: CreateMatchResponse = await call(
            self._matches.CreateMatch, request, settings=self._settings, metadata=self._admission()
        )
        session = MatchSession(
            self._matches,
            made.match_id,
            Token(made.token),
            self._settings,
            invite_code=made.invite_code,
            spectator_token=Token(made.spectator_token),
            part=DealPart(made.match_id, SEAT_ONE, seen=made.update.view.public.fair_deal),
        )
        return await self._taking_part(session, made.update)

    async def join_match(self, invite_code: str, display_name: str) -> MatchSession:
        """Take the free seat of the match with this invite code. Raises `ClientError`."""
        request = JoinMatchRequest(
            request_id=self._settings.new_id(), invite_code=invite_code, display_name=display_name
        )
        joined: JoinMatchResponse = await call(
            self._matches.JoinMatch, request, settings=self._settings, metadata=self._admission()
        )
        part = DealPart(joined.match_id, SEAT_TWO, seen=joined.update.view.public.fair_deal)
        session = MatchSession(self._matches, joined.match_id, Token(joined.token), self._settings, part=part)
        return await self._taking_part(session, joined.update)

    async def _taking_part(self, session: MatchSession, update: MatchUpdate) -> MatchSession:
        """Commit to own entropy before anybody has opened any."""
        if update.view.public.HasField("fair_deal"):
            await session.commit_entropy()
        return session

    def resume(self, match_id: str, token: Token, part: DealPart | None = None) -> MatchSession:
        """Go on with a match; asks nobody, so a bad token shows up with the first call.

        Before the start a seat that has committed needs the `part` of its earlier session.
        """
        return MatchSession(self._matches, match_id, token, self._settings, part=part)

    def watch_only(self, match_id: str, spectator_token: Token) -> WatchSession:
        """Watch a match; asks nobody, so a bad token shows up with the first call."""
        return WatchSession(self._matches, match_id, spectator_token, self._settings)

    def _admission(self) -> Metadata:
        token = self._settings.platform_token()
        return (("authorization", f"Bearer {token}"),) if token else ()

    async def rules(self) -> GetRulesResponse:
        """The rules, as text and as figures. Raises `ClientError`."""
        return await call(self._rules.GetRules, GetRulesRequest(), settings=self._settings)

    def clock(self) -> ClockSync:
        """A fresh view of the service's time."""
        return ClockSync(self._time, self._settings)

    async def probe(self) -> SyncResponse:
        """Ask the service for the time, once and briefly, to see whether it is there. Raises `ClientError`."""
        return await attempt(self._time.Sync, SyncRequest(), seconds=PROBE_SECONDS)


def _duration(seconds: int | None) -> Duration | None:
    return None if seconds is None else Duration(seconds=seconds)
