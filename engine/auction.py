"""Bidding for the opening after a domino (clauses auction.*, readings A1 to A5)."""

from __future__ import annotations

from dataclasses import dataclass

from engine.seats import PerSeat, Seat

MINIMUM_BID_POINTS = 15
BID_STEP_POINTS = 5
CREDIT_POINTS = 15


@dataclass(frozen=True, slots=True)
class StandingBid:
    """The bid that the other player must answer."""

    bidder: Seat
    points: int


@dataclass(frozen=True, slots=True)
class Auction:
    """The auction of one opening. The jockey's opponent speaks first (auction.decline)."""

    jockey: Seat
    standing: StandingBid | None = None

    @property
    def minimum_points(self) -> int:
        """The least that the next bid may be (auction.minimum, auction.raise)."""
        return MINIMUM_BID_POINTS if self.standing is None else self.standing.points + BID_STEP_POINTS

    def credit_points(self, bidder: Seat) -> int:
        """The credit of a bidder: only the jockey has one (auction.credit-jockey-only)."""
        return CREDIT_POINTS if bidder is self.jockey else 0

    def maximum_points(self, bidder: Seat, balances: PerSeat[int]) -> int:
        """The largest bid whose net price the bidder can pay (auction.net-affordable, A1); maybe below the minimum."""
        return balances[bidder.index] + self.credit_points(bidder)

    def net_price_points(self, bid: StandingBid) -> int:
        """What an accepted bid costs its bidder, never below zero (auction.credit)."""
        return max(0, bid.points - self.credit_points(bid.bidder))
