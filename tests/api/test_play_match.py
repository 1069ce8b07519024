"""One stream both ways: outcomes and updates in one order, nothing told twice."""

import asyncio

import grpc
import pytest

from spectacularbid.v1 import match_service_pb2 as pb
from spectacularbid.v1.outcomes_pb2 import REFUSAL_REASON_NOT_YOUR_TURN, REFUSAL_REASON_STALE_VERSION
from tests.support.players import (
    DRAW,
    RESIGN,
    START,
    PlayCall,
    Table,
    in_stream,
    legal_commands,
    new_table,
    read_play,
)
from tests.support.server import Server

PATIENCE_SECONDS = 20


async def opened(call: PlayCall) -> pb.MatchUpdate:
    """The first message."""
    first = await read_play(call)
    assert first.HasField("update")
    return first.update


async def the_rest(call: PlayCall) -> list[pb.PlayMatchResponse]:
    """Everything until the stream ends well."""
    said = []
    async with asyncio.timeout(PATIENCE_SECONDS):
        while isinstance(response := await call.read(), pb.PlayMatchResponse):
            said.append(response)
    assert await call.code() is grpc.StatusCode.OK
    return said


async def test_a_version_that_came_with_an_outcome_is_not_sent_again(server: Server) -> None:
    """The next message is the other player's move."""
    table = await new_table(server.channel)
    async with table.one.playing() as call:
        assert (await opened(call)).view == await table.one.view()
        await call.write(in_stream(START))
        outcome = (await read_play(call)).outcome
        assert outcome.accepted.version == 3
        await table.two.do(START)
        update = (await read_play(call)).update
    assert update.view.public.version == 4
    assert [event.WhichOneof("event") for event in update.events] == ["player_ready", "round_dealt", "clock_started"]
    assert update.events_complete


async def test_a_players_other_stream_hears_of_the_command_as_an_update(server: Server) -> None:
    """Two windows of one player."""
    table = await new_table(server.channel)
    async with table.one.playing() as call, table.one.playing() as other:
        await opened(call)
        await opened(other)
        await call.write(in_stream(START))
        assert (await read_play(call)).HasField("outcome")
        assert (await read_play(other)).update.view.public.version == 3


async def test_a_refusal_tells_why_and_moves_nothing(table: Table) -> None:
    """The stream goes on from the version where it was."""
    view = await table.on_turn_view()
    waiting = table.seat(3 - view.own.seat)
    async with waiting.playing() as call:
        version = (await opened(call)).view.public.version
        await call.write(in_stream(DRAW))
        outcome = (await read_play(call)).outcome
        assert outcome.refused.reason == REFUSAL_REASON_NOT_YOUR_TURN
        assert outcome.view.public.version == version
        moved = await table.seat(view.own.seat).do(legal_commands(view)[0])
        assert (await read_play(call)).update.view.public.version == moved.public.version


async def test_an_expected_version_guards_a_command(table: Table) -> None:
    """As in SubmitCommand."""
    view = await table.on_turn_view()
    command = legal_commands(view)[0]
    async with table.seat(view.own.seat).playing() as call:
        await opened(call)
        await call.write(in_stream(command, version=1))
        assert (await read_play(call)).outcome.refused.reason == REFUSAL_REASON_STALE_VERSION
        await call.write(in_stream(command, version=view.public.version))
        assert (await read_play(call)).outcome.HasField("accepted")


async def test_commands_in_a_row_are_answered_in_their_order(server: Server) -> None:
    """Without waiting for the answers in between."""
    table = await new_table(server.channel)
    async with table.one.playing() as call:
        await opened(call)
        commands = [in_stream(START) for _ in range(10)]
        for message in commands:
            await call.write(message)
        answers = [(await read_play(call)).outcome for _ in commands]
    assert [answer.command_id for answer in answers] == [message.command.command_id for message in commands]
    assert [answer.HasField("accepted") for answer in answers] == [True] + [False] * 9


async def test_after_a_half_close_the_answers_still_come_and_the_stream_ends_well(server: Server) -> None:
    """The client has said its last."""
    table = await new_table(server.channel)
    async with table.one.playing() as call:
        await opened(call)
        for _ in range(5):
            await call.write(in_stream(START))
        await call.done_writing()
        said = await the_rest(call)
    assert [message.WhichOneof("message") for message in said] == ["outcome"] * 5
    assert (await table.one.view()).public.players[0].ready


async def test_a_half_close_right_after_the_opening_ends_the_stream(table: Table) -> None:
    """Nothing is pending."""
    async with table.one.playing() as call:
        await call.done_writing()
        assert len(await the_rest(call)) <= 1


async def test_a_resumed_stream_gets_what_it_missed(table: Table) -> None:
    """As a watch does."""
    version = (await table.one.view()).public.version
    view = await table.on_turn_view()
    outcome = await table.seat(view.own.seat).submit(legal_commands(view)[0])
    async with table.one.playing(version) as call:
        update = await opened(call)
    assert list(update.events) == list(outcome.accepted.events)
    assert update.events_complete


async def test_an_outcome_never_hides_what_the_other_player_did_before_it(server: Server) -> None:
    """Both resign at once: the loser's stream tells of the end before or with the refusal."""
    for _ in range(10):
        table = await new_table(server.channel, start=True)
        async with table.one.playing() as call:
            await opened(call)
            other = asyncio.create_task(table.two.submit(RESIGN))
            await call.write(in_stream(RESIGN))
            said = [await read_play(call)]
            while not said[-1].HasField("outcome"):
                said.append(await read_play(call))
            await other
        outcome = said[-1].outcome
        assert outcome.view.public.HasField("result")
        assert outcome.view.public.result.won.winner == (2 if outcome.HasField("accepted") else 1)


@pytest.mark.parametrize("seat", [1, 2])
async def test_the_view_in_the_stream_is_the_seats_own(table: Table, seat: int) -> None:
    """Like everywhere."""
    async with table.seat(seat).playing() as call:
        assert (await opened(call)).view.own.seat == seat
