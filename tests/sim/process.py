"""One process of the service: the real core and handlers on fakes of the ports, in a loop that can stand or be killed.

It starts and stops as `service.wiring.Service` does; only grpc's server, the databases and the operating system's
clock and chance are replaced.
"""

from __future__ import annotations

import asyncio
from base64 import b32encode
from collections.abc import Callable
from functools import partial
from random import Random
from typing import Any

import grpc

from service.core import Core
from service.matches import token_hash
from service.metrics import Metrics
from service.ports import StoreUnavailableError
from service.rpc import edge
from service.rpc.arrival import Stamped, stamping
from service.rpc.auth import Gatekeeper
from service.rpc.match_service import MatchService
from service.rpc.render import Renderer
from service.rpc.witness import Witness, witnessed
from service.settings import Settings
from spectacularbid.v1 import match_service_pb2 as pb
from tests.sim.backing import Backing, Behind
from tests.sim.envoy import Envoy
from tests.sim.loop import SimLoop
from tests.sim.transport import Method, Sent, ServerCall
from tests.sim.truth import Life, Truth
from tests.sim.world import MS_NS, World

METRICS = Metrics()
"""Figures are not part of the trace, so all processes share them."""
SETTINGS = Settings.model_construct()
"""The defaults, whatever the environment says."""
STALL_NS, STALL_MEMORY_NS, SLACK_NS, TICK_NS = 50 * MS_NS, 250 * MS_NS, 30 * MS_NS, 10 * MS_NS
"""What the service may assume of its machine. Written down again: a guard that assumes more must be caught."""


class SimEntropy:
    """The `Entropy` port from a seed."""

    def __init__(self, chance: Random) -> None:
        self._chance = chance

    def token(self, prefix: str) -> str:
        return f"{prefix}{self._chance.getrandbits(128):032x}"

    def match_id(self) -> str:
        return b32encode(self._chance.randbytes(16)).decode().rstrip("=").lower()

    def secret(self) -> bytes:
        return self._chance.randbytes(32)


class SimProcess:
    """A process. `on_end` is called once, when it has ended by itself or died."""

    def __init__(
        self,
        world: World,
        truth: Truth,
        backing: Callable[[SimProcess], Backing],
        *,
        drain_seconds: float,
        on_end: Callable[[], None],
    ) -> None:
        self.world, self.truth = world, truth
        self.life = Life(len(truth.lives), world.now_ns)
        truth.lives.append(self.life)
        self.is_dead = False
        self.is_open = False
        self.unready_since_ns: int | None = None
        """Since when it has said that it is going away."""
        self.slept_ns = 0
        self.frozen_until_ns = self.stopped_until_ns = 0
        self.crash_at_effect = 0
        self.hold_ns: int | None = None
        self.envoy: Envoy | None = None
        self.backlog_ns: int | None = None
        self.effects: list[str] = []
        self.methods: dict[str, Method] = {}
        self._on_end, self._drain_seconds = on_end, drain_seconds
        self.frozen_since_ns = 0
        self.chance = world.chance(f"process {self.life.number}")
        shuffling = world.chance(f"order {self.life.number}") if world.seed % 3 else None
        self.loop = SimLoop(lambda: world.now_ns - self.slept_ns, shuffling)
        self._calls: dict[ServerCall, None] = {}
        self._backing = backing(self)
        self._stopping = asyncio.Event()
        self._main = self.loop.create_task(self._run())
        world.processes.append(self)
        world.note(f"process {self.life.number} begins")

    def due_ns(self) -> int | None:
        """When it wants to run next."""
        due_in_ns = self.loop.due_in_ns()
        return None if due_in_ns is None else max(self.world.now_ns + due_in_ns, self.frozen_until_ns)

    def turn(self) -> None:
        """Run now."""
        self.loop.turn()
        for mishap in self.loop.mishaps:
            self.truth.violated("no mistake of ours", mishap)
        self.loop.mishaps.clear()
        if self._main.done() and not self.is_dead:
            self._ended()

    def effect(self, name: str) -> None:
        """The outside is about to see something; a scenario may let the process die right before it."""
        if self.is_dead:
            return
        self.effects.append(name)
        if len(self.effects) == self.crash_at_effect:
            self.truth.injected(f"crash before {name}", 0)
            self._stop_running()
            self.world.at(self.world.now_ns, self._bury)

    def beaten(self) -> None:
        """A heartbeat of it was stored."""
        self.life.beats.append(self.world.now_ns)

    def freeze(self, length_ns: int, *, threads_too: bool) -> None:
        """The loop does nothing for so long; `threads_too`: nor does anything else of the process."""
        now_ns = self.world.now_ns
        self.frozen_since_ns = self.frozen_since_ns if self.frozen_until_ns > now_ns else now_ns
        self.frozen_until_ns = max(self.frozen_until_ns, now_ns + length_ns)
        if threads_too:
            self.stopped_until_ns = max(self.stopped_until_ns, self.world.now_ns + length_ns)

    def crash(self) -> None:
        """SIGKILL, between two turns."""
        if not self.is_dead:
            self._stop_running()
            self._bury()

    def stop(self) -> None:
        """SIGTERM."""
        self.life.asked_to_stop_ns = self.world.now_ns
        self.world.note(f"process {self.life.number} is asked to stop")
        self.loop.call_soon(self._stopping.set)

    def take(self, call: ServerCall, sent: Sent) -> None:
        """A message reaches this machine's kernel: this is its true arrival."""
        if sent.attempt is not None:
            attempt, world = sent.attempt, self.world
            attempt.arrived_ns, attempt.arrived_service_ns = world.now_ns, world.service_ns()
            attempt.arrived_step_ns, attempt.life = world.stepped_ns, self.life.number
            attempt.reached = self.life.opened_ns is not None and call.can_be_read
            call.attempts.append(attempt)
        if self.envoy is not None and call.method.is_unary:
            call.headers = (self.envoy.header(),)
        if call.is_over or not (self.is_open or call.task):
            call.end(grpc.StatusCode.UNAVAILABLE)
            return
        self._calls[call] = None
        call.kernel.append(sent)
        hold_ns = self.hold_ns
        if hold_ns is None:
            is_held = self.chance.random() < 0.2
            hold_ns = self.chance.randrange(SLACK_NS if is_held else MS_NS)
        self.world.after(hold_ns, lambda: self._hand_over(call, sent))

    def knows(self, token: str) -> bool:
        """Whether the service need not ask its store whose token this is."""
        return self._gatekeeper.known(token_hash(token)) is not None

    def client_left(self, call: ServerCall) -> None:
        """The client cancelled; the loop hears of it when it runs."""
        if not self.is_dead:
            self.loop.call_soon(call.client_left)

    def _hand_over(self, call: ServerCall, sent: Sent) -> None:
        """A message waits while the loop stands, and may wait behind the backlog of a long stall."""
        if self.is_dead:
            return
        if self.frozen_until_ns <= self.world.now_ns:
            self.loop.call_soon(call.hand_over, sent)
            return
        is_first = self.chance.random() < 0.6
        is_stall = self.frozen_until_ns - self.frozen_since_ns > STALL_NS
        longest_ns = STALL_MEMORY_NS - 2 * TICK_NS if is_stall else TICK_NS - MS_NS
        behind_ns = 0 if is_first else self.chance.randrange(longest_ns)
        if self.backlog_ns is not None:
            behind_ns = self.backlog_ns if is_stall else 0
        self.world.at(self.frozen_until_ns + behind_ns, lambda: self._hand_over(call, sent))

    async def _run(self) -> None:
        """As `service.wiring` does it."""
        try:
            core = self._made_core(await self._backing.open())
        except StoreUnavailableError:
            await self._give_up()
            return
        try:
            await core.start()
        except StoreUnavailableError:
            core.release()
            await self._give_up()
            return
        self.is_open, self.life.opened_ns = True, self.world.now_ns
        await self._stopping.wait()
        await core.drain(_Door(self), self._drain_seconds)
        await self._backing.close()
        self.life.is_planned = True

    async def _give_up(self) -> None:
        self.world.note(f"process {self.life.number} could not start")
        await self._backing.close()

    def _made_core(self, behind: Behind) -> Core:
        chance = self.world.chance(f"entropy {self.life.number}")
        core = Core(
            SETTINGS,
            store=behind.store,
            now_ns=behind.now_ns,
            error_bound_ns=behind.error_bound_ns,
            bus=behind.bus,
            entropy=SimEntropy(chance),
            metrics=METRICS,
            lineage=behind.lineage,
        )
        self._gatekeeper = Gatekeeper(behind.store, METRICS, now_ns=core.clock.now_ns)
        service = MatchService(
            matches=core.matches,
            gatekeeper=self._gatekeeper,
            renderer=Renderer(),
            clock=core.clock,
            store=behind.store,
            metrics=METRICS,
        )
        witness = None if self.envoy is None else Witness(METRICS.clock, lambda: int(self.loop.time() * 1e9))
        self.methods = {method.name: method for method in _methods(core, service, witness)}
        return core

    async def close_door(self, grace_seconds: float) -> None:
        """What grpc's `server.stop` does: nothing new, and what is under way gets the grace."""
        self.is_open, self.life.closed_ns = False, self.world.now_ns
        for call in self._calls:
            if not call.is_taken:
                call.end(grpc.StatusCode.UNAVAILABLE)
        tasks = [call.task for call in self._calls if call.task is not None and not call.task.done()]
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=grace_seconds)
            for task in sorted(late, key=tasks.index):
                task.cancel()

    def _ended(self) -> None:
        self._stop_running()
        error = self._main.exception()
        if error is not None and not isinstance(error, StoreUnavailableError):
            self.truth.violated("no mistake of ours", f"the process ended with {error!r}")
        self._bury()

    def _stop_running(self) -> None:
        self.is_dead = self.loop.is_halted = True
        self.is_open = False

    def _bury(self) -> None:
        self.world.note(f"process {self.life.number} has ended")
        self.life.ended_ns = self.world.now_ns
        self.world.processes.remove(self)
        self._backing.die()
        for call in self._calls:
            call.end(grpc.StatusCode.UNAVAILABLE)
        self.loop.kill()
        self._on_end()


class _Door:
    """The edge, as the core sees it when it stops."""

    def __init__(self, process: SimProcess) -> None:
        self._process = process

    async def refuse_new_clients(self) -> None:
        self._process.world.note("not ready any more")
        self._process.unready_since_ns = self._process.world.now_ns

    async def stop(self, grace_seconds: float) -> None:
        await self._process.close_door(grace_seconds)


def _methods(core: Core, service: MatchService, witness: Witness | None) -> list[Method]:
    """The methods that the simulated clients use, wrapped as `service.rpc.server` wraps them."""
    stamp = partial(stamping, clock=core.clock)
    handler = service.submit_command if witness is None else witnessed(_noting(service.submit_command), witness)
    submit = edge.unary(handler, METRICS.method("MatchService", "SubmitCommand"))
    watch = edge.stream(service.watch_match, METRICS.method("MatchService", "WatchMatch"))
    spectate = edge.stream(service.spectate_match, METRICS.method("MatchService", "SpectateMatch"))
    play = edge.stream(service.play_match, METRICS.method("MatchService", "PlayMatch"))
    return [
        Method("SubmitCommand", stamp(pb.SubmitCommandRequest), submit),
        Method("WatchMatch", stamp(pb.WatchMatchRequest), watch, is_unary=False),
        Method("SpectateMatch", stamp(pb.SpectateMatchRequest), spectate, is_unary=False),
        Method("PlayMatch", stamp(pb.PlayMatchRequest), play, is_unary=False, reads_a_stream=True),
    ]


def _noting(handler: edge.UnaryHandler[pb.SubmitCommandRequest]) -> edge.UnaryHandler[pb.SubmitCommandRequest]:
    """A handler that tells the auditor with which stamp a command goes on, which a witness may have narrowed."""

    # Any: a ServerCall, which to mypy can be no context of grpc's.
    async def call(stamped: Stamped[pb.SubmitCommandRequest], context: Any) -> bytes:  # noqa: ANN401
        for attempt in context.attempts:
            attempt.stamp = stamped.arrival
        if stamped.arrival.own_latest_ns is not None:
            context.count("stamp narrowed")
        return await handler(stamped, context)

    return call
