"""The same command id gets the same outcome, however often and wherever it comes in; it is applied once (X4)."""

import asyncio
from pathlib import Path

import grpc
import pytest

from spectacularbid.v1.outcomes_pb2 import REFUSAL_REASON_NOT_YOUR_TURN, CommandOutcome
from spectacularbid.v1.views_pb2 import MatchView
from tests.support.players import (
    DRAW,
    RESIGN,
    START,
    Table,
    Viewer,
    in_stream,
    legal_commands,
    new_id,
    new_table,
    read_play,
)
from tests.support.rejections import rejection
from tests.support.server import Server, served
from tests.support.unchanged import changing_nothing

AT_ONCE = 10


def told(outcome: CommandOutcome) -> bytes:
    """What an outcome says of its command, without the moment and the view that it was answered with."""
    kept = CommandOutcome(command_id=outcome.command_id, receipt=outcome.receipt)
    if outcome.HasField("accepted"):
        kept.accepted.CopyFrom(outcome.accepted)
    else:
        kept.refused.CopyFrom(outcome.refused)
    return kept.SerializeToString(deterministic=True)


async def on_turn(table: Table) -> tuple[Viewer, Viewer, MatchView]:
    """The player on turn, the other one, and what the first sees."""
    view = await table.on_turn_view()
    return table.seat(view.own.seat), table.seat(3 - view.own.seat), view


@pytest.mark.clause("X4")
async def test_a_repeated_command_gets_its_outcome_again(server: Server) -> None:
    """Same version, same events, same receipt; only the view is that of now."""
    table = await new_table(server.channel, start=True)
    player, other, view = await on_turn(table)
    command, command_id = legal_commands(view)[0], new_id()
    first = await player.submit(command, command_id=command_id)
    async with changing_nothing(table, opponent=other):
        again = await player.submit(command, command_id=command_id)
        assert (first.repeated, again.repeated) == (False, True)
        assert told(again) == told(first)
        assert again.view == await player.view()


async def test_a_repeat_long_afterwards_still_gets_its_events(server: Server) -> None:
    """More versions later than a match keeps in memory."""
    table = await new_table(server.channel)
    first_id = new_id()
    first = await table.one.submit(START, command_id=first_id)
    await table.two.do(START)
    for _ in range(100):
        view = await table.on_turn_view()
        if view.public.HasField("result"):
            break
        await table.seat(view.own.seat).do(legal_commands(view)[0])
    again = await table.one.submit(START, command_id=first_id)
    assert told(again) == told(first)
    assert again.view.public.version > 90


async def test_ids_are_compared_without_regard_to_case(server: Server) -> None:
    """A UUID is a number, however it is written."""
    table = await new_table(server.channel)
    command_id = new_id()
    await table.one.submit(START, command_id=command_id)
    assert (await table.one.submit(START, command_id=command_id.upper())).repeated


async def test_a_refusal_is_an_outcome_too(server: Server) -> None:
    """The repeat is refused although the command would be legal by now."""
    table = await new_table(server.channel, start=True)
    player, other, view = await on_turn(table)
    resign_id, draw_id = new_id(), new_id()
    refused = await other.submit(DRAW, command_id=draw_id)
    assert refused.refused.reason == REFUSAL_REASON_NOT_YOUR_TURN
    await player.submit(RESIGN, command_id=resign_id, expected_version=view.public.version)
    again = await other.submit(DRAW, command_id=draw_id)
    assert again.repeated
    assert told(again) == told(refused)


@pytest.mark.clause("X4")
async def test_ten_at_once_have_one_effect(server: Server) -> None:
    """Fault 106: one of them is carried out, the others learn what became of it."""
    table = await new_table(server.channel, start=True)
    player, _, view = await on_turn(table)
    command, command_id = legal_commands(view)[0], new_id()
    outcomes = await asyncio.gather(*(player.submit(command, command_id=command_id) for _ in range(AT_ONCE)))
    assert len({told(outcome) for outcome in outcomes}) == 1
    assert sorted(outcome.repeated for outcome in outcomes) == [False] + [True] * (AT_ONCE - 1)
    assert (await player.view()).public.version == view.public.version + 1


async def test_ten_different_commands_for_one_version_have_one_effect(server: Server) -> None:
    """The others are stale."""
    table = await new_table(server.channel, start=True)
    player, _, view = await on_turn(table)
    version = view.public.version
    command = legal_commands(view)[0]
    outcomes = await asyncio.gather(*(player.submit(command, expected_version=version) for _ in range(AT_ONCE)))
    assert sum(outcome.HasField("accepted") for outcome in outcomes) == 1
    assert (await player.view()).public.version == version + 1


async def test_a_command_of_a_stream_is_repeated_by_a_call_and_the_other_way_round(server: Server) -> None:
    """A client whose stream broke asks again however it can."""
    table = await new_table(server.channel)
    command_id = new_id()
    async with table.one.playing() as call:
        assert (await read_play(call)).HasField("update")
        for _ in range(2):
            await call.write(in_stream(START, command_id=command_id))
        answers = [(await read_play(call)).outcome for _ in range(2)]
        called = await table.one.submit(START, command_id=command_id)
        other_id = new_id()
        await table.two.submit(START, command_id=other_id)
    assert [outcome.repeated for outcome in (*answers, called)] == [False, True, True]
    assert len({told(outcome) for outcome in (*answers, called)}) == 1
    async with table.two.playing() as call:
        assert (await read_play(call)).HasField("update")
        await call.write(in_stream(START, command_id=other_id))
        assert (await read_play(call)).outcome.repeated


async def test_the_same_id_with_another_body_is_an_error(server: Server) -> None:
    """The client has mixed something up; the first outcome stands. The expected version belongs to the body."""
    table = await new_table(server.channel, start=True)
    player, other, view = await on_turn(table)
    command, command_id = legal_commands(view)[0], new_id()
    await player.submit(command, command_id=command_id)
    async with changing_nothing(table, opponent=other):
        for body in (
            player.submit(DRAW, command_id=command_id),
            player.submit(command, command_id=command_id, expected_version=view.public.version),
        ):
            error = await rejection(body)
            assert (error.code, error.reason) == (grpc.StatusCode.ALREADY_EXISTS, "COMMAND_ID_REUSED")
        async with player.playing(view.public.version + 1) as call:
            assert (await read_play(call)).HasField("update")
            await call.write(in_stream(DRAW, command_id=command_id))
            answer = (await read_play(call)).error
    assert (answer.code, answer.reason) == (grpc.StatusCode.ALREADY_EXISTS.value[0], "COMMAND_ID_REUSED")
    assert answer.command_id == command_id


async def test_each_seat_and_each_match_has_ids_of_its_own(server: Server) -> None:
    """Nobody can take an id away from the other player, or find out that it was used."""
    tables = [await new_table(server.channel) for _ in range(2)]
    command_id = new_id()
    for table in tables:
        for player in table.seats:
            outcome = await player.submit(START, command_id=command_id)
            assert outcome.HasField("accepted")
            assert not outcome.repeated


async def test_a_restart_forgets_no_outcome(tmp_path: Path) -> None:
    """Accepted and refused, of both seats."""
    async with served(tmp_path / "matches.sqlite3") as before:
        table = await new_table(before.channel)
        ids = [new_id() for _ in range(4)]
        outcomes = [
            await table.one.submit(START, command_id=ids[0]),
            await table.one.submit(START, command_id=ids[1]),
            await table.two.submit(START, command_id=ids[2]),
            await table.two.submit(START, command_id=ids[3]),
        ]
    async with served(tmp_path / "matches.sqlite3") as after:
        one, two = table.at(after.channel).seats
        for index, player in enumerate((one, one, two, two)):
            again = await player.submit(START, command_id=ids[index])
            assert again.repeated
            assert told(again) == told(outcomes[index])
