"""Markers: what must be in no capture as text, and which tiles must be in no message, found by decoding it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from google.protobuf.message import Message

from engine.tiles import DOUBLE_SIX
from engine.view import Audience
from service.matches import token_hash
from spectacularbid.v1 import match_service_pb2 as pb
from spectacularbid.v1.events_pb2 import Event
from spectacularbid.v1.tiles_pb2 import Tile
from spectacularbid.v1.views_pb2 import MatchView as View
from tests.support.twins.script import Course, known_tiles
from tests.support.twins.world import PLAY_STREAM, SECRETS, TOKENS

_STATUS = b"('"
"""How the capture of a status begins."""


def marked(captures: dict[str, list[bytes]]) -> list[str]:
    """The channels on which a token, the hash of one, or what the deal was made of can be read."""
    markers = [marker for token in TOKENS.values() for marker in _forms(token)]
    markers += [form for secret in (SECRETS.secret, SECRETS.entropies.one) for form in (secret, secret.hex().encode())]
    return [name for name, said in captures.items() if any(marker in data for data in said for marker in markers)]


def _forms(token: str) -> tuple[bytes, ...]:
    hashed = token_hash(token)
    return token.encode(), token.partition("-")[2].encode(), hashed, hashed.hex().encode(), repr(hashed).encode()


def told(course: Course, observer: Audience, captures: dict[str, list[bytes]]) -> list[str]:
    """The tiles of the round that the observer cannot know and was sent all the same."""
    hidden = set(DOUBLE_SIX) - known_tiles(course, observer)
    number = course.end.current.number
    found = {
        (tile.low, tile.high)
        for view, events in _messages(captures)
        if view.public.round_number == number
        for message in (view, *(() if _spans_rounds(events) else events))
        for tile in tiles_in(message)
    }
    return [f"{low}-{high}" for low, high in sorted(found & hidden)]


def _messages(captures: dict[str, list[bytes]]) -> Iterator[tuple[View, Sequence[Event]]]:
    """Every view with its events. A spectator's messages are read as a player's: the numbers of the fields agree."""
    for name, said in captures.items():
        for data in said:
            if data.startswith(_STATUS):
                continue
            if name in (PLAY_STREAM, "probes PlayMatch"):
                response = pb.PlayMatchResponse.FromString(data)
                yield response.update.view, response.update.events
                yield response.outcome.view, response.outcome.accepted.events
            elif name in ("stream", "probes WatchMatch", "probes SpectateMatch", "probes GetMatch"):
                update = pb.WatchMatchResponse.FromString(data).update
                yield update.view, update.events
            elif name in ("outcomes", "probes SubmitCommand"):
                outcome = pb.SubmitCommandResponse.FromString(data).outcome
                yield outcome.view, outcome.accepted.events


def _spans_rounds(events: Sequence[Event]) -> bool:
    return any(event.HasField("round_dealt") for event in events)


def tiles_in(message: Message) -> Iterator[Tile]:
    """Every Tile anywhere in a message."""
    if isinstance(message, Tile):
        yield message
        return
    for descriptor, value in message.ListFields():
        if descriptor.message_type is not None and not descriptor.message_type.GetOptions().map_entry:
            for child in value if descriptor.is_repeated else [value]:
                yield from tiles_in(child)
