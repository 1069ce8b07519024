"""The last look at what leaves: a message for somebody else is held back, counted and logged without its content."""

from __future__ import annotations

from collections.abc import Awaitable
from pathlib import Path

import grpc
import pytest
import structlog

from engine.state import MatchState
from engine.view import Audience
from service.metrics import Metrics
from service.rpc.outbound import Guard, ProjectionError, own_seat_number
from service.rpc.render import RenderedView, Renderer, Version
from tests.support.players import (
    RESIGN,
    START,
    Table,
    Viewer,
    hand_of,
    in_stream,
    is_over,
    new_table,
    read_play,
    read_update,
)
from tests.support.rejections import rejection
from tests.support.server import served
from tests.support.twins.script import carry_out, random_script

VIOLATIONS = "specbid_projection_violations_total"
SEAT_NUMBERS = {Audience.SPECTATOR: 0, Audience.SEAT_ONE: 1, Audience.SEAT_TWO: 2}


def state_in_play(seed: int = 3) -> MatchState:
    """Some state with hands."""
    course = carry_out(random_script(seed))
    assert course is not None
    assert course.end.round is not None
    return course.end


def view_of(match_id: str, audience: Audience) -> RenderedView:
    """Some view with hands, where the audience may see any."""
    return Renderer().version(match_id, state_in_play()).view(audience)


def released(guard: Guard, view: RenderedView) -> bool:
    """Whether the guard lets a view out."""
    try:
        return guard.release((b"x", view)) == b"x"
    except ProjectionError:
        return False


@pytest.mark.parametrize("made_for", Audience)
@pytest.mark.parametrize("sent_to", SEAT_NUMBERS)
def test_a_view_leaves_to_its_own_audience_only(made_for: Audience, sent_to: Audience) -> None:
    """Every pair; each violation is counted."""
    metrics = Metrics()
    view = view_of("m", made_for)
    assert released(Guard("m", sent_to, metrics), view) is (made_for is sent_to)
    assert metrics.registry.get_sample_value(VIOLATIONS) == (made_for is not sent_to)


@pytest.mark.parametrize("sent_to", SEAT_NUMBERS)
@pytest.mark.parametrize("content", SEAT_NUMBERS)
def test_a_wrong_tag_does_not_help(sent_to: Audience, content: Audience) -> None:
    """The hand is looked for in the bytes themselves."""
    view = view_of("m", content)._replace(audience=sent_to)
    assert released(Guard("m", sent_to, Metrics()), view) is (content is sent_to)


def test_a_view_of_another_match_does_not_leave() -> None:
    """Whatever its audience."""
    view = view_of("another", Audience.SEAT_ONE)
    assert not released(Guard("m", Audience.SEAT_ONE, Metrics()), view)


@pytest.mark.parametrize("seed", range(20))
def test_the_owner_is_read_from_the_bytes(seed: int) -> None:
    """Short and long views, before and after the deal."""
    course = carry_out(random_script(seed))
    assert course is not None
    for state in course.states:
        for audience, number in SEAT_NUMBERS.items():
            assert own_seat_number(Renderer().version("m" * 26, state).view(audience).data) == number


@pytest.mark.parametrize(
    "data", [b"", b"\x0a", b"\x0a\x05ab", b"\x12\x02\x08\x01", b"\x0a\x00\x12", b"\x0a\x00\x1a\x00"]
)
def test_other_bytes_belong_to_nobody(data: bytes) -> None:
    """Fail closed."""
    assert own_seat_number(data) == -1


def mix_up(monkeypatch: pytest.MonkeyPatch, wrong: Audience) -> None:
    """A renderer whose cache gives everybody the view of one audience."""
    original = Version.view

    def view(self: Version, audience: Audience) -> RenderedView:
        del audience
        return original(self, wrong)

    monkeypatch.setattr(Version, "view", view)


async def test_a_mixed_up_cache_reaches_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """INTERNAL with an opaque id on every way out, streams end, and the log has the id and no content."""
    async with served(tmp_path / "matches.sqlite3") as server:
        table = await new_table(server.channel, start=True)
        hand = hand_of(await table.one.view())
        mix_up(monkeypatch, Audience.SEAT_ONE)
        with structlog.testing.capture_logs() as log:
            answers = [await rejection(call) for call in every_way_out(table)]
        assert [(answer.code, answer.reason) for answer in answers] == [(grpc.StatusCode.INTERNAL, "INTERNAL")] * 4
        assert server.sample(VIOLATIONS) == len(answers)
    assert [(line["event"], set(line)) for line in log] == [
        ("projection_violation", {"event", "log_level", "error_id", "match_id"})
    ] * 4
    assert not any(tile in repr(log) for tile in hand)


def every_way_out(table: Table) -> list[Awaitable[object]]:
    """A read, a command and both streams, to those who must not get seat ONE's view."""
    return [table.two.view(), table.two.submit(START), first(table.two), first(table.spectator)]


async def first(viewer: Viewer) -> object:
    """What a stream says first."""
    async with viewer.watching() as call:
        return await read_update(call)


async def test_a_violation_ends_a_play_stream(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not only the answer: what follows could be as wrong. The command counts all the same."""
    async with served(tmp_path / "matches.sqlite3") as server:
        table = await new_table(server.channel, start=True)
        async with table.two.playing() as call:
            await read_play(call)
            mix_up(monkeypatch, Audience.SEAT_ONE)
            await call.write(in_stream(RESIGN))
            answer = await rejection(read_play(call))
        monkeypatch.undo()
        assert (answer.code, answer.reason) == (grpc.StatusCode.INTERNAL, "INTERNAL")
        assert is_over(await table.two.view())
