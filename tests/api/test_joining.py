"""Creating, joining and leaving a match."""

import asyncio
from pathlib import Path

import grpc
import pytest
from google.protobuf.duration_pb2 import Duration

from spectacularbid.v1 import match_service_pb2 as pb
from spectacularbid.v1.events_pb2 import ABORT_REASON_LEFT_BEFORE_START, ABORT_REASON_START_TIMEOUT
from spectacularbid.v1.match_service_pb2_grpc import MatchServiceStub
from spectacularbid.v1.views_pb2 import (
    MATCH_MODE_ONLINE,
    MATCH_MODE_SHARED_DEVICE,
    PHASE_NOT_STARTED,
    PHASE_OVER,
    STOP_REASON_NOT_STARTED,
    MatchMode,
)
from tests.support.players import RESIGN, START, Table, Viewer, is_over, new_id, new_table, read_update
from tests.support.rejections import rejection
from tests.support.server import Server, served
from tests.support.unchanged import changing_nothing


def creation(*, request_id: str = "", mode: MatchMode.ValueType = MATCH_MODE_ONLINE) -> pb.CreateMatchRequest:
    """A request for a match."""
    return pb.CreateMatchRequest(request_id=request_id or new_id(), display_name="Ada", mode=mode)


async def test_a_new_match_waits_for_the_other_player(server: Server) -> None:
    """The creator sits at seat ONE; the wait for the start has an end (S2)."""
    created = await MatchServiceStub(server.channel).CreateMatch(creation())
    view = created.update.view
    assert (view.public.match_id, view.public.version, view.public.phase) == (created.match_id, 1, PHASE_NOT_STARTED)
    assert [(player.display_name, player.seated) for player in view.public.players] == [("Ada", True), ("", False)]
    assert view.public.clock.stopped.reason == STOP_REASON_NOT_STARTED
    wait_ns = view.public.clock.stopped.ends_at_unix_ns - created.update.service_now_unix_ns
    assert 590 < wait_ns / 1e9 <= 600
    assert [player.balance_points for player in view.public.players] == [150, 150]
    assert created.token.startswith("sbs_")
    assert created.spectator_token.startswith("sbw_")


async def test_the_invite_code_seats_the_other_player_who_sees_what_the_creator_sees(server: Server) -> None:
    """Case, dashes and blanks do not matter."""
    stub = MatchServiceStub(server.channel)
    created = await stub.CreateMatch(creation())
    code = created.invite_code.lower().replace("-", " ")
    joined = await stub.JoinMatch(pb.JoinMatchRequest(request_id=new_id(), invite_code=code, display_name="Bo"))
    assert joined.match_id == created.match_id
    public = (await Viewer(stub, created.match_id, created.token).view()).public
    assert joined.update.view.public == public
    assert [player.display_name for player in public.players] == ["Ada", "Bo"]
    assert public.version == 2


async def test_a_shared_device_has_both_players_at_once_and_no_invite_code(server: Server) -> None:
    """One token acts for the seat on turn."""
    request = creation(mode=MATCH_MODE_SHARED_DEVICE)
    request.second_display_name = "Bo"
    created = await MatchServiceStub(server.channel).CreateMatch(request)
    assert created.invite_code == ""
    assert created.token.startswith("sbd_")
    assert [player.display_name for player in created.update.view.public.players] == ["Ada", "Bo"]


@pytest.mark.parametrize("mode", [MATCH_MODE_ONLINE, MATCH_MODE_SHARED_DEVICE], ids=MatchMode.Name)
async def test_creating_again_with_the_same_request_gets_the_same_match(
    server: Server, mode: MatchMode.ValueType
) -> None:
    """Fault 107: also with a fresh token that works; the earlier one works on."""
    stub = MatchServiceStub(server.channel)
    request = creation(mode=mode)
    answers = [await stub.CreateMatch(request) for _ in range(2)]
    assert answers[0].match_id == answers[1].match_id
    assert answers[0].invite_code == answers[1].invite_code
    for answer in answers:
        for token in (answer.token, answer.spectator_token):
            assert (await Viewer(stub, answer.match_id, token).view()).public.version == 1


async def test_creating_ten_times_at_once_makes_one_match(server: Server) -> None:
    """A client that retries without waiting."""
    stub = MatchServiceStub(server.channel)
    request = creation()
    before = server.sample("specbid_matches_created_total")
    answers = await asyncio.gather(*(stub.CreateMatch(request) for _ in range(10)))
    assert len({answer.match_id for answer in answers}) == 1
    assert len({answer.token for answer in answers}) == 10
    assert server.sample("specbid_matches_created_total") == before + 1


async def test_joining_again_with_the_same_request_gets_the_same_seat(server: Server) -> None:
    """Also at once, and nobody sits twice."""
    stub = MatchServiceStub(server.channel)
    created = await stub.CreateMatch(creation())
    request = pb.JoinMatchRequest(request_id=new_id(), invite_code=created.invite_code, display_name="Bo")
    answers = await asyncio.gather(*(stub.JoinMatch(request) for _ in range(5)))
    answers.append(await stub.JoinMatch(request))
    assert len({answer.match_id for answer in answers}) == 1
    for answer in answers:
        view = await Viewer(stub, answer.match_id, answer.token).view()
        assert (view.own.seat, view.public.version) == (2, 2)


async def test_one_of_many_who_join_at_once_gets_the_seat(server: Server) -> None:
    """The others hear the same as for a code that never was."""
    stub = MatchServiceStub(server.channel)
    created = await stub.CreateMatch(creation())
    joins = [
        stub.JoinMatch(pb.JoinMatchRequest(request_id=new_id(), invite_code=created.invite_code)) for _ in range(5)
    ]
    results = await asyncio.gather(*joins, return_exceptions=True)
    failed = [result for result in results if isinstance(result, grpc.aio.AioRpcError)]
    assert len(failed) == 4
    assert {error.code() for error in failed} == {grpc.StatusCode.NOT_FOUND}


async def test_a_code_of_a_taken_seat_tells_no_more_than_a_wrong_one(table: Table) -> None:
    """Fault 73: and a stranger's attempt changes nothing."""
    answers = set()
    async with changing_nothing(table):
        for code in (table.invite_code, "AAAAA-AAAAA"):
            request = pb.JoinMatchRequest(request_id=new_id(), invite_code=code)
            answers.add(await rejection(table.one.stub.JoinMatch(request)))
    (answer,) = answers
    assert (answer.code, answer.reason) == (grpc.StatusCode.NOT_FOUND, "INVITE_NOT_VALID")


async def test_a_restart_forgets_no_seat(tmp_path: Path) -> None:
    """Repeated create and join requests find them."""
    database = tmp_path / "matches.sqlite3"
    create = creation()
    async with served(database) as before:
        created = await MatchServiceStub(before.channel).CreateMatch(create)
        join = pb.JoinMatchRequest(request_id=new_id(), invite_code=created.invite_code, display_name="Bo")
        joined = await MatchServiceStub(before.channel).JoinMatch(join)
    async with served(database) as after:
        stub = MatchServiceStub(after.channel)
        created_again = await stub.CreateMatch(create)
        assert (created_again.match_id, created_again.invite_code) == (created.match_id, created.invite_code)
        assert (await stub.JoinMatch(join)).match_id == created.match_id
        for token in (created.token, joined.token, created.spectator_token, created_again.token):
            assert (await Viewer(stub, created.match_id, token).view()).public.match_id == created.match_id


@pytest.mark.parametrize("seat", [1, 2])
async def test_who_leaves_before_the_start_aborts_the_match(server: Server, seat: int) -> None:
    """X1: without a rated result; everybody hears of it."""
    table = await new_table(server.channel)
    player = table.seat(seat)
    async with table.spectator.watching() as call:
        await read_update(call)
        left = await player.stub.LeaveMatch(pb.LeaveMatchRequest(match_id=player.match_id), metadata=player.metadata)
        heard = await read_update(call)
    for view in (left.update.view, heard.view):
        assert view.public.phase == PHASE_OVER
        assert view.public.result.aborted.reason == ABORT_REASON_LEFT_BEFORE_START
        assert not view.public.result.rated


async def test_after_the_start_nobody_can_leave(table: Table) -> None:
    """One resigns then."""
    async with changing_nothing(table):
        request = pb.LeaveMatchRequest(match_id=table.one.match_id)
        answer = await rejection(table.one.stub.LeaveMatch(request, metadata=table.one.metadata))
    assert (answer.code, answer.reason) == (grpc.StatusCode.FAILED_PRECONDITION, "ALREADY_STARTED")


async def test_a_match_that_nobody_starts_is_aborted_by_itself(server: Server) -> None:
    """S2: at the instant that was shown, with nobody looking."""
    request = creation()
    request.start_timeout.CopyFrom(Duration(seconds=1))
    stub = MatchServiceStub(server.channel)
    created = await stub.CreateMatch(request)
    viewer = Viewer(stub, created.match_id, created.spectator_token)
    async with viewer.watching(1) as call, asyncio.timeout(20):
        update = await read_update(call)
        while not is_over(update.view):
            update = await read_update(call)
    aborted = update.view.public.result.aborted
    assert aborted.reason == ABORT_REASON_START_TIMEOUT
    assert aborted.at_unix_ns == created.update.view.public.clock.stopped.ends_at_unix_ns


async def test_the_seat_comes_from_the_token_alone(table: Table) -> None:
    """Each token sees its own seat; spectators see none."""
    assert [(await viewer.view()).own.seat for viewer in (table.one, table.two)] == [1, 2]
    assert not (await table.spectator.view()).HasField("own")
    await table.two.do(RESIGN)
    assert (await table.one.view()).public.result.won.winner == 1


async def test_a_player_alone_is_ready_and_waits(server: Server) -> None:
    """S1: online both must start; the seat may still be free."""
    stub = MatchServiceStub(server.channel)
    created = await stub.CreateMatch(creation())
    alone = Viewer(stub, created.match_id, created.token)
    view = await alone.do(START)
    assert [player.ready for player in view.public.players] == [True, False]
    assert view.public.phase == PHASE_NOT_STARTED
