"""Requests to the engine's values. What no client of ours would send is INVALID_ARGUMENT; the rest is for the rules."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from functools import lru_cache
from typing import NamedTuple

from google.protobuf.duration_pb2 import Duration

from engine import commands as cmd
from engine.clock import SECOND_NS
from engine.layout import End
from engine.seats import PerSeat, Seat
from engine.tiles import HIGHEST_PIP, Tile
from service.fair_deal import ENTROPY_BYTES
from service.matches import NewMatch
from service.rpc.statuses import malformed
from spectacularbid.v1 import commands_pb2, match_service_pb2, tiles_pb2, views_pb2

LONGEST_NAME = 40
DEFAULT_CONTINUE_SECONDS, LONGEST_CONTINUE_SECONDS = 60, 600
DEFAULT_START_SECONDS, LONGEST_START_SECONDS = 600, 86_400
_UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_MATCH_ID = re.compile(r"[a-z2-7]{26}")
_ENDS = {
    tiles_pb2.END_OPENING: End.OPENING,
    tiles_pb2.END_WEST: End.WEST,
    tiles_pb2.END_EAST: End.EAST,
    tiles_pb2.END_NORTH: End.NORTH,
    tiles_pb2.END_SOUTH: End.SOUTH,
}
_SEATS = {tiles_pb2.SEAT_ONE: Seat.ONE, tiles_pb2.SEAT_TWO: Seat.TWO}
_NOTHING_OPENED = PerSeat(b"", b"")
_PLAIN: dict[str, cmd.Command] = {
    "start": cmd.Start(),
    "continue_round": cmd.Continue(),
    "reveal": cmd.Reveal(),
    "decline_bidding": cmd.DeclineBidding(),
    "accept_bid": cmd.AcceptBid(),
    "draw_tile": cmd.DrawTile(),
    "pass_turn": cmd.Pass(),
    "resign": cmd.Resign(),
}
_MOVES = frozenset({"play_tile", "draw_tile", "pass_turn"})
"""Commands that name no seat and open no secret."""


class CommandFields(NamedTuple):
    """A command and what identifies it.

    `named_seat` is the seat named in a Resign or a CommitEntropy, if one is; `entropies` are what a Start opens.
    """

    command: cmd.Command
    command_id: str
    expected_version: int | None
    named_seat: Seat | None
    body_hash: bytes
    entropies: PerSeat[bytes] = _NOTHING_OPENED


def match_id_of(text: str) -> str:
    """A match id, if it can be one."""
    if not _MATCH_ID.fullmatch(text):
        raise malformed("match_id", "match_id must be 26 lower-case letters and digits, as CreateMatch returned it")
    return text


def command_fields(
    message: match_service_pb2.SubmitCommandRequest | match_service_pb2.PlayMatchCommand,
) -> CommandFields:
    """The command of an envelope."""
    version = message.expected_version if message.HasField("expected_version") else None
    if version is not None and version < 1:
        raise malformed("expected_version", "expected_version must be at least 1 when it is set")
    command = message.command
    kind = command.WhichOneof("command")
    body = command.SerializeToString(deterministic=True)
    is_move = kind in _MOVES
    return CommandFields(
        command=_move(body) if is_move else command_of(command),
        command_id=_uuid("command_id", message.command_id),
        expected_version=version,
        named_seat=None if is_move else _named_seat(command, kind),
        body_hash=hashlib.sha256(body + str(version).encode()).digest(),
        entropies=_entropies(command.start) if kind == "start" else _NOTHING_OPENED,
    )


@lru_cache(maxsize=1024)
def _move(body: bytes) -> cmd.Command:
    """A move by its serialized form: there are some 140, and they are nearly all that is sent."""
    return command_of(commands_pb2.Command.FromString(body))


def command_of(message: commands_pb2.Command) -> cmd.Command:
    """The engine's command."""
    kind = message.WhichOneof("command")
    match kind:
        case None:
            raise malformed("command", "command must hold exactly one of the commands")
        case "play_tile":
            return cmd.PlayTile(_tile(message.play_tile), _end(message.play_tile.end))
        case "make_bid":
            return cmd.Bid(message.make_bid.points)
        case "raise_bid":
            return cmd.Raise(message.raise_bid.points)
        case "commit_entropy":
            return cmd.CommitEntropy(
                _exactly_32("command.commit_entropy.commitment", message.commit_entropy.commitment)
            )
        case _:
            return _PLAIN[kind]


def new_match(message: match_service_pb2.CreateMatchRequest) -> NewMatch:
    """What CreateMatch asks for."""
    if message.mode not in (views_pb2.MATCH_MODE_ONLINE, views_pb2.MATCH_MODE_SHARED_DEVICE):
        raise malformed("mode", "mode must be MATCH_MODE_ONLINE or MATCH_MODE_SHARED_DEVICE")
    shared_device = message.mode == views_pb2.MATCH_MODE_SHARED_DEVICE
    if message.second_display_name and not shared_device:
        raise malformed("second_display_name", "second_display_name is for a shared device only")
    continue_timeout = message.continue_timeout if message.HasField("continue_timeout") else None
    start_timeout = message.start_timeout if message.HasField("start_timeout") else None
    return NewMatch(
        request_id=_uuid("request_id", message.request_id),
        shared_device=shared_device,
        display_name=display_name("display_name", message.display_name, "Player 1"),
        second_display_name=display_name("second_display_name", message.second_display_name, "Player 2"),
        continue_timeout_ns=_timeout_ns(
            "continue_timeout", continue_timeout, DEFAULT_CONTINUE_SECONDS, LONGEST_CONTINUE_SECONDS
        ),
        start_timeout_ns=_timeout_ns("start_timeout", start_timeout, DEFAULT_START_SECONDS, LONGEST_START_SECONDS),
    )


def join_fields(message: match_service_pb2.JoinMatchRequest) -> tuple[str, str, str, bytes]:
    """Request id, invite code, name and commitment of JoinMatch; the commitment is empty when there is none."""
    if not message.invite_code or len(message.invite_code) > LONGEST_NAME:
        raise malformed("invite_code", "invite_code must be the code that CreateMatch returned")
    name = display_name("display_name", message.display_name, "Player 2")
    commitment = message.seat_commitment and _exactly_32("seat_commitment", message.seat_commitment)
    return _uuid("request_id", message.request_id), message.invite_code, name, commitment


def display_name(field: str, text: str, default: str) -> str:
    """A name that is safe to show: printable, of one line and direction, at most 40 characters."""
    name = unicodedata.normalize("NFC", text).strip()
    if len(name) > LONGEST_NAME:
        raise malformed(field, f"{field} must have at most {LONGEST_NAME} characters")
    if any(unicodedata.category(letter) in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp") for letter in name):
        raise malformed(field, f"{field} must not contain control or formatting characters")
    return name or default


def cursor_of(after_version: int) -> int:
    """A resume point; whether it lies in the future shows when the match is read."""
    if after_version < 0:
        raise malformed("after_version", "after_version must not be negative")
    return after_version


def _uuid(field: str, text: str) -> str:
    if not _UUID.fullmatch(text):
        raise malformed(field, f"{field} must be a UUID such as 6f1c2d9e-8a57-4b0e-9a61-0d7f3c5b2a10")
    return text.lower()


def _tile(message: commands_pb2.PlayTile) -> Tile:
    """The tile; one that is not set is malformed, although its halves read as the double blank."""
    low, high = message.tile.low, message.tile.high
    if not (message.HasField("tile") and 0 <= low <= high <= HIGHEST_PIP):
        raise malformed("command.play_tile.tile", "a tile has 0 <= low <= high <= 6")
    return Tile(low, high)


def _end(number: tiles_pb2.End.ValueType) -> End:
    end = _ENDS.get(number)
    if end is None:
        raise malformed("command.play_tile.end", "end must be one of the named ends; END_OPENING on an empty table")
    return end


def _named_seat(message: commands_pb2.Command, kind: str | None) -> Seat | None:
    """The seat that a Resign or a CommitEntropy names; other commands name none."""
    if kind == "commit_entropy":
        number = message.commit_entropy.seat
    elif kind == "resign":
        number = message.resign.seat
    else:
        return None
    if number not in (tiles_pb2.SEAT_UNSPECIFIED, *_SEATS):
        raise malformed(f"command.{kind}.seat", f"{kind}.seat must be one of the named seats, or unset")
    return _SEATS.get(number)


def _entropies(message: commands_pb2.Start) -> PerSeat[bytes]:
    """What a Start opens, as its fields come: the sender's first."""
    one = message.HasField("entropy") and _exactly_32("command.start.entropy", message.entropy)
    two = message.HasField("second_entropy") and _exactly_32("command.start.second_entropy", message.second_entropy)
    return PerSeat(one or b"", two or b"")


def _exactly_32(field: str, raw: bytes) -> bytes:
    if len(raw) != ENTROPY_BYTES:
        raise malformed(field, f"{field} must have exactly {ENTROPY_BYTES} bytes")
    return raw


def _timeout_ns(field: str, message: Duration | None, default_seconds: int, longest_seconds: int) -> int:
    if message is None:
        return default_seconds * SECOND_NS
    length_ns = message.seconds * SECOND_NS + message.nanos
    if not SECOND_NS <= length_ns <= longest_seconds * SECOND_NS:
        raise malformed(field, f"{field} must be from 1 to {longest_seconds} seconds")
    return length_ns
