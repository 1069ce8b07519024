"""Drawing, dominoing and blocking."""

import pytest

from engine import commands as cmd
from engine import events as ev
from engine.clock import BANK_NS
from engine.evolve import advance
from engine.legal import legal_actions
from engine.refusals import RefusalReason
from engine.scoring import Transfer, block_transfer, block_winner, rounded_to_five
from engine.seats import PerSeat, Seat
from engine.state import Phase
from tests.support.rules.given import (
    ONE,
    STARTED_NS,
    STORING_NS,
    TWO,
    events_of,
    played,
    playing,
    reason_of,
    seconds,
    sent,
    served,
    stopped_clock,
    then,
    when,
    with_balances,
)
from tests.support.rules.notation import play, tile, tiles
from tests.support.rules.universe import EVERY_COMMAND, spelled_out

STORED_NS = STARTED_NS + seconds(1) + STORING_NS


@pytest.mark.clause("draw.one-at-a-time", "draw.same-turn", "clock.draws", "D1")
def test_three_unplayable_tiles_and_a_playable_one_are_four_draws_of_one_turn() -> None:
    """Fault 23: one tile for each command, all against the same deadline, then the placing."""
    state = playing("2-3", one="1-1", two="0-0", boneyard="0-1 4-4 5-6 3-6 2-2")
    before = state.decision
    for drawn, playable in [("0-1", False), ("4-4", False), ("5-6", False), ("3-6", True)]:
        step = events_of(when(state, ONE, cmd.DrawTile()))
        assert step == (ev.TileDrawn(ONE, tile(drawn), playable),)
        state = advance(state, step)
        assert (state.turn, state.decision) == (ONE, before)
    assert state.current.hands.one == tiles("0-1 1-1 3-6 4-4 5-6")
    assert state.current.boneyard == tiles("2-2")
    placed = events_of(when(state, ONE, play("3-6 E"), at_ns=seconds(13)))
    assert stopped_clock(placed).bank_used_ns == seconds(3)


@pytest.mark.clause("draw.one-at-a-time", "deal.hands")
def test_the_last_boneyard_tile_is_drawn_too() -> None:
    """Fault 20: there is no reserve."""
    state = playing("2-3", one="1-1", two="0-0", boneyard="0-1")
    after = sent(state, (ONE, cmd.DrawTile()))
    assert after.current.boneyard == ()
    assert list(spelled_out(legal_actions(after, ONE))) == [cmd.Pass()]


@pytest.mark.clause("draw.one-at-a-time", "draw.pass-last", "D2")
@pytest.mark.parametrize("command", [cmd.DrawTile(), cmd.Pass()])
def test_who_can_play_may_neither_draw_nor_pass(command: cmd.Command) -> None:
    """Drawing is for those unable to play."""
    state = playing("2-3", one="3-4 1-1", two="0-0")
    assert reason_of(when(state, ONE, command)) is RefusalReason.CAN_PLAY_INSTEAD


@pytest.mark.clause("draw.must-play-drawn", "draw.nothing-else", "D2")
def test_a_playable_drawn_tile_must_be_played_at_either_of_its_ends() -> None:
    """Fault 22: no further draw, no pass, no other tile, though the choice of end is free."""
    state = sent(playing("3-1 1-5", one="2-2 0-6", two="0-0", boneyard="3-5 1-1"), (ONE, cmd.DrawTile()))
    assert state.current.must_play == tile("3-5")
    assert list(spelled_out(legal_actions(state, ONE))) == [play("3-5 W"), play("3-5 E")]
    for command in (cmd.DrawTile(), cmd.Pass(), play("2-2 W"), play("0-6 E")):
        assert reason_of(when(state, ONE, command)) is RefusalReason.MUST_PLAY_DRAWN_TILE
    for command in (play("3-5 W"), play("3-5 E")):
        assert then(state, when(state, ONE, command)).current.must_play is None


@pytest.mark.clause("draw.same-turn", "clock.draws")
def test_draws_in_time_do_not_save_a_late_play() -> None:
    """Drawing and placing are one timed turn."""
    state = playing("2-3", one="1-1", two="0-0", boneyard="3-5")
    drawn = then(state, when(state, ONE, cmd.DrawTile(), at_ns=seconds(10) + BANK_NS - 1))
    late = when(drawn, ONE, play("3-5 E"), at_ns=seconds(10) + BANK_NS)
    assert late.refusal is not None
    assert late.refusal.reason is RefusalReason.TIME_EXPIRED


@pytest.mark.clause("draw.pass-last", "D1")
def test_a_pass_is_legal_only_when_nothing_else_is() -> None:
    """While the boneyard holds a tile it must be drawn; then the pass ends the turn."""
    unable = playing("2-3", one="1-1", two="0-0", boneyard="0-1")
    assert reason_of(when(unable, ONE, cmd.Pass())) is RefusalReason.CAN_DRAW_INSTEAD
    bare = playing("2-3", one="1-1", two="0-0", boneyard="")
    assert reason_of(when(bare, ONE, cmd.DrawTile())) is RefusalReason.BONEYARD_EMPTY
    step = events_of(when(bare, ONE, cmd.Pass()))
    assert step == (ev.ClockStopped(ONE, 0), ev.Passed(ONE), ev.ClockStarted(TWO, STORED_NS))


@pytest.mark.clause("D1")
def test_nothing_is_done_on_a_player_s_behalf() -> None:
    """A forced pass waits for its command: until the deadline only the clock moves."""
    state = playing("2-3", one="1-1", two="0-0", boneyard="")
    assert list(spelled_out(legal_actions(state, ONE))) == [cmd.Pass()]
    deadline_ns = STARTED_NS + seconds(10) + BANK_NS
    assert served(state, cmd.CheckClock(deadline_ns - 1)) == ()
    lost = advance(state, served(state, cmd.CheckClock(deadline_ns)))
    assert isinstance(lost.result, ev.MatchWon)
    assert lost.result.reason is ev.WinReason.TIME


@pytest.mark.clause("domino.last-tile", "domino.no-hand-award", "domino.privilege")
def test_the_last_tile_scores_and_ends_the_round_in_one_step() -> None:
    """Faults 19 and 28: the ordinary score, the end of the round and the jockey; nothing for the other hand."""
    state = playing("[6-6]", one="6-3", two="5-5 4-4")
    step = events_of(when(state, ONE, play("6-3 E")))
    assert step == (
        ev.ClockStopped(ONE, 0),
        ev.TilePlayed(ONE, tile("6-3"), play("6-3 E").end, 15, Transfer(TWO, earned=15, paid=15)),
        ev.RoundDominoed(ONE, STORED_NS),
    )
    after = advance(state, step)
    assert (after.phase, after.turn, after.decision) == (Phase.SETTLED, None, None)
    assert after.balances == PerSeat(165, 135)
    assert after.settlement == ev.RoundDominoed(ONE, STORED_NS)
    assert after.current.last_transfer == Transfer(TWO, earned=15, paid=15)


@pytest.mark.clause("domino.last-tile")
def test_a_last_tile_without_a_score_moves_no_points() -> None:
    """Emptying the hand is not an award of its own."""
    state = playing("2-3", one="3-4", two="5-5 4-4")
    assert played(events_of(when(state, ONE, play("3-4 E")))).transfer is None
    assert sent(state, (ONE, play("3-4 E"))).balances == PerSeat(150, 150)


BLOCKS = [
    ("1-3", "6-6 1-5", ONE, 20),
    ("5-6 3-3", "0-1", TWO, 15),
    ("0-6", "1-5", None, 0),
    ("5-5 0-6", "6-6 0-5", ONE, 15),
    ("0-1", "0-3", ONE, 5),
    ("0-0", "0-1", ONE, 0),
    ("1-1", "0-1", TWO, 0),
    ("6-6", "4-5 0-4", ONE, 15),
]
"""Hands of a blocked round, the winner, and what the other pays."""


@pytest.mark.clause(
    *("block.two-passes", "block.full-hand", "block.rounded", "block.equal", "block.example-lighter"),
    *("block.example-seventeen", "block.example-equal", "D4"),
)
@pytest.mark.parametrize(("one", "two", "winner", "earned"), BLOCKS)
def test_the_lighter_hand_is_paid_the_other_s_pips(one: str, two: str, winner: Seat | None, earned: int) -> None:
    """Compared before rounding, paid in full without the winner's own pips; fault 29: equal hands win nothing."""
    hands = PerSeat(tiles(one), tiles(two))
    assert block_winner(hands) is winner
    payment = Transfer(winner.other, earned, earned) if winner is not None and earned else None
    assert block_transfer(PerSeat(150, 150), hands) == payment
    if "2" not in one + two:
        state = playing("[2-2]", one=one, two=two, boneyard="", passes=1)
        hands = state.current.hands
        assert events_of(when(state, ONE, cmd.Pass())) == (
            ev.ClockStopped(ONE, 0),
            ev.Passed(ONE),
            ev.RoundBlocked(hands, winner, payment, STORED_NS),
        )


@pytest.mark.clause("block.rounded", "D4")
@pytest.mark.parametrize("pips", range(100))
def test_pips_are_rounded_to_the_nearest_five(pips: int) -> None:
    """Whole numbers have no ties: at most two away."""
    rounded = rounded_to_five(pips)
    assert rounded % 5 == 0
    assert abs(rounded - pips) <= 2


@pytest.mark.clause("D4")
def test_sixteen_beats_seventeen_and_is_paid_fifteen() -> None:
    """Both round to fifteen, and still one is lighter."""
    hands = PerSeat(tiles("5-5 0-6"), tiles("6-6 0-5"))
    assert block_winner(hands) is ONE
    assert block_transfer(PerSeat(150, 150), hands) == Transfer(TWO, 15, 15)


@pytest.mark.clause("block.two-passes", "D3", "D5", "clock.stops")
def test_the_second_pass_in_a_row_blocks_the_round_at_once() -> None:
    """Faults 25 and 26: settled in the step of the second pass, clocks stopped, no third pass."""
    state = playing("[2-2]", one="1-3", two="6-6 1-5", boneyard="")
    blocked = sent(state, (ONE, cmd.Pass()), (TWO, cmd.Pass()))
    assert (blocked.phase, blocked.turn, blocked.decision) == (Phase.SETTLED, None, None)
    assert blocked.balances == PerSeat(170, 130)
    assert isinstance(blocked.settlement, ev.RoundBlocked)
    assert blocked.settlement.hands == PerSeat(tiles("1-3"), tiles("1-5 6-6"))
    for seat in (ONE, TWO):
        assert reason_of(when(blocked, seat, cmd.Pass())) is RefusalReason.WRONG_PHASE


@pytest.mark.clause("D3")
def test_a_play_between_two_passes_clears_the_count() -> None:
    """Fault 31: pass, play, pass is no block."""
    state = playing("[2-2]", one="1-3 0-0", two="2-6 1-5 5-5", boneyard="")
    after = sent(state, (ONE, cmd.Pass()), (TWO, play("2-6 E")), (ONE, cmd.Pass()))
    assert (after.phase, after.turn, after.current.passes) == (Phase.PLAYING, TWO, 1)


@pytest.mark.clause("D3")
def test_a_pass_does_not_count_in_the_next_round() -> None:
    """Fault 17: every deal begins without passes."""
    state = playing("[2-2]", one="1-3", two="2-6", boneyard="")
    after = sent(state, (ONE, cmd.Pass()), (TWO, play("2-6 E")), (ONE, cmd.Continue()), (TWO, cmd.Continue()))
    assert (after.current.number, after.current.passes) == (2, 0)


@pytest.mark.clause("points.capped", "points.zero-loses", "P3")
@pytest.mark.parametrize(("balance", "paid"), [(10, 10), (20, 20), (15, 15)])
def test_a_block_that_empties_the_payer_ends_the_match(balance: int, paid: int) -> None:
    """Fault 34: the block's transfer is capped like any other, and zero loses before any settlement."""
    state = with_balances(playing("[2-2]", one="1-3", two="6-6 1-5", boneyard="", passes=1), 300 - balance, balance)
    *_, blocked, won = events_of(when(state, ONE, cmd.Pass()))
    assert isinstance(blocked, ev.RoundBlocked)
    assert blocked.transfer == Transfer(TWO, earned=20, paid=paid)
    assert won == ev.MatchWon(ONE, ev.WinReason.BALANCE, STORED_NS)
    after = sent(state, (ONE, cmd.Pass()))
    assert (after.phase, after.waiting_until_ns) == (Phase.OVER, None)


@pytest.mark.clause("block.equal", "block.ranked-next")
def test_equal_hands_settle_without_a_winner() -> None:
    """Fault 29: no transfer, no jockey, and a ranked opening next."""
    state = playing("[2-2]", one="0-6", two="1-5", boneyard="", passes=1)
    after = sent(state, (ONE, cmd.Pass()), (ONE, cmd.Continue()), (TWO, cmd.Continue()))
    assert after.balances == PerSeat(150, 150)
    assert after.current.auction is None
    assert after.current.must_play is not None


@pytest.mark.clause("D1", "clock.stops")
def test_a_reload_between_rounds_is_still_between_rounds() -> None:
    """Fault 32: the settled round waits for Continue and nothing else."""
    state = sent(playing("[2-2]", one="0-6", two="1-5", boneyard="", passes=1), (ONE, cmd.Pass()))
    assert [command for command in EVERY_COMMAND if when(state, ONE, command).refusal is None] == [cmd.Continue()]
