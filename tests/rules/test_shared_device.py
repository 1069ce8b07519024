"""One device for both players: private handovers."""

import pytest

from engine import commands as cmd
from engine import events as ev
from engine.clock import BANK_NS, Arrival
from engine.commands import Request
from engine.decide import decide
from engine.evolve import advance, found
from engine.legal import LegalCommand, legal_actions
from engine.refusals import RefusalReason
from engine.seats import PerSeat, Seat
from engine.state import MatchState, Phase, acting_seat
from engine.view import Audience, own_view
from tests.support.rules.given import (
    ON_SHARED_DEVICE,
    ONE,
    STARTED_NS,
    STORING_NS,
    TWO,
    Match,
    bidding,
    events_of,
    on_shared_device,
    playing,
    reason_of,
    seconds,
    sent,
    served,
    then,
    when,
)
from tests.support.rules.notation import order, play
from tests.support.rules.universe import EVERY_COMMAND

HANDING_OVER = [
    (playing("2-3", one="3-4 1-1", two="0-0"), play("3-4 E")),
    (playing("2-3", one="1-1", two="0-0", boneyard=""), cmd.Pass()),
    (bidding(jockey=TWO), cmd.Bid(15)),
    (bidding(jockey=TWO), cmd.DeclineBidding()),
    (bidding(jockey=TWO, standing=20), cmd.Raise(25)),
    (bidding(jockey=TWO, standing=20), cmd.AcceptBid()),
]
"""Decisions of ONE, and a command that ends each."""


@pytest.mark.clause("K7", "clock.handover")
@pytest.mark.parametrize(("state", "command"), HANDING_OVER)
def test_a_handover_stands_before_every_decision_of_the_other_player(state: MatchState, command: cmd.Command) -> None:
    """No clock runs while it stands, for an hour even; the decision begins at Reveal with a fresh delay."""
    shared = on_shared_device(state)
    step = events_of(when(shared, ONE, command, at_ns=seconds(13)))
    assert step[0] == ev.ClockStopped(ONE, seconds(3))
    assert step[-1] == ev.HandoverOpened(TWO)
    handed = advance(shared, step)
    assert (handed.turn, handed.handover, handed.revealed, handed.decision) == (TWO, TWO, None, None)
    assert served(handed, cmd.CheckClock(STARTED_NS + seconds(3_600))) == ()
    revealing = when(handed, TWO, cmd.Reveal(), at_ns=seconds(3_600))
    stored_ns = STARTED_NS + seconds(3_600) + STORING_NS
    assert events_of(revealing) == (ev.HandRevealed(TWO), ev.ClockStarted(TWO, stored_ns))
    revealed = then(handed, revealing)
    assert (revealed.handover, revealed.revealed) == (None, TWO)
    assert revealed.banks_ns == PerSeat(BANK_NS - seconds(3), BANK_NS)
    assert revealed.decision is not None
    assert revealed.decision.delay_ends_at_ns == stored_ns + seconds(10)


@pytest.mark.clause("S1", "K7", "clock.handover", "B4")
@pytest.mark.parametrize("opener", [ONE, TWO])
def test_one_start_deals_and_opens_the_first_handover(opener: Seat) -> None:
    """Also when the seat to open is the one that acted: nobody has looked yet."""
    deal = order(one="6-6") if opener is ONE else order(two="6-6")
    match = Match(created=ON_SHARED_DEVICE, deal=deal)
    assert acting_seat(match.state) is ONE
    step = events_of(match.send(ONE, cmd.Start()))
    assert [type(event) for event in step] == [ev.PlayerReady, ev.RoundDealt, ev.HandoverOpened]
    assert (match.state.handover, match.state.turn) == (opener, opener)


@pytest.mark.clause("S1", "K7", "S2")
def test_one_continue_deals_and_opens_a_handover() -> None:
    """Between rounds the device acts for ONE; after the wait the round continues by itself, with a handover too."""
    settled = sent(on_shared_device(playing("2-3", one="3-4", two="0-0")), (ONE, play("3-4 E")))
    assert (settled.revealed, acting_seat(settled)) == (None, ONE)
    step = events_of(when(settled, ONE, cmd.Continue()))
    assert step[-1] == ev.HandoverOpened(TWO)
    assert settled.waiting_until_ns is not None
    assert served(settled, cmd.CheckClock(settled.waiting_until_ns))[-1] == ev.HandoverOpened(TWO)


@pytest.mark.clause("K7")
def test_only_the_next_player_s_reveal_ends_a_handover() -> None:
    """Everything else has no meaning while it stands, resigning excepted."""
    handed = handed_to_two()
    assert legal_actions(handed, TWO) == (LegalCommand(cmd.Reveal()),)
    assert legal_actions(handed, ONE) == ()
    assert acting_seat(handed) is TWO
    accepted = [command for command in EVERY_COMMAND if when(handed, TWO, command).refusal is None]
    assert accepted == [cmd.Reveal()]
    assert reason_of(when(handed, ONE, cmd.Reveal())) is RefusalReason.NOT_YOUR_TURN
    assert reason_of(when(handed, TWO, play("4-5 E"))) is RefusalReason.WRONG_PHASE


def handed_to_two() -> MatchState:
    """A handover of a device that ONE has just put down."""
    return sent(on_shared_device(playing("2-3", one="3-4 1-1", two="4-5 0-0")), (ONE, play("3-4 E")))


@pytest.mark.clause("K7", "clock.handover", "deal.hidden", "B4")
@pytest.mark.parametrize("audience", Audience)
def test_while_a_handover_stands_no_hand_is_in_any_view(audience: Audience) -> None:
    """Not the next player's, not the last one's, whoever asks."""
    own = own_view(handed_to_two(), audience)
    assert own is None or (own.hand, own.must_play) == ((), None)


@pytest.mark.clause("K7")
def test_the_device_shows_the_hand_of_who_revealed() -> None:
    """That hand and that player's actions only."""
    revealed = sent(handed_to_two(), (TWO, cmd.Reveal()))
    own = own_view(revealed, Audience.DEVICE)
    assert own is not None
    assert (own.seat, [held.tile for held in own.hand]) == (TWO, list(revealed.current.hands.two))
    other = own_view(revealed, Audience.SEAT_ONE)
    assert other is not None
    assert other.hand == ()


@pytest.mark.clause("K7", "D5")
def test_a_settled_round_hides_the_hands_again() -> None:
    """After a domino nobody looks; after a block both hands are public with the settlement."""
    dominoed = sent(on_shared_device(playing("2-3", one="3-4", two="0-0")), (ONE, play("3-4 E")))
    own = own_view(dominoed, Audience.DEVICE)
    assert own is not None
    assert (own.hand, own.legal_actions) == ((), (LegalCommand(cmd.Continue()),))
    blocking = on_shared_device(playing("[2-2]", one="1-3", two="0-0", boneyard="", passes=1))
    blocked = sent(blocking, (ONE, cmd.Pass()))
    assert isinstance(blocked.settlement, ev.RoundBlocked)
    assert (blocked.phase, blocked.revealed) == (Phase.SETTLED, None)


@pytest.mark.clause("K7")
def test_an_online_match_has_no_handovers() -> None:
    """Reveal has no meaning there."""
    match = Match().start()
    assert match.state.handover is None
    assert match.state.turn is not None
    assert reason_of(match.send(match.state.turn, cmd.Reveal())) is RefusalReason.WRONG_PHASE


@pytest.mark.clause("X1", "K7")
def test_a_player_may_resign_during_a_handover() -> None:
    """No clock runs, so none is charged."""
    step = events_of(when(handed_to_two(), TWO, cmd.Resign()))
    assert [type(event) for event in step] == [ev.MatchWon]
    assert advance(handed_to_two(), step).handover is None


@pytest.mark.clause("X1", "S1")
def test_between_rounds_a_shared_device_must_say_who_resigns() -> None:
    """Nobody is on turn then, so the one who gives up is named or nobody does."""
    settled = found(ON_SHARED_DEVICE)._replace(phase=Phase.SETTLED)
    unnamed = Request(ONE, cmd.Resign(), Arrival.at(0), names_seat=False)
    named = Request(TWO, cmd.Resign(), Arrival.at(0))
    assert reason_of(decide(settled, unnamed, now_ns=0, deal=())) is RefusalReason.WRONG_PHASE
    (won,) = events_of(decide(settled, named, now_ns=0, deal=()))
    assert isinstance(won, ev.MatchWon)
    assert won.winner is ONE
