"""A PlayMatch stream that goes away listens on for a second: its client sent what comes then before it could know."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

import grpc
import pytest

from engine.view import Audience
from service.matches import token_hash
from service.ports import Credential
from service.rpc import edge
from service.rpc.arrival import Stamped
from service.rpc.edge import Context
from service.rpc.streams import LISTENING_SECONDS
from spectacularbid.v1 import match_service_pb2 as pb
from tests.support.handlers import handlers_of
from tests.support.players import START, in_stream
from tests.support.ports import Process
from tests.support.twins.world import Call
from tests.support.virtual_matches import MATCH_ID, seated, state_of
from tests.support.virtual_time import in_virtual_time, settle, virtual_now_ns

TOKEN = "sb1_of-a-player"
FAREWELL = ["update", "going_away"]
OPENING = pb.PlayMatchRequest(open=pb.PlayMatchOpen(match_id=MATCH_ID))


@asynccontextmanager
async def opened(*, too_late: bool = False) -> AsyncIterator[tuple[Process, Call, asyncio.Task[None]]]:
    """A stream that was told to go away just now; with `too_late` all were, right before it opened."""
    async with Process.running(seated()) as process:
        hashed = token_hash(TOKEN)
        process.store.credentials[hashed] = Credential(hashed, MATCH_ID, Audience.SEAT_ONE)
        call = Call(TOKEN, [])
        send(process, call, OPENING)
        handler = edge.stream(handlers_of(process).play_match, process.metrics.method("MatchService", "PlayMatch"))
        if too_late:
            process.matches.send_away()
        serving = asyncio.ensure_future(handler(cast("Any", None), cast("Context", call)))
        await settle()
        if not too_late:
            process.matches.send_away()
            await settle()
        yield process, call, serving


def send(process: Process, call: Call, message: pb.PlayMatchRequest) -> None:
    """A message arrives now."""
    call.sent.put_nowait(Stamped(process.core.clock.arrival(), message))


def kinds(call: Call) -> list[str | None]:
    """What was said."""
    return [pb.PlayMatchResponse.FromString(data).WhichOneof("message") for data in call.said]


@pytest.mark.parametrize("after_seconds", [0.0, LISTENING_SECONDS - 0.1])
def test_a_command_that_was_under_way_when_its_stream_was_sent_away_counts_and_is_answered(
    after_seconds: float,
) -> None:
    """It came in time, and nobody could read it on a stream that has ended."""
    check_command_under_way(after_seconds)


@in_virtual_time
async def check_command_under_way(after_seconds: float) -> None:
    """Let a command come so long after the farewell."""
    async with opened() as (process, call, serving):
        began_ns = virtual_now_ns()
        await asyncio.sleep(after_seconds)
        send(process, call, in_stream(START))
        await serving
        assert kinds(call) == [*FAREWELL, "outcome"]
        assert state_of(process).ready.one
        assert virtual_now_ns() - began_ns == pytest.approx(LISTENING_SECONDS * 1e9, abs=1_000)


@in_virtual_time
async def test_a_stream_that_goes_away_ends_when_its_client_has_said_its_last() -> None:
    """And has every answer: no stop takes longer than it must."""
    async with opened() as (process, call, serving):
        send(process, call, in_stream(START))
        call.sent.put_nowait(grpc.aio.EOF)
        await settle()
        assert serving.done()
        assert kinds(call) == [*FAREWELL, "outcome"]
        assert virtual_now_ns() < 1e9 * LISTENING_SECONDS


@in_virtual_time
async def test_a_stream_that_goes_away_ends_although_its_client_sends_nothing_any_more() -> None:
    """A client need not know about saying its last."""
    async with opened() as (_, call, serving):
        await serving
        assert kinds(call) == FAREWELL


@in_virtual_time
async def test_a_stream_that_opens_when_all_others_were_sent_away_goes_away_too() -> None:
    """It shows the match, and where to go on; nobody waits for it until the grace is over."""
    async with opened(too_late=True) as (_, call, serving):
        await serving
        assert kinds(call) == FAREWELL
        assert virtual_now_ns() == pytest.approx(LISTENING_SECONDS * 1e9, abs=1_000)
