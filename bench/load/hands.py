"""What a player makes of a message: the move to send next. One kind of hand for the service, one for the floor."""

from __future__ import annotations

from random import Random
from typing import NamedTuple, Protocol, TypeAlias

from bench.load.job import Transport
from spectacularbid.v1 import commands_pb2
from spectacularbid.v1 import match_service_pb2 as pb
from spectacularbid.v1.outcomes_pb2 import CommandOutcome
from spectacularbid.v1.views_pb2 import LegalAction, MatchView

Metadata: TypeAlias = tuple[tuple[str, str], ...]


class News(NamedTuple):
    """A message: whether it answers a command, and the serialized request with which the player may go on.

    `version` is that of the match in the message, 0 if it has none.
    """

    is_answer: bool = False
    move: bytes | None = None
    version: int = 0


class RefusedError(Exception):
    """The service refused what its own view had listed, so nothing was measured."""


class Hand(Protocol):
    """One player of one match."""

    metadata: Metadata
    is_over: bool

    def opening(self) -> bytes:
        """The first message of the player's stream."""

    def stream_message(self, data: bytes) -> News:
        """Take in a message of the stream."""

    def answer(self, data: bytes) -> News:
        """Take in the answer to a unary command."""


class ServiceHand:
    """A player of the service, who makes a random one of the listed moves, and of bids the smallest."""

    def __init__(self, match_id: str, token: str, *, transport: Transport, chance: Random) -> None:
        self.metadata: Metadata = (("authorization", f"Bearer {token}"),)
        self.is_over = False
        self._match_id = match_id
        self._transport = transport
        self._chance = chance
        self._view = MatchView()
        self._moved_at_version = 0
        self._awaits = False

    def opening(self) -> bytes:
        """Names the match."""
        if self._transport is Transport.PLAY:
            return pb.PlayMatchRequest(open=pb.PlayMatchOpen(match_id=self._match_id)).SerializeToString()
        return pb.WatchMatchRequest(match_id=self._match_id).SerializeToString()

    def stream_message(self, data: bytes) -> News:
        """An update, a heartbeat or, with PlayMatch, an outcome."""
        if self._transport is Transport.SUBMIT:
            watched = pb.WatchMatchResponse.FromString(data)
            return News(move=self._saw(watched.update.view)) if watched.HasField("update") else News()
        played = pb.PlayMatchResponse.FromString(data)
        match played.WhichOneof("message"):
            case "outcome":
                return self._outcome(played.outcome)
            case "update":
                return News(move=self._saw(played.update.view), version=played.update.view.public.version)
            case "error":
                raise RefusedError(played.error)
            case _:
                return News()

    def answer(self, data: bytes) -> News:
        """A SubmitCommandResponse."""
        return self._outcome(pb.SubmitCommandResponse.FromString(data).outcome)

    def _outcome(self, outcome: CommandOutcome) -> News:
        if not outcome.HasField("accepted"):
            raise RefusedError(outcome.refused)
        self._awaits = False
        return News(is_answer=True, move=self._saw(outcome.view), version=outcome.view.public.version)

    def _saw(self, view: MatchView) -> bytes | None:
        """The next request, if the newest view lists a move and none is under way."""
        if view.public.version >= self._view.public.version:
            self._view = view
            self.is_over = view.public.HasField("result")
        actions, version = self._view.own.legal_actions, self._view.public.version
        if self._awaits or version <= self._moved_at_version or not actions:
            return None
        self._awaits, self._moved_at_version = True, version
        return self._request(_command(actions[int(self._chance.random() * len(actions))]))

    def _request(self, command: commands_pb2.Command) -> bytes:
        name = f"{self._chance.getrandbits(128):032x}"
        uuid = f"{name[:8]}-{name[8:12]}-{name[12:16]}-{name[16:20]}-{name[20:]}"
        if self._transport is Transport.PLAY:
            played = pb.PlayMatchCommand(command_id=uuid, command=command)
            return pb.PlayMatchRequest(command=played).SerializeToString()
        return pb.SubmitCommandRequest(match_id=self._match_id, command_id=uuid, command=command).SerializeToString()


def _command(action: LegalAction) -> commands_pb2.Command:
    match action.WhichOneof("action"):
        case "make_bid":
            return commands_pb2.Command(make_bid=commands_pb2.Bid(points=action.make_bid.minimum_points))
        case "raise_bid":
            return commands_pb2.Command(raise_bid=commands_pb2.Raise(points=action.raise_bid.minimum_points))
        case _:
            return action.command


ANSWER, YOUR_TURN, NOT_YOUR_TURN = b"A", b"T", b"N"
"""How a message of the floor begins."""


class FloorHand:
    """A player of the floor, who moves when told to; both have the same move all the time."""

    def __init__(self, name: str, seat: int, *, request_bytes: int) -> None:
        self.metadata: Metadata = (("authorization", f"Bearer sbs_{'0' * 43}"),)
        self.is_over = False
        self._opening = f"{name} {seat} ".encode()
        self._move = self._opening.ljust(request_bytes, b".")

    def opening(self) -> bytes:
        """Names match and seat."""
        return self._opening

    def stream_message(self, data: bytes) -> News:
        """An answer or a push."""
        return News(is_answer=data.startswith(ANSWER), move=self._move if data.startswith(YOUR_TURN) else None)

    def answer(self, _: bytes) -> News:
        """It says nothing."""
        return News(is_answer=True)
