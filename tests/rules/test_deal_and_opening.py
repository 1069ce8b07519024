"""Deal and opening."""

import random

import pytest

from engine import commands as cmd
from engine import events as ev
from engine.clock import SECOND_NS
from engine.deal import Dealt, RankedOpening, deal, ranked_opening
from engine.layout import End
from engine.legal import legal_actions
from engine.refusals import RefusalReason
from engine.scoring import Transfer
from engine.seats import PerSeat, Seat
from engine.state import OpeningPrivilege, Phase
from engine.tiles import DOUBLE_SIX, Tile
from tests.support.rules.given import (
    CREATED,
    ONE,
    STARTED_NS,
    STORING_NS,
    TWO,
    Match,
    events_of,
    played,
    playing,
    reason_of,
    sent,
    started_clock,
    then,
    when,
)
from tests.support.rules.notation import order, play, tile, tiles
from tests.support.rules.universe import spelled_out

ONE_HOLDS_66 = order(one="6-6 5-6 0-1 0-2 0-3 0-4 0-5", two="5-5")


@pytest.mark.clause("deal.set")
def test_the_set_has_28_different_tiles_and_one_double_blank() -> None:
    """Every pair of halves from 0 to 6 once, smaller half first."""
    pairs = {(low, high) for low in range(7) for high in range(7) if low <= high}
    assert set(DOUBLE_SIX) == pairs
    assert len(DOUBLE_SIX) == 28
    assert DOUBLE_SIX.count(Tile(0, 0)) == 1


@pytest.mark.clause("deal.set", "deal.hands")
def test_ten_thousand_deals_are_whole_sets() -> None:
    """Fault 11: no deal holds a tile twice; always seven, seven and fourteen."""
    chance, tiles_in_order = random.Random(11), list(DOUBLE_SIX)
    for _ in range(10_000):
        chance.shuffle(tiles_in_order)
        dealt = deal(tuple(tiles_in_order))
        assert (len(dealt.hands.one), len(dealt.hands.two), len(dealt.boneyard)) == (7, 7, 14)
        assert {*dealt.hands.one, *dealt.hands.two, *dealt.boneyard} == set(DOUBLE_SIX)


@pytest.mark.clause("B1", "deal.hands")
def test_the_order_of_the_tiles_fixes_the_deal() -> None:
    """First seven to ONE, next seven to TWO, the rest to draw in that order; hands are kept sorted."""
    dealt = deal(DOUBLE_SIX[::-1])
    assert dealt == Dealt(
        hands=PerSeat(tiles("3-6 4-4 4-5 4-6 5-5 5-6 6-6"), tiles("2-3 2-4 2-5 2-6 3-3 3-4 3-5")),
        boneyard=tiles("2-2 1-6 1-5 1-4 1-3 1-2 1-1 0-6 0-5 0-4 0-3 0-2 0-1 0-0"),
    )


def test_an_order_with_a_tile_missing_or_twice_is_our_own_mistake() -> None:
    """The deal asserts a whole set."""
    for wrong in (DOUBLE_SIX[:-1], (*DOUBLE_SIX[:-1], DOUBLE_SIX[0]), (*DOUBLE_SIX, DOUBLE_SIX[0])):
        with pytest.raises(AssertionError):
            deal(wrong)


RANKED = [
    ("0-1 0-2 0-3 4-4 1-2 1-3 2-4", "6-6 0-4 0-5 0-6 1-4 1-5 1-6", TWO, "6-6"),
    ("5-5 0-1 0-2 0-3 0-4 0-5 0-6", "4-4 5-6 4-6 3-6 2-6 1-6 4-5", ONE, "5-5"),
    ("0-0 0-1 0-2 0-3 0-4 0-5 0-6", "5-6 4-6 3-6 2-6 1-6 4-5 3-5", ONE, "0-0"),
    ("0-1 0-2 0-3 0-4 0-5 0-6 1-2", "0-0 5-6 4-6 3-6 2-6 1-6 4-5", TWO, "0-0"),
    ("1-1 5-6 4-6 3-6 2-6 1-6 4-5", "0-0 2-2 0-1 0-2 0-3 0-4 0-5", TWO, "2-2"),
    ("0-1 0-2 0-3 0-4 0-5 0-6 1-2", "5-6 4-6 3-6 2-6 1-6 4-5 3-5", TWO, "5-6"),
    ("3-6 0-1 0-2 0-3 0-4 0-5 0-6", "4-5 1-2 1-3 1-4 1-5 1-6 2-3", ONE, "3-6"),
    ("4-5 0-1 0-2 0-3 0-4 0-5 0-6", "3-6 1-2 1-3 1-4 1-5 1-6 2-3", TWO, "3-6"),
    ("3-5 0-1 0-2 0-3 0-4 0-5 1-2", "2-6 1-3 1-4 1-5 2-3 2-4 0-6", TWO, "2-6"),
]


@pytest.mark.clause("opening.ranked", "opening.heaviest", "B2")
@pytest.mark.parametrize(("one", "two", "seat", "opener"), RANKED)
def test_the_highest_double_opens_else_the_heaviest_tile(one: str, two: str, seat: Seat, opener: str) -> None:
    """Doubles before any other tile, the double blank included; ties of weight go to the greater half."""
    assert ranked_opening(PerSeat(tiles(one), tiles(two))) == RankedOpening(seat, tile(opener))


@pytest.mark.clause("opening.ranked", "B2", "B3")
def test_the_ranked_opening_looks_at_the_two_hands_only() -> None:
    """The doubles in the boneyard open nothing."""
    match = Match(deal=order(one="0-1 0-2 0-3 0-4 0-5 0-6 1-2", two="1-3 1-4 1-5 1-6 2-3 2-4 3-4")).start()
    assert match.state.current.opening is OpeningPrivilege.RANKED
    assert match.state.turn is TWO
    assert match.state.current.must_play == tile("1-6")


@pytest.mark.clause("opening.ranked", "B3")
def test_in_a_ranked_opening_only_the_ranked_tile_is_legal() -> None:
    """Fault 16: the holder must open, with that tile, and it is a command of theirs, not done for them."""
    state = Match(deal=ONE_HOLDS_66).start().state
    assert (state.phase, state.turn) == (Phase.OPENING, ONE)
    assert list(spelled_out(legal_actions(state, ONE))) == [play("6-6 open")]
    assert legal_actions(state, TWO) == ()
    must_open = RefusalReason.MUST_OPEN_WITH_RANKED_TILE
    for command in (play("5-6 open"), cmd.DrawTile(), cmd.Pass()):
        assert reason_of(when(state, ONE, command)) is must_open


@pytest.mark.clause("opening.ranked", "auction.pays-and-opens")
def test_who_opens_free_may_open_with_any_tile() -> None:
    """Fault 16: a winner's tile is never chosen for them."""
    state = playing("", one="0-1 0-2 0-3 0-4 0-5 0-6 6-6", two="5-5")
    assert list(spelled_out(legal_actions(state, ONE))) == [
        play(f"{text} open") for text in ["0-1", "0-2", "0-3", "0-4", "0-5", "0-6", "6-6"]
    ]


@pytest.mark.clause("B3", "opening.scores", "ends.opening-double")
@pytest.mark.parametrize(
    ("opener", "total", "earned"),
    [("5-5", 10, 10), ("4-6", 10, 10), ("0-5", 5, 5), ("6-6", 12, 0), ("3-5", 8, 0), ("0-0", 0, 0)],
)
def test_an_opening_tile_scores_by_the_same_rule(opener: str, total: int, earned: int) -> None:
    """Both halves count, of a double and of a single."""
    state = playing("", one=f"{opener} 1-2", two="1-1", must_play=opener)
    event = played(events_of(when(state, ONE, play(f"{opener} open"))))
    assert (event.end, event.exposed_total) == (End.OPENING, total)
    assert event.transfer == (Transfer(TWO, earned, earned) if earned else None)


@pytest.mark.clause("B3", "clock.fresh-delay")
def test_a_forced_opening_is_a_timed_decision() -> None:
    """Its clock starts with the deal, and its player can lose on it."""
    match = Match(deal=ONE_HOLDS_66).start()
    decision = match.state.decision
    assert decision is not None
    late = match.send(ONE, play("6-6 open"), wait_ns=decision.deadline_ns - match.now_ns)
    assert late.refusal is not None
    assert late.refusal.reason is RefusalReason.TIME_EXPIRED


@pytest.mark.clause("B4")
def test_the_hands_are_dealt_at_the_instant_at_which_the_first_clock_starts() -> None:
    """Nobody sees a hand while the clock stands: before the second Start there is no hand at all."""
    match = Match(deal=ONE_HOLDS_66)
    match.send(TWO, cmd.Start())
    assert match.state.round is None
    step = events_of(match.send(ONE, cmd.Start()))
    assert [type(event) for event in step] == [ev.PlayerReady, ev.RoundDealt, ev.ClockStarted]
    assert started_clock(step) == ev.ClockStarted(ONE, match.now_ns)


@pytest.mark.clause("deal.redeal", "block.ranked-next", "opening.ranked", "auction.credit-expires")
def test_after_a_blocked_round_the_full_set_is_dealt_for_a_ranked_opening() -> None:
    """All 28 tiles come back, the highest double opens again, and nobody bids."""
    blocked = sent(playing("[2-2]", one="1-3", two="0-0", boneyard="", passes=1), (ONE, cmd.Pass()))
    ready = then(blocked, when(blocked, TWO, cmd.Continue()))
    step = events_of(when(ready, ONE, cmd.Continue(), deal=ONE_HOLDS_66))
    assert step[1] == ev.RoundDealt(
        number=2,
        hands=deal(ONE_HOLDS_66).hands,
        boneyard=deal(ONE_HOLDS_66).boneyard,
        turn=ONE,
        jockey=None,
        must_open=tile("6-6"),
    )
    assert then(ready, when(ready, ONE, cmd.Continue(), deal=ONE_HOLDS_66)).current.passes == 0


@pytest.mark.clause("deal.redeal", "auction.after-domino", "domino.privilege", "duel.win")
def test_after_a_domino_the_full_set_is_dealt_for_an_auction() -> None:
    """The dominoer is the jockey; no tile is forced, and the opponent speaks first."""
    dominoed = sent(playing("2-3", one="3-4", two="0-0"), (ONE, play("3-4 E")))
    ready = then(dominoed, when(dominoed, ONE, cmd.Continue()))
    step = events_of(when(ready, TWO, cmd.Continue(), deal=ONE_HOLDS_66))
    dealt = deal(ONE_HOLDS_66)
    assert step[1:] == (
        ev.RoundDealt(2, dealt.hands, dealt.boneyard, turn=TWO, jockey=ONE, must_open=None),
        ev.ClockStarted(TWO, STARTED_NS + SECOND_NS + STORING_NS),
    )


def test_a_match_keeps_the_options_it_was_created_with() -> None:
    """The first event founds the state."""
    options = Match().state.options
    assert not options.shared_device
    assert options.start_timeout_ns == CREATED.start_timeout_ns
    assert options.continue_timeout_ns == CREATED.continue_timeout_ns
