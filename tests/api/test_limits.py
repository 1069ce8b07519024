"""Limits over the wire: RESOURCE_EXHAUSTED with RetryInfo, clocks that run on, and nothing of it at the other seat."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import grpc
import pytest
import pytest_asyncio

from service import limits
from service.settings import Settings
from spectacularbid.v1 import match_service_pb2 as pb
from spectacularbid.v1.views_pb2 import MATCH_MODE_ONLINE
from tests.support.players import (
    PASS,
    START,
    Table,
    Viewer,
    in_stream,
    new_id,
    new_table,
    read_play,
    read_to_end,
    read_update,
)
from tests.support.rejections import Rejection, rejection, rejection_in
from tests.support.server import Server, served
from tests.support.unchanged import changing_nothing

GUESTS = 500


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def limited(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Server]:
    """The service with its usual limits, but for guests: every match here comes from one address."""
    chosen = Settings(guests_per_second=GUESTS)
    async with served(tmp_path_factory.mktemp("limited") / "m.sqlite3", chosen=chosen) as running:
        yield running


@pytest_asyncio.fixture(loop_scope="session")
async def seated(limited: Server) -> Table:
    """A match with both players seated, which nobody has asked for anything yet."""
    return await new_table(limited.channel)


async def all_at_once(viewer: Viewer, number: int) -> list[Rejection]:
    """Send so many commands at once; the rejections among the answers."""
    answers = await asyncio.gather(*(viewer.submit(PASS) for _ in range(number)), return_exceptions=True)
    return [rejection_in(answer) for answer in answers if isinstance(answer, grpc.aio.AioRpcError)]


async def test_the_twenty_first_command_at_once_is_turned_away(seated: Table) -> None:
    """With the time to wait; the same command fits then."""
    async with changing_nothing(seated):
        await seated.one.submit(PASS)  # whose token is unknown so far counts as a stranger: of those fewer may wait
        assert await all_at_once(seated.one, 19) == []
        too_fast = await rejection(seated.one.submit(PASS))
    assert (too_fast.code, too_fast.reason) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "TOO_FAST")
    assert too_fast.retry_seconds is not None


async def test_a_command_error_turns_away_what_is_too_fast_on_a_stream(seated: Table) -> None:
    """The stream goes on, and says when to try again."""
    async with seated.one.playing() as play:
        for _ in range(40):
            await play.write(in_stream(PASS))
        messages = [await read_play(play) for _ in range(41)]
        (error, *_) = [message.error for message in messages if message.error.reason == "TOO_FAST"]
        assert error.code == grpc.StatusCode.RESOURCE_EXHAUSTED.value[0]
        assert 0 < error.retry_after.ToMilliseconds() <= 100
        await asyncio.sleep(error.retry_after.ToMilliseconds() / 1000 + 0.2)
        await play.write(in_stream(PASS))
        assert (await read_play(play)).HasField("outcome")


async def test_one_seat_that_is_too_fast_takes_nothing_from_the_other(seated: Table) -> None:
    """Neither its commands nor a word on its stream."""
    async with seated.two.watching() as call:
        before = await read_update(call)
        assert await all_at_once(seated.one, 40)
        assert (await seated.two.submit(START)).HasField("accepted")
        after = await read_update(call)
    assert after.view.public.version == before.view.public.version + 1


async def test_a_clock_runs_on_while_its_player_is_turned_away(seated: Table) -> None:
    """The decision began when it began."""
    view = await seated.start()
    player = seated.seat(view.own.seat)
    before = view.public.clock
    assert await all_at_once(player, 40)
    after = (await player.view()).public.clock
    assert after.SerializeToString() == before.SerializeToString()


async def test_a_repeated_command_costs_as_much_as_a_new_one(seated: Table) -> None:
    """Or a flood would only have to keep its id."""
    command_id = new_id()
    repeats = [seated.one.submit(START, command_id=command_id) for _ in range(30)]
    answers = await asyncio.gather(*repeats, return_exceptions=True)
    assert 1 <= sum(isinstance(answer, grpc.aio.AioRpcError) for answer in answers) <= 10


async def test_a_player_may_look_five_times_a_second(seated: Table) -> None:
    """Ten times at once; then it is turned away, on its own account."""
    answers = await asyncio.gather(*(seated.one.view() for _ in range(12)), return_exceptions=True)
    refused = [rejection_in(answer) for answer in answers if isinstance(answer, grpc.aio.AioRpcError)]
    assert {(one.code, one.reason) for one in refused} == {(grpc.StatusCode.RESOURCE_EXHAUSTED, "TOO_FAST")}
    await seated.two.view()


async def test_a_third_stream_replaces_the_oldest(seated: Table) -> None:
    """Which ends with its reason and no RetryInfo; the seat stays present."""
    async with seated.one.watching() as first, seated.one.watching() as second, seated.two.watching() as other:
        for call in (first, second, other):
            await read_update(call)
        async with seated.one.watching() as third:
            await read_update(third)
            ended = await rejection(read_to_end(first))
            assert (ended.code, ended.reason) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "STREAM_REPLACED")
            assert ended.retry_seconds is None
            assert not second.done()
            assert (await seated.two.update()).presence.seat_one


async def test_a_spectators_second_stream_replaces_the_first(seated: Table) -> None:
    """A spectator's token is for one."""
    request = pb.SpectateMatchRequest(match_id=seated.one.match_id)
    stub, metadata = seated.spectator.stub, seated.spectator.metadata
    first = stub.SpectateMatch(request, metadata=metadata)
    await first.read()
    second = stub.SpectateMatch(request, metadata=metadata)
    await second.read()
    assert (await rejection(read_to_end(first))).reason == "STREAM_REPLACED"
    second.cancel()


async def test_a_match_has_room_for_so_many_spectators(seated: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    """One too many is told to come back."""
    monkeypatch.setattr(limits, "SPECTATORS", 0)
    request = pb.SpectateMatchRequest(match_id=seated.one.match_id)
    call = seated.spectator.stub.SpectateMatch(request, metadata=seated.spectator.metadata)
    full = await rejection(call.read())
    assert (full.code, full.reason) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "TOO_MANY_SPECTATORS")
    assert full.retry_seconds == 1


async def test_guests_of_one_address_may_not_flood_the_door(tmp_path: Path) -> None:
    """Creates and joins share the allowance; who is seated goes on."""
    async with served(tmp_path / "m.sqlite3", chosen=Settings(guests_per_second=1)) as server:
        table = await new_table(server.channel)
        request = pb.CreateMatchRequest(request_id=new_id(), mode=MATCH_MODE_ONLINE)
        too_fast = await rejection(table.one.stub.CreateMatch(request))
        assert (too_fast.code, too_fast.reason) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "TOO_FAST")
        assert (await table.one.submit(START)).HasField("accepted")
