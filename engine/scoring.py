"""Points: what is earned, what is paid (clauses points.*, readings P1, P2, C8, D4)."""

from __future__ import annotations

from typing import NamedTuple

from engine.seats import PerSeat, Seat
from engine.tiles import Tile, hand_pips

STARTING_POINTS = 150
POINTS_PER_COUNTER = 5


class Transfer(NamedTuple):
    """Points owed by `payer` to the opponent: `earned` in full, of which `paid` moves (P2)."""

    payer: Seat
    earned: int
    paid: int


def transfer(balances: PerSeat[int], payer: Seat, earned: int) -> Transfer:
    """The transfer of `earned` points, capped at the payer's balance (points.capped)."""
    return Transfer(payer, earned, min(earned, balances[payer.index]))


def play_transfer(balances: PerSeat[int], player: Seat, exposed_total: int) -> Transfer | None:
    """The transfer that a play with this exposed total brings (points.transferred, points.no-division).

    A positive multiple of five earns itself; anything else nothing, and then it is None (ends.award, C8).
    """
    if exposed_total % POINTS_PER_COUNTER or not exposed_total:
        return None
    return transfer(balances, player.other, exposed_total)


def rounded_to_five(pips: int) -> int:
    """`pips` to the nearest multiple of five; integers have no ties (block.rounded)."""
    return (pips + 2) // 5 * 5


def block_winner(hands: PerSeat[tuple[Tile, ...]]) -> Seat | None:
    """The seat with the smaller pip total, compared before rounding (D4); None for equal hands (block.equal)."""
    one, two = hand_pips(hands.one), hand_pips(hands.two)
    if one == two:
        return None
    return Seat.ONE if one < two else Seat.TWO


def block_transfer(balances: PerSeat[int], hands: PerSeat[tuple[Tile, ...]]) -> Transfer | None:
    """The payment of a blocked round: the loser's full hand, rounded, nothing subtracted (block.full-hand)."""
    winner = block_winner(hands)
    if winner is None:
        return None
    earned = rounded_to_five(hand_pips(hands[winner.other.index]))
    return transfer(balances, winner.other, earned) if earned else None


def moved(balances: PerSeat[int], payment: Transfer) -> PerSeat[int]:
    """The balances after `payment`; their sum stays the same (points.sum)."""
    gained_by_one = payment.paid if payment.payer is Seat.TWO else -payment.paid
    return PerSeat(balances.one + gained_by_one, balances.two - gained_by_one)


def exhausts(balances: PerSeat[int], payment: Transfer) -> bool:
    """Whether the payment leaves its payer with nothing (points.zero-loses)."""
    return payment.paid == balances[payment.payer.index]
