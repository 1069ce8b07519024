"""The machine that the service runs on: at most one process at a time, a supervisor, and ways in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import grpc

from tests.sim.backing import Alone, Backing
from tests.sim.disk import Disk
from tests.sim.envoy import Envoy
from tests.sim.process import SimProcess
from tests.sim.store import Weather
from tests.sim.transport import Caller, Sent, ServerCall
from tests.sim.truth import Attempt, Truth
from tests.sim.world import MS_NS, World

RESTART_AFTER_FAILED_START_NS = 500 * MS_NS


class WayIn(Protocol):
    """Where clients send their messages."""

    world: World
    truth: Truth

    def arrive(self, call: ClientCall, sent: Sent) -> None:
        """A message has travelled there."""


class Machine:
    """Starts processes, lets them stop, crash, stall and sleep, and carries calls to the one that lives."""

    def __init__(
        self, world: World, truth: Truth, *, drain_seconds: float, backing: Callable[[SimProcess], Backing]
    ) -> None:
        self.world, self.truth = world, truth
        self._backing = backing
        self.process: SimProcess | None = None
        self.asleep_until_ns = 0
        self.is_ended = False
        self.hold_ns: int | None = None
        """For how long the kernel holds each message; drawn for each when it is not set."""
        self.backlog_ns: int | None = None
        """How long a message waits behind the backlog of a stall; likewise."""
        self.envoy: Envoy | None = None
        """What stamps commands on their way in, if anything does."""
        self.before_start: Callable[[SimProcess], None] = lambda _: None
        self._drain_seconds = drain_seconds
        self.restart_after_ns = RESTART_AFTER_FAILED_START_NS
        """How long the supervisor waits when the process that runs now has ended."""
        self._is_stopping = False

    @property
    def is_up(self) -> bool:
        """Whether a process runs that has opened its door and was not asked to stop."""
        return self.process is not None and self.process.is_open and not self._is_stopping

    def start(self) -> None:
        """Start a process."""
        assert self.process is None
        self._is_stopping = False
        self.process = SimProcess(
            self.world, self.truth, self._backing, drain_seconds=self._drain_seconds, on_end=self._ended
        )
        self.process.hold_ns, self.process.backlog_ns = self.hold_ns, self.backlog_ns
        self.process.envoy = self.envoy
        self.before_start(self.process)

    def crash(self, restart_after_ns: int) -> None:
        """Kill the process; the supervisor starts another one."""
        self.restart_after_ns = restart_after_ns
        if self.process is not None:
            self.process.crash()

    def restart(self, restart_after_ns: int) -> None:
        """Stop the process in a planned way; the supervisor starts another one when it has ended."""
        if self.is_up:
            assert self.process is not None
            self.restart_after_ns = restart_after_ns
            self._is_stopping = True
            self.process.stop()

    def stall(self, length_ns: int) -> None:
        """The event loop does nothing for so long."""
        if self.process is not None:
            self.process.freeze(length_ns, threads_too=False)

    def sigstop(self, length_ns: int) -> None:
        """The process stands still, with all its threads, until SIGCONT."""
        if self.process is not None:
            self.process.freeze(length_ns, threads_too=True)

    def sleep(self, length_ns: int) -> None:
        """The whole machine sleeps: nothing reaches it, and monotonic clocks leave this time out."""
        until_ns = max(self.asleep_until_ns, self.world.now_ns + length_ns)
        slept_ns = until_ns - max(self.asleep_until_ns, self.world.now_ns)
        self.asleep_until_ns = until_ns
        if self.process is not None:
            self.process.freeze(length_ns, threads_too=True)
            self.process.slept_ns += slept_ns

    def end(self) -> None:
        """The end of the world: nothing starts again."""
        self.is_ended = True
        if self.process is not None:
            self.process.crash()

    def arrive(self, call: ClientCall, sent: Sent) -> None:
        """A message reaches the machine; while it sleeps only its wall."""
        if self.asleep_until_ns > self.world.now_ns:
            self.world.at(self.asleep_until_ns, lambda: self.arrive(call, sent))
            return
        if call.process is None:
            call.process = self.process
            if self.process is not None:
                method = self.process.methods.get(call.method)
                call.server = None if method is None else ServerCall(self.process, method, call.token, call.caller)
        if call.process is None or call.server is None or call.process.is_dead:
            call.refused()
        else:
            call.process.take(call.server, sent)

    def _ended(self) -> None:
        self.process = None
        self._is_stopping = False
        if not self.is_ended:
            self.world.after(self.restart_after_ns, self.start)
        self.restart_after_ns = RESTART_AFTER_FAILED_START_NS


class LoneMachine(Machine):
    """A machine whose processes keep their rows on its own disk."""

    def __init__(self, world: World, truth: Truth, *, drain_seconds: float) -> None:
        self.disk = Disk(lambda: world.now_ns)
        self.weather = Weather()
        super().__init__(
            world,
            truth,
            drain_seconds=drain_seconds,
            backing=lambda process: Alone(process, self.disk, self.weather),
        )


class ClientCall:
    """A call from the client's side."""

    def __init__(self, way_in: WayIn, method: str, token: str, caller: Caller) -> None:
        self.method, self.token, self.caller = method, token, caller
        self.machine: Machine | None = None
        """The one of several that it was sent to."""
        self.process: SimProcess | None = None
        self.server: ServerCall | None = None
        self._way_in = way_in
        self._arrives_ns = 0
        self._is_over = False

    def send(self, data: bytes, attempt: Attempt | None, latency_ns: int) -> None:
        """Send a message that travels so long, behind those before it."""
        world, sent = self._way_in.world, Sent(data, attempt)
        self._arrives_ns = max(self._arrives_ns, world.now_ns + latency_ns)
        world.at(self._arrives_ns, lambda: None if self.caller.is_gone else self._way_in.arrive(self, sent))

    def refused(self) -> None:
        """Nobody listens."""
        if not self._is_over:
            self._is_over = True
            world = self._way_in.world
            world.after(
                self.caller.latency_ns(),
                lambda: None if self.caller.is_gone else self.caller.on_end(grpc.StatusCode.UNAVAILABLE),
            )

    def cancel(self) -> None:
        """The client gives the call up; the service hears of it a little later."""
        if not self.caller.is_gone:
            self.caller.is_gone = True
            if self.server is not None and self.process is not None:
                process, server = self.process, self.server
                self._way_in.world.after(self.caller.latency_ns(), lambda: process.client_left(server))

    def read_again(self) -> None:
        """The client reads again after a pause."""
        self.caller.is_reading = True
        if self.server is not None and self.process is not None and not self.process.is_dead:
            self.process.loop.call_soon(self.server.client_reads_again)
