"""What an observer can ask at one moment without changing the match: every tile at every end, bids, nonsense, reads."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from google.protobuf.message import Message

from engine.legal import LegalCommand, legal_actions
from engine.state import MatchState, acting_seat
from engine.tiles import DOUBLE_SIX
from engine.view import Audience
from service.rpc.own_view import command_message
from spectacularbid.v1 import commands_pb2 as cmd
from spectacularbid.v1 import match_service_pb2 as pb
from spectacularbid.v1 import tiles_pb2
from tests.support.players import ACCEPT, CONTINUE, DECLINE, DRAW, ENDS, PASS, REVEAL, START, bid, raise_to
from tests.support.twins.script import _SEAT_OF

POINTS = (-5, 0, 10, 15, 17, 20, 300, 2**31 - 1)
MALFORMED = (
    cmd.Command(),
    cmd.Command(play_tile=cmd.PlayTile(end=tiles_pb2.END_EAST)),
    cmd.Command(play_tile=cmd.PlayTile(tile=tiles_pb2.Tile(low=7, high=7), end=tiles_pb2.END_EAST)),
    cmd.Command(play_tile=cmd.PlayTile(tile=tiles_pb2.Tile(low=5, high=3), end=tiles_pb2.END_EAST)),
    cmd.Command(play_tile=cmd.PlayTile(tile=tiles_pb2.Tile(low=3, high=5))),
)


@dataclass(frozen=True)
class Probe:
    """A call: its method, and its request; None for bytes that are no message."""

    method: str
    request: Message | None


def battery(match_id: str, state: MatchState, observer: Audience) -> list[Probe]:
    """All 28 tiles at every end, all other commands, bids, nonsense, reads, and streams resumed.

    Nothing that the observer could do with effect is among it.
    """
    probes = [
        Probe("GetMatch", pb.GetMatchRequest(match_id=match_id)),
        Probe("LeaveMatch", pb.LeaveMatchRequest(match_id=match_id)),
        Probe("SubmitCommand", None),
    ]
    if state.result is None:
        probes.append(Probe("GetDealProof", pb.GetDealProofRequest(match_id=match_id)))
    probes += [_submit(match_id, number, command) for number, command in enumerate(_commands())]
    probes += _streams(match_id, observer, state.version)
    effective = _effective(state, observer)
    return [probe for probe in probes if not _is_effective(probe, effective)]


def _commands() -> Iterator[cmd.Command]:
    for tile in DOUBLE_SIX:
        for end in ENDS.values():
            low_high = tiles_pb2.Tile(low=tile.low, high=tile.high)
            yield cmd.Command(play_tile=cmd.PlayTile(tile=low_high, end=end))
    yield from (START, CONTINUE, REVEAL, DECLINE, ACCEPT, DRAW, PASS)
    yield from MALFORMED
    for points in POINTS:
        yield bid(points)
        yield raise_to(points)


def command_id(number: int) -> str:
    """The same id for the same place in every world."""
    return f"{number:08x}-0000-4000-8000-000000000000"


def _submit(match_id: str, number: int, command: cmd.Command) -> Probe:
    request = pb.SubmitCommandRequest(match_id=match_id, command_id=command_id(number), command=command)
    return Probe("SubmitCommand", request)


def _streams(match_id: str, observer: Audience, version: int) -> Iterator[Probe]:
    """The observer's kind from many versions; a PlayMatch from the newest, which a spectator is refused."""
    kind = pb.SpectateMatchRequest if observer is Audience.SPECTATOR else pb.WatchMatchRequest
    method = "SpectateMatch" if observer is Audience.SPECTATOR else "WatchMatch"
    for after_version in (0, 1, max(1, version - 3), version, version + 1):
        yield Probe(method, kind(match_id=match_id, after_version=after_version))
    opening = pb.PlayMatchOpen(match_id=match_id, after_version=version)
    yield Probe("PlayMatch", pb.PlayMatchRequest(open=opening))


def _effective(state: MatchState, observer: Audience) -> set[bytes]:
    """The serialized commands that would change the match; any bid while one is allowed."""
    if observer is Audience.SPECTATOR:
        return set()
    seat = _SEAT_OF.get(observer, acting_seat(state))
    commands: list[cmd.Command] = []
    for action in legal_actions(state, seat):
        if isinstance(action, LegalCommand):
            commands.append(command_message(action.command))
        else:
            commands += [make(points) for make in (bid, raise_to) for points in POINTS]
    return {command.SerializeToString() for command in commands}


def _is_effective(probe: Probe, effective: set[bytes]) -> bool:
    request = probe.request
    return isinstance(request, pb.SubmitCommandRequest) and request.command.SerializeToString() in effective
