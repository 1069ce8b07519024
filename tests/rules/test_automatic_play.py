"""Automatic digital play."""

import pytest

from engine import commands as cmd
from engine import events as ev
from engine.evolve import advance
from engine.refusals import RefusalReason
from engine.seats import Seat
from engine.state import MatchState
from tests.support.rules.given import (
    ONE,
    TWO,
    Match,
    bidding,
    events_of,
    playing,
    sent,
    started_clock,
    when,
)
from tests.support.rules.notation import play
from tests.support.rules.universe import EVERY_COMMAND


@pytest.mark.clause("auto.recorded", "play.turn-passes")
def test_an_accepted_play_scores_and_hands_over_the_clock_in_one_step() -> None:
    """Points are not claimed and the clock is not pressed."""
    state = playing("[6-6]", one="6-3 1-1", two="0-0")
    step = events_of(when(state, ONE, play("6-3 E")))
    assert [type(event) for event in step] == [ev.ClockStopped, ev.TilePlayed, ev.ClockStarted]
    assert advance(state, step).balances.one == 165
    assert started_clock(step).seat is TWO


@pytest.mark.clause("auto.recorded")
def test_a_required_pass_hands_over_the_clock_in_one_step() -> None:
    """The same for a pass."""
    step = events_of(when(playing("2-3", one="1-1", two="0-0", boneyard=""), ONE, cmd.Pass()))
    assert [type(event) for event in step] == [ev.ClockStopped, ev.Passed, ev.ClockStarted]


REFUSED_IN = [
    playing("2-3", one="3-4 1-1", two="0-0"),
    playing("2-3", one="1-1", two="0-0", boneyard=""),
    bidding(jockey=TWO),
    bidding(jockey=TWO, standing=20),
    sent(playing("2-3", one="3-4", two="0-0"), (ONE, play("3-4 E"))),
    Match().state,
]


@pytest.mark.clause("auto.refused", "X3")
@pytest.mark.parametrize("state", REFUSED_IN)
def test_an_illegal_request_changes_nothing(state: MatchState) -> None:
    """No event, so no version and no clock; the figures that explain it are public."""
    public = {"minimum_points", "maximum_points", "step_points"}
    for seat in Seat:
        for command in EVERY_COMMAND:
            ruling = when(state, seat, command)
            assert bool(ruling.events) is (ruling.refusal is None)
            assert ruling.refusal is None or {name for name, _ in ruling.refusal.figures} <= public


@pytest.mark.clause("auto.refused", "X3", "X2")
def test_a_tile_elsewhere_is_refused_in_one_way() -> None:
    """The opponent's, the boneyard's, the table's: one answer without figures."""
    state = playing("2-3", one="3-4 1-1", two="0-0 3-5", boneyard="3-6 2-2")
    for text in ("0-0 E", "3-5 E", "3-6 E", "2-2 W", "2-3 E"):
        ruling = when(state, ONE, play(text))
        assert ruling.events == ()
        assert ruling.refusal is not None
        assert (ruling.refusal.reason, ruling.refusal.figures) == (RefusalReason.TILE_NOT_IN_HAND, ())
