"""What no client of ours would send: a status with exactly one ErrorInfo, and nothing changed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Any, TypeAlias

import grpc
import pytest

from service.rpc.server import LARGEST_REQUEST_BYTES
from service.rpc.wire import varint
from spectacularbid.v1 import match_service_pb2 as pb
from spectacularbid.v1.commands_pb2 import Command, PlayTile, Resign
from spectacularbid.v1.outcomes_pb2 import RefusalReason
from spectacularbid.v1.tiles_pb2 import Tile
from spectacularbid.v1.views_pb2 import MATCH_MODE_ONLINE
from tests.support.players import (
    DRAW,
    RESIGN,
    START,
    Table,
    Viewer,
    bid,
    in_stream,
    legal_commands,
    new_id,
    new_table,
    raise_to,
    read_play,
    read_update,
    situation,
)
from tests.support.rejections import DETAILS, Rejection, rejection, rejection_in
from tests.support.server import Server
from tests.support.unchanged import changing_nothing, seen_by_all

if TYPE_CHECKING:
    from grpc.aio import (
        StreamStreamCall,
        StreamStreamMultiCallable,
        UnaryStreamMultiCallable,
        UnaryUnaryMultiCallable,
    )

SERVICE = "/spectacularbid.v1.MatchService/"
MATCH_METHODS = ("GetMatch", "WatchMatch", "SpectateMatch", "SubmitCommand", "PlayMatch", "LeaveMatch")
Metadata: TypeAlias = tuple[tuple[str, str | bytes], ...]
UNAUTHENTICATED = (grpc.StatusCode.UNAUTHENTICATED, "INVALID_TOKEN")
DENIED = (grpc.StatusCode.PERMISSION_DENIED, "NOT_FOR_THIS_TOKEN")
MALFORMED = (grpc.StatusCode.INVALID_ARGUMENT, "MALFORMED_REQUEST")


def unary(server: Server, path: str) -> UnaryUnaryMultiCallable[bytes, bytes]:
    """A unary method that is sent bytes."""
    call: UnaryUnaryMultiCallable[bytes, bytes] = server.channel.unary_unary(path)
    return call


def stream(server: Server, path: str, metadata: Metadata = ()) -> StreamStreamCall[bytes, bytes]:
    """A call of a bidirectional method that is sent bytes."""
    method: StreamStreamMultiCallable[bytes, bytes] = server.channel.stream_stream(path)
    return method(metadata=metadata)


async def send(server: Server, method: str, data: bytes, metadata: Metadata) -> Rejection:
    """Sends raw bytes to a method; how it fails."""
    path = SERVICE + method
    if method == "PlayMatch":
        play = stream(server, path, metadata)
        await play.write(data)
        return await rejection(read_all(play))
    if method in ("WatchMatch", "SpectateMatch"):
        watch: UnaryStreamMultiCallable[bytes, bytes] = server.channel.unary_stream(path)
        return await rejection(read_all(watch(data, metadata=metadata)))
    return await rejection(unary(server, path)(data, metadata=metadata))


async def read_all(call: Any) -> list[bytes]:  # noqa: ANN401  two kinds of calls that share no type
    """Everything that a stream says until it ends."""
    said = []
    while (message := await call.read()) is not grpc.aio.EOF:
        said.append(message)
    return said


def body(method: str, match_id: str) -> bytes:
    """A good request of a method."""
    match method:
        case "PlayMatch":
            return pb.PlayMatchRequest(open=pb.PlayMatchOpen(match_id=match_id)).SerializeToString()
        case "SubmitCommand":
            return pb.SubmitCommandRequest(match_id=match_id, command_id=new_id(), command=RESIGN).SerializeToString()
        case _:
            return pb.GetMatchRequest(match_id=match_id).SerializeToString()


CREDENTIALS: dict[str, Callable[[str], Metadata]] = {
    "none": lambda _: (),
    "empty": lambda _: (("authorization", ""),),
    "no scheme": lambda token: (("authorization", token),),
    "no token": lambda _: (("authorization", "Bearer "),),
    "Basic": lambda token: (("authorization", f"Basic {token}"),),
    "two headers": lambda token: (("authorization", f"Bearer {token}"), ("authorization", f"Bearer {token}")),
    "unknown": lambda token: (("authorization", f"Bearer {token[:-1]}"),),
    "with a blank": lambda token: (("authorization", f"Bearer  {token}"),),
    "very long": lambda token: (("authorization", f"Bearer {token * 20}"),),
    "in another header": lambda token: (("x-authorization", f"Bearer {token}"), ("token", token)),
    "binary": lambda token: (("authorization-bin", token.encode()),),
}


@pytest.mark.parametrize("method", MATCH_METHODS)
@pytest.mark.parametrize("credential", CREDENTIALS)
async def test_without_exactly_one_good_token_nothing_is_told(
    server: Server, table: Table, method: str, credential: str
) -> None:
    """The same answer for each, and for matches that exist and that do not."""
    async with changing_nothing(table):
        answers = {
            await send(server, method, body(method, match_id), CREDENTIALS[credential](table.one.token))
            for match_id in (table.one.match_id, "a" * 26)
        }
    (answer,) = answers
    assert (answer.code, answer.reason) == UNAUTHENTICATED
    assert answer.message.startswith("send the metadata 'authorization: Bearer <token>'")


@pytest.mark.parametrize("method", MATCH_METHODS)
async def test_a_token_is_good_for_its_own_match_only(server: Server, table: Table, method: str) -> None:
    """The same answer whether or not the other match exists."""
    stranger = await new_table(server.channel)
    async with changing_nothing(table):
        answers = {
            await send(server, method, body(method, match_id), stranger.one.metadata)
            for match_id in (table.one.match_id, "a" * 26)
        }
    (answer,) = answers
    assert (answer.code, answer.reason) == DENIED


@pytest.mark.parametrize("method", ["SubmitCommand", "PlayMatch", "LeaveMatch"])
async def test_a_spectator_only_watches(server: Server, table: Table, method: str) -> None:
    """It may neither command nor leave."""
    async with changing_nothing(table):
        answer = await send(server, method, body(method, table.one.match_id), table.spectator.metadata)
    assert (answer.code, answer.reason) == DENIED


@pytest.mark.parametrize("method", ["GetMatch", "WatchMatch"])
async def test_a_spectator_is_told_to_spectate(server: Server, table: Table, method: str) -> None:
    """What it may have comes in messages that hold no hand."""
    async with changing_nothing(table):
        answer = await send(server, method, body(method, table.one.match_id), table.spectator.metadata)
    assert (answer.code, answer.reason) == (grpc.StatusCode.PERMISSION_DENIED, "SPECTATOR_TOKEN")
    assert "SpectateMatch" in answer.message


async def test_a_seat_does_not_spectate(server: Server, table: Table) -> None:
    """Each token has its own way to watch."""
    async with changing_nothing(table):
        answer = await send(server, "SpectateMatch", body("SpectateMatch", table.one.match_id), table.one.metadata)
    assert (answer.code, answer.reason) == DENIED


def nested(depth: int) -> bytes:
    """A field of messages inside messages, which a careless parser follows to the bottom."""
    data = b""
    for _ in range(depth):
        data = b"\x0a" + varint(len(data)) + data
    return data


UNREADABLE = {
    "garbage": b"\xff\xff\xff\xff",
    "a field that is cut off": b"\x0a\x1aabc",
    "a length beyond the end": b"\x0a\xff\xff\xff\xff\x0f",
    "bad UTF-8": b"\x0a\x02\xc3\x28",
    "an end of no group": b"\x0c",
    "a varint that never ends": b"\x18" + b"\xff" * 12,
    "field number zero": b"\x02\x00",
}
NESTED_COMMAND = nested(2_500)
AUCTION = 12
BID_REASONS = {"WRONG_PHASE", "BID_TOO_LOW", "BID_NOT_MULTIPLE_OF_FIVE", "BID_UNAFFORDABLE"}


@pytest.mark.parametrize("method", [*MATCH_METHODS, "CreateMatch", "JoinMatch"])
@pytest.mark.parametrize("what", UNREADABLE)
async def test_bytes_that_are_no_message_are_malformed(server: Server, table: Table, method: str, what: str) -> None:
    """And the parser's own words stay inside."""
    async with changing_nothing(table):
        answer = await send(server, method, UNREADABLE[what], table.one.metadata)
    assert (answer.code, answer.reason) == MALFORMED


@pytest.mark.parametrize("method", ["SubmitCommand", "CreateMatch"])
async def test_deep_nesting_is_malformed_or_dropped(server: Server, table: Table, method: str) -> None:
    """2,500 messages inside each other; no stack grows by them."""
    async with changing_nothing(table):
        answer = await send(server, method, NESTED_COMMAND, table.one.metadata)
    assert (answer.code, answer.reason) == MALFORMED


@pytest.mark.parametrize(
    "data",
    [b"\x08\x01", b"\x0d\x01\x02\x03\x04", b"\x12\x02hi", b"", b"\x22\x00"],
    ids=["a number as match id", "a fixed number as match id", "only a command id", "nothing", "an empty command"],
)
async def test_fields_of_another_type_are_as_good_as_missing(server: Server, table: Table, data: bytes) -> None:
    """Protobuf drops them; what is missing then is malformed."""
    async with changing_nothing(table):
        answer = await send(server, "SubmitCommand", data, table.one.metadata)
    assert (answer.code, answer.reason) == MALFORMED


async def test_unknown_fields_are_accepted_and_dropped(server: Server, table: Table) -> None:
    """A newer client may send them."""
    view = await table.on_turn_view()
    player = table.seat(view.own.seat)
    known = player.request(legal_commands(view)[0]).SerializeToString()
    unknown = b"\xfa\x3e\x05hello" + b"\xf0\x3f\x07"
    submit = unary(server, SERVICE + "SubmitCommand")
    answered = await submit(known + unknown, metadata=player.metadata)
    response = pb.SubmitCommandResponse.FromString(answered)
    assert response.outcome.HasField("accepted")
    assert b"hello" not in answered


@dataclass(frozen=True)
class BadField:
    """A request with one field that makes no sense."""

    field: str
    method: str
    request: Callable[[Viewer], Any]


def command_with(command: Command | None = None, **fields: object) -> Callable[[Viewer], pb.SubmitCommandRequest]:
    """A command's envelope with these fields."""

    def request(viewer: Viewer) -> pb.SubmitCommandRequest:
        usual: dict[str, Any] = {"match_id": viewer.match_id, "command_id": new_id(), "command": command or DRAW}
        return pb.SubmitCommandRequest(**(usual | fields))

    return request


def raw_play(low: int, high: int, end: int) -> Command:
    """A play in raw numbers."""
    return Command(play_tile=PlayTile(tile=Tile(low=low, high=high), end=end))  # type: ignore[arg-type]


BAD_FIELDS = {
    "an upper-case match id": BadField("match_id", "SubmitCommand", command_with(match_id="A" * 26)),
    "a short match id": BadField("match_id", "GetMatch", lambda _: pb.GetMatchRequest(match_id="abc")),
    "a match id with NUL": BadField("match_id", "WatchMatch", lambda _: pb.WatchMatchRequest(match_id="\0" * 26)),
    "no command id": BadField("command_id", "SubmitCommand", command_with(command_id="")),
    "a command id that is no UUID": BadField("command_id", "SubmitCommand", command_with(command_id="1")),
    "expected version 0": BadField("expected_version", "SubmitCommand", command_with(expected_version=0)),
    "expected version -1": BadField("expected_version", "SubmitCommand", command_with(expected_version=-1)),
    "an empty command": BadField("command", "SubmitCommand", command_with(Command())),
    "tile 7-7": BadField("command.play_tile.tile", "SubmitCommand", command_with(raw_play(7, 7, 2))),
    "tile -1-0": BadField("command.play_tile.tile", "SubmitCommand", command_with(raw_play(-1, 0, 2))),
    "tile 0-255": BadField("command.play_tile.tile", "SubmitCommand", command_with(raw_play(0, 255, 2))),
    "tile 5-3": BadField("command.play_tile.tile", "SubmitCommand", command_with(raw_play(5, 3, 2))),
    "no tile": BadField(
        "command.play_tile.tile",
        "SubmitCommand",
        command_with(Command(play_tile=PlayTile(end=2))),  # type: ignore[arg-type]
    ),
    "end 0": BadField("command.play_tile.end", "SubmitCommand", command_with(raw_play(0, 0, 0))),
    "end 99": BadField("command.play_tile.end", "SubmitCommand", command_with(raw_play(0, 0, 99))),
    "resigning for seat 99": BadField(
        "command.resign.seat",
        "SubmitCommand",
        command_with(Command(resign=Resign(seat=99))),  # type: ignore[arg-type]
    ),
    "resigning for a seat online": BadField(
        "command.resign.seat",
        "SubmitCommand",
        command_with(Command(resign=Resign(seat=1))),  # type: ignore[arg-type]
    ),
    "a resume point of -1": BadField(
        "after_version",
        "WatchMatch",
        lambda viewer: pb.WatchMatchRequest(match_id=viewer.match_id, after_version=-1),
    ),
    "mode 0": BadField("mode", "CreateMatch", lambda _: pb.CreateMatchRequest(request_id=new_id())),
    "a name with NUL": BadField("display_name", "CreateMatch", lambda _: create(display_name="A\0")),
    "a name from right to left": BadField("display_name", "CreateMatch", lambda _: create(display_name="\u202eA")),
    "a name of 41": BadField("display_name", "CreateMatch", lambda _: create(display_name="A" * 41)),
    "a name of 10,000": BadField("display_name", "CreateMatch", lambda _: create(display_name="A" * 10_000)),
    "no request id": BadField("request_id", "CreateMatch", lambda _: create(request_id="")),
    "no invite code": BadField("invite_code", "JoinMatch", lambda _: pb.JoinMatchRequest(request_id=new_id())),
}


def create(**fields: Any) -> pb.CreateMatchRequest:  # noqa: ANN401  fields of any type
    """A good CreateMatch but for these fields."""
    good: dict[str, Any] = {"request_id": new_id(), "mode": MATCH_MODE_ONLINE}
    return pb.CreateMatchRequest(**(good | fields))


BAD_COMMANDS = [what for what, bad in BAD_FIELDS.items() if bad.method == "SubmitCommand" and "match id" not in what]


@pytest.mark.parametrize("what", BAD_COMMANDS)
async def test_the_same_command_on_a_play_stream_gets_an_error_of_its_own(table: Table, what: str) -> None:
    """The stream goes on; all that the opponent hears is that the stream came and went."""
    wrong = pb.SubmitCommandRequest.FromString(BAD_FIELDS[what].request(table.one).SerializeToString())
    envelope = pb.PlayMatchCommand(command_id=wrong.command_id, command=wrong.command)
    if wrong.HasField("expected_version"):
        envelope.expected_version = wrong.expected_version
    before = await seen_by_all(table)
    async with table.two.watching() as call:
        heard = [await read_update(call)]
        async with table.one.playing() as play:
            heard.append(await read_update(call))
            await play.write(pb.PlayMatchRequest(command=envelope))
            error = next(
                answer.error for answer in [await read_play(play) for _ in range(2)] if answer.HasField("error")
            )
            assert (error.code, error.reason) == (MALFORMED[0].value[0], MALFORMED[1])
            assert error.command_id == wrong.command_id
            assert await seen_by_all(table) == before
        heard.append(await read_update(call))
    assert [update.presence.seat_one for update in heard] == [False, True, False]
    assert len({update.view.public.version for update in heard}) == 1
    assert not [event for update in heard[1:] for event in update.events]


@pytest.mark.parametrize("what", BAD_FIELDS)
async def test_a_field_that_makes_no_sense_is_named(server: Server, table: Table, what: str) -> None:
    """In the BadRequest of the status."""
    bad = BAD_FIELDS[what]
    async with changing_nothing(table):
        answer = await send(server, bad.method, bad.request(table.one).SerializeToString(), table.one.metadata)
    assert (answer.code, answer.reason, answer.fields) == (*MALFORMED, (bad.field,))


@pytest.mark.parametrize("points", [10, 17, -5, 0, 2**31 - 1, -(2**31)])
@pytest.mark.parametrize("make", [bid, raise_to])
async def test_a_bid_that_nobody_may_make_is_refused(
    server: Server, make: Callable[[int], Command], points: int
) -> None:
    """Where bids are made: too low, no multiple of five, more than the bank is worth; or a raise of nothing."""
    table, view = await situation(server, lambda view: view.public.HasField("auction"), seed=AUCTION)
    opponent = table.seat(3 - view.own.seat)
    async with changing_nothing(table, opponent=opponent):
        outcome = await table.seat(view.own.seat).submit(make(points))
        assert outcome.HasField("refused")
        assert RefusalReason.Name(outcome.refused.reason).removeprefix("REFUSAL_REASON_") in BID_REASONS
        assert outcome.refused.message


async def test_a_bid_that_does_not_fit_its_field_is_cut_by_protobuf_and_refused(server: Server, table: Table) -> None:
    """2^63 as an int32 is 0: too low a bid in any phase, and no auction is held now."""
    points = b"\x08" + varint(2**63)
    command = b"\x2a" + varint(len(points)) + points
    envelope = table.one.request(bid(15)).SerializeToString().replace(b"\x2a\x02\x08\x0f", b"")
    head = pb.SubmitCommandRequest.FromString(envelope[: envelope.index(b"\x22")]).SerializeToString()
    data = head + b"\x22" + varint(len(command)) + command
    async with changing_nothing(table):
        answered = await unary(server, SERVICE + "SubmitCommand")(data, metadata=table.one.metadata)
        assert pb.SubmitCommandResponse.FromString(answered).outcome.HasField("refused")


@pytest.mark.parametrize("method", ["SubmitCommand", "CreateMatch"])
async def test_a_message_over_16_kib_is_turned_away(server: Server, table: Table, method: str) -> None:
    """By the transport, before anything reads it; so without an ErrorInfo."""
    data = b"\x0a" + varint(20_000) + b"a" * 20_000
    async with changing_nothing(table):
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await unary(server, SERVICE + method)(data, metadata=table.one.metadata)
    assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert len(data) > LARGEST_REQUEST_BYTES


async def test_a_message_that_unpacks_to_too_much_is_turned_away(server: Server, table: Table) -> None:
    """A gzip bomb of a megabyte."""
    call = unary(server, SERVICE + "CreateMatch")
    async with changing_nothing(table):
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await call(b"\x0a" + varint(2**20) + b"a" * 2**20, compression=grpc.Compression.Gzip)
    assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED


async def test_metadata_over_8_kib_is_turned_away(server: Server, table: Table) -> None:
    """By the transport too."""
    call = unary(server, SERVICE + "GetMatch")
    async with changing_nothing(table):
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await call(body("GetMatch", table.one.match_id), metadata=(("x-much", "a" * 20_000), *table.one.metadata))
    assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED


@pytest.mark.parametrize(
    "path", [SERVICE + "Cheat", "/spectacularbid.v1.NoService/GetMatch", "/GetMatch", SERVICE + "getmatch"]
)
async def test_an_unknown_method_is_unimplemented(server: Server, table: Table, path: str) -> None:
    """The transport says so; nothing else is told."""
    async with changing_nothing(table):
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await unary(server, path)(b"", metadata=table.one.metadata)
    assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED
    assert DETAILS not in dict(caught.value.trailing_metadata() or ())


async def test_reflection_is_off(server: Server) -> None:
    """Channel 18: the public port does not describe itself."""
    call = stream(server, "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo")
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await read_all(call)
    assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED


@pytest.mark.parametrize("ahead", [1, 2**62])
@pytest.mark.parametrize("method", ["WatchMatch", "PlayMatch"])
async def test_a_resume_point_in_the_future_is_out_of_range(
    server: Server, table: Table, method: str, ahead: int
) -> None:
    """A client of another world; it watches again from 0."""
    version = (await table.one.view()).public.version + ahead
    if method == "WatchMatch":
        data = pb.WatchMatchRequest(match_id=table.one.match_id, after_version=version).SerializeToString()
    else:
        opening = pb.PlayMatchOpen(match_id=table.one.match_id, after_version=version)
        data = pb.PlayMatchRequest(open=opening).SerializeToString()
    async with changing_nothing(table):
        answer = await send(server, method, data, table.one.metadata)
    assert (answer.code, answer.reason) == (grpc.StatusCode.OUT_OF_RANGE, "VERSION_IN_THE_FUTURE")


@pytest.mark.parametrize("after_version", [0, 1])
async def test_an_old_resume_point_gets_a_full_view(table: Table, after_version: int) -> None:
    """Whatever the client has, the view replaces it."""
    async with table.one.watching(after_version) as call:
        assert (await read_update(call)).view == await table.one.view()


async def test_the_first_message_of_play_match_opens_it(table: Table) -> None:
    """Anything else has no match."""
    async with changing_nothing(table):
        call = table.one.stub.PlayMatch(metadata=table.one.metadata)
        await call.write(in_stream(RESIGN))
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await read_all(call)
    assert (rejection_in(caught.value).code, rejection_in(caught.value).fields) == (MALFORMED[0], ("open",))


async def test_a_play_match_that_says_nothing_is_malformed(table: Table) -> None:
    """It was opened and half-closed at once."""
    call = table.one.stub.PlayMatch(metadata=table.one.metadata)
    await call.done_writing()
    answer = await rejection(read_all(call))
    assert (answer.code, answer.fields) == (MALFORMED[0], ("open",))


@pytest.mark.parametrize(
    "data",
    [b"\xff\xff", b"", pb.PlayMatchRequest(open=pb.PlayMatchOpen(match_id="a" * 26)).SerializeToString()],
    ids=["garbage", "nothing", "a second open"],
)
async def test_a_message_of_no_use_ends_play_match(server: Server, table: Table, data: bytes) -> None:
    """There is no command id to answer to."""
    call = stream(server, SERVICE + "PlayMatch", table.one.metadata)
    await call.write(body("PlayMatch", table.one.match_id))
    await call.read()
    await call.write(data)
    answer = await rejection(read_all(call))
    assert (answer.code, answer.reason) == MALFORMED


MALFORMED_COMMANDS = {
    "no command id": (pb.PlayMatchCommand(command=RESIGN), "command_id"),
    "no command": (pb.PlayMatchCommand(command_id=new_id()), "command"),
    "expected version 0": (
        pb.PlayMatchCommand(command_id=new_id(), expected_version=0, command=RESIGN),
        "expected_version",
    ),
    "tile 7-7": (pb.PlayMatchCommand(command_id=new_id(), command=raw_play(7, 7, 1)), "tile"),
}


@pytest.mark.parametrize("what", MALFORMED_COMMANDS)
async def test_a_malformed_command_inside_a_stream_gets_an_error_and_the_stream_goes_on(
    table: Table, what: str
) -> None:
    """With the id as it came, and the code that SubmitCommand would have answered."""
    command, field = MALFORMED_COMMANDS[what]
    async with table.one.playing() as call:
        assert (await read_play(call)).HasField("update")
        await call.write(pb.PlayMatchRequest(command=command))
        error = (await read_play(call)).error
        assert (error.command_id, error.code, error.reason) == (command.command_id, 3, "MALFORMED_REQUEST")
        assert field in error.message
        assert not error.HasField("retry_after")
        await call.write(in_stream(START))
        assert (await read_play(call)).outcome.HasField("refused")


async def test_random_bytes_never_bring_more_than_invalid_argument(server: Server, table: Table) -> None:
    """Mutations of good requests of every method: answered, refused or malformed, never unknown or internal."""
    chance = Random(11)
    methods = [method for method in MATCH_METHODS if method in ("GetMatch", "SubmitCommand")]
    codes = set()
    for _ in range(300):
        method = chance.choice(methods)
        data = bytearray(body(method, table.one.match_id))
        for _ in range(chance.randrange(1, 6)):
            data[chance.randrange(len(data))] = chance.randrange(256) if chance.random() < 0.5 else 0xFF
        try:
            await unary(server, SERVICE + method)(bytes(data), metadata=table.spectator.metadata)
        except grpc.aio.AioRpcError as error:
            codes.add(rejection_in(error).code)
    assert codes <= {grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.PERMISSION_DENIED}


async def test_all_of_it_at_once_disturbs_nobody(server: Server, table: Table) -> None:
    """A storm of nonsense beside a match that is played."""
    view = await table.on_turn_view()
    player = table.seat(view.own.seat)
    storm = [
        send(server, method, data, table.spectator.metadata)
        for method in ("GetMatch", "SubmitCommand", "WatchMatch", "PlayMatch")
        for data in UNREADABLE.values()
    ]
    submit = asyncio.create_task(player.submit(legal_commands(view)[0]))
    answers = await asyncio.gather(*storm)
    outcome = await submit
    assert outcome.HasField("accepted")
    assert {answer.code for answer in answers} == {grpc.StatusCode.INVALID_ARGUMENT}
