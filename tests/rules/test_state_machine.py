"""Any commands at any time: legal and illegal ones, in time and late, and the service's own."""

import random

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from engine import commands as cmd
from engine import events as ev
from engine.clock import SECOND_NS, Arrival, Verdict
from engine.decide import Ruling, decide, decide_service
from engine.evolve import advance, replay
from engine.faults import TOLERANCES
from engine.invariants import check
from engine.legal import LegalBids, legal_actions
from engine.refusals import Refusal, RefusalReason
from engine.seats import SEATS, Seat
from engine.state import MatchState, acting_seat
from engine.tiles import DOUBLE_SIX
from engine.view import Audience, own_view, public_view
from tests.support.rules.given import CREATED, ON_SHARED_DEVICE
from tests.support.rules.properties import UNHURRIED
from tests.support.rules.self_play import audit
from tests.support.rules.universe import EVERY_COMMAND, spelled_out

COMMANDS = st.sampled_from((*EVERY_COMMAND, cmd.Resign()))
SEAT = st.sampled_from(SEATS)
SEEDS = st.integers(0, 1_000_000)
SEARCH = settings(
    UNHURRIED,
    max_examples=100,
    stateful_step_count=30,
    phases=(Phase.explicit, Phase.reuse, Phase.generate),  # a seed does not shrink
)
WAITS_NS = st.integers(0, 9 * SECOND_NS) | st.integers(9 * SECOND_NS, 30 * SECOND_NS)
SPANS_NS = st.integers(0, 3_600 * SECOND_NS)


class MatchMachine(RuleBasedStateMachine):
    """One match under any sequence of commands; what would end it is usually only tried out, not stored."""

    @initialize(is_shared=st.booleans(), seed=SEEDS, turns=st.integers(2, 250))
    def create(self, *, is_shared: bool, seed: int, turns: int) -> None:
        """A match with both seats taken, somewhere between its start and its end."""
        created = ON_SHARED_DEVICE if is_shared else CREATED
        self.now_ns = 0
        self.deal = DOUBLE_SIX
        self.state = advance(None, (created,))
        self.log: list[ev.Step] = [(created,)]
        for seat, name in zip(SEATS, ("Ada", "Bo"), strict=True):
            self.store(self.service_ruling(cmd.TakeSeat(seat, name)))
        self.take_turns(seed=seed, turns=turns, wait_ns=0, storing_ns=0)

    def store(self, step: ev.Step | Refusal) -> None:
        """Log and fold a step; versions have no gaps."""
        assert not isinstance(step, Refusal)
        if step:
            before, self.state = self.state, advance(self.state, step)
            self.log.append(step)
            check(self.state)
            audit(before, self.state)
            assert self.state.version == before.version + 1 == len(self.log)

    def ruling(self, seat: Seat, command: cmd.Command, arrival: Arrival, version: int | None = None) -> Ruling:
        """The ruling on a player's command, which changes nothing by itself."""
        request = cmd.Request(seat, command, arrival, version)
        return decide(self.state, request, now_ns=max(self.now_ns, arrival.latest_ns), deal=self.deal)

    def service_ruling(self, command: cmd.ServiceCommand) -> ev.Step | Refusal:
        return decide_service(self.state, command, now_ns=self.now_ns, deal=self.deal)

    def legal_command(self, seat: Seat, choice: int) -> cmd.Command:
        actions = legal_actions(self.state, seat)
        action = actions[choice % len(actions)]
        if isinstance(action, LegalBids):
            return action.kind(min(action.maximum, action.minimum + choice % 4 * action.step))
        return action.command

    def to_act(self) -> Seat:
        if self.state.options.shared_device:
            return acting_seat(self.state)
        return self.state.turn or next(seat for seat in SEATS if not self.state.ready[seat.index])

    def is_live(self) -> bool:
        return self.state.result is None and self.state.suspended_at_ns is None

    def is_timed(self) -> bool:
        return self.is_live() and self.state.decision is not None

    @precondition(is_live)
    @rule(seed=SEEDS, turns=st.integers(1, 40), wait_ns=WAITS_NS, storing_ns=st.integers(0, SECOND_NS))
    def take_turns(self, seed: int, turns: int, wait_ns: int, storing_ns: int) -> None:
        """Legal commands, the first after a long think; only a late one loses. The end of the match is put off."""
        chance = random.Random(seed)
        self.deal = tuple(chance.sample(DOUBLE_SIX, len(DOUBLE_SIX)))
        for _ in range(turns):
            seat, due_ns = self.to_act(), self.state.due_ns
            is_late = self.state.decision is not None and due_ns is not None and self.now_ns + wait_ns >= due_ns
            command = self.legal_command(seat, chance.randrange(10_000))
            ruling = self.ruling(seat, command, Arrival.at(self.now_ns + wait_ns))
            assert (ruling.refusal is not None) is is_late
            assert (ruling.verdict is Verdict.LATE) is is_late
            if isinstance(ruling.events[-1], ev.MatchWon):
                return
            self.store(ruling.events)
            self.now_ns += wait_ns + storing_ns
            wait_ns = chance.randrange(SECOND_NS)

    @rule(seat=SEAT, command=COMMANDS, wait_ns=WAITS_NS, versions_ago=st.none() | st.integers(0, 2))
    def send_anything(self, seat: Seat, command: cmd.Command, wait_ns: int, versions_ago: int | None) -> None:
        """Legal or not, from either seat: a refusal in time brings no event; what is legal would be accepted."""
        version = None if versions_ago is None else self.state.version - versions_ago
        arrival = Arrival.at(self.now_ns + wait_ns)
        ruling = self.ruling(seat, command, arrival, version)
        if ruling.refusal is None:
            is_listed = command in list(spelled_out(legal_actions(self.state, seat)))
            assert is_listed or isinstance(command, cmd.Resign)
            assert not versions_ago
        elif self.is_timed() and arrival.earliest_ns >= (self.state.due_ns or 0):
            assert_lost_on_time(self.state, ruling.events)
        else:
            assert ruling.events == ()

    @precondition(is_timed)
    @rule(command=COMMANDS, seat=SEAT, late_ns=st.integers(0, 2))
    def arrive_at_the_deadline(self, command: cmd.Command, seat: Seat, late_ns: int) -> None:
        """Whatever it is and whoever sends it, the player on turn has lost."""
        decision = self.state.decision
        assert decision is not None
        ruling = self.ruling(seat, command, Arrival.at(decision.deadline_ns + late_ns), version=1)
        late = RefusalReason.TIME_EXPIRED if seat is decision.seat else RefusalReason.MATCH_OVER
        assert ruling.refusal == Refusal(late)
        assert_lost_on_time(self.state, ruling.events)

    @precondition(is_timed)
    @rule(choice=st.integers(0, 9_999))
    def arrive_one_nanosecond_before_the_deadline(self, choice: int) -> None:
        """Accepted, and one nanosecond of the bank is left to a turn that ended."""
        decision = self.state.decision
        assert decision is not None
        command = self.legal_command(decision.seat, choice)
        ruling = self.ruling(decision.seat, command, Arrival.at(decision.deadline_ns - 1))
        assert (ruling.refusal, ruling.verdict) == (None, Verdict.IN_TIME)
        after = advance(self.state, ruling.events)
        unchanged = isinstance(command, cmd.DrawTile)
        assert after.banks_ns[decision.seat.index] == (decision.bank_ns if unchanged else 1)

    @precondition(is_timed)
    @rule(command=COMMANDS, before_ns=st.integers(1, SECOND_NS), after_ns=st.integers(0, SECOND_NS))
    def arrive_across_the_deadline(self, command: cmd.Command, before_ns: int, after_ns: int) -> None:
        """A narrow stamp is in time by doubt, a wide one aborts."""
        decision = self.state.decision
        assert decision is not None
        arrival = Arrival(decision.deadline_ns - before_ns, decision.deadline_ns + after_ns)
        ruling = self.ruling(decision.seat, command, arrival)
        if before_ns + after_ns <= TOLERANCES.widest_stamp_ns:
            assert ruling.verdict is Verdict.IN_TIME_BY_DOUBT
            assert not any(isinstance(event, ev.MatchAborted) for event in ruling.events)
        else:
            assert [type(event) for event in ruling.events] == [ev.MatchAborted]

    @rule(closed_ns=SPANS_NS)
    def check_the_clock(self, closed_ns: int) -> None:
        """Nothing before it is due; then the loss, or the next round, or the abort."""
        step = self.service_ruling(cmd.CheckClock(closed_ns))
        if self.state.result is not None:
            assert step == Refusal(RefusalReason.MATCH_OVER)
        elif self.state.due_ns is None or closed_ns < self.state.due_ns:
            assert step == ()
        else:
            assert not isinstance(step, Refusal)
            check(advance(self.state, step))

    @precondition(lambda self: self.is_live() and self.state.settlement is not None)
    @rule()
    def wait_for_nobody(self) -> None:
        """The round continues by itself."""
        assert self.state.due_ns is not None
        self.now_ns = max(self.now_ns, self.state.due_ns)
        self.store(self.service_ruling(cmd.CheckClock(self.now_ns)))

    @precondition(is_live)
    @rule(span_ns=SPANS_NS, seat=SEAT, command=COMMANDS)
    def stop_and_go(self, span_ns: int, seat: Seat, command: cmd.Command) -> None:
        """A planned stop keeps what was left, and answers no command."""
        left_ns = None if self.state.due_ns is None else self.state.due_ns - self.now_ns
        self.store(self.service_ruling(cmd.SuspendClocks()))
        self.now_ns += span_ns
        if left_ns is not None:
            assert self.ruling(seat, command, Arrival.at(self.now_ns)).refusal is not None
        self.store(self.service_ruling(cmd.ResumeClocks()))
        assert left_ns == (None if self.state.due_ns is None else self.state.due_ns - self.now_ns)

    @rule()
    def reload(self) -> None:
        """The log alone gives the same state."""
        assert replay(self.log) == self.state

    @precondition(lambda self: self.is_live() and self.state.version > 250)
    @rule(seat=SEAT)
    def resign(self, seat: Seat) -> None:
        """Late in the match somebody gives up."""
        self.store(self.ruling(seat, cmd.Resign(), Arrival.at(self.now_ns)).events)

    @precondition(lambda self: self.is_timed() and self.state.version > 250)
    @rule()
    def run_out_of_time(self) -> None:
        """Or thinks for too long."""
        decision = self.state.decision
        assert decision is not None
        self.now_ns = decision.deadline_ns
        self.store(self.service_ruling(cmd.CheckClock(self.now_ns)))

    @invariant()
    def views_can_be_built(self) -> None:
        """For every audience, of every state."""
        assert public_view(self.state).version == len(self.log)
        assert own_view(self.state, Audience.SPECTATOR) is None

    def teardown(self) -> None:
        assert replay(self.log) == self.state


def assert_lost_on_time(state: MatchState, step: ev.Step) -> None:
    """The loss of the player on turn, recorded at the deadline."""
    assert state.decision is not None
    won = ev.MatchWon(state.decision.seat.other, ev.WinReason.TIME, state.decision.deadline_ns)
    assert step == (ev.ClockStopped(state.decision.seat, state.decision.bank_ns), won)


@pytest.mark.clause("auto.refused", "clock.before-deadline", "clock.expiry", "K5", "K6", "F3", "F4", "X3", "S2")
def test_no_sequence_of_commands_breaks_a_promise() -> None:
    """Invariants after every step, versions without gaps, banks that never rise, and a log that tells it all."""
    run_state_machine_as_test(MatchMachine, settings=SEARCH)
