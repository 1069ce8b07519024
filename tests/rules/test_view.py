"""What each audience may know: exactly what is shown, and that it tells nothing of what is not."""

import dataclasses
import random
from collections.abc import Iterator

import pytest

from engine import commands as cmd
from engine import events as ev
from engine.auction import Auction, StandingBid
from engine.clock import BANK_NS, Decision
from engine.evolve import advance
from engine.layout import End
from engine.legal import LegalBids, LegalCommand
from engine.scoring import Transfer
from engine.seats import PerSeat, Seat
from engine.state import MatchState, OpeningPrivilege, Phase
from engine.tiles import Tile
from engine.view import (
    Audience,
    FairDeal,
    HandTile,
    OwnView,
    PublicRound,
    PublicView,
    StoppedClock,
    StopReason,
    own_view,
    public_view,
)
from tests.support.rules.given import (
    CREATED,
    ON_SHARED_DEVICE,
    ONE,
    STARTED_NS,
    STORING_NS,
    TWO,
    Match,
    bidding,
    on_shared_device,
    playing,
    seconds,
    sent,
    served,
)
from tests.support.rules.notation import order, play, tile, tiles
from tests.support.rules.samples import many_states

IN_PLAY = playing("[5-5] 5-2", one="5-3 2-1 0-0", two="2-6 1-1 4-4 5-6", passes=0)
SEAT_OF = {Audience.SEAT_ONE: ONE, Audience.SEAT_TWO: TWO}


@pytest.mark.clause("X2", "deal.hidden", "D1")
def test_everyone_sees_the_public_part_of_a_round() -> None:
    """Hands and boneyard by their sizes, the layout, balances and the running clock."""
    assert public_view(IN_PLAY) == PublicView(
        version=20,
        shared_device=False,
        phase=Phase.PLAYING,
        display_names=PerSeat(None, None),
        balances=PerSeat(150, 150),
        banks_ns=PerSeat(BANK_NS, BANK_NS),
        ready=PerSeat(one=False, two=False),
        hand_sizes=PerSeat(3, 4),
        turn=ONE,
        round=PublicRound(
            number=1,
            opening=OpeningPrivilege.RANKED,
            layout=IN_PLAY.current.layout,
            boneyard_size=19,
            passes=0,
            auction=None,
            auction_maximum_points=0,
            last_transfer=None,
        ),
        fair_deal=FairDeal(b"", PerSeat(b"", b""), PerSeat(one=False, two=False)),
        settlement=None,
        result=None,
        final_hands=None,
        clock=Decision(ONE, STARTED_NS, BANK_NS),
    )


@pytest.mark.clause("X2", "deal.hidden", "C7")
def test_the_player_on_turn_sees_the_own_hand_and_what_it_may_do() -> None:
    """Each tile with its playable ends, and the actions ready to send."""
    assert own_view(IN_PLAY, Audience.SEAT_ONE) == OwnView(
        seat=ONE,
        hand=(
            HandTile(tile("0-0"), ()),
            HandTile(tile("1-2"), (End.EAST,)),
            HandTile(tile("3-5"), (End.WEST,)),
        ),
        must_play=None,
        legal_actions=(
            LegalCommand(play("1-2 E"), 11, None),
            LegalCommand(play("3-5 W"), 5, Transfer(TWO, earned=5, paid=5)),
        ),
    )


@pytest.mark.clause("X2", "deal.hidden")
def test_the_player_who_waits_sees_the_own_hand_only() -> None:
    """No action, and no playable ends."""
    hand = tuple(HandTile(held, ()) for held in tiles("1-1 2-6 4-4 5-6"))
    assert own_view(IN_PLAY, Audience.SEAT_TWO) == OwnView(TWO, hand, must_play=None, legal_actions=())


@pytest.mark.clause("X2", "deal.hidden")
def test_a_spectator_has_no_own_part() -> None:
    """Fault 86: no hands, no legal moves."""
    assert all(own_view(state, Audience.SPECTATOR) is None for state in many_states())


@pytest.mark.clause("X2", "B3")
def test_a_forced_tile_is_shown_to_its_player_alone() -> None:
    """The ranked opening's tile and a playable drawn one."""
    for state in (
        Match(deal=order(one="6-6")).start().state,
        playing("2-3", one="3-6 1-1", two="0-0", must_play="3-6"),
    ):
        mine, theirs = own_view(state, Audience.SEAT_ONE), own_view(state, Audience.SEAT_TWO)
        assert mine is not None
        assert mine.must_play == state.current.must_play
        assert theirs is not None
        assert theirs.must_play is None
        assert list(tiles_in(public_view(state))) == []


@pytest.mark.clause("A5", "A1", "X2")
def test_bids_and_their_limit_are_public() -> None:
    """Jockey, standing bid, and the largest bid that the answering player can pay."""
    state = bidding(jockey=ONE, balances=(100, 200), standing=25)
    current = public_view(state).round
    assert current is not None
    assert current.auction == Auction(ONE, StandingBid(TWO, 25))
    assert current.auction_maximum_points == 115
    own = own_view(state, Audience.SEAT_ONE)
    assert own is not None
    assert own.legal_actions == (
        LegalCommand(cmd.AcceptBid(), transfer=Transfer(TWO, earned=25, paid=25)),
        LegalBids(cmd.Raise, 30, 115, 15),
    )


@pytest.mark.clause("D5", "X2")
def test_a_block_shows_both_hands_and_a_domino_neither() -> None:
    """The hands of a block fix the payment; after a domino the other hand stays hidden while the match lasts."""
    blocked = sent(playing("[2-2]", one="1-3", two="0-0", boneyard="", passes=1), (ONE, cmd.Pass()))
    assert set(tiles_in(public_view(blocked))) == {*tiles("1-3 0-0")}
    dominoed = sent(playing("2-3", one="3-4", two="0-0"), (ONE, play("3-4 E")))
    assert list(tiles_in(public_view(dominoed))) == []
    assert public_view(dominoed).final_hands is None
    over = sent(dominoed, (TWO, cmd.Resign()))
    assert public_view(over).final_hands == PerSeat((), tiles("0-0"))


@pytest.mark.clause("P2", "auto.recorded")
def test_the_last_transfer_is_shown_as_earned_and_paid() -> None:
    """It stays until the next one."""
    state = playing("[6-6]", one="6-3 1-1", two="3-4 0-0")
    current = public_view(sent(state, (ONE, play("6-3 E")), (TWO, play("3-4 E")))).round
    assert current is not None
    assert current.last_transfer == Transfer(TWO, earned=15, paid=15)


STOPPED = [
    (Match().state, StoppedClock(StopReason.NOT_STARTED, CREATED.start_timeout_ns)),
    (
        sent(playing("2-3", one="3-4", two="0-0"), (ONE, play("3-4 E"))),
        StoppedClock(
            StopReason.WAITING_FOR_CONTINUE, STARTED_NS + seconds(1) + STORING_NS + CREATED.continue_timeout_ns
        ),
    ),
    (
        sent(on_shared_device(playing("2-3", one="3-4 1-1", two="0-0")), (ONE, play("3-4 E"))),
        StoppedClock(StopReason.HANDOVER, None),
    ),
    (sent(IN_PLAY, (ONE, cmd.Resign())), StoppedClock(StopReason.OVER, None)),
    (advance(IN_PLAY, served(IN_PLAY, cmd.SuspendClocks())), StoppedClock(StopReason.SUSPENDED, None)),
]


@pytest.mark.clause("clock.stops", "clock.handover", "S2", "F4")
@pytest.mark.parametrize(("state", "clock"), STOPPED)
def test_a_stopped_clock_says_why(state: MatchState, clock: StoppedClock) -> None:
    """And until when, if the wait ends by itself."""
    assert public_view(state).clock == clock


@pytest.mark.clause("clock.before-deadline", "X2")
def test_the_deadline_shown_is_the_deadline_that_decides() -> None:
    """Fault 55: the clock in the view is the decision itself."""
    clock = public_view(IN_PLAY).clock
    assert isinstance(clock, Decision)
    assert clock.deadline_ns == STARTED_NS + seconds(130)
    assert clock is IN_PLAY.decision


@pytest.mark.clause("X2", "B4")
def test_before_the_start_there_is_nothing_to_hide() -> None:
    """No round, no hands, one action."""
    state = Match().state
    assert public_view(state).round is None
    assert public_view(state).hand_sizes == PerSeat(0, 0)
    assert own_view(state, Audience.SEAT_ONE) == OwnView(ONE, (), None, (LegalCommand(cmd.Start()),))


@pytest.mark.clause("K7", "S1")
def test_a_device_acts_for_one_between_rounds() -> None:
    """Its own part names the seat it stands for."""
    own = own_view(Match(created=ON_SHARED_DEVICE).state, Audience.DEVICE)
    assert own == OwnView(ONE, (), None, (LegalCommand(cmd.Start()),))


@pytest.mark.clause("X2")
def test_the_view_names_what_it_shows() -> None:
    """Fault 82: a field that the state gains is in no view until somebody puts it there."""
    assert set(PublicView._fields) == {
        *("version", "shared_device", "phase", "display_names", "balances", "banks_ns", "ready", "hand_sizes"),
        *("turn", "round", "settlement", "result", "final_hands", "clock", "fair_deal"),
    }
    assert set(PublicRound._fields) == {
        *("number", "opening", "layout", "boneyard_size", "passes"),
        *("auction", "auction_maximum_points", "last_transfer"),
    }
    assert set(OwnView._fields) == {"seat", "hand", "must_play", "legal_actions"}


@pytest.mark.clause("X2", "deal.hidden", "D5")
def test_no_live_view_holds_a_tile_of_another_hand_or_of_the_boneyard() -> None:
    """Every tile anywhere in a view: none in the public part, the own hand's in the own part."""
    for state in many_states():
        if state.result is None and state.round is not None and not isinstance(state.settlement, ev.RoundBlocked):
            assert list(tiles_in(public_view(state))) == []
            for audience, seat in SEAT_OF.items():
                assert set(tiles_in(own_view(state, audience))) <= set(state.round.hands[seat.index])


@pytest.mark.clause("X2", "deal.hidden")
@pytest.mark.parametrize("audience", SEAT_OF)
def test_a_view_is_the_same_whatever_the_hidden_tiles_are(audience: Audience) -> None:
    """Twin worlds: the tiles that a player cannot know change places, and the view does not change."""
    chance = random.Random(86)
    twins = 0
    for state in many_states():
        if state.result is None and state.round is not None and not isinstance(state.settlement, ev.RoundBlocked):
            twin = with_hidden_tiles_shuffled(state, SEAT_OF[audience], chance)
            twins += twin != state
            assert public_view(twin) == public_view(state)
            assert own_view(twin, audience) == own_view(state, audience)
    assert twins > 100


def with_hidden_tiles_shuffled(state: MatchState, observer: Seat, chance: random.Random) -> MatchState:
    """The state with the other hand and the boneyard dealt anew among each other."""
    current, other = state.current, observer.other
    hidden = [*current.hands[other.index], *current.boneyard]
    chance.shuffle(hidden)
    size = len(current.hands[other.index])
    hands = current.hands.having(other, tuple(sorted(hidden[:size])))
    must_play = current.must_play if state.turn is observer else None
    return state._replace(round=current._replace(hands=hands, boneyard=tuple(hidden[size:]), must_play=must_play))


def tiles_in(value: object) -> Iterator[Tile]:
    """Every tile that is anywhere in a value, tiles on the table excepted."""
    if isinstance(value, Tile):
        yield value
    elif isinstance(value, tuple):
        for part in value:
            yield from tiles_in(part)
    elif dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            yield from tiles_in(getattr(value, field.name))


@pytest.mark.clause("X2")
def test_the_sizes_of_both_hands_are_public() -> None:
    """They follow the draws."""
    state = sent(playing("2-3", one="1-1", two="0-0", boneyard="0-1 0-4"), (ONE, cmd.DrawTile()))
    view = public_view(state)
    assert view.hand_sizes == PerSeat(2, 1)
    assert view.round is not None
    assert view.round.boneyard_size == 1
