"""What an operator asks a running service: a gRPC server on a local socket that this user alone can open."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias

import grpc

from service.logs import get_logger
from service.matches import Matches
from service.rpc.edge import status_for
from service.rpc.statuses import MATCH_OVER, NO_SUCH_MATCH, StatusError, malformed
from service.writer import UnknownMatchError
from spectacularbid.admin.v1 import admin_service_pb2 as pb
from spectacularbid.admin.v1 import admin_service_pb2_grpc as pb_grpc

LONGEST_REASON = 200
LONGEST_SOCKET_PATH = 103
"""Bytes that every system takes."""
GRACE_SECONDS = 1.0
_FOR_THIS_USER = 0o177

AbortContext: TypeAlias = "grpc.aio.ServicerContext[pb.AbortMatchRequest, pb.AbortMatchResponse]"
DrainContext: TypeAlias = "grpc.aio.ServicerContext[pb.DrainRequest, pb.DrainResponse]"


class AdminServer:
    """The admin commands of a running service."""

    def __init__(self, path: Path, matches: Matches, *, drain: Callable[[], float]) -> None:
        """Bind the socket; `drain` begins the drain and gives its seconds. Raises RuntimeError."""
        if len(os.fsencode(path.resolve())) > LONGEST_SOCKET_PATH:
            raise RuntimeError(f"{path} is too long a path for a socket")
        if _is_answered(path):  # grpc would put its own socket in the place of the other one
            raise RuntimeError(f"another process listens at {path}")
        self._server = grpc.aio.server()
        pb_grpc.add_AdminServiceServicer_to_server(_Handlers(matches, drain), self._server)
        with _umask(_FOR_THIS_USER):  # from the first instant on
            self._server.add_insecure_port(f"unix:{path.resolve()}")

    async def start(self) -> None:
        """Listen."""
        await self._server.start()

    async def stop(self) -> None:
        """Close the socket and remove it."""
        await self._server.stop(GRACE_SECONDS)


class _Handlers(pb_grpc.AdminServiceServicer):
    def __init__(self, matches: Matches, drain: Callable[[], float]) -> None:
        self._matches = matches
        self._drain = drain

    async def AbortMatch(self, request: pb.AbortMatchRequest, context: AbortContext) -> pb.AbortMatchResponse:
        """End a match without a result."""
        try:
            version = await self._aborted(request.match_id, _words_of(request.reason))
        except Exception as error:
            status = NO_SUCH_MATCH if isinstance(error, UnknownMatchError) else status_for(error)
            await context.abort(status.code, status.message, status.trailing_metadata())
            raise AssertionError from error
        return pb.AbortMatchResponse(version=version)

    async def Drain(self, _: pb.DrainRequest, __: DrainContext) -> pb.DrainResponse:
        """Stop as SIGTERM does."""
        get_logger().info("drain_asked_for")
        return pb.DrainResponse(drain_ms=round(self._drain() * 1000))

    async def _aborted(self, match_id: str, words: str) -> int:
        done = await self._matches.abort(match_id, words)
        if done.refusal is not None:
            raise StatusError(MATCH_OVER)
        get_logger().info("match_aborted_by_operator", match_id=match_id)
        return done.state.version


def _words_of(reason: str) -> str:
    words = reason.strip()
    if not 0 < len(words) <= LONGEST_REASON or not words.isprintable():
        raise malformed("reason", f"the reason must be 1 to {LONGEST_REASON} printable characters")
    return words


def _is_answered(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as probe:
        return probe.connect_ex(os.fspath(path)) == 0


@contextmanager
def _umask(mask: int) -> Iterator[None]:
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)
