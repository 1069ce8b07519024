"""Points and five-point counters."""

import pytest

from engine import commands as cmd
from engine import events as ev
from engine.clock import BANK_NS
from engine.evolve import advance
from engine.scoring import POINTS_PER_COUNTER, Transfer, exhausts, moved, play_transfer, transfer
from engine.seats import SEATS, PerSeat
from engine.state import Phase
from tests.support.rules.given import (
    ONE,
    STARTED_NS,
    STORING_NS,
    TWO,
    Match,
    bidding,
    events_of,
    played,
    playing,
    seconds,
    sent,
    served,
    then,
    when,
    with_balances,
)
from tests.support.rules.notation import play


@pytest.mark.clause("duel.game", "duel.start", "points.start", "points.counter")
def test_both_players_begin_with_150_points_of_thirty_counters() -> None:
    """Two seats, 150 points each, which a display shows as thirty counters of five."""
    state = Match().state
    assert SEATS == (ONE, TWO)
    assert state.balances == PerSeat(150, 150)
    assert state.balances.one == 30 * POINTS_PER_COUNTER


@pytest.mark.clause("points.example-fifteen", "points.example-balances", "points.transferred", "P1")
def test_an_end_total_of_15_transfers_15_points() -> None:
    """From 150-150 the balances become 165-135, not 153-147."""
    state = playing("[6-6]", one="6-3 1-1", two="0-0")
    step = events_of(when(state, ONE, play("6-3 E")))
    assert played(step).exposed_total == 15
    assert played(step).transfer == Transfer(payer=TWO, earned=15, paid=15)
    assert then(state, when(state, ONE, play("6-3 E"))).balances == PerSeat(165, 135)


@pytest.mark.clause("points.no-division", "ends.award", "C8")
@pytest.mark.parametrize("total", range(60))
def test_an_award_is_the_whole_total_or_nothing(total: int) -> None:
    """Positive multiples of five earn themselves; zero and every other total earn nothing."""
    expected = total if total in {5, 10, 15, 20, 25, 30, 35, 40, 45, 50, 55} else 0
    payment = play_transfer(PerSeat(150, 150), ONE, total)
    assert payment == (Transfer(TWO, expected, expected) if expected else None)


@pytest.mark.clause("points.capped", "points.sum", "P2")
@pytest.mark.parametrize(
    ("balance", "earned", "paid", "over"),
    [(150, 20, 20, False), (25, 20, 20, False), (20, 20, 20, True), (15, 20, 15, True), (5, 20, 5, True)],
)
def test_a_transfer_is_capped_at_what_the_payer_has(balance: int, earned: int, paid: int, *, over: bool) -> None:
    """Earned and paid are two figures; only the paid one moves, and the sum stays 300."""
    balances = PerSeat(300 - balance, balance)
    payment = transfer(balances, TWO, earned)
    assert payment == Transfer(TWO, earned, paid)
    assert moved(balances, payment) == PerSeat(300 - balance + paid, balance - paid)
    assert exhausts(balances, payment) is over


@pytest.mark.clause("points.capped", "P2")
def test_an_earned_20_pays_5_to_a_payer_with_5() -> None:
    """Both figures are in the event and in the state, and the payer's last five points move."""
    state = with_balances(playing("4-6 [6-6]", one="4-4 1-1", two="0-0"), 295, 5)
    after = then(state, when(state, ONE, play("4-4 W")))
    assert after.current.last_transfer == Transfer(payer=TWO, earned=20, paid=5)
    assert after.balances == PerSeat(300, 0)


@pytest.mark.clause("points.zero-loses", "duel.win", "P3")
@pytest.mark.parametrize("balance", [5, 15])
def test_the_payer_at_zero_loses_at_once(balance: int) -> None:
    """The match is over within the same step: no next decision, no negative balance."""
    state = with_balances(playing("[6-6]", one="6-3 1-1", two="0-0"), 300 - balance, balance)
    *_, last = events_of(when(state, ONE, play("6-3 E")))
    assert last == ev.MatchWon(ONE, ev.WinReason.BALANCE, STARTED_NS + seconds(1) + STORING_NS)
    after = then(state, when(state, ONE, play("6-3 E")))
    assert after.phase is Phase.OVER
    assert after.balances == PerSeat(300, 0)
    assert after.decision is None


@pytest.mark.clause("points.zero-loses")
def test_five_points_left_are_not_zero() -> None:
    """A payer who keeps five points plays on."""
    state = with_balances(playing("[6-6]", one="6-3 1-1", two="0-0"), 280, 20)
    after = then(state, when(state, ONE, play("6-3 E")))
    assert after.balances.two == 5
    assert after.turn is TWO


@pytest.mark.clause("P3", "P4")
def test_a_last_tile_that_empties_the_payer_ends_the_match_and_not_the_round() -> None:
    """No settlement and no jockey: the balance is considered before the domino."""
    state = with_balances(playing("[6-6]", one="6-3", two="0-0"), 290, 10)
    step = events_of(when(state, ONE, play("6-3 E")))
    assert [type(event) for event in step] == [ev.ClockStopped, ev.TilePlayed, ev.MatchWon]
    after = then(state, when(state, ONE, play("6-3 E")))
    assert after.settlement is None
    assert after.waiting_until_ns is None


@pytest.mark.clause("duel.win", "P5")
def test_balances_stay_after_a_loss_on_time() -> None:
    """Time is lost, not points."""
    state = with_balances(playing("2-3", one="2-4 1-1", two="0-0"), 100, 200)
    after = advance(state, served(state, cmd.CheckClock(STARTED_NS + seconds(10) + BANK_NS)))
    assert isinstance(after.result, ev.MatchWon)
    assert (after.result.winner, after.result.reason) == (TWO, ev.WinReason.TIME)
    assert after.balances == state.balances


@pytest.mark.clause("P5")
def test_balances_stay_after_a_resignation() -> None:
    """Giving up moves no points."""
    state = with_balances(playing("2-3", one="2-4 1-1", two="0-0"), 100, 200)
    after = sent(state, (TWO, cmd.Resign()))
    assert isinstance(after.result, ev.MatchWon)
    assert after.balances == state.balances


@pytest.mark.clause("P5", "P6")
def test_balances_stay_after_an_abort() -> None:
    """A match without a winner is aborted; there is no draw."""
    state = with_balances(bidding(), 100, 200)
    after = advance(state, served(state, cmd.Abort(ev.AbortReason.OPERATOR, "asked for")))
    assert isinstance(after.result, ev.MatchAborted)
    assert after.balances == state.balances
