"""Start, Continue, and what happens before, between and instead of rounds."""

import pytest

from engine import commands as cmd
from engine import events as ev
from engine.clock import SECOND_NS
from engine.evolve import advance
from engine.legal import LegalCommand, legal_actions
from engine.refusals import Refusal, RefusalReason
from engine.seats import PerSeat, Seat
from engine.state import MatchState, Phase
from engine.tiles import DOUBLE_SIX
from tests.support.rules.given import (
    CREATED,
    ONE,
    STARTED_NS,
    STORING_NS,
    TWO,
    Match,
    bidding,
    events_of,
    playing,
    reason_of,
    seconds,
    sent,
    served,
    started_clock,
    stopped_clock,
    then,
    when,
    with_balances,
)
from tests.support.rules.notation import play

DOMINOED = sent(playing("2-3", one="3-4", two="0-0"), (ONE, play("3-4 E")))
BLOCKED = sent(playing("[2-2]", one="1-3", two="0-0", boneyard="", passes=1), (ONE, cmd.Pass()))
SETTLED_NS = STARTED_NS + seconds(1) + STORING_NS


@pytest.mark.clause("S1")
@pytest.mark.parametrize(("first", "second"), [(ONE, TWO), (TWO, ONE)])
def test_the_match_starts_when_both_seats_have_started(first: Seat, second: Seat) -> None:
    """In either order; the second Start deals."""
    match = Match()
    assert events_of(match.send(first, cmd.Start())) == (ev.PlayerReady(first),)
    assert match.state.phase is Phase.NOT_STARTED
    assert legal_actions(match.state, first) == ()
    assert legal_actions(match.state, second) == (LegalCommand(cmd.Start()),)
    step = events_of(match.send(second, cmd.Start()))
    assert isinstance(step[1], ev.RoundDealt)
    assert (match.state.current.number, match.state.ready) == (1, PerSeat(one=False, two=False))


@pytest.mark.clause("S1")
@pytest.mark.parametrize("settled", [DOMINOED, BLOCKED])
def test_the_next_round_begins_when_both_seats_have_continued(settled: MatchState) -> None:
    """One alone waits for the other."""
    for seat in (ONE, TWO):
        assert legal_actions(settled, seat) == (LegalCommand(cmd.Continue()),)
    waiting = then(settled, when(settled, TWO, cmd.Continue()))
    assert (waiting.phase, waiting.ready) == (Phase.SETTLED, PerSeat(one=False, two=True))
    step = events_of(when(waiting, ONE, cmd.Continue()))
    assert isinstance(step[1], ev.RoundDealt)
    after = advance(waiting, step)
    assert (after.current.number, after.settlement, after.waiting_until_ns) == (2, None, None)


@pytest.mark.clause("S3")
def test_a_second_start_or_continue_is_refused() -> None:
    """The seat is ready already."""
    match = Match()
    match.send(ONE, cmd.Start())
    assert reason_of(match.send(ONE, cmd.Start())) is RefusalReason.ALREADY_READY
    continued = then(DOMINOED, when(DOMINOED, ONE, cmd.Continue()))
    assert reason_of(when(continued, ONE, cmd.Continue())) is RefusalReason.ALREADY_READY


@pytest.mark.clause("S1")
def test_start_and_continue_have_their_own_times() -> None:
    """Start comes once, Continue between rounds."""
    assert reason_of(when(Match().state, ONE, cmd.Continue())) is RefusalReason.WRONG_PHASE
    assert reason_of(when(DOMINOED, ONE, cmd.Start())) is RefusalReason.WRONG_PHASE
    assert reason_of(when(playing("2-3", one="0-0", two="1-1"), ONE, cmd.Continue())) is RefusalReason.WRONG_PHASE


@pytest.mark.clause("S2", "clock.stops")
@pytest.mark.parametrize("readied", [(), (ONE,), (TWO,)])
def test_a_round_that_is_not_continued_continues_by_itself(readied: tuple[Seat, ...]) -> None:
    """Nobody can freeze a match: at the end of the wait the next round is dealt, as an event of its own."""
    state = sent(DOMINOED, *((seat, cmd.Continue()) for seat in readied))
    due_ns = SETTLED_NS + CREATED.continue_timeout_ns
    assert state.due_ns == due_ns
    assert served(state, cmd.CheckClock(due_ns - 1), now_ns=due_ns) == ()
    step = served(state, cmd.CheckClock(due_ns), now_ns=due_ns + 7)
    assert step[0] == ev.ContinueTimedOut(due_ns)
    assert isinstance(step[1], ev.RoundDealt)
    assert step[2] == ev.ClockStarted(TWO, due_ns + 7)
    after = advance(state, step)
    assert (after.current.number, after.ready) == (2, PerSeat(one=False, two=False))


@pytest.mark.clause("S2", "P6")
def test_a_match_that_is_not_started_is_aborted() -> None:
    """Without a result, at the end of the wait itself."""
    match = Match()
    match.send(ONE, cmd.Start())
    assert match.serve(cmd.CheckClock(CREATED.start_timeout_ns - 1)) == ()
    late = match.serve(cmd.CheckClock(CREATED.start_timeout_ns), wait_ns=seconds(900))
    assert late == (ev.MatchAborted(ev.AbortReason.START_TIMEOUT, "not started in time", CREATED.start_timeout_ns),)


@pytest.mark.clause("S2")
def test_a_continue_after_the_wait_still_counts_while_the_wait_is_not_settled() -> None:
    """Waiting is no decision: nobody is late for it."""
    late_ns = CREATED.continue_timeout_ns + seconds(5)
    assert when(DOMINOED, ONE, cmd.Continue(), at_ns=late_ns).refusal is None


@pytest.mark.clause("X1")
@pytest.mark.parametrize("seat", [ONE, TWO])
@pytest.mark.parametrize("state", [bidding(jockey=ONE), playing("2-3", one="3-4 1-1", two="0-0"), DOMINOED, BLOCKED])
def test_either_seat_may_resign_at_any_time_after_the_start(state: MatchState, seat: Seat) -> None:
    """Also out of turn and between rounds; the other wins at once."""
    step = events_of(when(state, seat, cmd.Resign(), at_ns=seconds(12)))
    assert step[-1] == ev.MatchWon(seat.other, ev.WinReason.RESIGNATION, STARTED_NS + seconds(12) + STORING_NS)
    after = advance(state, step)
    assert (after.phase, after.turn, after.decision) == (Phase.OVER, None, None)
    assert reason_of(when(after, seat, cmd.Resign())) is RefusalReason.MATCH_OVER


@pytest.mark.clause("X1", "K1")
def test_a_resignation_charges_the_decision_that_it_ends() -> None:
    """The clock of the player on turn stops, whoever resigned; a wait has none."""
    state = playing("2-3", one="3-4 1-1", two="0-0")
    for seat in (ONE, TWO):
        step = events_of(when(state, seat, cmd.Resign(), at_ns=seconds(13)))
        assert stopped_clock(step) == ev.ClockStopped(ONE, seconds(3))
    assert len(events_of(when(DOMINOED, ONE, cmd.Resign()))) == 1


@pytest.mark.clause("X1")
def test_before_the_start_a_seat_leaves_instead_of_resigning() -> None:
    """The match is aborted; after the start leaving is no way out."""
    match = Match()
    assert reason_of(match.send(ONE, cmd.Resign())) is RefusalReason.WRONG_PHASE
    assert match.serve(cmd.Leave(TWO)) == (
        ev.MatchAborted(ev.AbortReason.LEFT_BEFORE_START, "seat TWO left", match.now_ns),
    )
    assert match.serve(cmd.Leave(ONE)) == Refusal(RefusalReason.MATCH_OVER)
    assert Match().start().serve(cmd.Leave(ONE)) == Refusal(RefusalReason.WRONG_PHASE)


@pytest.mark.clause("duel.game")
def test_a_seat_is_taken_once() -> None:
    """Names are public, and the second taker is refused."""
    state = advance(None, (CREATED,))
    step = served(state, cmd.TakeSeat(TWO, "Bo"))
    assert step == (ev.PlayerSeated(TWO, "Bo"),)
    assert advance(state, step).display_names == PerSeat(None, "Bo")
    match = Match()
    assert match.state.display_names == PerSeat("Ada", "Bo")
    assert match.serve(cmd.TakeSeat(ONE, "Eve")) == Refusal(RefusalReason.ALREADY_READY)


@pytest.mark.clause("S1", "clock.stops", "B4")
def test_the_first_clock_of_a_round_starts_with_the_command_that_dealt_it() -> None:
    """Dealing takes no time of anybody's."""
    waiting = then(DOMINOED, when(DOMINOED, ONE, cmd.Continue()))
    step = events_of(when(waiting, TWO, cmd.Continue(), at_ns=seconds(30), deal=DOUBLE_SIX))
    assert started_clock(step) == ev.ClockStarted(TWO, STARTED_NS + seconds(30) + STORING_NS)


@pytest.mark.clause("F5")
def test_a_finished_match_answers_everything_alike() -> None:
    """Commands of players and of the service are refused, whatever they are."""
    over = sent(with_balances(DOMINOED, 150, 150), (ONE, cmd.Resign()))
    for command in (cmd.Continue(), cmd.Resign(), cmd.Start(), cmd.Pass()):
        assert reason_of(when(over, TWO, command, at_ns=900 * SECOND_NS)) is RefusalReason.MATCH_OVER
    assert legal_actions(over, ONE) == ()
