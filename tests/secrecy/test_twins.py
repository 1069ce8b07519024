"""The oracle of SECRECY: worlds that differ only in what an observer cannot know are the same to it, byte for byte.

The bulk runs the real handlers, streams, rendering, rules and metrics in virtual time on a store in memory, without a
port; `test_twins_on_the_port` does the same through gRPC and the database.
"""

from collections import Counter

import pytest

from engine.view import Audience
from tests.support.twins.canary import marked, told
from tests.support.twins.leaks import TWIN_LEAKS, count_of_attempts, tile_in_an_event, token_in_the_log
from tests.support.twins.trials import OBSERVERS, differences, disturbed, trial
from tests.support.twins.world import PLAY_STREAM, run, to_the_observer

BATCHES = 32
TWINS_A_BATCH = 64
DISTURBED_TRIALS = 30
SEATS = (Audience.SEAT_ONE, Audience.SEAT_TWO)


@pytest.mark.parametrize("batch", range(BATCHES))
def test_an_observer_cannot_tell_twins_apart(batch: int) -> None:
    """2,048 twins: streams, outcomes, probes with their errors, log, metrics and bus are identical."""
    observer = OBSERVERS[batch % len(OBSERVERS)]
    seed, twins = batch * 1_000, 0
    while twins < TWINS_A_BATCH:
        for told_by in differences(seed, observer):
            assert told_by == [], (seed, observer)
            twins += 1
        seed += 1


@pytest.mark.parametrize("leak", TWIN_LEAKS)
def test_twins_find_a_leak(leak: str) -> None:
    """Negative controls: each is seen on its channel, and for every observer whom it concerns."""
    leaky, channel = TWIN_LEAKS[leak]
    found: Counter[str] = Counter()
    with leaky():
        for seed in range(12):
            for told_by in differences(seed, Audience.SEAT_ONE, most=4):
                found.update(told_by)
    assert found[channel], found


@pytest.mark.parametrize("observer", SEATS)
def test_what_the_other_seat_tries_in_vain_shows_nowhere(observer: Audience) -> None:
    """Refused commands, reads and reconnects of the other seat: the observer's streams and answers are the same."""
    results = [disturbed(seed, observer) for seed in range(DISTURBED_TRIALS)]
    trials = [result for result in results if result is not None]
    assert len(trials) > DISTURBED_TRIALS // 2
    assert not any(trials)


def test_a_count_of_attempts_would_be_seen() -> None:
    """Negative control of the form before."""
    with count_of_attempts():
        assert any(disturbed(seed, Audience.SEAT_ONE) for seed in range(6))


@pytest.mark.parametrize("observer", OBSERVERS)
def test_no_marker_is_in_any_capture(observer: Audience) -> None:
    """Tokens and their hashes are in nothing that anyone gets or reads; hidden tiles in nothing that decodes."""
    seen = 0
    for seed in range(50_000, 50_030):
        made = trial(seed, observer)
        if made is None:
            continue
        captures = run(*made)
        assert marked(captures) == []
        assert told(made[0], observer, to_the_observer(captures)) == []
        seen += len(captures.get("stream", [])) + len(captures.get(PLAY_STREAM, []))
    assert seen


def test_a_token_in_the_log_would_be_seen() -> None:
    """Negative control: text."""
    made = trial(0, Audience.SEAT_ONE)
    assert made is not None
    with token_in_the_log():
        assert marked(run(*made)) == ["log"]


def test_a_hidden_tile_in_an_event_would_be_seen() -> None:
    """Negative control: tiles."""
    found = set()
    with tile_in_an_event():
        for seed in range(6):
            made = trial(seed, Audience.SPECTATOR)
            if made is not None:
                found |= {bool(told(made[0], Audience.SPECTATOR, run(*made)))}
    assert True in found
