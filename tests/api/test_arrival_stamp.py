"""A command arrives when the whole of it is in: its headers, sent early, win no time (docs/ARCHITECTURE.md)."""

import asyncio

import pytest

from spectacularbid.v1 import match_service_pb2 as pb
from spectacularbid.v1.outcomes_pb2 import TIMING_VERDICT_IN_TIME, CommandOutcome
from spectacularbid.v1.time_service_pb2 import SyncRequest
from spectacularbid.v1.time_service_pb2_grpc import TimeServiceStub
from tests.support.http2 import Http2, framed, http2
from tests.support.players import Table, Viewer, in_stream, legal_commands
from tests.support.server import Server

HELD_BACK_SECONDS = 0.3
PROVABLE_NS = 100_000_000
"""A stamp as narrow as this can prove which side of a deadline a command is on."""


async def service_now_ns(server: Server) -> int:
    """The service's clock."""
    return (await TimeServiceStub(server.channel).Sync(SyncRequest())).transmitted_unix_ns


async def player_and_request(table: Table) -> tuple[Viewer, pb.SubmitCommandRequest]:
    """The player on turn and a legal command."""
    view = await table.on_turn_view()
    player = table.seat(view.own.seat)
    return player, player.request(legal_commands(view)[0])


async def held_back(server: Server, connection: Http2, stream: int, data: bytes, cut: int, *, end: bool) -> int:
    """Sends the beginning of the data now and the rest later; when that was, by the service's clock."""
    await connection.send_bytes(stream, data[:cut])
    await asyncio.sleep(HELD_BACK_SECONDS)  # nothing tells when the server has looked at the beginning
    sent_ns = await service_now_ns(server)
    await connection.send_bytes(stream, data[cut:], end=end)
    return sent_ns


def check(outcome: CommandOutcome, sent_ns: int) -> None:
    """The late instant counts: the stamp was taken after it."""
    assert outcome.HasField("accepted")
    receipt = outcome.receipt
    assert receipt.verdict == TIMING_VERDICT_IN_TIME
    assert receipt.arrival_latest_unix_ns >= sent_ns
    assert receipt.arrival_earliest_unix_ns <= receipt.arrival_latest_unix_ns
    assert receipt.margin_ns == receipt.deadline_unix_ns - receipt.arrival_latest_unix_ns


@pytest.mark.parametrize("cut", [0, 1, 20, -1], ids=["headers only", "a byte", "20 bytes", "all but a byte"])
async def test_a_command_whose_end_comes_late_is_stamped_late(server: Server, table: Table, cut: int) -> None:
    """However much of it had come before."""
    player, request = await player_and_request(table)
    async with http2(server.port) as connection:
        stream = await connection.call("SubmitCommand", player.token)
        data = framed(request.SerializeToString())
        sent_ns = await held_back(server, connection, stream, data, cut, end=True)
        response = pb.SubmitCommandResponse.FromString(await connection.message(stream))
    check(response.outcome, sent_ns)


async def test_a_command_is_there_when_its_message_is_in(server: Server, table: Table) -> None:
    """The end of the call, which says nothing more, is not waited for."""
    player, request = await player_and_request(table)
    async with http2(server.port) as connection:
        stream = await connection.call("SubmitCommand", player.token)
        await connection.send(stream, request.SerializeToString())
        response = pb.SubmitCommandResponse.FromString(await connection.message(stream))
    assert response.outcome.HasField("accepted")


@pytest.mark.parametrize("cut", [0, 1, -1], ids=["nothing yet", "a byte", "all but a byte"])
async def test_a_command_inside_a_stream_is_stamped_when_its_end_is_in(server: Server, table: Table, cut: int) -> None:
    """PlayMatch: the stream may have been open for hours."""
    player, request = await player_and_request(table)
    opening = pb.PlayMatchRequest(open=pb.PlayMatchOpen(match_id=player.match_id))
    async with http2(server.port) as connection:
        stream = await connection.call("PlayMatch", player.token)
        await connection.send(stream, opening.SerializeToString())
        first = pb.PlayMatchResponse.FromString(await connection.message(stream))
        assert first.HasField("update")
        data = framed(in_stream(request.command).SerializeToString())
        sent_ns = await held_back(server, connection, stream, data, cut, end=False)
        answered = pb.PlayMatchResponse.FromString(await connection.message(stream, 1))
    check(answered.outcome, sent_ns)


async def test_commands_sent_together_are_stamped_in_their_order(server: Server, table: Table) -> None:
    """Several in one packet: the first is decided first."""
    player, request = await player_and_request(table)
    opening = pb.PlayMatchRequest(open=pb.PlayMatchOpen(match_id=player.match_id))
    commands = [in_stream(request.command) for _ in range(5)]
    async with http2(server.port) as connection:
        stream = await connection.call("PlayMatch", player.token)
        packet = b"".join(framed(message.SerializeToString()) for message in (opening, *commands))
        await connection.send_bytes(stream, packet)
        said = [pb.PlayMatchResponse.FromString(await connection.message(stream, number)) for number in range(6)]
    outcomes = [message.outcome for message in said if message.HasField("outcome")]
    assert [outcome.command_id for outcome in outcomes] == [message.command.command_id for message in commands]
    assert [outcome.HasField("accepted") for outcome in outcomes] == [True] + [False] * 4


async def test_a_stamp_is_narrow_while_the_server_is_well(table: Table) -> None:
    """A busy machine may widen some."""
    player, _ = await player_and_request(table)
    widths = []
    for _ in range(30):
        receipt = (await player.submit(legal_commands(await player.view())[0], expected_version=1)).receipt
        widths.append(receipt.arrival_latest_unix_ns - receipt.arrival_earliest_unix_ns)
    assert min(widths) <= PROVABLE_NS
