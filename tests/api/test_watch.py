"""Watching a match: the view at once, then the latest after every change, never back."""

import asyncio
import hashlib

import pytest

from service.rpc import streams
from spectacularbid.v1 import match_service_pb2 as pb
from spectacularbid.v1.events_pb2 import Event
from tests.support.players import (
    RESIGN,
    START,
    Table,
    Viewer,
    is_over,
    legal_commands,
    new_table,
    play_until,
    read_update,
)
from tests.support.server import Server


def kinds(events: list[Event]) -> list[str | None]:
    """What happened, by name."""
    return [event.WhichOneof("event") for event in events]


async def test_a_watch_begins_with_the_whole_view(table: Table) -> None:
    """At once, and without events when the client has nothing."""
    for viewer in (*table.seats, table.spectator):
        async with viewer.watching() as call:
            update = await read_update(call)
            assert update.view == await viewer.view()
            assert not update.events
            assert not update.events_complete


async def test_every_change_comes_with_its_events(server: Server) -> None:
    """Those of the versions since the last message, and whether any is missing."""
    table = await new_table(server.channel)
    async with table.two.watching() as call:
        await read_update(call)
        for player in table.seats:
            await player.do(START)
            update = await read_update(call)
            assert update.events_complete
            if player is table.one:
                assert kinds(list(update.events)) == ["player_ready"]
    assert kinds(list(update.events)) == ["player_ready", "round_dealt", "clock_started"]


async def test_a_watch_that_resumes_gets_what_it_missed(table: Table) -> None:
    """Fault 104: the events of every version since, in order."""
    version = (await table.one.view()).public.version
    logs = []
    for _ in range(3):
        view = await table.on_turn_view()
        outcome = await table.seat(view.own.seat).submit(legal_commands(view)[0])
        logs += list(outcome.accepted.events)
    async with table.spectator.watching(version) as call:
        update = await read_update(call)
    assert update.events_complete
    assert list(update.events) == logs
    assert update.view.public.version == version + 3


async def test_a_watch_that_has_the_latest_view_gets_it_all_the_same(table: Table) -> None:
    """So that it knows at once that it is connected."""
    version = (await table.one.view()).public.version
    async with table.one.watching(version) as call:
        update = await read_update(call)
    assert (update.view.public.version, list(update.events), update.events_complete) == (version, [], True)


async def test_a_watch_far_behind_is_told_that_events_are_missing(server: Server) -> None:
    """The view is whole; the events are the last ones."""
    table = await new_table(server.channel)
    end = await play_until(table, lambda view: view.public.version > 80)
    async with table.one.watching(1) as call:
        update = await read_update(call)
    assert update.view.public == end.public
    assert update.events
    assert not update.events_complete


async def test_versions_never_go_back_and_events_are_never_shown_twice(server: Server) -> None:
    """Many watchers, one of them after the other slow."""
    table = await new_table(server.channel)

    async def follow(viewer: Viewer, pause: int) -> tuple[list[int], int]:
        versions, plays = [], 0
        async with viewer.watching() as call:
            while True:
                update = await read_update(call)
                versions.append(update.view.public.version)
                plays += kinds(list(update.events)).count("tile_played")
                if is_over(update.view):
                    return versions, plays
                for _ in range(pause):
                    await asyncio.sleep(0)

    async with asyncio.TaskGroup() as group:
        followers = [
            group.create_task(follow(viewer, pause))
            for viewer in (table.one, table.two, table.spectator)
            for pause in (0, 20)
        ]
        await play_until(table, lambda view: view.public.round_number == 2)
        await table.one.do(RESIGN)
    plays = {follower.result()[1] for follower in followers}
    assert len(plays) == 1
    for follower in followers:
        versions = follower.result()[0]
        assert versions == sorted(versions)


async def test_the_digest_is_that_of_the_view_as_it_came(table: Table) -> None:
    """SHA-256, first eight bytes: a client can tell that it has lost its place."""
    for viewer in (*table.seats, table.spectator):
        updates = [await viewer.update()]
        async with viewer.watching() as call:
            updates.append(await read_update(call))
        for update in updates:
            assert update.view_digest == hashlib.sha256(update.view.SerializeToString()).digest()[:8]
    outcome = await table.one.submit(START)
    assert outcome.view_digest == hashlib.sha256(outcome.view.SerializeToString()).digest()[:8]


async def test_presence_shows_who_has_a_stream_open(table: Table) -> None:
    """Everybody hears of it; spectators do not count."""
    async with table.one.watching() as one:
        assert presence(await read_update(one)) == (True, False)
        async with table.spectator.watching() as spectator:
            assert presence(await read_update(spectator)) == (True, False)
            async with table.two.playing(), table.two.watching():
                assert presence(await read_update(one)) == (True, True)
                assert presence(await read_update(spectator)) == (True, True)
            assert presence(await read_update(one)) == (True, False)
        assert presence(await table.one.update()) == (True, False)
    assert (await new_update(table, (False, False))).view == await table.spectator.view()


def presence(update: pb.MatchUpdate) -> tuple[bool, bool]:
    """Who is there."""
    return update.presence.seat_one, update.presence.seat_two


async def new_update(table: Table, wished: tuple[bool, bool]) -> pb.MatchUpdate:
    """The first update that shows this presence, as a spectator sees it."""
    async with table.spectator.watching() as call, asyncio.timeout(10):
        while presence(update := await read_update(call)) != wished:
            pass
        return update


async def test_a_player_who_hangs_up_and_comes_back_changes_no_clock(table: Table) -> None:
    """Faults 61 and 62: presence is not part of the match."""
    before = await table.spectator.view()
    for player in table.seats:
        async with player.watching() as call:
            await read_update(call)
    assert await table.spectator.view() == before


async def test_a_silent_match_gives_signs_of_life(monkeypatch: pytest.MonkeyPatch, table: Table) -> None:
    """With the version last sent and the service's time, on both kinds of streams."""
    monkeypatch.setattr(streams, "HEARTBEAT_SECONDS", 0.04)
    monkeypatch.setattr(streams, "LOOK_SECONDS", 0.02)
    async with table.spectator.watching() as watch, table.one.playing() as play:
        update = await read_update(watch)
        for call in (watch, play):
            beats: list[pb.Heartbeat] = []
            async with asyncio.timeout(10):
                while len(beats) < 2:
                    response = await call.read()
                    assert isinstance(response, pb.WatchMatchResponse | pb.PlayMatchResponse)
                    if response.WhichOneof("message") == "heartbeat":
                        beats.append(response.heartbeat)
            assert {beat.version for beat in beats} == {update.view.public.version}
            assert update.service_now_unix_ns < beats[0].service_now_unix_ns < beats[1].service_now_unix_ns
