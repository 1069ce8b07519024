"""The legal actions are exactly what is accepted."""

import pytest

from engine import commands as cmd
from engine import events as ev
from engine.legal import LegalBids, LegalCommand, legal_actions
from engine.scoring import Transfer
from engine.seats import Seat
from engine.state import MatchState
from tests.support.rules.given import ONE, TWO, Match, bidding, events_of, playing, sent, served, when, with_balances
from tests.support.rules.notation import play
from tests.support.rules.samples import many_states
from tests.support.rules.universe import EVERY_COMMAND, spelled_out


@pytest.mark.clause("A3", "A5", "D1", "D2", "X1")
@pytest.mark.parametrize("part", range(8))
def test_every_listed_action_is_accepted_and_every_other_command_refused(part: int) -> None:
    """For both seats, over all tiles on all ends and all bids from -5 to 320; resigning alone is not listed."""
    for state in many_states()[part::8]:
        for seat in Seat:
            listed = list(spelled_out(legal_actions(state, seat)))
            accepted = [command for command in EVERY_COMMAND if when(state, seat, command).refusal is None]
            assert len(listed) == len(set(listed))
            assert set(listed) == set(accepted)


@pytest.mark.clause("points.no-division", "ends.award", "P2")
def test_a_listed_action_foretells_what_it_brings() -> None:
    """The exposed total and the transfer of each play, and the payment of an acceptance."""
    for state in many_states():
        for seat in Seat:
            for action in legal_actions(state, seat):
                if isinstance(action, LegalCommand):
                    assert brought(state, seat, action.command) == (action.exposed_total, action.transfer)


def brought(state: MatchState, seat: Seat, command: cmd.Command) -> tuple[int, Transfer | None]:
    """The exposed total and the transfer that the command turns out to bring."""
    for event in events_of(when(state, seat, command)):
        if isinstance(event, ev.TilePlayed):
            return event.exposed_total, event.transfer
        if isinstance(event, ev.BidAccepted):
            return 0, event.transfer
    return 0, None


BIDS = [
    (bidding(jockey=TWO), LegalBids(cmd.Bid, minimum=15, maximum=150, credit=0)),
    (bidding(jockey=TWO, balances=(15, 285)), LegalBids(cmd.Bid, minimum=15, maximum=15, credit=0)),
    (bidding(jockey=TWO, balances=(295, 5)), LegalBids(cmd.Bid, minimum=15, maximum=295, credit=0)),
    (bidding(jockey=ONE, standing=15), LegalBids(cmd.Raise, minimum=20, maximum=165, credit=15)),
    (bidding(jockey=ONE, balances=(5, 295), standing=15), LegalBids(cmd.Raise, minimum=20, maximum=20, credit=15)),
    (bidding(jockey=TWO, standing=20), LegalBids(cmd.Raise, minimum=25, maximum=150, credit=0)),
]


@pytest.mark.clause("A1", "A4", "auction.multiples", "auction.credit-jockey-only")
@pytest.mark.parametrize(("state", "bids"), BIDS)
def test_bids_are_listed_as_a_range_in_fives(state: MatchState, bids: LegalBids) -> None:
    """Minimum, maximum, step, and the credit with which a winning bid would be paid."""
    assert legal_actions(state, ONE)[1:] == (bids,)
    assert bids.step == 5


@pytest.mark.clause("draw.one-at-a-time", "draw.pass-last", "D2")
def test_plays_come_before_a_draw_and_a_draw_before_a_pass() -> None:
    """Each is forced when the one before is impossible."""
    able = playing("2-3", one="3-4 2-2", two="0-0")
    unable = playing("2-3", one="1-1", two="0-0")
    stuck = playing("2-3", one="1-1", two="0-0", boneyard="")
    assert list(spelled_out(legal_actions(able, ONE))) == [play("2-2 W"), play("3-4 E")]
    assert list(spelled_out(legal_actions(unable, ONE))) == [cmd.DrawTile()]
    assert list(spelled_out(legal_actions(stuck, ONE))) == [cmd.Pass()]


@pytest.mark.clause("points.capped", "P2")
def test_a_listed_play_tells_what_is_earned_and_what_is_paid() -> None:
    """Of an earned 15 a payer with 5 pays 5."""
    state = with_balances(playing("[6-6]", one="6-3 1-1", two="0-0"), 295, 5)
    assert legal_actions(state, ONE)[0] == LegalCommand(play("3-6 W"), 15, Transfer(TWO, earned=15, paid=5))


@pytest.mark.clause("X1", "F4")
def test_nothing_is_listed_out_of_turn_while_suspended_or_after_the_end() -> None:
    """There is nothing to do."""
    state = playing("2-3", one="3-4 1-1", two="3-5 0-0")
    assert legal_actions(state, TWO) == ()
    match = Match().start()
    match.serve(cmd.SuspendClocks())
    over = sent(state, (TWO, cmd.Resign()))
    for seat in Seat:
        assert legal_actions(match.state, seat) == ()
        assert legal_actions(over, seat) == ()
    assert served(state, cmd.SuspendClocks())
