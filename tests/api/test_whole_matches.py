"""Whole matches over the real port, chosen from nothing but the views."""

import asyncio
import hashlib
from random import Random

import pytest

from spectacularbid.v1.events_pb2 import WIN_REASON_BALANCE
from spectacularbid.v1.match_service_pb2 import MatchUpdate
from spectacularbid.v1.outcomes_pb2 import REFUSAL_REASON_STALE_VERSION
from spectacularbid.v1.views_pb2 import MatchView
from tests.support.players import (
    Viewer,
    choose,
    in_stream,
    is_over,
    new_table,
    play_until,
    read_play,
    read_update,
)
from tests.support.server import Server

SECONDS_PER_MATCH = 60


class Record:
    """What one viewer was shown: versions in order, and the events by the version that they led to."""

    def __init__(self) -> None:
        self.versions: list[int] = []
        self.events: dict[int, bytes] = {}
        self.last = MatchView()

    def add(self, update: MatchUpdate) -> None:
        """A further update, whose view can be written again to the byte."""
        assert update.view_digest == hashlib.sha256(update.view.SerializeToString()).digest()[:8]
        version = update.view.public.version
        if self.versions and update.events_complete and version == self.versions[-1] + 1:
            self.events[version] = b"".join(event.SerializeToString() for event in update.events)
        self.versions.append(version)
        self.last = update.view


async def bot(player: Viewer, chance: Random) -> Record:
    """Plays on one PlayMatch stream until the match is over."""
    record = Record()
    async with player.playing() as call:
        while True:
            response = await read_play(call)
            match response.WhichOneof("message"):
                case "update":
                    record.add(response.update)
                    view = response.update.view
                case "outcome":
                    view = response.outcome.view
                    if response.outcome.HasField("refused"):
                        assert response.outcome.refused.reason == REFUSAL_REASON_STALE_VERSION
                case other:
                    raise AssertionError(other)
            if is_over(view):
                record.last = view
                return record
            if view.own.legal_actions:
                await call.write(in_stream(choose(chance, view), version=view.public.version))


async def watcher(viewer: Viewer) -> Record:
    """Watches until the match is over."""
    record = Record()
    async with viewer.watching() as call:
        while not is_over(record.last):
            record.add(await read_update(call))
    return record


def assert_finished(view: MatchView) -> None:
    """A rated win by balance, all 300 points on one side, no clock running."""
    result = view.public.result
    assert result.won.reason == WIN_REASON_BALANCE
    assert result.rated
    assert [player.balance_points for player in view.public.players][result.won.winner - 1] == 300
    assert view.public.clock.HasField("stopped")
    assert not view.own.legal_actions


@pytest.mark.parametrize("seed", [1, 2])
async def test_two_bots_play_a_whole_match_through_play_match(server: Server, seed: int) -> None:
    """Both see the same end, and so does a spectator."""
    server.entropy.chance.seed(seed)
    table = await new_table(server.channel)
    async with asyncio.timeout(SECONDS_PER_MATCH):
        one, two, seen = await asyncio.gather(
            bot(table.one, Random(seed)), bot(table.two, Random(seed + 100)), watcher(table.spectator)
        )
    assert_finished(one.last)
    assert one.last.public == two.last.public == seen.last.public
    for record in (one, two, seen):
        assert record.versions == sorted(record.versions)
    for version in seen.events.keys() & one.events.keys():
        assert seen.events[version] == one.events[version]


@pytest.mark.parametrize("seed", [4])
async def test_a_whole_match_is_played_through_submit_command_and_watched(server: Server, seed: int) -> None:
    """A watcher that keeps up sees every version, each with its events and nothing missing."""
    server.entropy.chance.seed(seed)
    table = await new_table(server.channel)
    table.chance.seed(seed)
    async with table.spectator.watching() as call, asyncio.timeout(SECONDS_PER_MATCH):
        record = Record()
        record.add(await read_update(call))

        async def keep_up() -> None:
            record.add(await read_update(call))

        end = await play_until(table, is_over, after_each=keep_up)
    assert_finished(end)
    assert record.versions == list(range(2, end.public.version + 1))
    assert sorted(record.events) == record.versions[1:]
    assert all(record.events.values())
    assert record.last.public == end.public


async def test_a_whole_match_is_played_on_a_shared_device(server: Server) -> None:
    """One token for both; the clock of each turn begins when the hand is revealed."""
    server.entropy.chance.seed(6)
    table = await new_table(server.channel, shared_device=True)
    table.chance.seed(6)
    assert_finished(await play_until(table, is_over))


async def test_the_same_choices_on_the_same_deals_give_the_same_match(server: Server) -> None:
    """Nothing but the deal, the commands and the clock decides."""
    ends = []
    for _ in range(2):
        server.entropy.chance.seed(8)
        table = await new_table(server.channel)
        table.chance.seed(8)
        ends.append((await play_until(table, is_over)).public)
    assert ends[0].version == ends[1].version
    assert [player.balance_points for player in ends[0].players] == [
        player.balance_points for player in ends[1].players
    ]
    assert ends[0].layout == ends[1].layout
