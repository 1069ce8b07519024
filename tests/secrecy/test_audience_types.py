"""What the contract itself rules out: a message to a spectator or about an opponent has no place for a secret."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from google.protobuf.descriptor import Descriptor, FieldDescriptor

from spectacularbid.v1 import commands_pb2, events_pb2, outcomes_pb2, tiles_pb2, views_pb2
from spectacularbid.v1 import match_service_pb2 as pb

OWN = views_pb2.OwnView.DESCRIPTOR
PRIVATE = frozenset({OWN, views_pb2.HandTile.DESCRIPTOR, views_pb2.LegalAction.DESCRIPTOR})
TILE_TYPES = frozenset(message.DESCRIPTOR for message in (tiles_pb2.Tile, events_pb2.ShownHand, views_pb2.PlacedTile))
PUBLIC_TILES = {
    "LayoutView.main_line": "the table",
    "LayoutView.north": "the table",
    "LayoutView.south": "the table",
    "TilePlayed.tile": "it lies on the table now",
    "RoundBlocked.hands": "a block shows both hands, which fix its payment (D5)",
    "ResultView.hands": "the match is over",
    "ShownHand.tiles": "shown as a whole or not at all",
}
"""Every field of a tile that everyone may see, with the reason. A new one fails until it is judged."""
PUBLIC_BYTES = {
    "SpectatorUpdate.view_digest": "of the viewer's own view",
    "FairDeal.server_commitment": "a hash over a 32-byte secret",
    "SeatDeal.commitment": "a hash over 32 bytes of the player's",
    "EntropyCommitted.commitment": "a hash over 32 bytes of the player's",
}
"""Every field of bytes: each could hold entropy."""
PUBLIC_TEXTS = {
    "PublicView.match_id": "the viewer sent it",
    "PlayerSeated.display_name": "chosen to be seen",
    "PlayerView.display_name": "chosen to be seen",
    "MatchAborted.evidence": "words of the service or an operator, which name no tile",
    "Refused.message": "one sentence for each reason",
}
SPOKEN_NUMBERS = {
    "ShownHand.pips": "the sum of a shown hand",
    "PlayerView.hand_size": "counted by everyone",
    "PublicView.boneyard_size": "counted by everyone",
}
SECRET_WORDS = ("hand", "boneyard", "entropy", "secret", "seed", "salt", "order", "deal", "deck", "drawn", "tile")


def reachable(start: Descriptor) -> Iterator[FieldDescriptor]:
    """Every field of a message type and of the types inside it, once."""
    seen: set[Descriptor] = set()
    waiting = [start]
    while waiting:
        descriptor = waiting.pop()
        if descriptor in seen:
            continue
        seen.add(descriptor)
        for field in descriptor.fields:
            yield field
            if field.message_type is not None:
                waiting.append(field.message_type)


def name_of(field: FieldDescriptor) -> str:
    """A field by its message, such as `TilePlayed.tile`."""
    assert field.containing_type is not None
    return f"{field.containing_type.name}.{field.name}"


ANSWERED_TO_SPECTATORS = {
    "SpectateMatch": "its response is looked at below",
    "GetDealProof": "FAILED_PRECONDITION until the match is over; then nothing is secret",
    "RotateToken": "the caller's own token",
}
ANSWERED_TO_PLAYERS = {
    "CreateMatch",
    "JoinMatch",
    "GetMatch",
    "WatchMatch",
    "SubmitCommand",
    "PlayMatch",
    "LeaveMatch",
}
SEEN_BY_ALL = {
    "a spectator's stream": pb.SpectateMatchResponse.DESCRIPTOR,
    "the public part of a view": views_pb2.PublicView.DESCRIPTOR,
    "an event": events_pb2.Event.DESCRIPTOR,
}


def test_every_method_is_for_known_audiences() -> None:
    """A new one fails until it is said what a spectator gets from it."""
    methods = pb.DESCRIPTOR.services_by_name["MatchService"].methods_by_name
    assert set(methods) == ANSWERED_TO_PLAYERS | set(ANSWERED_TO_SPECTATORS)


@pytest.mark.parametrize("kind", SEEN_BY_ALL)
def test_what_everyone_sees_has_no_place_for_a_secret(kind: str) -> None:
    """No own part; every tile, text and run of bytes is on a list with the reason why it is public."""
    allowed = {FieldDescriptor.TYPE_BYTES: PUBLIC_BYTES, FieldDescriptor.TYPE_STRING: PUBLIC_TEXTS}
    for field in reachable(SEEN_BY_ALL[kind]):
        assert field.message_type not in PRIVATE, name_of(field)
        assert field.message_type is not commands_pb2.Command.DESCRIPTOR, name_of(field)
        if field.message_type in TILE_TYPES:
            assert name_of(field) in PUBLIC_TILES
        if field.type in allowed:
            assert name_of(field) in allowed[field.type]


@pytest.mark.parametrize("kind", SEEN_BY_ALL)
def test_no_public_name_speaks_of_a_secret_unjudged(kind: str) -> None:
    """A field called after a hand, the boneyard or entropy is on one of the lists."""
    judged = PUBLIC_TILES | PUBLIC_BYTES | PUBLIC_TEXTS | SPOKEN_NUMBERS
    events = {field.name for field in events_pb2.Event.DESCRIPTOR.fields}
    for field in reachable(SEEN_BY_ALL[kind]):
        if field.containing_type is events_pb2.Event.DESCRIPTOR:
            assert field.name in events  # names of kinds of facts; their fields are looked at themselves
        elif field.message_type is None and any(word in field.name for word in SECRET_WORDS):
            assert name_of(field) in judged or (field.type == FieldDescriptor.TYPE_INT32 and "round" in field.name)


def test_a_receipt_speaks_of_time_only() -> None:
    """Numbers, and the closed set of verdicts."""
    allowed = {FieldDescriptor.TYPE_INT64, FieldDescriptor.TYPE_ENUM}
    for field in reachable(outcomes_pb2.TimingReceipt.DESCRIPTOR):
        assert field.type in allowed, name_of(field)


def test_the_own_part_is_in_views_of_players_only() -> None:
    """One field of one message holds an OwnView, and no message to a spectator holds that message."""
    holders = {name_of(field) for field in reachable(pb.PlayMatchResponse.DESCRIPTOR) if field.message_type is OWN}
    assert holders == {"MatchView.own"}
    held = {field.message_type for field in reachable(pb.SpectateMatchResponse.DESCRIPTOR)}
    assert views_pb2.MatchView.DESCRIPTOR not in held


def test_a_spectators_messages_can_be_read_as_a_players() -> None:
    """A player's own types share its numbers, so that one reader is enough."""
    for own, shared in ((pb.MatchUpdate, pb.SpectatorUpdate), (pb.WatchMatchResponse, pb.SpectateMatchResponse)):
        numbers = {field.name: field.number for field in own.DESCRIPTOR.fields}
        assert numbers == {field.name: field.number for field in shared.DESCRIPTOR.fields}
    assert [(field.name, field.number) for field in views_pb2.SpectatorView.DESCRIPTOR.fields] == [("public", 1)]
    assert views_pb2.MatchView.DESCRIPTOR.fields_by_name["public"].number == 1
