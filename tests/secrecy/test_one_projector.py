"""Whatever way a view takes, it is the same bytes: first answer, read, stream, resume, outcome, restart, cold cache."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path

import pytest

from engine.view import Audience
from service.rpc.render import Renderer
from spectacularbid.v1 import match_service_pb2 as pb
from spectacularbid.v1 import views_pb2
from tests.support.players import (
    START,
    Situation,
    Table,
    choose,
    in_stream,
    new_id,
    new_table,
    play_until,
    read_play,
    read_update,
)
from tests.support.server import ROOT, served
from tests.support.twins.script import carry_out, random_script

VIEWS = {"MatchView", "PublicView", "OwnView", "SpectatorView", "HandTile", "LegalAction"}
SITUATIONS: dict[str, Situation] = {
    "an opening": lambda view: view.public.phase == views_pb2.PHASE_OPENING,
    "a turn": lambda view: view.public.boneyard_size < 13,
    "a settled round": lambda view: view.public.phase == views_pb2.PHASE_SETTLED,
    "an auction": lambda view: view.public.phase == views_pb2.PHASE_BIDDING,
    "the end": lambda view: view.public.HasField("result"),
}


async def all_ways(table: Table, seat: int) -> set[bytes]:
    """The view of a seat as a read, a fresh stream, resumed ones, a play stream and a refused command bring it."""
    viewer = table.seat(seat) if seat else table.spectator
    first = (await viewer.view()).SerializeToString()
    version = (await viewer.view()).public.version
    seen = {first}
    for after_version in (0, 1, max(1, version - 1), version):
        async with viewer.watching(after_version) as call:
            seen.add((await read_update(call)).view.SerializeToString())
    if seat:
        seen.add((await viewer.submit(START)).view.SerializeToString())
        async with viewer.playing() as play:
            seen.add((await read_play(play)).update.view.SerializeToString())
            await play.write(in_stream(START))
            seen.add((await read_play(play)).outcome.view.SerializeToString())
    return seen


@pytest.mark.parametrize("name", SITUATIONS)
async def test_a_view_is_the_same_on_every_way_and_after_a_restart(tmp_path: Path, name: str) -> None:
    """Channels 2 and 26; the second server knows nothing but the database."""
    database = tmp_path / "matches.sqlite3"
    async with served(database) as server:
        table = await new_table(server.channel, start=True)
        await play_until(table, SITUATIONS[name])
        before = [await all_ways(table, seat) for seat in range(3)]
        assert [len(views) for views in before] == [1, 1, 1]
    async with served(database) as server:
        after = [await all_ways(table.at(server.channel), seat) for seat in range(3)]
    assert [without_clock(views) for views in after] == [without_clock(views) for views in before]


def without_clock(views: set[bytes]) -> set[bytes]:
    """Views without what a planned stop changes: version, clock and bank."""
    plain = set()
    for data in views:
        view = views_pb2.MatchView.FromString(data)
        view.public.ClearField("version")
        view.public.ClearField("clock")
        plain.add(view.SerializeToString())
    return plain


async def test_an_outcome_and_what_others_get_of_it_are_the_view_that_can_be_read(tmp_path: Path) -> None:
    """The sender's view comes with the outcome, the others' with their streams."""
    async with served(tmp_path / "matches.sqlite3") as server:
        table = await new_table(server.channel, start=True)
        for _ in range(12):
            view = await table.on_turn_view()
            if not view.own.legal_actions:
                break
            mover, other = table.seat(view.own.seat), table.seat(3 - view.own.seat)
            async with other.watching() as call, table.spectator.watching() as spectating:
                await read_update(call)
                await read_update(spectating)
                outcome = await mover.submit(choose(table.chance, view))
                pushed = [await read_update(call), await read_update(spectating)]
            assert outcome.view == await mover.view()
            assert [update.view for update in pushed] == [await other.view(), await table.spectator.view()]


async def test_the_first_answers_are_the_view_that_can_be_read(tmp_path: Path) -> None:
    """Of CreateMatch and JoinMatch, also repeated."""
    async with served(tmp_path / "matches.sqlite3") as server:
        table = await new_table(server.channel)
        create = pb.CreateMatchRequest(request_id=new_id(), mode=views_pb2.MATCH_MODE_ONLINE)
        created = [await table.one.stub.CreateMatch(create) for _ in range(2)]
        read = pb.GetMatchRequest(match_id=created[0].match_id)
        got = await table.one.stub.GetMatch(read, metadata=(("authorization", f"Bearer {created[0].token}"),))
        assert [answer.update.view for answer in created] == [got.update.view] * 2
        join = pb.JoinMatchRequest(request_id=new_id(), invite_code=created[0].invite_code)
        joined = [await table.one.stub.JoinMatch(join) for _ in range(2)]
        got = await table.one.stub.GetMatch(read, metadata=(("authorization", f"Bearer {joined[0].token}"),))
        assert [answer.update.view for answer in joined] == [got.update.view] * 2


@pytest.mark.parametrize("audience", Audience)
def test_a_cold_cache_renders_the_same(audience: Audience) -> None:
    """Whatever was rendered before, in whatever order."""
    course = carry_out(random_script(4))
    assert course is not None
    warm = Renderer()
    for state in course.states:
        for other in Audience:
            warm.version("m", state).view(other)
        assert warm.version("m", state).view(audience) == Renderer().version("m", state).view(audience)


def test_nobody_else_makes_views() -> None:
    """No other module of the service builds a message of a view, or asks the engine for one."""
    makers = {path.name for path in (ROOT / "service").rglob("*.py") if _makes_views(path)}
    assert makers == {"own_view.py", "public_view.py", "render.py"}


def _makes_views(path: Path) -> bool:
    calls = (node.func for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call))
    named: Callable[[ast.expr], str] = lambda func: getattr(func, "attr", getattr(func, "id", ""))  # noqa: E731
    return any(named(func) in VIEWS | {"public_view", "own_view"} for func in calls)
