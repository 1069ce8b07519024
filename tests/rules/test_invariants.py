"""What is checked after every step, shown to be broken by states that no rule allows."""

import pytest

from engine.clock import BANK_NS
from engine.invariants import check
from engine.seats import PerSeat
from engine.state import MatchState
from tests.support.rules.given import ONE, STARTED_NS, TWO, Match, playing, with_balances, with_bank
from tests.support.rules.notation import tiles
from tests.support.rules.samples import many_states

SOUND = playing("2-3", one="3-4 1-1", two="0-0")
UNCLOCKED = SOUND._replace(decision=None)


@pytest.mark.clause("points.sum", "points.zero-loses", "deal.set", "K6")
def test_states_of_matches_are_sound() -> None:
    """None of some hundred states breaks an invariant."""
    for state in many_states():
        check(state)


BROKEN = [
    ("the balances sum to 300", with_balances(SOUND, 150, 145)),
    ("the balances sum to 300", with_balances(SOUND, 155, 150)),
    ("no balance is negative", with_balances(SOUND, -5, 305)),
    ("no balance is negative", with_balances(SOUND, 305, -5)),
    ("multiples of five", with_balances(SOUND, 149, 151)),
    ("a zero balance ends the match", with_balances(SOUND, 0, 300)),
    ("a zero balance ends the match", with_balances(SOUND, 300, 0)),
    ("a bank never rises", with_bank(SOUND, BANK_NS + 1)),
    ("a bank never rises", SOUND._replace(banks_ns=PerSeat(BANK_NS, BANK_NS + 1))),
    ("a bank never rises", SOUND._replace(banks_ns=PerSeat(-1, BANK_NS))),
    ("a bank never rises", SOUND._replace(banks_ns=PerSeat(BANK_NS, -1))),
    ("one clock runs exactly while a decision is pending", UNCLOCKED),
    ("one clock runs exactly while a decision is pending", SOUND._replace(handover=ONE)),
    ("one clock runs exactly while a decision is pending", SOUND._replace(waiting_until_ns=STARTED_NS)),
    ("one clock runs exactly while a decision is pending", Match().state._replace(waiting_until_ns=None)),
    ("the player on turn", SOUND._replace(round=SOUND.current._replace(turn=TWO))),
    ("a living player has time left", with_bank(SOUND, 0)),
    ("28 different tiles", playing("2-3", one="3-4 1-1", two="0-0", boneyard="5-5")),
    ("28 different tiles", SOUND._replace(round=SOUND.current._replace(hands=PerSeat(tiles("3-4 3-4"), tiles("0-0"))))),
]


@pytest.mark.clause("points.sum", "points.zero-loses", "deal.set", "K6", "clock.stops")
@pytest.mark.parametrize(("message", "state"), BROKEN)
def test_a_broken_state_is_found(message: str, state: MatchState) -> None:
    """The check stays on in production."""
    with pytest.raises(AssertionError, match=message):
        check(state)
