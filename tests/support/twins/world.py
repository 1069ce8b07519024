"""One world: the service's own handlers, streams, rendering, rules, metrics and log in virtual time, without a port.

Every message that the observer gets and everything that the process says is kept, by channel and in order.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import patch

import grpc
import structlog
from google.protobuf.message import Message
from prometheus_client import generate_latest

from engine import commands as cmd
from engine.seats import PerSeat, Seat
from engine.view import Audience
from service.fanout.local import LocalBus
from service.matches import token_hash
from service.ports import Credential, DealSecrets
from service.rpc import edge
from service.rpc.arrival import Stamped
from service.rpc.edge import Context
from service.rpc.own_view import command_message
from spectacularbid.v1 import commands_pb2
from spectacularbid.v1 import match_service_pb2 as pb
from tests.support.handlers import handlers_of
from tests.support.ports import MemoryStore, Process
from tests.support.store import NOON_NS
from tests.support.twins.battery import Probe, command_id
from tests.support.twins.script import Course, Move
from tests.support.virtual_time import VirtualLoop, virtual_now_ns

MATCH_ID = "t" * 26
TOKENS = {
    Audience.SEAT_ONE: "sbs_canary-3fJq8bTzLk1-of-seat-one",
    Audience.SEAT_TWO: "sbs_canary-7uWm2cRxGh9-of-seat-two",
    Audience.DEVICE: "sbd_canary-5pYd4eVnQs6-of-the-device",
    Audience.SPECTATOR: "sbw_canary-0kHt6aBjMw3-of-a-spectator",
}
SECRETS = DealSecrets(b"r" * 32, b"canary-of-the-service-secret-9xQ", PerSeat(b"canary-of-entropy-of-seat-one-4h", b""))
AUDIENCES = {Seat.ONE: Audience.SEAT_ONE, Seat.TWO: Audience.SEAT_TWO}
PLAY_STREAM = "play stream"
STREAMS = frozenset({"WatchMatch", "SpectateMatch", "PlayMatch"})
_METHODS = {
    "GetMatch": "get_match",
    "GetDealProof": "get_deal_proof",
    "LeaveMatch": "leave_match",
    "PlayMatch": "play_match",
    "SubmitCommand": "submit_command",
    "WatchMatch": "watch_match",
    "SpectateMatch": "spectate_match",
}


class EndedError(Exception):
    """The call ended with a status, as grpc's own AbortError has it."""


@dataclass
class Call:
    """The server's side of a call; what is written goes to `said`, what the client of a PlayMatch sends to `sent`."""

    token: str
    said: list[bytes]
    sent: asyncio.Queue[object] = field(default_factory=asyncio.Queue)

    def invocation_metadata(self) -> tuple[tuple[str, str], ...]:
        return (("authorization", f"Bearer {self.token}"),)

    async def read(self) -> object:
        return await self.sent.get()

    async def write(self, data: bytes) -> None:
        self.said.append(data)

    async def abort(self, code: grpc.StatusCode, message: str, metadata: Sequence[tuple[str, bytes]]) -> None:
        self.said.append(repr((code.name, message, metadata)).encode())
        raise EndedError


class LoudBus(LocalBus):
    """A bus whose payloads are kept."""

    def __init__(self) -> None:
        super().__init__()
        self.said: list[bytes] = []

    def publish(self, match_id: str, version: int) -> None:
        self.said.append(repr((match_id, version)).encode())
        super().publish(match_id, version)


@dataclass(frozen=True)
class Plan:
    """What happens in a world besides the tiles: from which move on it is live, who observes, what is asked then.

    `meanwhile` happens before every live move; it is told the number of the move. `beside` has a stream open
    throughout. An observer who `plays` watches and moves on one PlayMatch stream.
    With `text` the text of /metrics is kept, otherwise the samples that it is made of.
    """

    observer: Audience
    live_from: int
    probes: tuple[Probe, ...]
    after_version: int = 0
    meanwhile: Callable[[World, int], Awaitable[None]] | None = None
    beside: Audience | None = None
    plays: bool = False
    text: bool = False


@dataclass
class World:
    """A running world."""

    process: Process
    plan: Plan
    captures: dict[str, list[bytes]] = field(default_factory=dict)
    playing: Call | None = None

    def __post_init__(self) -> None:
        self._handlers = handlers_of(self.process)
        self._methods = {name: self.process.metrics.method("spectacularbid.v1.MatchService", name) for name in _METHODS}

    def said(self, channel: str) -> list[bytes]:
        """What was said on a channel so far."""
        return self.captures.setdefault(channel, [])

    async def call(self, audience: Audience, method: str, request: Message | None, channel: str) -> None:
        """Carry out a call as the gRPC adapter would, to its end."""
        await self._carry_out(Call(TOKENS[audience], self.said(channel)), method, request)

    def open(self, audience: Audience, after_version: int, channel: str) -> asyncio.Task[None]:
        """Open a stream of the observer's kind."""
        spectates = audience is Audience.SPECTATOR
        method = "SpectateMatch" if spectates else "WatchMatch"
        kind = pb.SpectateMatchRequest if spectates else pb.WatchMatchRequest
        request = kind(match_id=MATCH_ID, after_version=after_version)
        return asyncio.ensure_future(self.call(audience, method, request, channel))

    def play(self, audience: Audience, after_version: int, channel: str) -> None:
        """Open a PlayMatch stream, on which the observer's moves are sent from now on."""
        opening = pb.PlayMatchOpen(match_id=MATCH_ID, after_version=after_version)
        self.playing = Call(TOKENS[audience], self.said(channel))
        self._open = asyncio.ensure_future(
            self._carry_out(self.playing, "PlayMatch", pb.PlayMatchRequest(open=opening))
        )

    def send(self, number: int, command: commands_pb2.Command) -> None:
        """One command on the PlayMatch stream."""
        assert self.playing is not None
        message = pb.PlayMatchCommand(command_id=command_id(number), command=command)
        self.playing.sent.put_nowait(self._stamped(pb.PlayMatchRequest(command=message)))

    async def _carry_out(self, context: Call, method: str, request: Message | None) -> None:
        wrap = edge.stream if method in STREAMS else edge.unary
        # Any: each handler has a request type of its own.
        handler: Any = wrap(getattr(self._handlers, _METHODS[method]), self._methods[method])
        stamped = self._stamped(request)
        if method == "PlayMatch":
            context.sent.put_nowait(stamped)
        try:
            answer = await handler(stamped, cast("Context", context))
        except EndedError:
            return
        if answer is not None:
            context.said.append(answer)

    def _stamped(self, message: Message | None) -> Stamped[Message]:
        return Stamped(self.process.core.clock.arrival(), message)

    async def submit(self, audience: Audience, number: int, command: commands_pb2.Command, channel: str) -> None:
        """One SubmitCommand."""
        request = pb.SubmitCommandRequest(match_id=MATCH_ID, command_id=command_id(number), command=command)
        await self.call(audience, "SubmitCommand", request, channel)

    async def settle(self) -> None:
        """Let everything happen that needs no time to pass."""
        for _ in range(8):
            await asyncio.sleep(0)


def run(course: Course, plan: Plan) -> dict[str, list[bytes]]:
    """Live through a course from `plan.live_from` on; what the observer got and what the process said, by channel."""
    moves = course.script.moves
    first_ns = moves[plan.live_from - 1].at_ns if plan.live_from else NOON_NS
    loop = VirtualLoop()
    loop.now_ns = first_ns - NOON_NS
    clock = SimpleNamespace(perf_counter_ns=lambda: loop.now_ns)
    try:
        with patch.object(edge, "time", clock), structlog.testing.capture_logs() as log:
            captures = loop.run_until_complete(_live(course, plan))
        captures["log"] = [repr(line).encode() for line in log]
        return captures
    finally:
        loop.close()


def stored(course: Course, moves: int) -> MemoryStore:
    """A store with the match as it stands after so many moves, and everybody's credential."""
    store = MemoryStore()
    store.logs[MATCH_ID] = list(course.log[: moves + 1])
    state = course.states[moves]
    store.due[MATCH_ID] = (state.due_ns, state.result is None)
    store.deals[MATCH_ID] = SECRETS
    for audience, token in TOKENS.items():
        hashed = token_hash(token)
        store.credentials[hashed] = Credential(hashed, MATCH_ID, audience)
    return store


async def _live(course: Course, plan: Plan) -> dict[str, list[bytes]]:
    process = Process(stored(course, plan.live_from))
    bus = LoudBus()
    process.bus.publish, process.bus.subscribe = bus.publish, bus.subscribe  # type: ignore[method-assign]
    await process.core.start()
    world = World(process, plan)
    try:
        await _play(world, course, plan)
    finally:
        process.core.release()
        await _hang_up(world)
    world.captures["bus"] = bus.said
    world.captures["metrics"] = [_exposition(process) if plan.text else _samples(process)]
    return world.captures


async def _play(world: World, course: Course, plan: Plan) -> None:
    if plan.plays:
        world.play(plan.observer, plan.after_version, PLAY_STREAM)
    else:
        world.open(plan.observer, plan.after_version, "stream")
    if plan.beside is not None:
        world.open(plan.beside, 0, "other stream")
    await world.settle()
    for number, move in enumerate(course.script.moves[plan.live_from :]):
        await asyncio.sleep((move.at_ns - NOON_NS - virtual_now_ns()) / 1e9)
        if plan.meanwhile is not None:
            await plan.meanwhile(world, number)
        await _move(world, course, move, number)
        await world.settle()
    for probe in plan.probes:
        await _probe(world, plan.observer, probe)
    await world.settle()


async def _move(world: World, course: Course, move: Move, number: int) -> None:
    audience = Audience.DEVICE if course.script.shared_device else AUDIENCES[move.seat]
    channel = "outcomes" if audience is world.plan.observer else "other outcomes"
    if world.playing is not None and audience is world.plan.observer:
        world.send(0x10000 + number, message_of_command(move.command))
        return
    await world.submit(audience, 0x10000 + number, message_of_command(move.command), channel)


def message_of_command(command: cmd.Command) -> commands_pb2.Command:
    """A command as a client sends it."""
    match command:
        case cmd.Bid(points):
            return commands_pb2.Command(make_bid=commands_pb2.Bid(points=points))
        case cmd.Raise(points):
            return commands_pb2.Command(raise_bid=commands_pb2.Raise(points=points))
        case _:
            return command_message(command)


async def _probe(world: World, observer: Audience, probe: Probe) -> None:
    channel = f"probes {probe.method}"
    if probe.method not in STREAMS:
        await world.call(observer, probe.method, probe.request, channel)
        return
    call = asyncio.ensure_future(world.call(observer, probe.method, probe.request, channel))
    await world.settle()
    call.cancel()
    await asyncio.gather(call, return_exceptions=True)


async def _hang_up(world: World) -> None:
    await world.settle()
    left = asyncio.all_tasks() - {asyncio.current_task()}
    for task in left:
        task.cancel()
    await asyncio.gather(*left, return_exceptions=True)


def _exposition(process: Process) -> bytes:
    """The text of /metrics, but for the instants at which the counters were made."""
    lines = generate_latest(process.metrics.registry).splitlines()
    return b"\n".join(line for line in lines if b"_created" not in line)


def _samples(process: Process) -> bytes:
    """The numbers of /metrics with their names and labels."""
    families = process.metrics.registry.collect()
    samples = [(sample.name, sample.labels, sample.value) for family in families for sample in family.samples]
    return repr([sample for sample in samples if not sample[0].endswith("_created")]).encode()


def to_the_observer(captures: dict[str, list[bytes]]) -> dict[str, list[bytes]]:
    """What the observer got, and what the process said to nobody in particular."""
    return {name: said for name, said in captures.items() if not name.startswith("other")}
