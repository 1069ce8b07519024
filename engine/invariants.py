"""What is true of every state, whatever the players did. Asserted after every step, in production too."""

from __future__ import annotations

from engine.clock import BANK_NS
from engine.scoring import POINTS_PER_COUNTER, STARTING_POINTS
from engine.state import MatchState, Phase
from engine.tiles import DOUBLE_SIX


def check(state: MatchState) -> None:
    """Raise AssertionError when `state` breaks an invariant."""
    one, two = state.balances
    assert one + two == 2 * STARTING_POINTS, "the balances sum to 300"
    assert one >= 0, "no balance is negative"
    assert two >= 0, "no balance is negative"
    assert one % POINTS_PER_COUNTER == 0, "balances are multiples of five"
    assert (one > 0 and two > 0) or state.phase is Phase.OVER, "a zero balance ends the match"
    bank_one_ns, bank_two_ns = state.banks_ns
    assert 0 <= bank_one_ns <= BANK_NS, "a bank never rises"
    assert 0 <= bank_two_ns <= BANK_NS, "a bank never rises"
    decision, current = state.decision, state.round
    decides, waits = decision is not None, state.waiting_until_ns is not None
    pending = decides + waits + (state.handover is not None) + (state.result is not None)
    assert pending == 1, "one clock runs exactly while a decision is pending"
    if decision is not None:
        assert decision.seat is state.turn, "the clock is that of the player on turn"
        assert decision.bank_ns > 0, "a living player has time left"
    if current is not None:
        tiles = (*current.hands.one, *current.hands.two, *current.boneyard, *current.layout.tiles())
        assert len(tiles) == len(DOUBLE_SIX) == len(set(tiles)), "the set has 28 different tiles"
