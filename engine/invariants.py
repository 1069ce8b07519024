"""What is true of every state, whatever the players did. Asserted after every step, in production too."""

from __future__ import annotations

from engine.clock import BANK_NS
from engine.scoring import POINTS_PER_COUNTER, STARTING_POINTS
from engine.state import MatchState, Phase
from engine.tiles import DOUBLE_SIX


def check(state: MatchState) -> None:
    """Raise AssertionError when `state` breaks an invariant."""
    _check_points(state)
    _check_clock(state)
    if state.round is not None:
        _check_tiles(state)


def _check_points(state: MatchState) -> None:
    one, two = state.balances.one, state.balances.two
    assert one + two == 2 * STARTING_POINTS, "the balances sum to 300"
    assert one >= 0, "no balance is negative"
    assert two >= 0, "no balance is negative"
    assert one % POINTS_PER_COUNTER == 0, "balances are multiples of five"
    assert (one > 0 and two > 0) or state.phase is Phase.OVER, "a zero balance ends the match"


def _check_clock(state: MatchState) -> None:
    assert 0 <= state.banks_ns.one <= BANK_NS, "a bank never rises"
    assert 0 <= state.banks_ns.two <= BANK_NS, "a bank never rises"
    decides, waits = state.decision is not None, state.waiting_until_ns is not None
    pending = decides + waits + (state.handover is not None) + (state.result is not None)
    assert pending == 1, "one clock runs exactly while a decision is pending"
    if state.decision is not None:
        assert state.decision.seat is state.turn, "the clock is that of the player on turn"
        assert state.decision.bank_ns > 0, "a living player has time left"


def _check_tiles(state: MatchState) -> None:
    current = state.current
    tiles = (*current.hands.one, *current.hands.two, *current.boneyard, *current.layout.tiles())
    assert len(tiles) == len(DOUBLE_SIX) == len(set(tiles)), "the set has 28 different tiles"
