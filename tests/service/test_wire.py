"""Joining serialized messages gives what protobuf itself would have written, or means the same."""

from copy import deepcopy
from typing import TypeAlias

import pytest
from google.protobuf.message import Message
from hypothesis import given
from hypothesis import strategies as st

from service.rpc.wire import sub_message, varint
from spectacularbid.v1 import events_pb2, match_service_pb2, outcomes_pb2, tiles_pb2, views_pb2


def decoded(data: bytes) -> int:
    """A varint read by the book."""
    return sum((byte & 0x7F) << (7 * place) for place, byte in enumerate(data))


@pytest.mark.parametrize(
    ("number", "data"),
    [(0, b"\x00"), (1, b"\x01"), (127, b"\x7f"), (128, b"\x80\x01"), (300, b"\xac\x02"), (16_384, b"\x80\x80\x01")],
)
def test_varints_of_the_specification(number: int, data: bytes) -> None:
    """300 is the example of the protobuf encoding guide."""
    assert varint(number) == data


@given(st.integers(0, 2**64 - 1))
def test_every_varint_reads_back_and_is_as_short_as_can_be(number: int) -> None:
    """All groups but the last have the continuation bit."""
    data = varint(number)
    assert decoded(data) == number
    assert [byte >> 7 for byte in data] == [1] * (len(data) - 1) + [0]
    assert len(data) == max(1, -(-number.bit_length() // 7))


VIEW = views_pb2.MatchView(
    public=views_pb2.PublicView(match_id="m" * 26, version=2**40, phase=views_pb2.PHASE_PLAYING),
    own=views_pb2.OwnView(hand=[views_pb2.HandTile(playable_ends=[tiles_pb2.END_OPENING, tiles_pb2.END_WEST])] * 7),
)
UPDATE = match_service_pb2.MatchUpdate(view=VIEW, view_digest=b"12345678", events_complete=True)
EVENT = events_pb2.Event(passed=events_pb2.Passed(seat=tiles_pb2.SEAT_ONE))
Envelope: TypeAlias = (
    match_service_pb2.MatchUpdate
    | match_service_pb2.CreateMatchResponse
    | match_service_pb2.WatchMatchResponse
    | match_service_pb2.PlayMatchResponse
    | outcomes_pb2.CommandOutcome
    | views_pb2.MatchView
)
JOINED: list[tuple[Envelope, str, Message]] = [
    (match_service_pb2.MatchUpdate(view_digest=b"x" * 8), "view", VIEW),
    (match_service_pb2.CreateMatchResponse(match_id="m", token="t"), "update", UPDATE),
    (match_service_pb2.WatchMatchResponse(), "update", UPDATE),
    (match_service_pb2.PlayMatchResponse(), "outcome", outcomes_pb2.CommandOutcome(command_id="c", view=VIEW)),
    (outcomes_pb2.CommandOutcome(command_id="c"), "accepted", outcomes_pb2.Accepted(version=7, events=[EVENT])),
    (views_pb2.MatchView(), "public", views_pb2.PublicView()),
]


@pytest.mark.parametrize(("envelope", "field", "payload"), JOINED)
def test_a_joined_message_is_the_message_with_that_field_set(envelope: Envelope, field: str, payload: Message) -> None:
    """Also an empty one, which is there all the same."""
    joined = envelope.SerializeToString() + sub_message(envelope.DESCRIPTOR, field)(payload.SerializeToString())
    expected = deepcopy(envelope)
    getattr(expected, field).MergeFrom(payload)
    getattr(expected, field).SetInParent()
    assert type(envelope).FromString(joined) == expected


@pytest.mark.parametrize("length", [0, 1, 127, 128, 4_093, 4_094, 4_095, 4_096, 16_383, 16_384, 100_000])
def test_a_field_of_any_length_is_as_protobuf_writes_it(length: int) -> None:
    """Again too, when what comes before it is remembered, and in pieces."""
    view = views_pb2.SpectatorView(public=views_pb2.PublicView(match_id="m" * length))
    data = view.public.SerializeToString()
    field = sub_message(view.DESCRIPTOR, "public")
    assert [field(data), field(data), field[len(data)] + data] == [view.SerializeToString()] * 3


@given(st.lists(st.sampled_from([tiles_pb2.SEAT_ONE, tiles_pb2.SEAT_TWO]), max_size=300))
def test_repeated_fields_are_joined_one_by_one(seats: list[tiles_pb2.Seat.ValueType]) -> None:
    """In their order."""
    add = sub_message(match_service_pb2.MatchUpdate.DESCRIPTOR, "events")
    events = [events_pb2.Event(passed=events_pb2.Passed(seat=seat)) for seat in seats]
    joined = b"".join(add(event.SerializeToString()) for event in events)
    assert list(match_service_pb2.MatchUpdate.FromString(joined).events) == events


def test_only_messages_can_be_joined() -> None:
    """A mistake of ours is found when the module is imported."""
    with pytest.raises(AssertionError):
        sub_message(views_pb2.PublicView.DESCRIPTOR, "version")
