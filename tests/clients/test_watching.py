"""Watching by WatchMatch: resuming, giving up, tolerating what is new."""

from __future__ import annotations

import grpc
import pytest

from spectacularbid.client import ClientError, Connection, Service, StreamReplacedError, Token, UnavailableError
from spectacularbid.client.session import MatchSession
from spectacularbid.v1 import match_service_pb2 as ms
from spectacularbid.v1.views_pb2 import MatchView
from tests.clients.build import update, view, won
from tests.clients.conftest import Recorder
from tests.clients.peer import Matches, StatusError, Watching, WatchScript, silence

Code = grpc.StatusCode
UNKNOWN_FIELD = b"\xa2\x06\x03new"  # field 100, length-delimited


def saying(*updates: ms.MatchUpdate, then: StatusError | None = None) -> WatchScript:
    """Send updates, then end the stream, with an error if one is given."""

    async def script(watching: Watching) -> None:
        await watching.say(*updates)
        if then is not None:
            raise then

    return script


def leaving(*updates: ms.MatchUpdate, resume_after: int) -> WatchScript:
    """Send updates and say goodbye."""

    async def script(watching: Watching) -> None:
        await watching.say(*updates)
        await watching.send(ms.WatchMatchResponse(going_away=ms.GoingAway(resume_after_version=resume_after)))

    return script


async def versions(session: MatchSession) -> list[int]:
    """The versions of all updates until the result."""
    return [seen.view.public.version async for seen in session.updates()]


def resume_points(matches: Matches) -> list[int]:
    """What each watch asked to resume after."""
    return [watching.request.after_version for watching in matches.watches]


RETRIED = sorted(
    set(Code) - {Code.OK, Code.UNAUTHENTICATED, Code.PERMISSION_DENIED, Code.NOT_FOUND, Code.INVALID_ARGUMENT},
    key=lambda code: code.name,
)


async def test_updates_end_with_the_result(session: MatchSession, matches: Matches) -> None:
    """Whole views in order, and no second stream."""
    matches.watch_scripts.append(saying(update(1), update(2), update(won(3))))
    assert await versions(session) == [1, 2, 3]
    assert resume_points(matches) == [0]


@pytest.mark.parametrize("code", [code for code in RETRIED if code is not Code.OUT_OF_RANGE])
async def test_a_broken_stream_is_resumed_after_the_last_version(
    session: MatchSession, matches: Matches, code: Code, recorder: Recorder
) -> None:
    """Whatever the code, unless trying again is hopeless."""
    matches.watch_scripts.extend([saying(update(4), then=StatusError(code)), saying(update(won(5)))])
    assert await versions(session) == [4, 5]
    assert resume_points(matches) == [0, 4]
    assert recorder.pauses == [0.1]
    assert recorder.connections == [Connection.CONNECTED, Connection.RECONNECTING, Connection.CONNECTED]


@pytest.mark.parametrize("code", [Code.UNAUTHENTICATED, Code.PERMISSION_DENIED, Code.NOT_FOUND, Code.INVALID_ARGUMENT])
async def test_a_hopeless_stream_raises(session: MatchSession, matches: Matches, code: Code) -> None:
    """Once is enough."""
    matches.watch_scripts.append(saying(then=StatusError(code, "WHY")))
    with pytest.raises(ClientError) as caught:
        await versions(session)
    assert (caught.value.code, caught.value.reason) == (code, "WHY")
    assert len(matches.watches) == 1


async def test_a_stream_that_a_newer_one_replaced_is_not_opened_again(session: MatchSession, matches: Matches) -> None:
    """Two clients of one seat would end each other's streams for ever."""
    matches.watch_scripts.append(saying(then=StatusError(Code.RESOURCE_EXHAUSTED, "STREAM_REPLACED")))
    with pytest.raises(StreamReplacedError) as caught:
        await versions(session)
    assert caught.value.is_final
    assert not caught.value.is_retriable
    assert len(matches.watches) == 1


async def test_a_resume_point_in_the_future_starts_again_from_nothing(session: MatchSession, matches: Matches) -> None:
    """OUT_OF_RANGE, as after the service lost its last writes: older versions are welcome again."""
    matches.watch_scripts.extend(
        [
            saying(update(9), then=StatusError(Code.UNAVAILABLE)),
            saying(then=StatusError(Code.OUT_OF_RANGE, "VERSION_IN_THE_FUTURE")),
            saying(update(7), update(won(8))),
        ]
    )
    assert await versions(session) == [9, 7, 8]
    assert resume_points(matches) == [0, 9, 0]


async def test_after_a_goodbye_the_stream_is_resumed_at_once(
    session: MatchSession, matches: Matches, recorder: Recorder
) -> None:
    """No pause, and the resume point that the server named."""
    matches.watch_scripts.extend([leaving(update(3), resume_after=3), saying(update(won(4)))])
    assert await versions(session) == [3, 4]
    assert resume_points(matches) == [0, 3]
    assert recorder.pauses == []


async def test_goodbyes_in_a_row_do_not_make_a_busy_loop(
    session: MatchSession, matches: Matches, recorder: Recorder
) -> None:
    """A server that drains for a while keeps saying goodbye; only the first one is followed at once."""
    goodbye = leaving(update(3), resume_after=3)
    matches.watch_scripts.extend([goodbye, goodbye, goodbye, saying(update(won(4)))])
    assert await versions(session) == [3, 3, 3, 4]
    assert recorder.pauses == [0.2, 0.4]


@pytest.mark.parametrize("limits", [{"silence_seconds": 0.05}])
async def test_a_silent_stream_counts_as_dead(session: MatchSession, matches: Matches) -> None:
    """Neither an update nor a heartbeat came in time."""

    async def falling_silent(watching: Watching) -> None:
        await watching.say(update(1))
        await silence()

    matches.watch_scripts.extend([falling_silent, saying(update(won(2)))])
    assert await versions(session) == [1, 2]


async def test_the_limit_of_silence_is_two_heartbeats(recorder: Recorder) -> None:
    """30 s, as the contract has it."""
    assert recorder.settings().limits.silence_seconds == 30


async def test_heartbeats_and_messages_of_tomorrow_pass_unseen(
    session: MatchSession, matches: Matches, recorder: Recorder
) -> None:
    """An unknown kind of message is no reason to stop; a second message makes the next pause a short one again."""

    async def beating(watching: Watching) -> None:
        await watching.say(update(1))
        await watching.send(ms.WatchMatchResponse(heartbeat=ms.Heartbeat(version=1)))
        await watching.send(ms.WatchMatchResponse.FromString(UNKNOWN_FIELD))
        raise StatusError(Code.UNAVAILABLE)

    matches.watch_scripts.extend([beating, beating, saying(update(won(2)))])
    assert await versions(session) == [1, 1, 2]
    assert recorder.pauses == [0.1, 0.1]


async def test_versions_never_go_back(session: MatchSession, matches: Matches) -> None:
    """A stale replica's older view is not shown."""
    matches.watch_scripts.extend(
        [saying(update(5), then=StatusError(Code.UNAVAILABLE)), saying(update(4), update(5), update(won(6)))]
    )
    assert await versions(session) == [5, 5, 6]


@pytest.mark.parametrize("limits", [{"stream_attempts": 6}])
async def test_pauses_double_up_to_a_cap_and_end(session: MatchSession, matches: Matches, recorder: Recorder) -> None:
    """Without a sign of life the client gives up in the end."""
    matches.watch_scripts.append(saying(then=StatusError(Code.UNAVAILABLE)))
    with pytest.raises(UnavailableError):
        await versions(session)
    assert recorder.pauses == [0.1, 0.2, 0.4, 0.8, 1.6, 2.0]


async def test_a_digest_that_does_not_match_warns_and_stops_nothing(
    session: MatchSession, matches: Matches, recorder: Recorder
) -> None:
    """The hook hears of it; the view is shown all the same."""
    matches.watch_scripts.append(saying(update(1, digest=b"wrong..."), update(2, digest=b""), update(won(3))))
    assert await versions(session) == [1, 2, 3]
    (desync,) = recorder.desyncs
    assert (desync.version, desync.expected, desync.has_unknown_fields) == (1, b"wrong...", False)


async def test_a_newer_view_with_unknown_fields_is_shown_and_its_digest_excused(
    session: MatchSession, matches: Matches, recorder: Recorder
) -> None:
    """The unknown field comes first in the bytes, so that serializing again gives others."""
    newer = MatchView.FromString(UNKNOWN_FIELD + won(2).SerializeToString())
    matches.watch_scripts.append(saying(update(newer, digest=b"as sent.")))
    assert await versions(session) == [2]
    assert [desync.has_unknown_fields for desync in recorder.desyncs] == [True]


async def test_a_spectator_watches_with_a_token_of_its_own(service: Service, matches: Matches) -> None:
    """`watch_only` sends the spectator's token."""
    matches.watch_scripts.append(saying(update(won(1))))
    watching = service.watch_only("m", Token("secret-spectator"))
    assert [seen.view async for seen in watching.updates()] == [won(1)]
    assert matches.authorizations == ["Bearer secret-spectator"]


async def test_a_watch_may_begin_after_a_known_version(session: MatchSession, matches: Matches) -> None:
    """So that the first update has the events since."""
    matches.watch_scripts.append(saying(update(view(7)), update(won(8))))
    assert [seen.view.public.version async for seen in session.updates(after_version=6)] == [7, 8]
    assert resume_points(matches) == [6]
