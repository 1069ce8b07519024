"""Bidding for the opening after a domino (clauses auction.*, readings A1 to A5)."""

from __future__ import annotations

from engine import commands as cmd
from engine import events as ev
from engine.auction import BID_STEP_POINTS, Auction, StandingBid
from engine.decide import timing
from engine.refusals import Refusal, RefusalReason
from engine.scoring import exhausts, transfer
from engine.seats import Seat
from engine.state import MatchState


def decide(state: MatchState, request: cmd.Request, now_ns: int) -> ev.Step | Refusal | None:
    """The answer to a command of the auction, None for any other."""
    match request.command:
        case cmd.Bid(points) | cmd.Raise(points):
            return _bid(state, request, points, now_ns)
        case cmd.AcceptBid():
            return _accept(state, request, now_ns)
        case cmd.DeclineBidding():
            return _decline(state, request, now_ns)
        case _:
            return None


def bid_refusal(state: MatchState, auction: Auction, seat: Seat, points: int) -> Refusal | None:
    """Why `seat` may not bid `points`, if so. A bid too large is refused, never capped (A5)."""
    minimum = auction.minimum_points
    if points < minimum:  # auction.minimum, auction.raise
        return Refusal(RefusalReason.BID_TOO_LOW, (("minimum_points", minimum),))
    if points % BID_STEP_POINTS:  # auction.multiples
        return Refusal(RefusalReason.BID_NOT_MULTIPLE_OF_FIVE, (("step_points", BID_STEP_POINTS),))
    maximum = auction.maximum_points(seat, state.balances)
    if points > maximum:  # auction.net-affordable, auction.must-decline
        return Refusal(RefusalReason.BID_UNAFFORDABLE, (("maximum_points", maximum),))
    return None


def _bid(state: MatchState, request: cmd.Request, points: int, now_ns: int) -> ev.Step | Refusal:
    seat = request.seat
    refusal = bid_refusal(state, _auction(state), seat, points)
    if refusal is not None:
        return refusal
    return (
        timing.charge(state, request.arrival),
        ev.BidMade(seat, points),
        timing.next_decision(state, seat.other, now_ns),  # clock.raise-switches
    )


def accepted_bid(state: MatchState, auction: Auction, standing: StandingBid) -> ev.BidAccepted:
    """What accepting the standing bid brings: only the net price moves (auction.credit, auction.no-creation)."""
    price = auction.net_price_points(standing)
    payment = transfer(state.balances, standing.bidder, price)
    return ev.BidAccepted(standing.bidder, standing.points, standing.points - price, payment)


def _accept(state: MatchState, request: cmd.Request, now_ns: int) -> ev.Step:
    auction = _auction(state)
    assert auction.standing is not None
    accepted = accepted_bid(state, auction, auction.standing)
    stopped = timing.charge(state, request.arrival)
    if exhausts(state.balances, accepted.transfer):  # auction.all-in, A2, P3
        return stopped, accepted, ev.MatchWon(request.seat, ev.WinReason.BALANCE, now_ns)
    return stopped, accepted, timing.next_decision(state, accepted.bidder, now_ns)  # auction.pays-and-opens


def _decline(state: MatchState, request: cmd.Request, now_ns: int) -> ev.Step:
    """The jockey opens free (auction.decline), and its clock starts (clock.opener)."""
    return (
        timing.charge(state, request.arrival),
        ev.BiddingDeclined(request.seat),
        timing.next_decision(state, request.seat.other, now_ns),
    )


def _auction(state: MatchState) -> Auction:
    auction = state.current.auction
    assert auction is not None
    return auction
