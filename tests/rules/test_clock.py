"""The match clock."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine import commands as cmd
from engine import events as ev
from engine.clock import BANK_NS, DELAY_NS, SECOND_NS, Arrival, Decision, Verdict
from engine.decide import Ruling, decide, decide_service
from engine.evolve import advance
from engine.refusals import Refusal, RefusalReason
from engine.seats import PerSeat, Seat
from engine.state import MatchState
from tests.support.rules.given import (
    ONE,
    STARTED_NS,
    STORING_NS,
    TWO,
    Match,
    bidding,
    events_of,
    playing,
    seconds,
    sent,
    served,
    started_clock,
    stopped_clock,
    then,
    when,
    with_bank,
)
from tests.support.rules.notation import play
from tests.support.rules.properties import UNHURRIED

LENGTH_NS = seconds(130)
DEADLINE_NS = STARTED_NS + LENGTH_NS
HOUR_NS = seconds(3_600)
TURN = playing("2-3", one="3-4 2-6 1-1", two="4-5 0-0 6-6")
LEGAL = play("3-4 E")
ILLEGAL = (cmd.Pass(), cmd.DrawTile(), cmd.Bid(15), play("5-5 N"), cmd.Start(), cmd.Reveal())


def test_the_clock_has_the_lengths_of_the_rule_text() -> None:
    """A bank of 120 seconds and a delay of 10."""
    assert (seconds(120), seconds(10)) == (BANK_NS, DELAY_NS)


@pytest.mark.clause("clock.bank", "clock.delay-first", "clock.example-bank", "K1")
@pytest.mark.parametrize(
    ("used_ns", "bank_used_ns"),
    [
        (0, 0),
        (seconds(8), 0),
        (seconds(10), 0),
        (seconds(10) + 1, 1),
        (seconds(13), seconds(3)),
        (LENGTH_NS - 1, BANK_NS - 1),
    ],
)
def test_the_bank_pays_only_beyond_the_delay(used_ns: int, bank_used_ns: int) -> None:
    """Fault 53: eight seconds cost nothing, thirteen cost three; unused delay is never added."""
    step = events_of(when(TURN, ONE, LEGAL, at_ns=used_ns))
    assert stopped_clock(step) == ev.ClockStopped(ONE, bank_used_ns)
    assert advance(TURN, step).banks_ns == PerSeat(BANK_NS - bank_used_ns, BANK_NS)


@pytest.mark.clause("clock.fresh-delay", "clock.example-next", "K2")
def test_every_turn_has_a_fresh_delay_and_the_bank_that_is_left() -> None:
    """Fault 50: both players' first decisions have ten seconds, and so has every later one."""
    first = then(TURN, when(TURN, ONE, LEGAL, at_ns=seconds(13)))
    second = then(first, when(first, TWO, play("4-5 E"), at_ns=seconds(10)))
    assert first.decision is not None
    assert second.decision is not None
    assert first.decision.deadline_ns - first.decision.started_at_ns == seconds(130)
    assert second.decision.deadline_ns - second.decision.started_at_ns == seconds(127)
    assert second.decision.delay_ends_at_ns - second.decision.started_at_ns == seconds(10)
    assert second.banks_ns == PerSeat(seconds(117), seconds(120))


@pytest.mark.clause("clock.no-refill")
def test_a_new_round_refills_no_bank() -> None:
    """What a player used stays used for the match."""
    state = playing("2-3", one="3-4", two="0-0")
    settled = then(state, when(state, ONE, play("3-4 E"), at_ns=seconds(40)))
    dealt = sent(settled, (ONE, cmd.Continue()), (TWO, cmd.Continue()))
    assert dealt.current.number == 2
    assert dealt.banks_ns == PerSeat(seconds(90), seconds(120))


@pytest.mark.clause("clock.before-deadline", "clock.expiry", "K5", "K6", "duel.win")
@pytest.mark.parametrize("bank_ns", [BANK_NS, seconds(3), 1])
def test_a_command_one_nanosecond_before_the_deadline_is_in_time_and_at_it_is_not(bank_ns: int) -> None:
    """Fault 49: the sender loses, not the opponent; a living player keeps at least one nanosecond."""
    state = with_bank(TURN, bank_ns)
    in_time = then(state, when(state, ONE, LEGAL, at_ns=DELAY_NS + bank_ns - 1))
    assert in_time.banks_ns.one == 1
    late = when(state, ONE, LEGAL, at_ns=DELAY_NS + bank_ns)
    assert late == Ruling(
        events=(
            ev.ClockStopped(ONE, bank_ns),
            ev.MatchWon(TWO, ev.WinReason.TIME, STARTED_NS + DELAY_NS + bank_ns),
        ),
        refusal=Refusal(RefusalReason.TIME_EXPIRED),
        verdict=Verdict.LATE,
    )
    assert advance(state, late.events).banks_ns.one == 0


@pytest.mark.clause("K5", "clock.expiry")
@pytest.mark.parametrize("command", [LEGAL, *ILLEGAL, cmd.Resign()])
@pytest.mark.parametrize("late_ns", [0, 1_000_000, HOUR_NS])
def test_after_the_deadline_any_command_loses(command: cmd.Command, late_ns: int) -> None:
    """Fault 70: there is no grace; illegal or stale or far too late, the loss is recorded at the deadline."""
    late = when(TURN, ONE, command, at_ns=LENGTH_NS + late_ns, version=3)
    assert late.refusal == Refusal(RefusalReason.TIME_EXPIRED)
    assert late.events[-1] == ev.MatchWon(TWO, ev.WinReason.TIME, DEADLINE_NS)


@pytest.mark.clause("K5", "clock.disconnect")
@pytest.mark.parametrize("command", [LEGAL, *ILLEGAL])
def test_the_other_player_s_commands_neither_stop_nor_extend_the_clock(command: cmd.Command) -> None:
    """Faults 61 and 62: refused before the deadline; after it the match is over already."""
    assert when(TURN, TWO, command, at_ns=LENGTH_NS - 1).events == ()
    after = when(TURN, TWO, command, at_ns=LENGTH_NS)
    assert after.refusal == Refusal(RefusalReason.MATCH_OVER)
    assert after.events == (ev.ClockStopped(ONE, BANK_NS), ev.MatchWon(TWO, ev.WinReason.TIME, DEADLINE_NS))


@pytest.mark.clause("K5")
def test_who_resigns_after_the_other_s_deadline_has_won() -> None:
    """Time had decided before."""
    over = advance(TURN, when(TURN, TWO, cmd.Resign(), at_ns=LENGTH_NS).events)
    assert over.result == ev.MatchWon(TWO, ev.WinReason.TIME, DEADLINE_NS)


@pytest.mark.clause("K4", "clock.expiry", "K5")
@pytest.mark.parametrize("state", [TURN, bidding(jockey=TWO), playing("", one="5-5 0-1", two="0-0", must_play="5-5")])
def test_an_expiry_is_settled_when_nothing_stamped_earlier_can_wait(state: MatchState) -> None:
    """Faults 56 and 74: once, in every phase, however late it is noticed, and at the deadline itself."""
    assert served(state, cmd.CheckClock(DEADLINE_NS - 1), now_ns=DEADLINE_NS + HOUR_NS) == ()
    for closed_ns in (DEADLINE_NS, DEADLINE_NS + HOUR_NS):
        step = served(state, cmd.CheckClock(closed_ns), now_ns=DEADLINE_NS + 2 * HOUR_NS)
        assert step == (ev.ClockStopped(ONE, BANK_NS), ev.MatchWon(TWO, ev.WinReason.TIME, DEADLINE_NS))
    again = decide_service(advance(state, step), cmd.CheckClock(DEADLINE_NS), now_ns=DEADLINE_NS, deal=())
    assert again == Refusal(RefusalReason.MATCH_OVER)


@pytest.mark.clause("K4", "clock.before-deadline")
def test_a_command_stamped_in_time_counts_however_late_it_is_handled() -> None:
    """The stamp decides and is charged; the time of storing is when the next decision begins."""
    request = cmd.Request(ONE, LEGAL, Arrival.at(DEADLINE_NS - 1))
    step = events_of(decide(TURN, request, now_ns=DEADLINE_NS + HOUR_NS, deal=()))
    assert stopped_clock(step).bank_used_ns == BANK_NS - 1
    assert started_clock(step) == ev.ClockStarted(TWO, DEADLINE_NS + HOUR_NS)


@pytest.mark.clause("K3")
def test_the_next_clock_begins_when_the_result_is_stored() -> None:
    """The time between arrival and storing is charged to nobody."""
    step = events_of(when(TURN, ONE, LEGAL, at_ns=seconds(12)))
    assert stopped_clock(step) == ev.ClockStopped(ONE, seconds(2))
    assert started_clock(step) == ev.ClockStarted(TWO, STARTED_NS + seconds(12) + STORING_NS)


@pytest.mark.clause("clock.draws", "K2", "auto.refused")
def test_neither_draws_nor_refused_requests_restart_the_delay() -> None:
    """One decision from its first instant to its last."""
    state = playing("2-3", one="1-1", two="0-0", boneyard="0-1 3-5")
    for command in ILLEGAL:
        assert when(state, ONE, command, at_ns=seconds(9)).events == () or command == cmd.DrawTile()
    drawn = sent(state, (ONE, cmd.DrawTile()), (ONE, cmd.DrawTile()))
    assert drawn.decision == state.decision
    assert stopped_clock(events_of(when(drawn, ONE, play("3-5 E"), at_ns=seconds(25)))).bank_used_ns == seconds(15)


@pytest.mark.clause("clock.raise-switches", "clock.opener", "clock.fresh-delay")
def test_the_auction_s_clock_follows_who_must_speak_and_then_the_opener() -> None:
    """Bid and raise switch; acceptance and declining start the opener's turn with a fresh delay."""
    bid = sent(bidding(jockey=ONE), (TWO, cmd.Bid(15)))
    raised = sent(bid, (ONE, cmd.Raise(20)))
    declined = sent(bidding(jockey=ONE), (TWO, cmd.DeclineBidding()))
    clocks = [(bid, ONE), (raised, TWO), (declined, ONE), (sent(bid, (ONE, cmd.AcceptBid())), TWO)]
    clocks.append((sent(raised, (TWO, cmd.AcceptBid())), ONE))
    for state, seat in clocks:
        assert state.decision is not None
        assert (state.decision.seat, state.turn) == (seat, seat)
        assert state.decision.deadline_ns == state.decision.started_at_ns + LENGTH_NS


@pytest.mark.clause("clock.stops", "K3")
def test_no_clock_runs_before_the_start_and_between_rounds() -> None:
    """Faults 58 and 67: an hour passes and the banks are whole; only the waits of Start and Continue end."""
    match = Match()
    match.send(ONE, cmd.Start(), wait_ns=seconds(599))
    assert (match.state.decision, match.state.banks_ns) == (None, PerSeat(BANK_NS, BANK_NS))
    settled = sent(playing("2-3", one="3-4", two="0-0"), (ONE, play("3-4 E")))
    assert settled.decision is None
    ready = then(settled, when(settled, TWO, cmd.Continue(), at_ns=HOUR_NS))
    step = events_of(when(ready, ONE, cmd.Continue(), at_ns=2 * HOUR_NS))
    assert advance(ready, step).banks_ns == PerSeat(BANK_NS, BANK_NS)
    assert started_clock(step).at_ns == STARTED_NS + 2 * HOUR_NS + STORING_NS


@pytest.mark.clause("clock.disconnect", "auto.help", "auto.no-referee", "K2")
def test_no_command_of_a_player_but_a_legal_move_changes_a_deadline() -> None:
    """Faults 62 and 73: there is none to disconnect, reload, watch, ask or claim; refused ones change nothing."""
    names = {kind.__name__ for kind in (*cmd.Command.__args__, *cmd.ServiceCommand.__args__)}
    assert names == {
        *("Start", "Continue", "Reveal", "DeclineBidding", "Bid", "Raise", "AcceptBid"),
        *("PlayTile", "DrawTile", "Pass", "Resign", "CommitEntropy"),
        *("TakeSeat", "Leave", "CheckClock", "Abort", "SuspendClocks", "ResumeClocks"),
    }
    for seat, command in [(ONE, refused) for refused in ILLEGAL] + [(TWO, refused) for refused in ILLEGAL]:
        assert when(TURN, seat, command).events == ()


@pytest.mark.clause("clock.disconnect")
def test_a_reload_finds_the_running_clock() -> None:
    """Fault 65: the decision is in the events, so a restart loads the exact deadline."""
    match = Match().start()
    match.send(ONE, cmd.Pass())
    again: MatchState | None = None
    for step in match.log:
        again = advance(again, step)
    assert again == match.state
    assert again.decision is not None
    assert again.decision.deadline_ns == match.now_ns - SECOND_NS + LENGTH_NS


@pytest.mark.clause("K1", "clock.delay-first")
@UNHURRIED
@given(st.integers(0, BANK_NS), st.integers(-HOUR_NS, HOUR_NS))
def test_a_clock_never_shows_less_than_nothing(bank_ns: int, offset_ns: int) -> None:
    """Fault 52: neither the bank nor the time used from it is ever negative, at any instant."""
    decision = Decision(ONE, STARTED_NS, bank_ns)
    used_ns = decision.bank_used_ns(STARTED_NS + offset_ns)
    assert 0 <= used_ns <= bank_ns
    assert used_ns == min(max(offset_ns - seconds(10), 0), bank_ns)


@pytest.mark.clause("clock.expiry", "K5")
@pytest.mark.parametrize("seat", [ONE, TWO])
def test_either_seat_can_lose_on_time(seat: Seat) -> None:
    """Fault 74: in play and in bidding alike."""
    for state in (playing("2-3", one="3-4 1-1", two="3-5 0-0", turn=seat), bidding(jockey=seat.other)):
        lost = advance(state, served(state, cmd.CheckClock(DEADLINE_NS)))
        assert lost.result == ev.MatchWon(seat.other, ev.WinReason.TIME, DEADLINE_NS)
