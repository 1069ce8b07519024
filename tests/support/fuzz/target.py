"""What is fuzzed: deserializers, handlers, rules and rendering of every method in this process, in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import grpc
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.message_factory import GetMessageClass

from engine.seats import Seat
from engine.view import Audience
from service.matches import token_hash
from service.ports import Credential
from service.rpc import edge, rules_service
from service.rpc.arrival import stamping
from service.rpc.edge import Context
from service.rpc.time_service import TimeService
from spectacularbid.v1 import match_service_pb2 as pb
from tests.support.fuzz.inputs import unpacked
from tests.support.handlers import handlers_of
from tests.support.ports import Process
from tests.support.twins.world import Call, EndedError
from tests.support.virtual_matches import MATCH_ID, started
from tests.support.virtual_time import VirtualLoop

TOKEN = "sbs_of-the-fuzzer"
INPUTS_A_MATCH = 200
"""After so many inputs the match begins anew: most of what can be sent to one that is over is alike."""
OURS = frozenset({grpc.StatusCode.UNKNOWN, grpc.StatusCode.INTERNAL})
"""What would be the service's mistake."""


@dataclass
class Caller(Call):
    """The server's side of a call on which these messages come in, and then no more."""

    waiting: list[object] = field(default_factory=list)
    code: grpc.StatusCode = grpc.StatusCode.OK

    async def read(self) -> object:
        return self.waiting.pop(0) if self.waiting else grpc.aio.EOF

    async def abort(self, code: grpc.StatusCode, message: str, metadata: Any) -> None:  # noqa: ANN401  grpc's own
        self.code = code
        await super().abort(code, message, metadata)

    def auth_context(self) -> dict[str, list[bytes]]:
        return {}

    def peer(self) -> str:
        return "ipv4:127.0.0.1:1"


class Target:
    """A service in this process. `take` is what a fuzzer calls."""

    def __init__(self) -> None:
        self._taken = 0
        self._begin()

    def take(self, data: bytes) -> grpc.StatusCode:
        """Carry one input out; how it ended. Raises AssertionError when that is the service's mistake."""
        self._taken += 1
        if self._taken % INPUTS_A_MATCH == 0:
            self.close()
            self._begin()
        method, messages = unpacked(data)
        caller = self._loop.run_until_complete(self._call(method, messages))
        codes = {caller.code} | set(_command_codes(caller) if method.client_streaming else ())
        assert not codes & OURS, (method.name, messages)
        return caller.code

    def close(self) -> None:
        """Let everything go that still waits."""
        self._process.core.release()
        self._loop.run_until_complete(_cancelled(asyncio.all_tasks(self._loop)))
        self._loop.close()

    def _begin(self) -> None:
        self._loop = VirtualLoop()
        self._loop.run_until_complete(self._start())

    async def _start(self) -> None:
        self._process = Process(started(Seat.ONE))
        await self._process.core.start()
        hashed = token_hash(TOKEN)
        self._process.store.credentials[hashed] = Credential(hashed, MATCH_ID, Audience.SEAT_ONE)
        self._handlers = handlers_of(self._process)

    async def _call(self, method: MethodDescriptor, messages: list[bytes]) -> Caller:
        kind = GetMessageClass(method.input_type)
        stamped = [stamping(kind, self._process.core.clock)(message) for message in messages]
        caller = Caller(TOKEN, [], waiting=list(stamped))
        metrics = self._process.metrics.method(method.containing_service.full_name, method.name)
        wrap = edge.stream if method.server_streaming else edge.unary
        handler = wrap(self._handler(method.name), metrics)
        first = cast("Any", stamped[0] if stamped else None)
        call = asyncio.ensure_future(handler(first, cast("Context", caller)))
        for _ in range(30):
            await asyncio.sleep(0)
        call.cancel()  # a stream that goes on
        (result,) = await asyncio.gather(call, return_exceptions=True)
        if isinstance(result, Exception) and not isinstance(result, EndedError):
            raise result
        return caller

    def _handler(self, name: str) -> Callable[..., Any]:
        """The handler of a method. Any: each has a request type of its own."""
        others = SimpleNamespace(get_rules=rules_service.get_rules, sync=TimeService(self._process.core.clock).sync)
        snake = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name).lstrip("_")
        handler: Callable[..., Any] = getattr(self._handlers, snake, None) or getattr(others, snake)
        return handler


def _command_codes(caller: Caller) -> list[grpc.StatusCode]:
    """What commands of a stream were told instead of an outcome."""
    said = [data for data in caller.said if not data.startswith(b"('")]
    numbers = {pb.PlayMatchResponse.FromString(data).error.code for data in said}
    return [code for code in grpc.StatusCode if code.value[0] in numbers - {0}]


async def _cancelled(tasks: set[asyncio.Task[Any]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
