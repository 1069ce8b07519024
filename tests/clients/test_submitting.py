"""Commands by SubmitCommand: retries, limits, errors, secrets."""

from __future__ import annotations

import asyncio
import logging

import grpc
import pytest

from spectacularbid.client import (
    AlreadyStartedError,
    ClientError,
    CommandIdReusedError,
    ConnectionClosedError,
    Desync,
    InvalidRequestError,
    InviteNotValidError,
    LimitedError,
    NotFoundError,
    PermissionDeniedError,
    Service,
    Settings,
    TooManyCommandsError,
    UnauthenticatedError,
    UnavailableError,
)
from spectacularbid.client.session import MatchSession
from spectacularbid.v1.commands_pb2 import Command, Pass
from spectacularbid.v1.match_service_pb2 import SubmitCommandRequest
from spectacularbid.v1.outcomes_pb2 import REFUSAL_REASON_CAN_PLAY_INSTEAD, CommandOutcome
from tests.clients.build import accepted, refused
from tests.clients.conftest import Recorder
from tests.clients.peer import Matches, StatusError, SubmitScript, silence

Code = grpc.StatusCode
PASS = Command(pass_turn=Pass())


def failing(failure: StatusError) -> SubmitScript:
    async def script(_: SubmitCommandRequest) -> CommandOutcome:
        raise failure

    return script


async def accepting(request: SubmitCommandRequest) -> CommandOutcome:
    return accepted(request.command_id, 2)


@pytest.mark.parametrize(
    "code", [Code.UNAVAILABLE, Code.INTERNAL, Code.UNKNOWN, Code.DEADLINE_EXCEEDED, Code.CANCELLED]
)
async def test_a_command_whose_outcome_is_unknown_is_sent_again_with_the_same_id(
    session: MatchSession, matches: Matches, recorder: Recorder, code: Code
) -> None:
    """The very same request goes out three times, after pauses that double."""
    matches.submit_scripts.extend([failing(StatusError(code)), failing(StatusError(code)), accepting])
    outcome = await session.submit(PASS, expected_version=1)
    assert outcome.accepted.version == 2
    assert [request.command_id for request in matches.submits] == recorder.ids * 3
    assert matches.submits[0] == matches.submits[2]
    assert recorder.pauses == [0.1, 0.2]


async def test_each_command_gets_an_id_of_its_own(session: MatchSession, matches: Matches) -> None:
    """Two commands, two ids."""
    matches.submit_scripts.append(accepting)
    await session.submit(PASS)
    await session.submit(PASS)
    assert len({request.command_id for request in matches.submits}) == 2
    assert not matches.submits[0].HasField("expected_version")


async def test_the_pause_is_no_shorter_than_the_service_wishes(
    session: MatchSession, matches: Matches, recorder: Recorder
) -> None:
    """RetryInfo is honoured, also with a code that is not retried otherwise."""
    matches.submit_scripts.extend(
        [failing(StatusError(Code.RESOURCE_EXHAUSTED, "TOO_MANY_COMMANDS", retry_after_seconds=3)), accepting]
    )
    await session.submit(PASS)
    assert recorder.pauses == [3.0]


@pytest.mark.parametrize("limits", [{"attempts": 4}])
async def test_attempts_are_bounded(session: MatchSession, matches: Matches, recorder: Recorder) -> None:
    """The last failure is the caller's."""
    matches.submit_scripts.append(failing(StatusError(Code.UNAVAILABLE, "TRY_AGAIN")))
    with pytest.raises(UnavailableError) as caught:
        await session.submit(PASS)
    assert caught.value.reason == "TRY_AGAIN"
    assert len(matches.submits) == 4
    assert len(recorder.pauses) == 3


@pytest.mark.parametrize("limits", [{"attempt_seconds": 0.05}])
async def test_an_attempt_without_an_answer_is_given_up_and_repeated(session: MatchSession, matches: Matches) -> None:
    """Each attempt has a deadline of its own."""

    async def silent(_: SubmitCommandRequest) -> CommandOutcome:
        await silence()
        raise AssertionError

    matches.submit_scripts.extend([silent, accepting])
    assert (await session.submit(PASS)).accepted.version == 2
    assert matches.submits[0] == matches.submits[1]


@pytest.mark.parametrize(
    ("failure", "kind"),
    [
        (StatusError(Code.INVALID_ARGUMENT, "MALFORMED_REQUEST"), InvalidRequestError),
        (StatusError(Code.UNAUTHENTICATED, "INVALID_TOKEN"), UnauthenticatedError),
        (StatusError(Code.PERMISSION_DENIED, "NOT_FOR_THIS_TOKEN"), PermissionDeniedError),
        (StatusError(Code.NOT_FOUND), NotFoundError),
        (StatusError(Code.ALREADY_EXISTS, "COMMAND_ID_REUSED"), CommandIdReusedError),
        (StatusError(Code.RESOURCE_EXHAUSTED, "TOO_MANY_COMMANDS"), TooManyCommandsError),
        (StatusError(Code.RESOURCE_EXHAUSTED, "A_REASON_OF_TOMORROW"), LimitedError),
        (StatusError(Code.UNIMPLEMENTED, "A_REASON_OF_TOMORROW"), ClientError),
    ],
    ids=lambda value: getattr(value, "reason", None),
)
async def test_what_repeating_cannot_mend_is_raised_at_once(
    session: MatchSession, matches: Matches, failure: StatusError, kind: type[ClientError]
) -> None:
    """The error's class follows from the reason, or else from the code."""
    matches.submit_scripts.append(failing(failure))
    with pytest.raises(kind) as caught:
        await session.submit(PASS)
    assert type(caught.value) is kind
    assert (caught.value.code, caught.value.reason) == (failure.code, failure.reason)
    assert len(matches.submits) == 1


async def test_the_variables_of_an_error_are_kept(session: MatchSession, matches: Matches) -> None:
    """ErrorInfo's metadata is in `details`."""
    matches.submit_scripts.append(failing(StatusError(Code.NOT_FOUND, "X", details={"error_id": "7"})))
    with pytest.raises(NotFoundError) as caught:
        await session.submit(PASS)
    assert caught.value.details == {"error_id": "7"}


async def test_a_refusal_is_an_outcome(session: MatchSession, matches: Matches) -> None:
    """What the rules do not allow raises nothing."""

    async def refusing(request: SubmitCommandRequest) -> CommandOutcome:
        return refused(request.command_id, 1, REFUSAL_REASON_CAN_PLAY_INSTEAD)

    matches.submit_scripts.append(refusing)
    assert (await session.submit(PASS)).refused.reason == REFUSAL_REASON_CAN_PLAY_INSTEAD


async def test_creating_is_repeated_with_the_same_request_id(
    service: Service, matches: Matches, recorder: Recorder
) -> None:
    """A lost answer makes no second match."""
    matches.create_failures.append(StatusError(Code.UNAVAILABLE))
    session = await service.create_match("Ann", continue_timeout_seconds=5)
    assert [request.request_id for request in matches.creates] == recorder.ids * 2
    assert (session.match_id, session.invite_code) == ("m", "invite")
    assert matches.creates[0].continue_timeout.seconds == 5
    assert not matches.creates[0].HasField("start_timeout")


async def test_joining_and_leaving_have_errors_of_their_own(service: Service) -> None:
    """A wrong invite code; leaving too late."""
    with pytest.raises(InviteNotValidError):
        await service.join_match("wrong", "Bob")
    session = await service.join_match("invite", "Bob")
    with pytest.raises(AlreadyStartedError):
        await session.leave()


@pytest.mark.parametrize("limits", [{"attempt_seconds": 5.0}])
async def test_closing_the_connection_ends_a_call_in_words(
    service: Service, session: MatchSession, matches: Matches
) -> None:
    """Not by cancelling whoever waits for it, and without another attempt."""
    is_there = asyncio.Event()

    async def silent(_: SubmitCommandRequest) -> CommandOutcome:
        is_there.set()
        await silence()
        raise AssertionError

    matches.submit_scripts.append(silent)
    waiting = asyncio.ensure_future(session.submit(PASS))
    await is_there.wait()
    await service.close()
    with pytest.raises(ConnectionClosedError):
        await waiting
    assert len(matches.submits) == 1


async def test_a_caller_may_give_up(session: MatchSession, matches: Matches) -> None:
    """Then it is cancelled like anything else."""

    async def silent(_: SubmitCommandRequest) -> CommandOutcome:
        await silence()
        raise AssertionError

    matches.submit_scripts.append(silent)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.02):
            await session.submit(PASS)


async def test_the_view_can_be_had_without_a_stream(session: MatchSession, recorder: Recorder) -> None:
    """Its digest is checked, too."""
    seen = await session.get()
    assert seen.view.public.version == 1
    assert [desync.version for desync in recorder.desyncs] == [1]


def test_a_digest_that_does_not_match_is_logged_unless_it_is_excused(caplog: pytest.LogCaptureFixture) -> None:
    """The hook that is there when nobody brings one; it logs no view."""
    for has_unknown_fields in (True, False):
        Settings().on_desync(Desync(7, b"a", b"b", has_unknown_fields=has_unknown_fields))
    assert caplog.messages == ["view of version 7 does not match its digest"]


async def test_the_token_travels_as_metadata_and_shows_nowhere(
    service: Service, matches: Matches, caplog: pytest.LogCaptureFixture
) -> None:
    """Neither repr nor logs hold it."""
    matches.submit_scripts.append(accepting)
    with caplog.at_level(logging.DEBUG):
        session = await service.create_match("Ann")
        await session.submit(PASS)
    assert matches.authorizations == ["Bearer secret-one"]
    shown = f"{session!r} {session.token} {session.token!r} {session.spectator_token!r} {vars(session)}"
    assert "secret" not in shown
    assert "secret" not in caplog.text
