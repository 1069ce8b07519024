"""Requests to the engine's values: what no client of ours would send is INVALID_ARGUMENT and names its field."""

from collections.abc import Callable

import grpc
import pytest
from google.protobuf.duration_pb2 import Duration
from google.rpc import error_details_pb2, status_pb2

from engine import commands as cmd
from engine.clock import SECOND_NS
from engine.layout import End
from engine.seats import Seat
from engine.tiles import DOUBLE_SIX, Tile
from service.rpc import requests
from service.rpc.statuses import Status, StatusError
from spectacularbid.v1 import commands_pb2 as pb
from spectacularbid.v1 import match_service_pb2 as rpc
from spectacularbid.v1 import tiles_pb2, views_pb2

ID = "6F1C2d9e-8a57-4b0e-9a61-0d7f3c5b2a10"
MATCH_ID = "abcdefghijklmnopqrstuvwx27"


def submit(command: pb.Command, *, command_id: str = ID, version: int | None = None) -> rpc.SubmitCommandRequest:
    """A command in its envelope."""
    return rpc.SubmitCommandRequest(command_id=command_id, expected_version=version, command=command)


def play(low: int, high: int, end: int) -> pb.Command:
    """A play in raw numbers."""
    return pb.Command(play_tile=pb.PlayTile(tile=tiles_pb2.Tile(low=low, high=high), end=end))  # type: ignore[arg-type]


def create(**fields: object) -> rpc.CreateMatchRequest:
    """A good CreateMatch but for these fields."""
    good = {"request_id": ID, "mode": views_pb2.MATCH_MODE_ONLINE}
    return rpc.CreateMatchRequest(**(good | fields))  # type: ignore[arg-type]


COMMANDS = [
    (pb.Command(start=pb.Start()), cmd.Start()),
    (pb.Command(continue_round=pb.Continue()), cmd.Continue()),
    (pb.Command(reveal=pb.Reveal()), cmd.Reveal()),
    (pb.Command(decline_bidding=pb.DeclineBidding()), cmd.DeclineBidding()),
    (pb.Command(make_bid=pb.Bid(points=15)), cmd.Bid(15)),
    (pb.Command(make_bid=pb.Bid(points=-5)), cmd.Bid(-5)),
    (pb.Command(raise_bid=pb.Raise(points=2**31 - 1)), cmd.Raise(2**31 - 1)),
    (pb.Command(accept_bid=pb.AcceptBid()), cmd.AcceptBid()),
    (pb.Command(draw_tile=pb.DrawTile()), cmd.DrawTile()),
    (pb.Command(pass_turn=pb.Pass()), cmd.Pass()),
    (pb.Command(resign=pb.Resign()), cmd.Resign()),
    (pb.Command(commit_entropy=pb.CommitEntropy(commitment=bytes(32))), cmd.CommitEntropy(bytes(32))),
    *(
        (play(*tile, number), cmd.PlayTile(tile, end))
        for tile in DOUBLE_SIX
        for number, end in enumerate(End, start=tiles_pb2.END_OPENING)
    ),
]


@pytest.mark.parametrize(("message", "command"), COMMANDS)
def test_every_command_reaches_the_engine_as_it_is(message: pb.Command, command: cmd.Command) -> None:
    """Points of any size too: whether a bid is allowed is for the rules to say."""
    assert requests.command_of(message) == command
    first, again = (requests.command_fields(submit(message)) for _ in range(2))
    assert first == again
    assert first.command == command


def test_a_command_with_a_secret_is_kept_nowhere() -> None:
    """Only moves are known by their bytes."""
    requests._move.cache_clear()
    requests.command_fields(submit(pb.Command(commit_entropy=pb.CommitEntropy(commitment=bytes(32)))))
    requests.command_fields(submit(pb.Command(start=pb.Start(entropy=bytes(32)))))
    assert requests._move.cache_info().currsize == 0
    requests.command_fields(submit(play(0, 0, 2)))
    assert requests._move.cache_info().currsize == 1


def test_every_command_of_the_contract_is_known() -> None:
    """A command added to the contract must be added here."""
    kinds = {message.WhichOneof("command") for message, _ in COMMANDS}
    assert kinds == {field.name for field in pb.Command.DESCRIPTOR.oneofs_by_name["command"].fields}


MALFORMED: list[tuple[str, str, Callable[[], object]]] = [
    ("no command", "command", lambda: requests.command_fields(submit(pb.Command()))),
    ("tile 7-7", "command.play_tile.tile", lambda: requests.command_of(play(7, 7, 1))),
    ("tile -1-0", "command.play_tile.tile", lambda: requests.command_of(play(-1, 0, 1))),
    ("tile 0-255", "command.play_tile.tile", lambda: requests.command_of(play(0, 255, 1))),
    ("tile with its greater half first", "command.play_tile.tile", lambda: requests.command_of(play(5, 3, 1))),
    (
        "no tile, which is not the double blank",
        "command.play_tile.tile",
        lambda: requests.command_of(pb.Command(play_tile=pb.PlayTile(end=tiles_pb2.END_EAST))),
    ),
    ("end 0", "command.play_tile.end", lambda: requests.command_of(play(0, 0, 0))),
    ("end 99", "command.play_tile.end", lambda: requests.command_of(play(0, 0, 99))),
    (
        "resigning seat 99",
        "command.resign.seat",
        lambda: requests.command_fields(submit(pb.Command(resign=pb.Resign(seat=99)))),  # type: ignore[arg-type]
    ),
    *(
        (
            f"command id {text!r}",
            "command_id",
            lambda text=text: requests.command_fields(submit(pb.Command(start=pb.Start()), command_id=text)),
        )
        for text in ("", "1", ID[:-1], ID + "0", ID.replace("-", ""), ID.replace("6", "g"), f" {ID}", f"{ID}\n")
    ),
    *(
        (
            f"expected version {version}",
            "expected_version",
            lambda version=version: requests.command_fields(submit(pb.Command(start=pb.Start()), version=version)),
        )
        for version in (0, -1, -(2**63))
    ),
    *(
        (f"match id {text!r}", "match_id", lambda text=text: requests.match_id_of(text))
        for text in ("", "short", MATCH_ID[:-1], MATCH_ID + "a", MATCH_ID.upper(), MATCH_ID[:-1] + "1", MATCH_ID + "\n")
    ),
    ("a resume point of -1", "after_version", lambda: requests.cursor_of(-1)),
    ("mode 0", "mode", lambda: requests.new_match(create(mode=0))),
    ("mode 99", "mode", lambda: requests.new_match(create(mode=99))),
    ("request id", "request_id", lambda: requests.new_match(create(request_id="mine"))),
    ("a second name online", "second_display_name", lambda: requests.new_match(create(second_display_name="Bo"))),
    *(
        (
            f"continue timeout of {length}",
            "continue_timeout",
            lambda length=length: requests.new_match(create(continue_timeout=length)),
        )
        for length in (
            Duration(),
            Duration(nanos=999_999_999),
            Duration(seconds=-5),
            Duration(seconds=600, nanos=1),
            Duration(seconds=2**62),
        )
    ),
    (
        "start timeout of more than a day",
        "start_timeout",
        lambda: requests.new_match(create(start_timeout=Duration(seconds=86_401))),
    ),
    ("no invite code", "invite_code", lambda: requests.join_fields(rpc.JoinMatchRequest(request_id=ID))),
    (
        "a long invite code",
        "invite_code",
        lambda: requests.join_fields(rpc.JoinMatchRequest(request_id=ID, invite_code="A" * 41)),
    ),
    (
        "request id of a join",
        "request_id",
        lambda: requests.join_fields(rpc.JoinMatchRequest(request_id="", invite_code="ABCDE-FGHIJ")),
    ),
    *(
        (f"name with {what}", "display_name", lambda text=text: requests.new_match(create(display_name=text)))
        for what, text in {
            "NUL": "A\0da",
            "a line break": "A\nda",
            "an escape": "\x1b[31mAda",
            "right-to-left override": "A\u202eda",
            "a zero-width joiner": "A\u200dda",
            "a private character": "A\ue000da",
            "a line separator": "A\u2028da",
            "41 characters": "A" * 41,
            "64 kB": "A" * 65_536,
        }.items()
    ),
]


@pytest.mark.parametrize(("field", "read"), [row[1:] for row in MALFORMED], ids=[row[0] for row in MALFORMED])
def test_a_malformed_field_is_named(field: str, read: Callable[[], object]) -> None:
    """By its path in the request, in the status and in its BadRequest."""
    with pytest.raises(StatusError) as caught:
        read()
    status = caught.value.status
    assert (status.code, status.reason, status.field) == (
        grpc.StatusCode.INVALID_ARGUMENT,
        "MALFORMED_REQUEST",
        field,
    )
    assert violations(status) == [field]


def violations(status: Status) -> list[str]:
    """The fields named in the status's BadRequest."""
    ((_, data),) = status.trailing_metadata()
    found: list[str] = []
    for detail in status_pb2.Status.FromString(data).details:
        bad_request = error_details_pb2.BadRequest()
        if detail.Unpack(bad_request):
            found += [violation.field for violation in bad_request.field_violations]
    return found


def test_a_request_is_never_echoed() -> None:
    """What a client sends may be somebody's secret, or a script."""
    with pytest.raises(StatusError) as caught:
        requests.match_id_of("<script>")
    assert "script" not in caught.value.status.message


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Ada", "Ada"),
        ("  Ada  ", "Ada"),
        ("", "Player 1"),
        ("   ", "Player 1"),
        ("A" * 40, "A" * 40),
        ("Zoe\u0308", "Zo\u00eb"),
        ("\u5c0f\u660e \U0001f600", "\u5c0f\u660e \U0001f600"),
    ],
)
def test_names_are_trimmed_and_composed(text: str, name: str) -> None:
    """No name is the seat's own."""
    assert requests.new_match(create(display_name=text)).display_name == name


def test_the_timeouts_have_defaults_and_limits() -> None:
    """A minute to continue, ten to start."""
    usual = requests.new_match(create())
    assert (usual.continue_timeout_ns, usual.start_timeout_ns) == (60 * SECOND_NS, 600 * SECOND_NS)
    longest = requests.new_match(create(continue_timeout=Duration(seconds=600), start_timeout=Duration(seconds=86_400)))
    assert (longest.continue_timeout_ns, longest.start_timeout_ns) == (600 * SECOND_NS, 86_400 * SECOND_NS)


def test_ids_are_the_same_in_any_case() -> None:
    """A UUID is a number."""
    fields = requests.command_fields(submit(pb.Command(start=pb.Start())))
    assert fields.command_id == ID.lower()


def test_the_body_is_the_command_with_its_expected_version() -> None:
    """The same id with another body is a mistake of the client; its match and token are not part of the body."""
    bodies = {
        requests.command_fields(submit(command, version=version)).body_hash
        for command in (pb.Command(start=pb.Start()), play(0, 0, 2), play(0, 1, 2), play(0, 0, 3))
        for version in (None, 1, 2)
    }
    assert len(bodies) == 12
    in_stream = rpc.PlayMatchCommand(command_id=ID, expected_version=2, command=play(0, 0, 3))
    assert requests.command_fields(in_stream).body_hash in bodies
    assert all(len(body) == 32 for body in bodies)


@pytest.mark.parametrize(
    ("number", "seat"), [(tiles_pb2.SEAT_UNSPECIFIED, None), (tiles_pb2.SEAT_ONE, Seat.ONE), (2, Seat.TWO)]
)
def test_a_shared_device_may_say_who_resigns(number: tiles_pb2.Seat.ValueType, seat: Seat | None) -> None:
    """Unset: the seat on turn."""
    fields = requests.command_fields(submit(pb.Command(resign=pb.Resign(seat=number))))
    assert fields.named_seat is seat


def test_a_tile_of_zeros_is_the_double_blank() -> None:
    """Protobuf writes no zeros, so an empty tile is one; a missing tile is none."""
    message = pb.Command(play_tile=pb.PlayTile(tile=tiles_pb2.Tile(), end=tiles_pb2.END_EAST))
    assert requests.command_of(message) == cmd.PlayTile(Tile(0, 0), End.EAST)
