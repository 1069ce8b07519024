"""Tokens: they rotate, what was rotated is good for nothing, and they expire a day after their match has ended."""

import asyncio
from dataclasses import replace
from pathlib import Path

import grpc
import pytest

from engine.clock import SECOND_NS
from engine.view import Audience
from service.matches import token_hash
from service.rpc.auth import RECHECK_NS, SHARED_RECHECK_NS, TOKEN_LIFE_NS, Gatekeeper
from service.rpc.statuses import StatusError
from spectacularbid.v1 import match_service_pb2 as pb
from spectacularbid.v1.views_pb2 import MATCH_MODE_ONLINE
from tests.support.players import RESIGN, START, Table, Viewer, new_id, new_table, read_play, read_to_end, read_update
from tests.support.ports import MemoryStore
from tests.support.rejections import Rejection, rejection
from tests.support.server import Server, served
from tests.support.unchanged import changing_nothing


async def rotated(viewer: Viewer) -> Viewer:
    """The same viewer with a fresh token."""
    answer = await viewer.stub.RotateToken(pb.RotateTokenRequest(match_id=viewer.match_id), metadata=viewer.metadata)
    return replace(viewer, token=answer.token)


async def refusal(viewer: Viewer) -> Rejection:
    """How a view is refused."""
    return await rejection(viewer.view())


async def test_a_fresh_token_stands_for_the_same_seat(table: Table) -> None:
    """Its holder goes on as before, and the prefix says what it is for."""
    fresh = await rotated(table.one)
    assert fresh.token.startswith("sbs_")
    assert fresh.token != table.one.token
    assert (await fresh.view()).own.seat == 1
    assert (await table.two.view()).own.seat == 2


async def test_a_rotated_token_is_good_for_nothing(table: Table) -> None:
    """As unknown as one that never was, with the same text."""
    fresh = await rotated(table.one)
    unknown = await refusal(replace(table.one, token="sbs_never"))
    assert unknown.code is grpc.StatusCode.UNAUTHENTICATED
    async with changing_nothing(replace(table, one=fresh)):
        assert await refusal(table.one) == unknown
        assert await rejection(table.one.submit(RESIGN)) == unknown
        assert await rejection(rotated(table.one)) == unknown
        async with table.one.watching() as call:
            assert await rejection(read_update(call)) == unknown


async def test_of_two_rotations_at_once_one_succeeds(table: Table) -> None:
    """Two holders of one token cannot both go on."""
    answers = await asyncio.gather(rotated(table.one), rotated(table.one), return_exceptions=True)
    (fresh,) = [answer for answer in answers if isinstance(answer, Viewer)]
    assert (await fresh.view()).own.seat == 1


async def test_open_streams_of_a_rotated_token_end(table: Table) -> None:
    """Watching and playing alike; the other seat's stays, and learns nothing but who is connected."""
    async with table.one.watching() as watch, table.one.playing() as play, table.two.watching() as other:
        for opened in (watch, other):
            await read_update(opened)
        await read_play(play)
        await rotated(table.one)
        for reading in (read_to_end(watch), read_to_end(play)):
            assert (await rejection(reading)).reason == "INVALID_TOKEN"
        assert not other.done()


async def test_a_device_rotates_its_token_too(server: Server) -> None:
    """And a spectator."""
    table = await new_table(server.channel, shared_device=True)
    fresh = await rotated(table.one)
    assert fresh.token.startswith("sbd_")
    await fresh.do(START)
    assert (await rotated(table.spectator)).token.startswith("sbw_")


async def test_a_rotation_survives_a_restart(tmp_path: Path) -> None:
    """What was revoked stays so, and the fresh token stays good."""
    async with served(tmp_path / "m.sqlite3") as server:
        table = await new_table(server.channel, start=True)
        fresh = await rotated(table.one)
    async with served(tmp_path / "m.sqlite3") as server:
        again = table.at(server.channel)
        assert (await refusal(again.one)).reason == "INVALID_TOKEN"
        assert (await replace(again.one, token=fresh.token).view()).own.seat == 1


async def test_whoever_lost_the_fresh_token_repeats_the_request_that_gave_the_first(server: Server) -> None:
    """A lost answer locks nobody out."""
    stub = (await new_table(server.channel)).one.stub
    request = pb.CreateMatchRequest(request_id=new_id(), mode=MATCH_MODE_ONLINE)
    created = await stub.CreateMatch(request)
    await rotated(Viewer(stub, created.match_id, created.token))
    again = await stub.CreateMatch(request)
    assert (await Viewer(stub, again.match_id, again.token).view()).own.seat == 1


async def test_a_token_of_another_match_cannot_rotate(server: Server, table: Table) -> None:
    """The same answer for a match that never was."""
    other = await new_table(server.channel)
    for match_id in (other.one.match_id, "a" * 26):
        refused = await rejection(rotated(replace(table.one, match_id=match_id)))
        assert refused.code is grpc.StatusCode.PERMISSION_DENIED


class Clock:
    """Time that is moved by hand."""

    now_ns = 10**18

    def __call__(self) -> int:
        return self.now_ns


async def test_a_token_expires_a_day_after_its_match_has_ended(server: Server, table: Table) -> None:
    """Exactly then, also for a doorkeeper that knew it while the match went on."""
    store = server.service._core.matches._services.store
    clock, hashed = Clock(), token_hash(table.one.token)
    keeper = Gatekeeper(store, server.service._metrics, now_ns=clock)
    assert (await keeper.look_up(hashed)).ended_at_ns is None
    await table.one.do(RESIGN)
    ended_at_ns = (await store.credential(hashed)).ended_at_ns  # type: ignore[union-attr]
    assert ended_at_ns is not None
    clock.now_ns = ended_at_ns + TOKEN_LIFE_NS - 1
    assert (await keeper.look_up(hashed)).audience is Audience.SEAT_ONE
    clock.now_ns += 1
    assert keeper.known(hashed) is None
    with pytest.raises(StatusError) as caught:
        await keeper.look_up(hashed)
    assert caught.value.status.reason == "INVALID_TOKEN"
    assert RECHECK_NS < TOKEN_LIFE_NS
    assert ended_at_ns < server.service._core.clock.now_ns() < ended_at_ns + 60 * SECOND_NS


async def test_where_others_rotate_tokens_too_an_old_one_is_believed_for_seconds_only(
    server: Server, table: Table
) -> None:
    """Another replica replaced it; this one asks again soon."""
    store = server.service._core.matches._services.store
    clock, hashed = Clock(), token_hash(table.one.token)
    keeper = Gatekeeper(store, server.service._metrics, now_ns=clock, recheck_ns=SHARED_RECHECK_NS)
    await keeper.look_up(hashed)
    await store.replace_credential(hashed, token_hash("another"))
    clock.now_ns += SHARED_RECHECK_NS - 1
    assert keeper.known(hashed) is not None
    clock.now_ns += 1
    assert keeper.known(hashed) is None
    with pytest.raises(StatusError):
        await keeper.look_up(hashed)


async def test_a_store_that_answers_late_brings_no_rotated_token_back(server: Server, table: Table) -> None:
    """The read may have begun before the rotation and end after it."""
    credential = await server.service._core.matches._services.store.credential(token_hash(table.one.token))
    assert credential is not None
    store = MemoryStore(credentials={credential.token_hash: credential})
    keeper = Gatekeeper(store, server.service._metrics)
    keeper.revoke(credential)
    with pytest.raises(StatusError):
        await keeper.look_up(credential.token_hash)
