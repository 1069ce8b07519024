"""Between clients and handlers, in place of sockets and of grpc's core.

The service's side of a call is what grpc.aio would run: the deserializer of `service.rpc.arrival` and a handler wrapped
by `service.rpc.edge`, in one task, so that nothing suspends between a message's stamp and its handler.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import grpc

from service.rpc.arrival import Stamped
from spectacularbid.v1 import match_service_pb2 as pb
from tests.sim.envoy import PEER
from tests.sim.truth import Attempt, Truth
from tests.sim.world import MS_NS, World

HEARD_NS = 900 * MS_NS
"""Within so long a client has heard that its stream goes away, and sends elsewhere."""


class Sent(NamedTuple):
    """A message on its way: its bytes and, when it holds a command, the record of this sending."""

    data: bytes
    attempt: Attempt | None


@dataclass(frozen=True, slots=True)
class Method:
    """An RPC method as grpc calls it: its deserializer, its handler, and which sides stream."""

    name: str
    deserialize: Callable[[bytes], Stamped[Any]]
    handler: Callable[[Any, Any], Awaitable[Any]]
    is_unary: bool = True
    reads_a_stream: bool = False


@dataclass(slots=True, eq=False)
class Caller:
    """The client's side of a call."""

    on_message: Callable[[bytes, int], None]
    """Gets each message, and when (true time) the service sent it."""
    on_end: Callable[[grpc.StatusCode], None]
    latency_ns: Callable[[], int]
    is_gone: bool = False
    is_reading: bool = True


class AbortedError(Exception):
    """The handler ended the call with a status."""


class Process(Protocol):
    """What a call needs of the process that serves it."""

    world: World
    truth: Truth
    is_dead: bool

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """Where its handlers run."""

    def knows(self, token: str) -> bool:
        """Whether the service need not ask its store whose token this is."""

    def effect(self, name: str) -> None:
        """The outside is about to see something; the process may die of it."""


class ServerCall:
    """One call in one process; to its handler it is grpc's ServicerContext."""

    def __init__(self, process: Process, method: Method, token: str, caller: Caller) -> None:
        self.method = method
        self.attempts: list[Attempt] = []
        self.kernel: deque[Sent] = deque()
        """Arrived, not yet handed to the loop."""
        self.task: asyncio.Task[None] | None = None
        self.is_taken = False
        """Whether the service has read a message of it."""
        self.is_over = False
        self.headers: tuple[tuple[str, str], ...] = ()
        """What a proxy has added to the call."""
        self._sent_away_ns: int | None = None
        self._process, self._token, self._caller = process, token, caller
        self._inbox: deque[Sent] = deque()
        self._waiter: asyncio.Future[None] | None = None
        self._room: asyncio.Future[None] | None = None
        self._delivered_ns = 0

    @property
    def can_be_read(self) -> bool:
        """Whether what comes now can be read: not on a stream that has ended long after its client was told."""
        told_ns = self._sent_away_ns
        return not self.is_over or told_ns is None or self._process.world.now_ns - told_ns < HEARD_NS

    def hand_over(self, upto: Sent) -> None:
        """The loop gets what the kernel holds, up to this message."""
        if self._caller.is_gone and self.task is None:
            return  # grpc's core drops a call that was cancelled before anybody took it
        while upto in self.kernel:
            self._inbox.append(self.kernel.popleft())
            if self._inbox[-1] is upto:
                break
        if self.task is None:
            self.task = self._process.loop.create_task(self._serve())
        elif self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def client_left(self) -> None:
        """The client cancelled, or its connection broke."""
        self._caller.is_gone = True
        for attempt in self.attempts:
            attempt.is_cancelled = attempt.is_cancelled or attempt.stamp is None
        if self.task is not None:
            self.task.cancel()

    def client_reads_again(self) -> None:
        """There is room for the next message."""
        if self._room is not None and not self._room.done():
            self._room.set_result(None)

    def end(self, code: grpc.StatusCode) -> None:
        """Tell the client how the call ended, once."""
        if not self.is_over:
            self.is_over = True
            if code is not grpc.StatusCode.OK:
                for attempt in self.attempts:
                    attempt.answer = attempt.answer or code.name
            self._travel(lambda: self._caller.on_end(code))

    def invocation_metadata(self) -> tuple[tuple[str, str], ...]:
        """The call's metadata."""
        return (("authorization", f"Bearer {self._token}"), *self.headers)

    def count(self, what: str) -> None:
        """Something worth counting happened on this call."""
        self._process.truth.count(what)

    def peer(self) -> str:
        """Who called, as grpc says it."""
        return PEER

    async def read(self) -> object:
        """The next request, stamped the moment it is taken over."""
        while not self._inbox:
            self._waiter = self._process.loop.create_future()
            await self._waiter
        self.is_taken = True
        sent = self._inbox.popleft()
        stamped = self.method.deserialize(sent.data)
        if sent.attempt is not None:
            sent.attempt.stamp = stamped.arrival
            sent.attempt.is_a_strangers = not self._process.knows(self._token)
            sent.attempt.stamped_ns = self._process.world.now_ns
            sent.attempt.stamped_step_ns = self._process.world.stepped_ns
        return stamped

    async def write(self, data: bytes) -> None:
        """Send a message of a stream; wait while the client does not read."""
        while not self._caller.is_reading:
            self._room = self._process.loop.create_future()
            await self._room
        if self.method.reads_a_stream and pb.PlayMatchResponse.FromString(data).HasField("going_away"):
            self._sent_away_ns = self._process.world.now_ns
        self._send(data)

    async def abort(self, code: grpc.StatusCode, details: str, trailing_metadata: object) -> None:
        """End the call with an error."""
        self._process.world.note(f"call {self.method.name} ends with {code.name}: {details}")
        self._process.effect("reply")
        if not self._process.is_dead:
            self.end(code)
        raise AbortedError(details, trailing_metadata)

    async def _serve(self) -> None:
        try:
            if self.method.reads_a_stream:
                await self.method.handler(None, self)
            else:
                answer = await self.method.handler(await self.read(), self)
                if self.method.is_unary:
                    self._send(answer)
            if not self._process.is_dead:
                self.end(grpc.StatusCode.OK)
        except AbortedError:
            pass
        except asyncio.CancelledError:
            self.end(grpc.StatusCode.CANCELLED)

    def _send(self, data: bytes) -> None:
        self._process.effect("reply")
        if not (self._process.is_dead or self._caller.is_gone or self.is_over):
            sent_ns = self._process.world.now_ns
            self._travel(lambda: self._caller.on_message(data, sent_ns))

    def _travel(self, delivery: Callable[[], None]) -> None:
        """Messages of one call stay in their order."""
        world = self._process.world
        self._delivered_ns = max(self._delivered_ns, world.now_ns + self._caller.latency_ns())
        world.at(self._delivered_ns, lambda: None if self._caller.is_gone else delivery())
