"""Bidding for the next opening."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine import commands as cmd
from engine import events as ev
from engine.auction import Auction, StandingBid
from engine.evolve import advance
from engine.legal import LegalBids, LegalCommand, legal_actions
from engine.refusals import Refusal, RefusalReason
from engine.scoring import Transfer
from engine.seats import PerSeat, Seat
from engine.state import MatchState, OpeningPrivilege, Phase
from tests.support.rules.given import (
    ONE,
    STARTED_NS,
    STORING_NS,
    TWO,
    bidding,
    bidding_on,
    events_of,
    playing,
    reason_of,
    seconds,
    sent,
    started_clock,
    when,
)
from tests.support.rules.notation import play
from tests.support.rules.properties import UNHURRIED
from tests.support.rules.universe import BID_POINTS, spelled_out

STORED_NS = STARTED_NS + seconds(1) + STORING_NS


@pytest.mark.clause("auction.after-domino", "auction.decline", "duel.game", "clock.opener")
def test_the_opponent_may_decline_and_the_jockey_opens_free() -> None:
    """Nothing is paid, any tile opens, and the jockey's clock starts."""
    step = events_of(when(bidding(jockey=ONE), TWO, cmd.DeclineBidding()))
    assert step == (ev.ClockStopped(TWO, 0), ev.BiddingDeclined(TWO), ev.ClockStarted(ONE, STORED_NS))
    after = advance(bidding(jockey=ONE), step)
    assert (after.phase, after.turn, after.balances) == (Phase.OPENING, ONE, PerSeat(150, 150))
    assert after.current.opening is OpeningPrivilege.JOCKEY_FREE
    assert len(legal_actions(after, ONE)) == 7


@pytest.mark.clause("auction.decline", "auction.minimum")
@pytest.mark.parametrize("jockey", [ONE, TWO])
def test_the_jockey_s_opponent_speaks_first(jockey: Seat) -> None:
    """Decline or bid at least 15; the jockey waits."""
    state = bidding(jockey=jockey)
    assert legal_actions(state, jockey.other) == (LegalCommand(cmd.DeclineBidding()), LegalBids(cmd.Bid, 15, 150, 0))
    assert legal_actions(state, jockey) == ()
    assert reason_of(when(state, jockey, cmd.Bid(15))) is RefusalReason.NOT_YOUR_TURN


@pytest.mark.clause("auction.raise", "A3", "A4")
def test_a_bid_is_accepted_or_raised_never_declined() -> None:
    """Answers alternate; a raise names the new total."""
    state = sent(bidding(jockey=ONE), (TWO, cmd.Bid(15)))
    assert reason_of(when(state, ONE, cmd.DeclineBidding())) is RefusalReason.WRONG_PHASE
    assert reason_of(when(state, ONE, cmd.Bid(20))) is RefusalReason.WRONG_PHASE
    assert reason_of(when(state, TWO, cmd.AcceptBid())) is RefusalReason.NOT_YOUR_TURN
    raised = sent(state, (ONE, cmd.Raise(40)), (TWO, cmd.Raise(60)))
    assert raised.current.auction == Auction(ONE, StandingBid(TWO, 60))
    assert raised.turn is ONE
    assert reason_of(when(bidding(jockey=ONE), TWO, cmd.Raise(20))) is RefusalReason.WRONG_PHASE


@pytest.mark.clause("auction.minimum", "auction.raise", "auction.multiples", "A4")
@pytest.mark.parametrize(
    ("standing", "points", "reason"),
    [
        (None, 10, RefusalReason.BID_TOO_LOW),
        (None, -5, RefusalReason.BID_TOO_LOW),
        (None, 0, RefusalReason.BID_TOO_LOW),
        (None, 14, RefusalReason.BID_TOO_LOW),
        (None, 16, RefusalReason.BID_NOT_MULTIPLE_OF_FIVE),
        (20, 20, RefusalReason.BID_TOO_LOW),
        (20, 22, RefusalReason.BID_TOO_LOW),
        (20, 23, RefusalReason.BID_TOO_LOW),
        (20, 26, RefusalReason.BID_NOT_MULTIPLE_OF_FIVE),
    ],
)
def test_a_bid_rises_by_fives_from_fifteen(standing: int | None, points: int, reason: RefusalReason) -> None:
    """Fault 40: an equal bid does not overtake, nor does one in between."""
    state = bidding(jockey=TWO, standing=standing)
    kind = cmd.Bid if standing is None else cmd.Raise
    assert state.turn is not None
    assert reason_of(when(state, state.turn, kind(points))) is reason


@pytest.mark.clause("auction.raise", "A4")
@pytest.mark.parametrize("points", [25, 30, 45, 150])
def test_any_multiple_of_five_above_the_standing_bid_is_a_raise(points: int) -> None:
    """At least five more, and as much more as one can pay."""
    state = bidding(jockey=TWO, standing=20)
    assert state.turn is ONE
    assert events_of(when(state, ONE, cmd.Raise(points)))[1] == ev.BidMade(ONE, points)


@pytest.mark.clause("auction.net-affordable", "A1", "A5")
@pytest.mark.parametrize(
    ("jockey", "balances", "standing", "largest"),
    [
        (ONE, (280, 20), None, 20),
        (ONE, (150, 150), None, 150),
        (ONE, (5, 295), 15, 20),
        (ONE, (40, 260), 15, 55),
        (TWO, (40, 260), 20, 40),
    ],
)
def test_a_bid_is_affordable_by_its_net_price(
    jockey: Seat, balances: tuple[int, int], standing: int | None, largest: int
) -> None:
    """Faults 35 and 43: the opponent up to the balance, the jockey 15 beyond; more is refused, never capped."""
    state = bidding(jockey=jockey, balances=balances, standing=standing)
    kind = cmd.Bid if standing is None else cmd.Raise
    assert state.turn is not None
    assert events_of(when(state, state.turn, kind(largest)))[1] == ev.BidMade(state.turn, largest)
    ruling = when(state, state.turn, kind(largest + 5))
    assert ruling.events == ()
    assert ruling.refusal == Refusal(RefusalReason.BID_UNAFFORDABLE, (("maximum_points", largest),))


@pytest.mark.clause("auction.must-decline", "A3")
@pytest.mark.parametrize("balance", [5, 10])
def test_who_cannot_afford_fifteen_may_only_decline(balance: int) -> None:
    """Fault 38: no bid is offered, and none is taken."""
    state = bidding(jockey=ONE, balances=(300 - balance, balance))
    assert list(spelled_out(legal_actions(state, TWO))) == [cmd.DeclineBidding()]
    assert all(when(state, TWO, cmd.Bid(points)).refusal is not None for points in BID_POINTS)


@pytest.mark.clause("A3")
@pytest.mark.parametrize(("jockey", "balances", "standing"), [(ONE, (5, 295), 25), (TWO, (20, 280), 20)])
def test_who_cannot_afford_a_raise_may_only_accept(jockey: Seat, balances: tuple[int, int], standing: int) -> None:
    """For the jockey as for the opponent."""
    state = bidding(jockey=jockey, balances=balances, standing=standing)
    assert state.turn is ONE
    assert list(spelled_out(legal_actions(state, ONE))) == [cmd.AcceptBid()]


ACCEPTED = [
    (ONE, 15, TWO, 15, 0),
    (ONE, 25, TWO, 25, 0),
    (ONE, 20, ONE, 5, 15),
    (ONE, 40, ONE, 25, 15),
    (TWO, 20, TWO, 5, 15),
    (TWO, 15, ONE, 15, 0),
]
"""Jockey, accepted bid, its bidder, what the bidder pays, and the credit used."""


@pytest.mark.clause(
    *("auction.pays-and-opens", "auction.credit-jockey-only", "auction.credit", "auction.example-price"),
    *("auction.example-receiver", "auction.no-creation", "clock.opener", "A5", "P2"),
)
@pytest.mark.parametrize(("jockey", "bid", "bidder", "paid", "credit"), ACCEPTED)
def test_the_accepted_bidder_pays_and_opens(jockey: Seat, bid: int, bidder: Seat, paid: int, credit: int) -> None:
    """Faults 44, 46, 47: the net price moves, once, at acceptance; only the jockey's own bid has the credit."""
    state = bidding_by(jockey, bid, bidder)
    payment = Transfer(bidder, paid, paid)
    assert LegalCommand(cmd.AcceptBid(), transfer=payment) in legal_actions(state, bidder.other)
    step = events_of(when(state, bidder.other, cmd.AcceptBid()))
    assert step == (
        ev.ClockStopped(bidder.other, 0),
        ev.BidAccepted(bidder, bid, credit, payment),
        ev.ClockStarted(bidder, STORED_NS),
    )
    after = advance(state, step)
    assert (after.phase, after.turn) == (Phase.OPENING, bidder)
    assert after.balances == PerSeat(150, 150).having(bidder, 150 - paid).having(bidder.other, 150 + paid)
    assert after.current.opening is OpeningPrivilege.BOUGHT
    assert after.current.last_transfer == payment
    assert len(legal_actions(after, bidder)) == 7


def bidding_by(jockey: Seat, bid: int, bidder: Seat) -> MatchState:
    """An auction in which this bid of this bidder stands."""
    return bidding_on(bidding(), Auction(jockey, StandingBid(bidder, bid)), (150, 150))


@pytest.mark.clause("auction.all-in", "A2", "P3")
@pytest.mark.parametrize(
    ("jockey", "balances", "commands", "winner"),
    [
        (ONE, (285, 15), [(TWO, cmd.Bid(15)), (ONE, cmd.AcceptBid())], ONE),
        (ONE, (5, 295), [(TWO, cmd.Bid(15)), (ONE, cmd.Raise(20)), (TWO, cmd.AcceptBid())], TWO),
        (TWO, (150, 150), [(ONE, cmd.Bid(150)), (TWO, cmd.AcceptBid())], TWO),
        (TWO, (150, 150), [(ONE, cmd.Bid(20)), (TWO, cmd.Raise(165)), (ONE, cmd.AcceptBid())], ONE),
    ],
)
def test_an_accepted_all_in_bid_loses_before_the_opening(
    jockey: Seat, balances: tuple[int, int], commands: list[tuple[Seat, cmd.Command]], winner: Seat
) -> None:
    """Faults 37 and 43: legal, paid, and the end of the match."""
    state = sent(bidding(jockey=jockey, balances=balances), *commands)
    assert isinstance(state.result, ev.MatchWon)
    assert (state.result.winner, state.result.reason) == (winner, ev.WinReason.BALANCE)
    assert state.balances[winner.index] == 300
    assert not state.current.layout.main_line


@pytest.mark.clause("auction.credit")
@pytest.mark.parametrize("points", range(0, 20, 5))
def test_a_net_price_is_never_below_zero(points: int) -> None:
    """A credit larger than the bid is not paid out."""
    auction = Auction(ONE)
    assert auction.net_price_points(StandingBid(ONE, points)) == max(0, points - 15)
    assert auction.net_price_points(StandingBid(TWO, points)) == points


@pytest.mark.clause("auction.credit-expires")
def test_the_credit_is_gone_when_the_opening_begins() -> None:
    """Fault 47: no cash for an unused credit, and nothing of it in the next round but that auction's own."""
    opened = sent(bidding(jockey=ONE), (TWO, cmd.Bid(20)), (ONE, cmd.AcceptBid()))
    assert opened.balances == PerSeat(170, 130)
    assert opened.current.auction is None
    dominoed = sent(playing("2-3", one="0-0", two="3-4", turn=TWO), (TWO, play("3-4 E")))
    bidding_again = sent(dominoed, (ONE, cmd.Continue()), (TWO, cmd.Continue()))
    assert bidding_again.current.auction == Auction(jockey=TWO)


@pytest.mark.clause("clock.raise-switches", "clock.fresh-delay")
def test_every_bid_and_raise_switches_the_clock() -> None:
    """Fault 35: a refused bid leaves turn and clock alone."""
    state = bidding(jockey=ONE, balances=(280, 20))
    assert reason_of(when(state, TWO, cmd.Bid(25))) is RefusalReason.BID_UNAFFORDABLE
    bid = events_of(when(state, TWO, cmd.Bid(15), at_ns=seconds(12)))
    assert bid == (
        ev.ClockStopped(TWO, seconds(2)),
        ev.BidMade(TWO, 15),
        ev.ClockStarted(ONE, STARTED_NS + seconds(12) + STORING_NS),
    )
    assert started_clock(events_of(when(advance(state, bid), ONE, cmd.Raise(20)))).seat is TWO


@pytest.mark.clause("auction.raise", "auction.multiples", "A1", "A3", "auction.no-creation")
@UNHURRIED
@given(st.integers(1, 59), st.sampled_from([ONE, TWO]), st.lists(st.integers(0, 99), min_size=70, max_size=70))
def test_every_auction_ends(counters: int, jockey: Seat, choices: list[int]) -> None:
    """Fault 41: bids rise strictly and nobody may bid more than they have, so that at last one must accept."""
    state = bidding(jockey=jockey, balances=(5 * counters, 300 - 5 * counters))
    standing = 0
    for choice in choices:
        assert state.turn is not None
        offered = spelled_out(legal_actions(state, state.turn))
        bids = [command for command in offered if isinstance(command, cmd.Bid | cmd.Raise)]
        if not bids:
            break
        bid = bids[min(choice // 20, len(bids) - 1)]
        assert bid.points >= standing + 5
        standing = bid.points
        state = sent(state, (state.turn, bid))
        assert sum((state.balances.one, state.balances.two)) == 300
    else:
        pytest.fail("the auction went on")
    answer = cmd.AcceptBid() if standing else cmd.DeclineBidding()
    assert state.turn is not None
    after = sent(state, (state.turn, answer))
    assert after.current.auction is None
