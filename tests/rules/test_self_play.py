"""Whole matches: every promise after every step, and the log tells the same story again."""

import pytest

from engine import events as ev
from engine.evolve import advance
from engine.state import MatchState
from tests.support.rules.self_play import Chooser, Played, choose_greedily, choose_randomly, self_play

RANDOM_MATCHES, RANDOM_CHUNKS = 2_000, 40
GREEDY_MATCHES, GREEDY_CHUNKS = 200, 20


@pytest.mark.clause("duel.game", "duel.win", "points.sum", "points.counter", "clock.stops", "deal.set", "P1", "P6")
@pytest.mark.parametrize("chunk", range(RANDOM_CHUNKS))
def test_random_matches_keep_every_promise(chunk: int) -> None:
    """Fault 14 and 59: 300 points in 60 counters, 28 tiles, banks that never rise, one clock for one decision."""
    for seed in range(chunk, RANDOM_MATCHES, RANDOM_CHUNKS):
        assert_replays(played(seed, choose_randomly, hasty=False))


@pytest.mark.clause("duel.game", "points.sum", "auction.no-creation")
@pytest.mark.parametrize("chunk", range(GREEDY_CHUNKS))
def test_greedy_matches_keep_every_promise(chunk: int) -> None:
    """Long matches, to the last point."""
    for seed in range(chunk, GREEDY_MATCHES, GREEDY_CHUNKS):
        match = played(seed, choose_greedily, hasty=True)
        assert_replays(match)
        assert isinstance(match.state.result, ev.MatchWon)
        assert match.state.result.reason is ev.WinReason.BALANCE


def played(seed: int, choose: Chooser, *, hasty: bool) -> Played:
    """Every third match is on a shared device."""
    return self_play(seed, choose, shared_device=seed % 3 == 0, hasty=hasty)


def assert_replays(match: Played) -> None:
    """The log gives the final state, and on the way every state that was kept."""
    state: MatchState | None = None
    for version, step in enumerate(match.log, start=1):
        state = advance(state, step)
        assert state == match.snapshots.get(version, state)
    assert state == match.state
