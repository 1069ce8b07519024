"""Reading a match from its snapshot and the log behind: nobody can tell it from reading the whole log."""

import asyncio
from collections.abc import Sequence
from functools import cache
from itertools import pairwise

import pytest
import structlog

from engine.events import RoundDealt, Step
from engine.evolve import advance, replay
from engine.seats import PerSeat
from engine.state import MatchState, Phase
from service.past import SNAPSHOT_VERSIONS, Past
from service.ports import DamagedError, StoreUnavailableError, UnknownFormatError
from service.watches import RECENT_STEPS, Recent
from tests.support.ports import MemoryStore, Process
from tests.support.rules.self_play import choose_cheaply, self_play
from tests.support.server import sample_of
from tests.support.virtual_matches import MATCH_ID, state_of, stored
from tests.support.virtual_time import in_virtual_time

VERSIONS = 8_192


@cache
def long_match() -> tuple[list[Step], list[MatchState]]:
    """The log of a match without an end, and the state at every version."""
    log = self_play(1, choose_cheaply, shared_device=False, hasty=True).log[:VERSIONS]
    assert len(log) == VERSIONS
    states = [advance(None, log[0])]
    for step in log[1:]:
        states.append(advance(states[-1], step))
    return log, states


def round_starts() -> list[int]:
    """The versions with which a round of the long match begins."""
    log, _ = long_match()
    return [version for version, step in enumerate(log, 1) if any(isinstance(event, RoundDealt) for event in step)]


@cache
def kept() -> dict[int, MatchState]:
    """The snapshots that are appended when the long match is played from its beginning, by version."""
    found, past = {}, Past(MATCH_ID, MemoryStore())
    for step, state in zip(*long_match(), strict=True):
        if (snapshot := past.snapshot(step, state)) is not None:
            found[state.version] = snapshot
            past.stored(snapshot)
    return found


def test_a_snapshot_comes_with_the_first_round_that_begins_a_page_behind_the_last() -> None:
    """The first not before version 257: most matches have one to three."""
    expected, last = [], 0
    for version in round_starts():
        if version - last >= SNAPSHOT_VERSIONS:
            expected.append(version)
            last = version
    assert list(kept()) == expected
    assert len(expected) > 20
    _, states = long_match()
    assert all(snapshot == states[version - 1] for version, snapshot in kept().items())


def test_a_snapshot_that_was_not_stored_comes_with_the_next_round() -> None:
    """The write may have failed."""
    past, (log, states) = Past(MATCH_ID, MemoryStore()), long_match()
    first, second = [version for version in round_starts() if version >= SNAPSHOT_VERSIONS][:2]
    assert past.snapshot(log[first - 1], states[first - 1]) is states[first - 1]
    assert past.snapshot(log[second - 1], states[second - 1]) is states[second - 1]


class CountingStore(MemoryStore):
    """A store that counts the versions that are read from it."""

    versions_read = 0

    async def steps(self, match_id: str, after_version: int = 0) -> Sequence[Step]:
        page = await super().steps(match_id, after_version)
        self.versions_read += len(page)
        return page


def played_to(version: int) -> CountingStore:
    """What is stored of the long match when it is at this version."""
    store = CountingStore(logs={MATCH_ID: long_match()[0][:version]})
    if before := [state for at, state in kept().items() if at <= version]:
        store.snapshots[MATCH_ID] = before[-1]
    return store


async def test_however_long_a_match_is_a_page_and_a_round_of_it_are_read() -> None:
    """And the last events, which streams may ask for as if the whole log had been read."""
    _, states = long_match()
    starts = round_starts()
    longest = max(after - before for before, after in pairwise(starts))
    for version in (*range(1, VERSIONS, 97), *kept(), VERSIONS):
        store, recent = played_to(version), Recent()
        found = await Past(MATCH_ID, store).read(None, recent)
        assert found.state == states[version - 1]
        assert found.folded < SNAPSHOT_VERSIONS + longest
        assert store.versions_read <= found.folded + RECENT_STEPS
        assert recent.since(max(0, version - RECENT_STEPS), version)[1]


async def test_a_log_is_read_on_behind_what_is_known() -> None:
    """Without a look at the snapshot, also when that is newer."""
    log, states = long_match()
    store = played_to(1_000)
    known = states[600]
    found = await Past(MATCH_ID, store).read(known, Recent())
    assert (found.state, found.first, found.folded) == (states[999], log[601], 1_000 - 601)
    assert store.versions_read == 1_000 - 601


async def test_a_version_of_the_service_without_snapshots_may_have_played_on() -> None:
    """An old snapshot is as good as any; the next round brings a new one."""
    log, states = long_match()
    store, oldest = played_to(2_000), min(kept())
    store.snapshots[MATCH_ID] = kept()[oldest]
    past = Past(MATCH_ID, store)
    found = await past.read(None, Recent())
    assert (found.state, found.folded) == (states[1_999], 2_000 - oldest)
    following = min(version for version in round_starts() if version > 2_000)
    assert past.snapshot(log[following - 1], states[following - 1]) is not None


async def test_a_log_that_ends_before_its_snapshot_is_not_believed() -> None:
    """The store has gone back between two questions: it is to be asked again."""
    for version in (300, 3_000):
        store = played_to(4_000)
        store.logs[MATCH_ID] = store.logs[MATCH_ID][:version]
        with pytest.raises(StoreUnavailableError):
            await Past(MATCH_ID, store).read(None, Recent())


class UselessStore(MemoryStore):
    """A store whose snapshot cannot be used."""

    problem: DamagedError | MatchState

    async def snapshot(self, _: str) -> MatchState | None:
        if isinstance(self.problem, DamagedError):
            raise self.problem
        return self.problem


def unbalanced() -> MatchState:
    """A state that breaks a promise of the rules."""
    return long_match()[1][300]._replace(balances=PerSeat(150, 145))


@pytest.mark.parametrize(
    ("problem", "told"),
    [
        (DamagedError("a sealed value at m/5 cannot be opened"), "a sealed value at m/5 cannot be opened"),
        (UnknownFormatError("its format is 2, not 1"), "its format is 2, not 1"),
        (unbalanced(), "the balances sum to 300"),
    ],
    ids=["damaged", "another format", "no such state"],
)
async def test_a_snapshot_of_no_use_is_passed_over(problem: DamagedError | MatchState, told: str) -> None:
    """The log tells the same; the log of the service says why; the next snapshot takes its place."""
    log, states = long_match()
    store = UselessStore(logs={MATCH_ID: log[:400]})
    store.problem = problem
    past = Past(MATCH_ID, store)
    with structlog.testing.capture_logs() as entries:
        found = await past.read(None, Recent())
    assert (found.state, found.first, found.folded) == (states[399], log[0], 400)
    assert entries == [{"event": "snapshot_passed_over", "log_level": "warning", "match_id": MATCH_ID, "problem": told}]
    following = min(version for version in round_starts() if version > 400)
    assert past.snapshot(log[following - 1], states[following - 1]) is not None


def settled_before(version: int) -> MemoryStore:
    """The long match at the end of a round, the last one that ended before this version."""
    log, states = long_match()
    ended = max(state.version for state in states[: version - 1] if state.phase is Phase.SETTLED)
    return stored(*log[:ended])


@in_virtual_time
@pytest.mark.parametrize(("version", "is_kept"), [(250, False), (400, True)])
async def test_a_round_that_begins_is_stored_with_its_snapshot(version: int, *, is_kept: bool) -> None:
    """Here by the wait for Continue, which has run out; another process goes on from there."""
    store = settled_before(version)
    async with Process.running(store) as process:
        await asyncio.sleep(1)
        assert state_of(process).phase not in (Phase.SETTLED, Phase.OVER)
        assert store.snapshots == ({MATCH_ID: state_of(process)} if is_kept else {})
    async with Process.running(store) as process:
        assert await process.matches.get(MATCH_ID).state() == replay(store.logs[MATCH_ID])
        folded = sample_of(process.metrics.registry, "specbid_replayed_versions_total")
        assert folded == (0 if is_kept else len(store.logs[MATCH_ID]))
