"""Clients for tests: who holds a token, what they may do with it, and how to play to a situation.

Nothing here knows the rules: what is played is chosen from the legal actions of views.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from random import Random
from typing import TYPE_CHECKING, Protocol, TypeAlias, cast
from uuid import UUID

import grpc

from spectacularbid.v1 import commands_pb2 as cmd
from spectacularbid.v1 import match_service_pb2 as pb
from spectacularbid.v1 import tiles_pb2, views_pb2
from spectacularbid.v1.match_service_pb2_grpc import MatchServiceStub
from spectacularbid.v1.outcomes_pb2 import CommandOutcome
from spectacularbid.v1.views_pb2 import BidRange, LegalAction, MatchView
from tests.support.server import Server

if TYPE_CHECKING:
    from spectacularbid.v1.match_service_pb2_grpc import MatchServiceAsyncStub

WatchCall: TypeAlias = "grpc.aio.UnaryStreamCall[pb.WatchMatchRequest, pb.WatchMatchResponse]"
PlayCall: TypeAlias = "grpc.aio.StreamStreamCall[pb.PlayMatchRequest, pb.PlayMatchResponse]"
StreamCall: TypeAlias = "WatchCall | PlayCall"
Situation: TypeAlias = Callable[[MatchView], bool]

START = cmd.Command(start=cmd.Start())
CONTINUE = cmd.Command(continue_round=cmd.Continue())
REVEAL = cmd.Command(reveal=cmd.Reveal())
DECLINE = cmd.Command(decline_bidding=cmd.DeclineBidding())
ACCEPT = cmd.Command(accept_bid=cmd.AcceptBid())
DRAW = cmd.Command(draw_tile=cmd.DrawTile())
PASS = cmd.Command(pass_turn=cmd.Pass())
RESIGN = cmd.Command(resign=cmd.Resign())
ENDS = {
    "open": tiles_pb2.END_OPENING,
    "W": tiles_pb2.END_WEST,
    "E": tiles_pb2.END_EAST,
    "N": tiles_pb2.END_NORTH,
    "S": tiles_pb2.END_SOUTH,
}
PATIENCE_SECONDS = 20.0
MOST_COMMANDS = 5_000
_ids = Random(2026)


def new_id() -> str:
    """A UUID that no other request of this process has."""
    return str(UUID(int=_ids.getrandbits(128)))


def bid(points: int) -> cmd.Command:
    """A first bid."""
    return cmd.Command(make_bid=cmd.Bid(points=points))


def raise_to(points: int) -> cmd.Command:
    """A higher bid."""
    return cmd.Command(raise_bid=cmd.Raise(points=points))


def play(text: str) -> cmd.Command:
    """The command of `5-3 E`, or of `5-3 open` on an empty table."""
    halves, end = text.split()
    low, high = sorted(map(int, halves.split("-")))
    return cmd.Command(play_tile=cmd.PlayTile(tile=tiles_pb2.Tile(low=low, high=high), end=ENDS[end]))


def tile_text(tile: tiles_pb2.Tile) -> str:
    """The text of a tile."""
    return f"{tile.low}-{tile.high}"


def hand_of(view: MatchView) -> list[str]:
    """The tiles of the own hand."""
    return [tile_text(held.tile) for held in view.own.hand]


@dataclass(frozen=True)
class Viewer:
    """Somebody with a token."""

    stub: MatchServiceAsyncStub
    match_id: str
    token: str

    @property
    def metadata(self) -> tuple[tuple[str, str], ...]:
        """What goes with every call."""
        return (("authorization", f"Bearer {self.token}"),)

    @property
    def is_spectator(self) -> bool:
        """Whether the token is a spectator's."""
        return self.token.startswith("sbw_")

    async def update(self) -> pb.MatchUpdate:
        """The answer of GetMatch, or for a spectator what SpectateMatch begins with."""
        if self.is_spectator:
            async with self.watching() as call:
                return await read_update(call)
        response = await self.stub.GetMatch(pb.GetMatchRequest(match_id=self.match_id), metadata=self.metadata)
        return response.update

    async def view(self) -> MatchView:
        """The view now."""
        return (await self.update()).view

    def request(
        self, command: cmd.Command, *, command_id: str = "", expected_version: int | None = None
    ) -> pb.SubmitCommandRequest:
        """A command in its envelope, with a fresh id if none is given."""
        return pb.SubmitCommandRequest(
            match_id=self.match_id,
            command_id=command_id or new_id(),
            expected_version=expected_version,
            command=command,
        )

    async def submit(
        self, command: cmd.Command, *, command_id: str = "", expected_version: int | None = None
    ) -> CommandOutcome:
        """The outcome of a command by SubmitCommand."""
        request = self.request(command, command_id=command_id, expected_version=expected_version)
        return (await self.stub.SubmitCommand(request, metadata=self.metadata)).outcome

    async def do(self, command: cmd.Command) -> MatchView:
        """Have a command accepted; the view afterwards."""
        outcome = await self.submit(command)
        assert outcome.HasField("accepted"), outcome.refused
        return outcome.view

    def watch(self, after_version: int = 0) -> WatchCall:
        """A WatchMatch stream, or a spectator's stream read as one."""
        if self.is_spectator:
            spectating = pb.SpectateMatchRequest(match_id=self.match_id, after_version=after_version)
            return cast("WatchCall", SpectatingCall(self.stub.SpectateMatch(spectating, metadata=self.metadata)))
        request = pb.WatchMatchRequest(match_id=self.match_id, after_version=after_version)
        return self.stub.WatchMatch(request, metadata=self.metadata)

    @asynccontextmanager
    async def watching(self, after_version: int = 0) -> AsyncIterator[WatchCall]:
        """A WatchMatch stream that is hung up in the end."""
        call = self.watch(after_version)
        try:
            yield call
        finally:
            call.cancel()

    @asynccontextmanager
    async def playing(self, after_version: int = 0) -> AsyncIterator[PlayCall]:
        """A PlayMatch stream, opened; it is hung up in the end."""
        call = self.stub.PlayMatch(metadata=self.metadata)
        try:
            opening = pb.PlayMatchOpen(match_id=self.match_id, after_version=after_version)
            await call.write(pb.PlayMatchRequest(open=opening))
            yield call
        finally:
            call.cancel()


class SpectatingCall:
    """A SpectateMatch stream whose messages are read as those of WatchMatch: their fields share numbers."""

    def __init__(self, call: grpc.aio.UnaryStreamCall[pb.SpectateMatchRequest, pb.SpectateMatchResponse]) -> None:
        self._call = call

    async def read(self) -> object:
        """The next message."""
        response = await self._call.read()
        if isinstance(response, pb.SpectateMatchResponse):
            return pb.WatchMatchResponse.FromString(response.SerializeToString())
        return response

    def __getattr__(self, name: str) -> object:
        return getattr(self._call, name)


def in_stream(command: cmd.Command, *, command_id: str = "", version: int | None = None) -> pb.PlayMatchRequest:
    """A command for a PlayMatch stream."""
    envelope = pb.PlayMatchCommand(command_id=command_id or new_id(), expected_version=version, command=command)
    return pb.PlayMatchRequest(command=envelope)


async def read_update(call: WatchCall) -> pb.MatchUpdate:
    """The next message of a watch, which is an update."""
    response = await call.read()
    assert isinstance(response, pb.WatchMatchResponse), "the stream has ended"
    assert response.WhichOneof("message") == "update", response
    return response.update


async def read_play(call: PlayCall) -> pb.PlayMatchResponse:
    """The next message of a PlayMatch stream."""
    response = await call.read()
    assert isinstance(response, pb.PlayMatchResponse), "the stream has ended"
    return response


class Readable(Protocol):
    """The reading half of a stream."""

    async def read(self) -> object:
        """The next message, or EOF."""


async def read_to_end(call: Readable) -> None:
    """Read whatever still comes. Raises the stream's error."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while await call.read() is not grpc.aio.EOF:
            pass


@dataclass(frozen=True)
class Table:
    """A match and everybody at it. On a shared device both seats hold the same token."""

    one: Viewer
    two: Viewer
    spectator: Viewer
    invite_code: str = ""
    chance: Random = field(default_factory=lambda: Random(5))

    @property
    def seats(self) -> tuple[Viewer, Viewer]:
        """Both players."""
        return self.one, self.two

    def seat(self, number: int) -> Viewer:
        """The player of a seat by its number on the wire."""
        return self.seats[number - 1]

    def at(self, channel: grpc.aio.Channel) -> Table:
        """The same match with the same tokens at another server."""
        stub = MatchServiceStub(channel)
        one, two, spectator = (replace(viewer, stub=stub) for viewer in (*self.seats, self.spectator))
        return replace(self, one=one, two=two, spectator=spectator)

    async def start(self) -> MatchView:
        """Both players are ready, or the shared device is; the view of the player on turn."""
        for player in dict.fromkeys(self.seats):
            await player.do(START)
        return await self.on_turn_view()

    async def on_turn_view(self) -> MatchView:
        """The view of whoever may act: the player on turn, or one who is not ready yet."""
        view = await self.one.view()
        return view if view.own.legal_actions or view.public.HasField("result") else await self.two.view()

    async def view_of(self, seat: int) -> MatchView:
        """The view of a seat."""
        return await self.seat(seat).view()


async def new_table(channel: grpc.aio.Channel, *, start: bool = False, shared_device: bool = False) -> Table:
    """A fresh match with both players seated, started if so wished."""
    stub = MatchServiceStub(channel)
    if shared_device:
        created = await stub.CreateMatch(
            pb.CreateMatchRequest(request_id=new_id(), mode=views_pb2.MATCH_MODE_SHARED_DEVICE)
        )
        device = Viewer(stub, created.match_id, created.token)
        table = Table(device, device, Viewer(stub, created.match_id, created.spectator_token))
    else:
        created = await stub.CreateMatch(
            pb.CreateMatchRequest(request_id=new_id(), display_name="Ada", mode=views_pb2.MATCH_MODE_ONLINE)
        )
        joined = await stub.JoinMatch(
            pb.JoinMatchRequest(request_id=new_id(), invite_code=created.invite_code, display_name="Bo")
        )
        table = Table(
            one=Viewer(stub, created.match_id, created.token),
            two=Viewer(stub, joined.match_id, joined.token),
            spectator=Viewer(stub, created.match_id, created.spectator_token),
            invite_code=created.invite_code,
        )
    if start:
        await table.start()
    return table


def legal_commands(view: MatchView) -> list[cmd.Command]:
    """Everything that the view offers; of the bids the three smallest that leave something to play with."""
    return [command for action in view.own.legal_actions for command in _commands_of(view, action)]


def _commands_of(view: MatchView, action: LegalAction) -> list[cmd.Command]:
    if action.HasField("make_bid"):
        return [bid(points) for points in _bids(view, action.make_bid)]
    if action.HasField("raise_bid"):
        return [raise_to(points) for points in _bids(view, action.raise_bid)]
    return [action.command]


def _bids(view: MatchView, bids: BidRange) -> list[int]:
    balance = view.public.players[view.own.seat - 1].balance_points
    allowed = range(bids.minimum_points, bids.maximum_points + 1, bids.step_points)
    return [points for points in allowed[:3] if max(0, points - bids.credit_points) < balance]


def choose(chance: Random, view: MatchView) -> cmd.Command:
    """A legal command by chance."""
    return chance.choice(legal_commands(view))


def is_over(view: MatchView) -> bool:
    """Whether the match has ended."""
    return view.public.HasField("result")


async def play_until(
    table: Table, is_there: Situation, *, after_each: Callable[[], Awaitable[None]] | None = None
) -> MatchView:
    """Play by chance until the view of the player on turn is as wished, or the match is over; that view."""
    view = await table.on_turn_view()
    for _ in range(MOST_COMMANDS):
        if is_there(view) or is_over(view):
            return view
        player = table.seat(view.own.seat)
        answered = await player.do(choose(table.chance, view))
        view = answered if answered.own.legal_actions or is_over(answered) else await table.on_turn_view()
        if after_each is not None:
            await after_each()
    raise AssertionError("the situation never came up")


async def situation(
    server: Server, is_there: Situation, *, seed: int = 1, shared_device: bool = False
) -> tuple[Table, MatchView]:
    """A fresh match played to a situation, and the view of the player on turn; the same for the same seed."""
    server.entropy.chance.seed(seed)
    for attempt in range(50):
        table = await new_table(server.channel, start=True, shared_device=shared_device)
        table.chance.seed(seed + attempt)
        view = await play_until(table, is_there)
        if is_there(view):
            return table, view
    raise AssertionError("the situation never came up")
