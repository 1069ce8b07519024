"""The remote side of the client: a service that does what a test's script says and remembers what it was sent."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeVar

import grpc
from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from google.rpc.error_details_pb2 import ErrorInfo, RetryInfo
from google.rpc.status_pb2 import Status

from spectacularbid.v1 import match_service_pb2 as ms
from spectacularbid.v1 import rules_service_pb2 as rs
from spectacularbid.v1 import time_service_pb2 as ts
from spectacularbid.v1.match_service_pb2_grpc import MatchServiceServicer, add_MatchServiceServicer_to_server
from spectacularbid.v1.outcomes_pb2 import CommandOutcome
from spectacularbid.v1.rules_service_pb2_grpc import RulesServiceServicer, add_RulesServiceServicer_to_server
from spectacularbid.v1.time_service_pb2_grpc import TimeServiceServicer, add_TimeServiceServicer_to_server
from tests.clients.build import update

Context: TypeAlias = "grpc.aio.ServicerContext[Any, Any]"


@dataclass
class StatusError(Exception):
    """Ends a call with a status."""

    code: grpc.StatusCode
    reason: str = ""
    retry_after_seconds: int | None = None
    details: dict[str, str] = field(default_factory=dict)

    async def end(self, context: Context) -> None:
        """End the call."""
        details: list[Message] = []
        if self.reason:
            details.append(ErrorInfo(domain="spectacularbid", reason=self.reason, metadata=self.details))
        if self.retry_after_seconds is not None:
            details.append(RetryInfo(retry_delay=Duration(seconds=self.retry_after_seconds)))
        packed = [AnyMessage() for _ in details]
        for wrapper, detail in zip(packed, details, strict=True):
            wrapper.Pack(detail)
        status = Status(code=self.code.value[0], message="no", details=packed)
        await context.abort(self.code, "no", (("grpc-status-details-bin", status.SerializeToString()),))


async def silence() -> None:
    """Say nothing for ever."""
    await asyncio.Event().wait()


class Watching:
    """One WatchMatch as its script sees it."""

    def __init__(self, request: ms.WatchMatchRequest | ms.SpectateMatchRequest, context: Context) -> None:
        self.request = request
        self._context = context

    async def say(self, *updates: ms.MatchUpdate) -> None:
        """Send updates."""
        for each in updates:
            await self.send(ms.WatchMatchResponse(update=each))

    async def send(self, message: ms.WatchMatchResponse) -> None:
        """Send any message; to a spectator the one with the same fields."""
        if isinstance(self.request, ms.SpectateMatchRequest):
            await self._context.write(ms.SpectateMatchResponse.FromString(message.SerializeToString()))
        else:
            await self._context.write(message)


class Playing:
    """One PlayMatch as its script sees it."""

    def __init__(self, context: Context) -> None:
        self.opening = ms.PlayMatchOpen()
        self.commands: list[ms.PlayMatchCommand] = []
        self._context = context

    async def open(self) -> None:
        """Read the opening."""
        request = await self._context.read()
        assert isinstance(request, ms.PlayMatchRequest)
        assert request.WhichOneof("message") == "open"
        self.opening = request.open

    async def command(self) -> ms.PlayMatchCommand:
        """Read a command."""
        request = await self._context.read()
        assert isinstance(request, ms.PlayMatchRequest), "the client hung up"
        assert request.WhichOneof("message") == "command"
        self.commands.append(request.command)
        return request.command

    async def say(self, *updates: ms.MatchUpdate) -> None:
        """Send updates."""
        for each in updates:
            await self._context.write(ms.PlayMatchResponse(update=each))

    async def answer(self, outcome: CommandOutcome) -> None:
        """Send an outcome."""
        await self._context.write(ms.PlayMatchResponse(outcome=outcome))

    async def send(self, message: ms.PlayMatchResponse) -> None:
        """Send any message."""
        await self._context.write(message)


WatchScript: TypeAlias = Callable[[Watching], Awaitable[None]]
PlayScript: TypeAlias = Callable[[Playing], Awaitable[None]]
Script = TypeVar("Script")
SubmitScript: TypeAlias = Callable[[ms.SubmitCommandRequest], Awaitable[CommandOutcome]]


def authorization_of(context: Context) -> str:
    """The credential that came with a call."""
    return next((str(value) for key, value in context.invocation_metadata() or () if key == "authorization"), "")


class Matches(MatchServiceServicer):
    """Plays one script for each call; the last one of a kind is played again and again."""

    def __init__(self) -> None:
        self.watch_scripts: deque[WatchScript] = deque()
        self.play_scripts: deque[PlayScript] = deque()
        self.submit_scripts: deque[SubmitScript] = deque()
        self.create_failures: deque[StatusError] = deque()
        self.creates: list[ms.CreateMatchRequest] = []
        self.joins: list[ms.JoinMatchRequest] = []
        self.watches: list[Watching] = []
        self.plays: list[Playing] = []
        self.submits: list[ms.SubmitCommandRequest] = []
        self.authorizations: list[str] = []

    async def CreateMatch(self, request: ms.CreateMatchRequest, context: Context) -> ms.CreateMatchResponse:
        self.creates.append(request)
        if self.create_failures:
            await self.create_failures.popleft().end(context)
        return ms.CreateMatchResponse(
            match_id="m", token="secret-one", invite_code="invite", spectator_token="secret-spectator"
        )

    async def JoinMatch(self, request: ms.JoinMatchRequest, context: Context) -> ms.JoinMatchResponse:
        self.joins.append(request)
        if request.invite_code != "invite":
            await StatusError(grpc.StatusCode.NOT_FOUND, "INVITE_NOT_VALID").end(context)
        return ms.JoinMatchResponse(match_id="m", token="secret-two")

    async def GetMatch(self, _request: ms.GetMatchRequest, _context: Context) -> ms.GetMatchResponse:
        return ms.GetMatchResponse(update=update(1, digest=b"wrong..."))

    async def LeaveMatch(self, _request: ms.LeaveMatchRequest, context: Context) -> ms.LeaveMatchResponse:
        await StatusError(grpc.StatusCode.FAILED_PRECONDITION, "ALREADY_STARTED").end(context)
        raise AssertionError

    async def GetDealProof(self, _request: ms.GetDealProofRequest, context: Context) -> ms.GetDealProofResponse:
        await StatusError(grpc.StatusCode.FAILED_PRECONDITION, "MATCH_NOT_OVER").end(context)
        raise AssertionError

    async def RotateToken(self, _request: ms.RotateTokenRequest, context: Context) -> ms.RotateTokenResponse:
        await StatusError(grpc.StatusCode.UNAUTHENTICATED, "INVALID_TOKEN").end(context)
        raise AssertionError

    async def SubmitCommand(self, request: ms.SubmitCommandRequest, context: Context) -> ms.SubmitCommandResponse:
        self.submits.append(request)
        self.authorizations.append(authorization_of(context))
        try:
            return ms.SubmitCommandResponse(outcome=await _next(self.submit_scripts)(request))
        except StatusError as failure:
            await failure.end(context)
            raise

    async def WatchMatch(  # type: ignore[override] # written to, not iterated
        self, request: ms.WatchMatchRequest | ms.SpectateMatchRequest, context: Context
    ) -> None:
        watching = Watching(request, context)
        self.watches.append(watching)
        self.authorizations.append(authorization_of(context))
        try:
            await _next(self.watch_scripts)(watching)
        except StatusError as failure:
            await failure.end(context)

    async def SpectateMatch(  # type: ignore[override] # written to, not iterated
        self, request: ms.SpectateMatchRequest, context: Context
    ) -> None:
        await self.WatchMatch(request, context)

    async def PlayMatch(  # type: ignore[override] # written to, not iterated
        self, request_iterator: AsyncIterator[ms.PlayMatchRequest], context: Context
    ) -> None:
        del request_iterator  # read from the context
        playing = Playing(context)
        self.plays.append(playing)
        self.authorizations.append(authorization_of(context))
        await playing.open()
        try:
            await _next(self.play_scripts)(playing)
        except StatusError as failure:
            await failure.end(context)


class Rules(RulesServiceServicer):
    """One section of rules and the figures that the checks need."""

    async def GetRules(self, _request: rs.GetRulesRequest, _context: Context) -> rs.GetRulesResponse:
        section = rs.RulesSection(heading="Points", text="A positive multiple of five transfers.")
        constants = rs.RulesConstants(starting_points=150, tiles=28, bank_ns=120_000_000_000)
        return rs.GetRulesResponse(sections=[section], constants=constants)


class Time(TimeServiceServicer):
    """A service whose clock stands at a second after the epoch."""

    async def Sync(self, request: ts.SyncRequest, _context: Context) -> ts.SyncResponse:
        return ts.SyncResponse(
            client_sent_ns=request.client_sent_ns,
            received_unix_ns=1_000_000_000,
            transmitted_unix_ns=1_000_000_000,
            error_bound_ns=1_000_000,
        )


@asynccontextmanager
async def serving(matches: Matches) -> AsyncIterator[str]:
    """The address of a server for as long as the context lasts."""
    server = grpc.aio.server(options=(("grpc.so_reuseport", 0),))
    add_MatchServiceServicer_to_server(matches, server)
    add_RulesServiceServicer_to_server(Rules(), server)
    add_TimeServiceServicer_to_server(Time(), server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        await server.stop(None)


def _next(scripts: deque[Script]) -> Script:
    """The next script; the last one stays."""
    return scripts.popleft() if len(scripts) > 1 else scripts[0]
