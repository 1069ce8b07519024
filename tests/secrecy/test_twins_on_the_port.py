"""Twins through gRPC, the database and the whole wiring; only service time stands still, so that bytes can be equal."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING
from unittest.mock import patch

import grpc
import pytest

from engine.view import Audience
from service import backends
from service.matches import token_hash
from service.ports import Append, Credential
from service.store.sqlite import SqliteStore
from spectacularbid.v1 import match_service_pb2 as pb
from tests.support.server import Server, served
from tests.support.twins.battery import Probe, command_id
from tests.support.twins.leaks import hand_in_an_event
from tests.support.twins.script import Course, twins
from tests.support.twins.trials import OBSERVERS, trial
from tests.support.twins.world import AUDIENCES, MATCH_ID, SECRETS, STREAMS, TOKENS, Plan, message_of_command
from tests.support.waiting import until

if TYPE_CHECKING:
    from grpc.aio import (
        StreamStreamCall,
        StreamStreamMultiCallable,
        UnaryStreamCall,
        UnaryStreamMultiCallable,
        UnaryUnaryMultiCallable,
    )

SERVICE = "/spectacularbid.v1.MatchService/"
TWINS_EACH = 2
UNTIMED = ("specbid_commands", "specbid_matches", "specbid_rounds", "specbid_projection")


@dataclass
class StandingTime:
    """Service time that stands until it is let go, from where it stood."""

    at_ns: int
    since_ns: int | None = None

    def __call__(self) -> int:
        return self.at_ns if self.since_ns is None else self.at_ns + time.monotonic_ns() - self.since_ns

    def let_go(self) -> None:
        """Time passes, so that the service can stop."""
        self.since_ns = time.monotonic_ns()


def metadata(audience: Audience) -> tuple[tuple[str, str], ...]:
    """What comes with a call."""
    return (("authorization", f"Bearer {TOKENS[audience]}"),)


async def store_course(database: Path, course: Course, moves: int) -> None:
    """Write the match as it stands after so many moves."""
    store = await SqliteStore.open(database)
    credentials = tuple(Credential(token_hash(token), MATCH_ID, audience) for audience, token in TOKENS.items())
    try:
        for version, step in enumerate(course.log[: moves + 1]):
            state, is_first = course.states[version], version == 0
            change = Append(MATCH_ID, version, step, state.due_ns, live=state.result is None)
            first = Append(
                MATCH_ID, 0, step, state.due_ns, live=True, credentials=credentials, deal=SECRETS if is_first else None
            )
            await store.append(first if is_first else change)
    finally:
        await store.close()


async def told_by(error: grpc.aio.AioRpcError) -> bytes:
    """A status with all that goes with it."""
    return repr((error.code(), error.details(), tuple(error.trailing_metadata() or ()))).encode()


async def unary(server: Server, method: str, data: bytes, audience: Audience) -> bytes:
    """The raw answer of a call, or its status."""
    call: UnaryUnaryMultiCallable[bytes, bytes] = server.channel.unary_unary(SERVICE + method)
    try:
        return await call(data, metadata=metadata(audience))
    except grpc.aio.AioRpcError as error:
        return await told_by(error)


def stream(server: Server, method: str, data: bytes, audience: Audience) -> UnaryStreamCall[bytes, bytes]:
    """A raw stream."""
    call: UnaryStreamMultiCallable[bytes, bytes] = server.channel.unary_stream(SERVICE + method)
    return call(data, metadata=metadata(audience))


async def next_of(call: UnaryStreamCall[bytes, bytes] | StreamStreamCall[bytes, bytes]) -> bytes:
    """The next message of a stream, or its status."""
    try:
        message: object = await call.read()
    except grpc.aio.AioRpcError as error:
        return await told_by(error)
    assert isinstance(message, bytes)
    return message


async def hang_up(call: UnaryStreamCall[bytes, bytes] | StreamStreamCall[bytes, bytes], server: Server) -> None:
    """End a stream and wait until the server knows: until then everybody is told that its viewer is present."""
    call.cancel()
    await until(lambda: server.sample("specbid_streams_open") == 0)


async def live(database: Path, course: Course, plan: Plan) -> list[bytes]:
    """What an observer gets of a course from `plan.live_from` on, and what the metrics say then."""
    await store_course(database, course, plan.live_from)
    clock = StandingTime(course.script.moves[-1].at_ns)
    with patch.object(backends, "service_time", lambda _: clock):
        async with served(database) as server:
            said = [data async for data in _said(server, course, plan)]
            said += [repr(sample).encode() for sample in _samples(server)]
            clock.let_go()
    return said


async def _said(server: Server, course: Course, plan: Plan) -> AsyncIterator[bytes]:
    spectates = plan.observer is Audience.SPECTATOR
    opening = pb.WatchMatchRequest(match_id=MATCH_ID, after_version=plan.after_version).SerializeToString()
    watching = stream(server, "SpectateMatch" if spectates else "WatchMatch", opening, plan.observer)
    yield await next_of(watching)
    for number, move in enumerate(course.script.moves[plan.live_from :]):
        audience = Audience.DEVICE if course.script.shared_device else AUDIENCES[move.seat]
        request = pb.SubmitCommandRequest(
            match_id=MATCH_ID, command_id=command_id(0x10000 + number), command=message_of_command(move.command)
        )
        outcome = await unary(server, "SubmitCommand", request.SerializeToString(), audience)
        assert pb.SubmitCommandResponse.FromString(outcome).outcome.HasField("accepted")
        yield outcome if audience is plan.observer else b""
        yield await next_of(watching)
    await hang_up(watching, server)
    for probe in plan.probes:
        yield await _answer(server, probe, plan.observer)


async def _answer(server: Server, probe: Probe, observer: Audience) -> bytes:
    data = b"\xff" if probe.request is None else probe.request.SerializeToString()
    if probe.method not in STREAMS:
        return await unary(server, probe.method, data, observer)
    if probe.method == "PlayMatch":
        return await _answer_of_play(server, data, observer)
    call = stream(server, probe.method, data, observer)
    answer = await next_of(call)
    await hang_up(call, server)
    return answer


async def _answer_of_play(server: Server, data: bytes, observer: Audience) -> bytes:
    method: StreamStreamMultiCallable[bytes, bytes] = server.channel.stream_stream(SERVICE + "PlayMatch")
    call = method(metadata=metadata(observer))
    await call.write(data)
    answer = await next_of(call)
    await hang_up(call, server)
    return answer


def _samples(server: Server) -> Iterator[tuple[str, dict[str, str], float]]:
    for family in server.service._metrics.registry.collect():
        for sample in family.samples:
            if sample.name.startswith(UNTIMED) and not sample.name.endswith("_created"):
                yield sample.name, sample.labels, sample.value


def with_twins(observer: Audience) -> tuple[Course, Plan, list[Course]]:
    """A course, what its observer does, and twins of it with other hands."""
    for seed in range(90_000, 90_100):
        made = trial(seed, observer)
        if made is None:
            continue
        hands = made[0].end.current.hands
        others = [twin for twin in twins(made[0], observer, Random(seed), most=20) if twin.end.current.hands != hands]
        if len(others) >= TWINS_EACH:
            return *made, others[:TWINS_EACH]
    raise AssertionError("no trial has twins")


@pytest.mark.parametrize("observer", OBSERVERS)
async def test_twins_are_the_same_on_the_wire(tmp_path: Path, observer: Audience) -> None:
    """Every message, status, text and trailer of a watch, the last moves and the battery."""
    course, plan, others = with_twins(observer)
    here = await live(tmp_path / "original", course, plan)
    assert len(here) > len(plan.probes)
    for number, twin in enumerate(others):
        assert await live(tmp_path / f"twin {number}", twin, plan) == here


async def test_a_leak_is_seen_on_the_wire(tmp_path: Path) -> None:
    """Negative control: hands in the text of an event."""
    course, plan, others = with_twins(Audience.SPECTATOR)
    with hand_in_an_event():
        here = await live(tmp_path / "original", course, plan)
        there = [await live(tmp_path / f"twin {number}", twin, plan) for number, twin in enumerate(others)]
    assert any(said != here for said in there)
