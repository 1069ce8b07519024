"""Waiting for what nothing announces."""

import asyncio
from collections.abc import Callable

import grpc

from spectacularbid.v1 import match_service_pb2 as pb
from tests.support.players import StreamCall

PATIENCE_SECONDS = 30.0
LOOK_SECONDS = 0.005


async def until(is_so: Callable[[], bool]) -> None:
    """Wait until it is so; fail when that takes too long."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not is_so():  # noqa: ASYNC110  there is no event to wait for
            await asyncio.sleep(LOOK_SECONDS)


async def until_gone(call: StreamCall, patience_seconds: float) -> list[pb.WatchMatchResponse | pb.PlayMatchResponse]:
    """Everything until the server ends the stream, which it does well."""
    said = []
    async with asyncio.timeout(patience_seconds):
        while isinstance(response := await call.read(), pb.WatchMatchResponse | pb.PlayMatchResponse):
            said.append(response)
        assert await call.code() is grpc.StatusCode.OK
    return said
