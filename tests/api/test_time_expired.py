"""A loss on time as clients see it: a match whose clock is nearly out, on the real service and its real clock."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from engine.view import Audience
from spectacularbid.v1.events_pb2 import WIN_REASON_TIME
from spectacularbid.v1.match_service_pb2_grpc import MatchServiceStub
from spectacularbid.v1.outcomes_pb2 import REFUSAL_REASON_MATCH_OVER, REFUSAL_REASON_TIME_EXPIRED
from tests.support.late_match import MATCH_ID, TOKENS, LateMatch, write_late_match
from tests.support.players import Viewer, in_stream, play, read_play, read_update
from tests.support.server import Server, served

DEADLINE_SECONDS = 1.5
PROVABLY_LATE_SECONDS = 0.5
"""More than a stamp is wide, also on a busy machine."""
PATIENCE_SECONDS = 30


def viewer(server: Server, audience: Audience) -> Viewer:
    """Somebody at the late match."""
    return Viewer(MatchServiceStub(server.channel), MATCH_ID, TOKENS[audience])


def on_turn(server: Server, match: LateMatch) -> Viewer:
    """The player whose clock is running out."""
    return Viewer(MatchServiceStub(server.channel), MATCH_ID, match.token)


@asynccontextmanager
async def late(folder: Path) -> AsyncIterator[tuple[Server, LateMatch]]:
    """A service with a match that will be lost on time in a moment."""
    database = folder / "late.sqlite3"
    match = await write_late_match(database, deadline_in_seconds=DEADLINE_SECONDS)
    async with served(database) as server, asyncio.timeout(PATIENCE_SECONDS):
        yield server, match


async def test_watchers_are_told_of_a_loss_on_time_once(tmp_path: Path) -> None:
    """At the deadline itself, and before anybody asks."""
    async with late(tmp_path) as (server, match), viewer(server, Audience.SPECTATOR).watching() as watch:
        assert (await read_update(watch)).view.public.clock.running.deadline_unix_ns == match.deadline_ns
        update = await read_update(watch)
    public = update.view.public
    assert [event.WhichOneof("event") for event in update.events] == ["clock_stopped", "match_won"]
    assert (public.result.won.reason, public.result.won.at_unix_ns) == (WIN_REASON_TIME, match.deadline_ns)
    assert public.result.rated
    assert public.players[match.seat.value - 1].bank_remaining_ns == 0
    assert public.version == match.version + 1


async def test_a_command_that_comes_too_late_is_refused_as_late_or_after_the_end(tmp_path: Path) -> None:
    """The loss is the deadline's, whoever notices it first; the sentence says what happened."""
    async with late(tmp_path) as (server, match), on_turn(server, match).playing() as stream:
        update = (await read_play(stream)).update
        margin_ns = match.deadline_ns - update.service_now_unix_ns
        await asyncio.sleep(margin_ns / 1e9 + PROVABLY_LATE_SECONDS)
        tile, end = match.command.tile, match.command.end.value
        await stream.write(in_stream(play(f"{tile.low}-{tile.high} {end}")))
        while not (response := await read_play(stream)).HasField("outcome"):
            pass
    refused, view = response.outcome.refused, response.outcome.view
    assert (refused.reason, refused.message) in (
        (REFUSAL_REASON_TIME_EXPIRED, "The command came at or after the deadline; the match is lost on time."),
        (REFUSAL_REASON_MATCH_OVER, "The match is over."),
    )
    assert view.public.result.won.at_unix_ns == match.deadline_ns
    assert view.public.version == match.version + 1
