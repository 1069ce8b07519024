"""The floor: what grpc.aio costs by itself. No rules, no store, no parsing; each message is answered and passed on.

`python -m bench.floor ANSWER_BYTES PUSH_BYTES`, under the method names of MatchService, so that the same client fits.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections import defaultdict
from typing import Any, TypeAlias

import grpc

from bench import loops
from bench.load.hands import ANSWER, NOT_YOUR_TURN, YOUR_TURN
from spectacularbid.v1 import match_service_pb2 as pb

Context: TypeAlias = "grpc.aio.ServicerContext[bytes, bytes]"
Outbox: TypeAlias = "asyncio.Queue[bytes | None]"
OPTIONS = (("grpc.so_reuseport", 0),)


class Floor:
    """Matches as pairs of outboxes."""

    def __init__(self, answer_bytes: int, push_bytes: int) -> None:
        self._answer = ANSWER.ljust(answer_bytes, b".")
        self._turn = YOUR_TURN.ljust(push_bytes, b".")
        self._seen = NOT_YOUR_TURN.ljust(push_bytes, b".")
        self._outboxes: defaultdict[bytes, tuple[Outbox, Outbox]] = defaultdict(_outboxes)

    async def play(self, _: object, context: Context) -> None:
        """A stream of commands: answered here, pushed to the other."""
        name, seat = _who(await context.read())
        own, other = self._outboxes[name][seat], self._outboxes[name][1 - seat]
        self._begin(own, seat)
        reader = asyncio.create_task(self._read(context, own, other))
        try:
            await _write(own, context)
        finally:
            reader.cancel()

    async def _read(self, context: Context, own: Outbox, other: Outbox) -> None:
        while isinstance(await context.read(), bytes):
            own.put_nowait(self._answer)
            other.put_nowait(self._turn)
        own.put_nowait(None)

    async def watch(self, request: bytes, context: Context) -> None:
        """A stream of pushes."""
        name, seat = _who(request)
        own = self._outboxes[name][seat]
        self._begin(own, seat)
        await _write(own, context)

    async def submit(self, request: bytes, _: Context) -> bytes:
        """One command: answered here, pushed to both."""
        name, seat = _who(request)
        self._outboxes[name][seat].put_nowait(self._seen)
        self._outboxes[name][1 - seat].put_nowait(self._turn)
        return self._answer

    def _begin(self, own: Outbox, seat: int) -> None:
        own.put_nowait(self._seen if seat else self._turn)


def _outboxes() -> tuple[Outbox, Outbox]:
    return asyncio.Queue(), asyncio.Queue()


def _who(message: bytes) -> tuple[bytes, int]:
    name, seat, _ = message.split(b" ", 2)
    return name, int(seat)


async def _write(outbox: Outbox, context: Context) -> None:
    while (message := await outbox.get()) is not None:
        await context.write(message)


async def serve(floor: Floor) -> None:
    """Serve until killed."""
    server = grpc.aio.server(options=OPTIONS)
    # Any: the handlers of a service have different types.
    handlers: dict[str, grpc.RpcMethodHandler[Any, Any]] = {
        "PlayMatch": grpc.stream_stream_rpc_method_handler(floor.play),
        "WatchMatch": grpc.unary_stream_rpc_method_handler(floor.watch),
        "SubmitCommand": grpc.unary_unary_rpc_method_handler(floor.submit),
    }
    name = pb.DESCRIPTOR.services_by_name["MatchService"].full_name
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(name, handlers),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    print(json.dumps({"event": "serving", "address": f"127.0.0.1:{port}"}), file=sys.stderr, flush=True)
    await server.wait_for_termination()


if __name__ == "__main__":
    loops.run(serve(Floor(answer_bytes=int(sys.argv[1]), push_bytes=int(sys.argv[2]))))
