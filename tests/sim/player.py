"""A player who means it: watches, thinks, often until the last moment, sends, and repeats until there is an answer."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from uuid import UUID

import grpc

from spectacularbid.v1 import commands_pb2, outcomes_pb2, views_pb2
from spectacularbid.v1 import match_service_pb2 as pb
from tests.sim.clients import Fidgets, View, Watcher
from tests.sim.machine import ClientCall, WayIn
from tests.sim.transport import Caller
from tests.sim.truth import Attempt
from tests.sim.world import MS_NS, Event

ANSWER_TIMEOUT_NS = 1_200 * MS_NS
MOST_ATTEMPTS = 200
SCRIPTED_LATENCY_NS = 5 * MS_NS
_SEATS = {"one": 1, "two": 2}


@dataclass(frozen=True, slots=True)
class Temper:
    """How a player uses the clock: the odds of aiming at the deadline, of its last moments, of moving at once."""

    aims: float = 0.55
    cuts_it_fine: float = 0.3
    is_quick: float = 0.35
    resigns: float = 0.01


@dataclass(slots=True, eq=False)
class Pending:
    """A command that has no answer yet."""

    command_id: str
    command: commands_pb2.Command
    expected_version: int | None
    tries: int = 0
    timer: Event | None = None
    calls: list[ClientCall] = field(default_factory=list)


class Player(Watcher):
    """A player. With `fresh_tokens` every command comes with a token that the service has not seen."""

    def __init__(
        self,
        machine: WayIn,
        chance: Random,
        holder: str,
        match_id: str,
        fidgets: Fidgets,
        *,
        tokens: list[str],
        temper: Temper,
        plays: bool,
        fresh_tokens: bool,
    ) -> None:
        method = "PlayMatch" if plays else "WatchMatch"
        super().__init__(machine, chance, holder, match_id, fidgets, token=tokens[0], method=method)
        self.temper = temper
        self.pending: Pending | None = None
        self.repeats_after_ns = (40 * MS_NS, 250 * MS_NS)
        """How soon a command is sent again that could not be answered: at least, and less than."""
        self._tokens = tokens
        self.comes_as_a_stranger = fresh_tokens
        """Whether each command comes with a token that the service has not seen."""
        self._tokens_used = 0
        self._thinking: Event | None = None
        self._planned_version = 0
        self._next_latency_ns = 0

    def begin_anew(self) -> None:
        super().begin_anew()
        self._planned_version = 0

    def saw(self, view: View) -> None:
        """Think about it, once a version."""
        assert isinstance(view, views_pb2.MatchView)
        if view.public.version > self._planned_version and self.pending is None and not self.is_silent:
            self._planned_version = view.public.version
            if self._thinking is not None:
                self._thinking.cancel()
            if view.own.legal_actions:
                self._think(view)

    def answered(self, message: pb.PlayMatchResponse, sent_ns: int) -> None:
        if message.WhichOneof("message") == "outcome":
            self._decided(message.outcome, sent_ns)
        elif self.pending is not None and message.error.command_id == self.pending.command_id:
            self._failed(self.pending)

    def stream_ended(self, stream: ClientCall) -> None:
        """What it left unanswered is to be repeated."""
        if self.pending is not None and stream in self.pending.calls:
            self._failed(self.pending)

    def move_at(self, arrives_ns: int) -> None:
        """Send the first legal action so that it arrives at this instant of true time."""

        def send() -> None:
            if not isinstance(self.view, views_pb2.MatchView):
                return  # nobody has shown it the match, which the audit does not pass over
            actions = self.view.own.legal_actions
            if actions and self.pending is None:
                self._next_latency_ns = SCRIPTED_LATENCY_NS
                self.submit(actions[0].command, None)

        self.world.at(arrives_ns - SCRIPTED_LATENCY_NS, send)

    def give_up(self) -> None:
        """Forget the command that has no answer yet, as a client does that is switched off."""
        if self.pending is not None and self.pending.timer is not None:
            self.pending.timer.cancel()
        self.pending = None

    def silence(self) -> None:
        """Send nothing new any more."""
        self.is_silent = True
        if self._thinking is not None:
            self._thinking.cancel()

    def _think(self, view: views_pb2.MatchView) -> None:
        command = self._choice(view)
        clock = view.public.clock
        delay_ns = self.chance.randrange(20 * MS_NS, 600 * MS_NS)
        is_own = clock.HasField("running") and clock.running.seat == _SEATS.get(self.holder, clock.running.seat)
        if is_own:
            mood = self.chance.random()
            if mood < self.temper.aims:
                delay_ns = self._aim_ns(clock.running.deadline_unix_ns)
            elif mood > self.temper.aims + self.temper.is_quick:
                self.truth.count("a player lets time run out")
                return
        expected = view.public.version if self.chance.random() < 0.5 else None
        self._thinking = self.world.after(delay_ns, lambda: self.submit(command, expected))

    def _aim_ns(self, deadline_ns: int) -> int:
        """How long to wait so that the command arrives around the deadline, by the service's line of time."""
        fine = self.chance.random() < self.temper.cuts_it_fine
        early, late = (-100, 0) if fine else (-800, 100)
        target_ns = deadline_ns + self.chance.randrange(early * MS_NS, late * MS_NS)
        self._next_latency_ns = self.latency_ns()
        return max(0, target_ns - self.world.service_ns() - self._next_latency_ns)

    def _choice(self, view: views_pb2.MatchView) -> commands_pb2.Command:
        if self.chance.random() < self.temper.resigns and view.public.phase != views_pb2.PHASE_NOT_STARTED:
            return commands_pb2.Command(resign=commands_pb2.Resign())
        action = self.chance.choice(list(view.own.legal_actions))
        which = action.WhichOneof("action")
        if which == "make_bid":
            return commands_pb2.Command(make_bid=commands_pb2.Bid(points=action.make_bid.minimum_points))
        if which == "raise_bid":
            return commands_pb2.Command(raise_bid=commands_pb2.Raise(points=action.raise_bid.minimum_points))
        return action.command

    def submit(self, command: commands_pb2.Command, expected_version: int | None) -> None:
        """Send a command until it is answered."""
        command_id = str(UUID(int=self.chance.getrandbits(128)))
        self.pending = Pending(command_id, command, expected_version)
        self._try(self.pending)

    def _try(self, pending: Pending) -> None:
        if self.pending is not pending:
            return
        pending.tries += 1
        if pending.tries > MOST_ATTEMPTS or (pending.tries > 1 and self.happens("gives_up")):
            self.pending = None
            return
        self._send(pending)
        if self.happens("duplicate"):
            self.world.after(self.chance.randrange(300 * MS_NS), lambda: self._send(pending))
        pending.timer = self.world.after(ANSWER_TIMEOUT_NS, lambda: self._failed(pending))

    def _send(self, pending: Pending) -> None:
        if self.happens("loss"):
            return
        attempt = Attempt(
            self.match_id, self.holder, pending.command_id, pending.command, pending.expected_version, is_honest=True
        )
        self.truth.attempts[self.match_id, pending.command_id].append(attempt)
        latency_ns = self._next_latency_ns or self.latency_ns()
        self._next_latency_ns = 0
        if self.happens("delay"):
            latency_ns += self.chance.randrange(100 * MS_NS, 2_000 * MS_NS)
        is_open = self.stream is not None and self.healthy_since_ns is not None and not self.is_sent_away
        if self._method == "PlayMatch" and self.stream is not None and is_open:
            pending.calls.append(self.stream)
            self.stream.send(_played(pending), attempt, latency_ns)
            return
        call = self._call(pending)
        call.send(_submitted(self.match_id, pending), attempt, latency_ns)
        if self.happens("cancel"):
            self.world.after(latency_ns + self.chance.randrange(-5 * MS_NS, 20 * MS_NS), call.cancel)

    def _call(self, pending: Pending) -> ClientCall:
        token = self._tokens[0]
        if self.comes_as_a_stranger:
            self._tokens_used += 1
            token = self._tokens[self._tokens_used % len(self._tokens)]
        loses_answer = self.happens("lost_answer")

        def received(data: bytes, sent_ns: int) -> None:
            if not loses_answer:
                self._decided(pb.SubmitCommandResponse.FromString(data).outcome, sent_ns)

        def ended(code: grpc.StatusCode) -> None:
            if code is not grpc.StatusCode.OK and not loses_answer:
                self._ended(pending, code)

        call = ClientCall(self.machine, "SubmitCommand", token, Caller(received, ended, self.latency_ns))
        pending.calls.append(call)
        return call

    def _ended(self, pending: Pending, code: grpc.StatusCode) -> None:
        if code not in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.RESOURCE_EXHAUSTED, grpc.StatusCode.CANCELLED):
            self.truth.violated("an honest command is understood", f"{self.match_id} {pending.command_id}: {code}")
        self._failed(pending)

    def _failed(self, pending: Pending) -> None:
        """No answer, or a call to repeat: soon again with the same id."""
        if self.pending is pending:
            if pending.timer is not None:
                pending.timer.cancel()
            pending.timer = self.world.after(self.chance.randrange(*self.repeats_after_ns), lambda: self._try(pending))

    def _decided(self, outcome: outcomes_pb2.CommandOutcome, sent_ns: int) -> None:
        self.truth.answers.append((self.match_id, self.holder, outcome, sent_ns))
        pending = self.pending
        if pending is not None and outcome.command_id == pending.command_id:
            if pending.timer is not None:
                pending.timer.cancel()
            self.pending = None
            if outcome.WhichOneof("outcome") == "refused":
                self._planned_version = 0  # think again, on whatever the view shows
        self.take_view(outcome.view, sent_ns)


def _played(pending: Pending) -> bytes:
    message = pb.PlayMatchCommand(
        command_id=pending.command_id, expected_version=pending.expected_version, command=pending.command
    )
    return pb.PlayMatchRequest(command=message).SerializeToString()


def _submitted(match_id: str, pending: Pending) -> bytes:
    return pb.SubmitCommandRequest(
        match_id=match_id,
        command_id=pending.command_id,
        expected_version=pending.expected_version,
        command=pending.command,
    ).SerializeToString()
