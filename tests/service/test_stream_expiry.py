"""A stream that is open when its token expires ends at that very instant, with a resume point and a typed status."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any, cast

import pytest
from google.protobuf.message import Message

from engine import events as ev
from engine.clock import SECOND_NS
from engine.view import Audience
from service.matches import token_hash
from service.ports import Credential
from service.rpc import edge, streams
from service.rpc.arrival import Stamped
from service.rpc.auth import TOKEN_LIFE_NS
from service.rpc.edge import Context
from spectacularbid.v1 import match_service_pb2 as pb
from tests.support.handlers import handlers_of
from tests.support.ports import MemoryStore, Process
from tests.support.store import NOON_NS
from tests.support.twins.world import Call, EndedError
from tests.support.virtual_matches import BIRTH, MATCH_ID, log_of, started, state_of, stored
from tests.support.virtual_time import in_virtual_time, settle, virtual_now_ns

TOKEN = "sbs_of-a-viewer"
LEFT_SECONDS = 40
KINDS: dict[str, tuple[Audience, Message, streams.StreamResponse]] = {
    "WatchMatch": (Audience.SEAT_ONE, pb.WatchMatchRequest(match_id=MATCH_ID), pb.WatchMatchResponse),
    "SpectateMatch": (Audience.SPECTATOR, pb.SpectateMatchRequest(match_id=MATCH_ID), pb.SpectateMatchResponse),
    "PlayMatch": (
        Audience.SEAT_ONE,
        pb.PlayMatchRequest(open=pb.PlayMatchOpen(match_id=MATCH_ID)),
        pb.PlayMatchResponse,
    ),
}
METHODS = {"WatchMatch": "watch_match", "SpectateMatch": "spectate_match", "PlayMatch": "play_match"}


def aborted(*, before_noon_ns: int) -> ev.Step:
    """The end of a match that nobody won."""
    return (ev.MatchAborted(ev.AbortReason.LEFT_BEFORE_START, "", NOON_NS - before_noon_ns),)


@dataclass
class Stream(Call):
    """A stream whose client sends the first message and then only listens. `at_ns` is when each message came."""

    first: Any = None
    at_ns: list[int] = field(default_factory=list)

    async def read(self) -> object:
        if self.first is None:
            await asyncio.Event().wait()
        first, self.first = self.first, None
        return first

    async def write(self, data: bytes) -> None:
        self.at_ns.append(virtual_now_ns())
        await super().write(data)


def opened(process: Process, kind: str) -> tuple[Stream, asyncio.Task[None]]:
    """A stream of this kind."""
    audience, request, _ = KINDS[kind]
    hashed = token_hash(TOKEN)
    process.store.credentials[hashed] = Credential(hashed, MATCH_ID, audience)
    stamped = Stamped(process.core.clock.arrival(), request)
    stream = Stream(TOKEN, [], first=stamped)
    # Any: each handler has a request type of its own.
    handler: Any = getattr(handlers_of(process), METHODS[kind])
    call = edge.stream(handler, process.metrics.method("spectacularbid.v1.MatchService", kind))
    return stream, asyncio.ensure_future(call(cast("Any", stamped), cast("Context", stream)))


def over(*, left_seconds: int) -> MemoryStore:
    """A match that ended almost a day ago."""
    return stored(BIRTH, aborted(before_noon_ns=TOKEN_LIFE_NS - left_seconds * SECOND_NS))


@pytest.mark.parametrize("kind", KINDS)
def test_a_stream_ends_when_its_token_expires(kind: str) -> None:
    """Not a moment before; a resume point is its last message, TOKEN_EXPIRED its status."""
    check_expiry(kind)


@in_virtual_time
async def check_expiry(kind: str) -> None:
    """Open it, wait, and look at what was said when."""
    async with Process.running(over(left_seconds=LEFT_SECONDS)) as process:
        stream, task = opened(process, kind)
        with pytest.raises(EndedError):
            await task
        *_, last, status = stream.said
        _, _, response = KINDS[kind]
        assert response.FromString(last).going_away.resume_after_version == 2
        assert b"'UNAUTHENTICATED'" in status
        assert b"TOKEN_EXPIRED" in status
        assert stream.at_ns[-1] == virtual_now_ns()
        assert abs(virtual_now_ns() - LEFT_SECONDS * SECOND_NS) < 1_000


@in_virtual_time
async def test_a_stream_of_a_match_that_goes_on_does_not_end() -> None:
    """And when the match ends the day begins; nothing that waits for it touches the match."""
    async with Process.running(started()) as process:
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(streams, "TOKEN_LIFE_NS", LEFT_SECONDS * SECOND_NS)
            _, task = opened(process, "WatchMatch")
            due_ns = state_of(process).due_ns
            assert due_ns is not None
            await asyncio.sleep((due_ns - NOON_NS) / SECOND_NS + 1)  # nobody moves: a loss on time
            log = log_of(process)
            ended = log[-1][-1]
            versions = len(log)
            assert isinstance(ended, ev.MatchWon)
            await settle()
            assert not task.done()
            with pytest.raises(EndedError):
                await task
            assert NOON_NS + virtual_now_ns() == pytest.approx(ended.at_ns + LEFT_SECONDS * SECOND_NS, abs=1_000)
            assert len(log_of(process)) == versions


@in_virtual_time
async def test_a_timer_that_is_early_by_service_time_is_set_again() -> None:
    """Both run apart: the loop's clock stands while the machine sleeps, service time does not."""
    async with Process.running(over(left_seconds=LEFT_SECONDS)) as process:
        stream, task = opened(process, "WatchMatch")
        await settle()
        late_ns, now_ns = 5 * SECOND_NS, process.core.clock.now_ns
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(process.core.clock, "now_ns", lambda: now_ns() - late_ns)
            with pytest.raises(EndedError):
                await task
        assert virtual_now_ns() == pytest.approx(LEFT_SECONDS * SECOND_NS + late_ns, abs=1_000)
        assert stream.said


@in_virtual_time
async def test_a_stream_that_was_hung_up_leaves_no_timer() -> None:
    """Or every finished match would keep one for a day."""
    async with Process.running(over(left_seconds=LEFT_SECONDS)) as process:
        _, task = opened(process, "WatchMatch")
        await settle()
        scheduled: list[Any] = asyncio.get_running_loop()._scheduled  # type: ignore[attr-defined]
        (timer,) = [handle for handle in scheduled if getattr(handle._callback, "__name__", "") == "_expire_at"]
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert timer.cancelled()
