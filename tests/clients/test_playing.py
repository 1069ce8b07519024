"""Playing by PlayMatch: outcomes by id, views from outcomes, mending a broken stream."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

import grpc
import pytest

from spectacularbid.client import CommandIdReusedError, ConnectionClosedError, UnauthenticatedError, UnavailableError
from spectacularbid.client.play import PlaySession
from spectacularbid.client.session import MatchSession
from spectacularbid.v1 import match_service_pb2 as ms
from spectacularbid.v1.commands_pb2 import Command, DrawTile, Pass
from spectacularbid.v1.events_pb2 import Event, Passed, TileDrawn
from spectacularbid.v1.outcomes_pb2 import REFUSAL_REASON_TIME_EXPIRED, CommandOutcome
from tests.clients.build import ONE, TWO, accepted, refused, update, view, won
from tests.clients.conftest import Recorder
from tests.clients.peer import Matches, Playing, StatusError, silence

Code = grpc.StatusCode
PASS = Command(pass_turn=Pass())
DRAW = Command(draw_tile=DrawTile())
PASSED = Event(passed=Passed(seat=ONE))
DRAWN = Event(tile_drawn=TileDrawn(seat=TWO))


async def seen(table: PlaySession, count: int) -> list[tuple[int, list[Event], bool]]:
    """Version, events and completeness of so many updates."""
    async with aclosing(table.updates()) as updates:
        taken = [await anext(updates) for _ in range(count)]
    return [(each.view.public.version, list(each.events), each.events_complete) for each in taken]


async def test_outcomes_find_their_commands_by_id(session: MatchSession, matches: Matches, recorder: Recorder) -> None:
    """Answered in the other order."""

    async def script(playing: Playing) -> None:
        first, second = await playing.command(), await playing.command()
        await playing.answer(accepted(second.command_id, 2))
        await playing.answer(accepted(first.command_id, 3))
        await silence()

    matches.play_scripts.append(script)
    async with session.play() as table:
        outcomes = await asyncio.gather(table.submit(PASS, expected_version=1), table.submit(DRAW))
    assert [outcome.command_id for outcome in outcomes] == recorder.ids
    assert [outcome.accepted.version for outcome in outcomes] == [3, 2]
    (playing,) = matches.plays
    assert [command.command for command in playing.commands] == [PASS, DRAW]
    assert [command.HasField("expected_version") for command in playing.commands] == [True, False]


async def test_the_view_of_an_outcome_comes_as_an_update(session: MatchSession, matches: Matches) -> None:
    """Its version is not sent again, so that nothing may be lost; a following update continues."""

    async def script(playing: Playing) -> None:
        await playing.say(update(1))
        command = await playing.command()
        await playing.answer(accepted(command.command_id, 2, PASSED))
        await playing.command()
        await playing.say(update(won(3)))
        await silence()

    matches.play_scripts.append(script)
    async with session.play() as table:
        assert await seen(table, 1) == [(1, [], True)]
        await table.submit(PASS)
        assert await seen(table, 1) == [(2, [PASSED], True)]
        waiting = asyncio.ensure_future(table.submit(PASS))
        assert await seen(table, 1) == [(3, [], True)]
        waiting.cancel()


async def test_a_late_command_shows_the_lost_match(session: MatchSession, matches: Matches) -> None:
    """A refusal for the time brings a newer view along; its events are not known to be complete."""

    async def script(playing: Playing) -> None:
        await playing.say(update(1))
        command = await playing.command()
        await playing.answer(refused(command.command_id, won(2, TWO), REFUSAL_REASON_TIME_EXPIRED))
        await silence()

    matches.play_scripts.append(script)
    async with session.play() as table:
        await table.submit(PASS)
        assert await seen(table, 1) == [(2, [], False)]


async def test_an_unread_update_is_joined_with_the_next(session: MatchSession, matches: Matches) -> None:
    """A slow reader gets the latest view with the events of both."""

    async def script(playing: Playing) -> None:
        await playing.say(update(1), update(2, DRAWN))
        command = await playing.command()
        await playing.answer(accepted(command.command_id, 3, PASSED))
        await silence()

    matches.play_scripts.append(script)
    async with session.play() as table:
        await table.submit(PASS)
        assert await seen(table, 1) == [(3, [DRAWN, PASSED], True)]


@pytest.mark.parametrize("goodbye", [False, True])
async def test_a_new_stream_resumes_and_sends_unanswered_commands_again(
    session: MatchSession, matches: Matches, *, goodbye: bool
) -> None:
    """Same id, same body, after the last version; whether the stream broke or the server said goodbye."""

    async def breaking(playing: Playing) -> None:
        await playing.say(update(4))
        await playing.command()
        if not goodbye:
            raise StatusError(Code.UNAVAILABLE)
        await playing.send(ms.PlayMatchResponse(going_away=ms.GoingAway(resume_after_version=4)))

    async def mended(playing: Playing) -> None:
        command = await playing.command()
        await playing.answer(accepted(command.command_id, 5))
        await silence()

    matches.play_scripts.extend([breaking, mended])
    async with session.play() as table:
        outcome = await table.submit(PASS, expected_version=4)
    assert outcome.accepted.version == 5
    first, second = matches.plays
    assert first.commands == second.commands
    assert (first.opening.after_version, second.opening.after_version) == (0, 4)


@pytest.mark.parametrize("limits", [{"silence_seconds": 0.05}])
async def test_a_silent_stream_is_opened_again(session: MatchSession, matches: Matches) -> None:
    """Two heartbeats were missed."""

    async def speaking(playing: Playing) -> None:
        await playing.say(update(won(2)))
        await silence()

    matches.play_scripts.extend([lambda _: silence(), speaking])
    async with session.play() as table:
        assert await seen(table, 1) == [(2, [], True)]
    assert len(matches.plays) >= 2


@pytest.mark.parametrize("limits", [{"attempt_seconds": 0.05}])
async def test_a_stream_that_owes_an_answer_is_given_up(session: MatchSession, matches: Matches) -> None:
    """The command goes out again on another one, with its id."""

    async def swallowing(playing: Playing) -> None:
        await playing.say(update(1))
        await playing.command()
        await silence()

    async def answering(playing: Playing) -> None:
        command = await playing.command()
        await playing.answer(accepted(command.command_id, 2))
        await silence()

    matches.play_scripts.extend([swallowing, answering])
    async with session.play() as table:
        assert (await table.submit(PASS)).accepted.version == 2
    sent = [command for playing in matches.plays for command in playing.commands]
    assert len(sent) >= 2
    assert all(command == sent[0] for command in sent)


@pytest.mark.parametrize("limits", [{"attempt_seconds": 0.02, "attempts": 3}])
async def test_a_command_is_given_up_after_all_attempts(
    session: MatchSession, matches: Matches, recorder: Recorder
) -> None:
    """The outcome stays unknown, and the caller hears so."""
    matches.play_scripts.append(lambda _: silence())
    async with session.play() as table:
        with pytest.raises(UnavailableError):
            await table.submit(PASS)
    assert len(recorder.ids) == 1


def error_for(command: ms.PlayMatchCommand, code: Code, reason: str, retry_seconds: int | None) -> ms.PlayMatchResponse:
    """The answer to a command that got an error."""
    error = ms.CommandError(command_id=command.command_id, code=code.value[0], reason=reason, message="no")
    if retry_seconds is not None:
        error.retry_after.seconds = retry_seconds
    return ms.PlayMatchResponse(error=error)


async def test_a_command_error_with_a_pause_is_tried_again_on_the_same_stream(
    session: MatchSession, matches: Matches, recorder: Recorder
) -> None:
    """Same id, after the pause that the service wishes."""

    async def script(playing: Playing) -> None:
        await playing.send(error_for(await playing.command(), Code.UNAVAILABLE, "TRY_AGAIN", 1))
        await playing.answer(accepted((await playing.command()).command_id, 2))
        await silence()

    matches.play_scripts.append(script)
    async with session.play() as table:
        await table.submit(PASS)
    (playing,) = matches.plays
    assert playing.commands[0] == playing.commands[1]
    assert recorder.pauses == [1.0]


@pytest.mark.parametrize(
    ("code", "reason", "kind"),
    [
        (Code.ALREADY_EXISTS, "COMMAND_ID_REUSED", CommandIdReusedError),
        (Code.UNAVAILABLE, "X", UnavailableError),
    ],
)
async def test_a_command_error_without_a_pause_is_raised_and_the_stream_goes_on(
    session: MatchSession, matches: Matches, code: Code, reason: str, kind: type[Exception]
) -> None:
    """Not at all means not at all, whatever the code."""

    async def script(playing: Playing) -> None:
        await playing.send(error_for(await playing.command(), code, reason, None))
        await playing.answer(accepted((await playing.command()).command_id, 2))
        await silence()

    matches.play_scripts.append(script)
    async with session.play() as table:
        with pytest.raises(kind):
            await table.submit(PASS)
        assert (await table.submit(DRAW)).accepted.version == 2


async def test_a_bad_token_reaches_everyone_who_waits(session: MatchSession, matches: Matches) -> None:
    """Readers, those who submit, and those who submit afterwards."""

    async def refusing(playing: Playing) -> None:
        await playing.command()
        raise StatusError(Code.UNAUTHENTICATED, "INVALID_TOKEN")

    matches.play_scripts.append(refusing)
    async with session.play() as table:
        with pytest.raises(UnauthenticatedError):
            await table.submit(PASS)
        with pytest.raises(UnauthenticatedError):
            await seen(table, 1)
        with pytest.raises(UnauthenticatedError):
            await table.submit(PASS)


async def test_leaving_the_session_ends_what_waits(session: MatchSession, matches: Matches) -> None:
    """A command without an answer fails in words, not by cancellation."""
    is_there = asyncio.Event()

    async def script(playing: Playing) -> None:
        await playing.command()
        is_there.set()
        await silence()

    matches.play_scripts.append(script)
    async with session.play() as table:
        waiting = asyncio.ensure_future(table.submit(PASS))
        await is_there.wait()
    with pytest.raises(ConnectionClosedError):
        await waiting


async def test_an_answer_that_nobody_waits_for_is_ignored(session: MatchSession, matches: Matches) -> None:
    """Such as one to a command that was given up, or a kind of outcome of tomorrow."""

    async def script(playing: Playing) -> None:
        await playing.answer(CommandOutcome(command_id="nobody's", view=view(1)))
        await playing.send(ms.PlayMatchResponse(heartbeat=ms.Heartbeat(version=1)))
        await playing.send(ms.PlayMatchResponse.FromString(b"\xa2\x06\x03new"))
        await playing.say(update(won(2)))
        await silence()

    matches.play_scripts.append(script)
    async with session.play() as table:
        last = [each async for each in table.updates()][-1]
    assert last.view == won(2)
