"""Raw calls: the messages stay bytes, so that a player decides what is worth parsing."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import NamedTuple, Self, TypeAlias

import grpc

from spectacularbid.v1 import match_service_pb2 as pb

_SERVICE = pb.DESCRIPTOR.services_by_name["MatchService"].full_name
OPTIONS = (
    ("grpc.use_local_subchannel_pool", 1),  # a channel is a connection of its own
    ("grpc.max_receive_message_length", 1 << 20),
)

Streaming: TypeAlias = "grpc.aio.StreamStreamMultiCallable[bytes, bytes]"
Watching: TypeAlias = "grpc.aio.UnaryStreamMultiCallable[bytes, bytes]"
Submitting: TypeAlias = "grpc.aio.UnaryUnaryMultiCallable[bytes, bytes]"


def method(name: str) -> str:
    """The path of a method of MatchService."""
    return f"/{_SERVICE}/{name}"


class Wire(NamedTuple):
    """One connection."""

    play: Streaming
    watch: Watching
    submit: Submitting
    create: Submitting
    join: Submitting

    @classmethod
    def over(cls, channel: grpc.aio.Channel) -> Wire:
        """The methods over a channel."""
        return cls(
            play=channel.stream_stream(method("PlayMatch")),
            watch=channel.unary_stream(method("WatchMatch")),
            submit=channel.unary_unary(method("SubmitCommand")),
            create=channel.unary_unary(method("CreateMatch")),
            join=channel.unary_unary(method("JoinMatch")),
        )


class Wires:
    """The connections of a run: one for each player, as real players have."""

    def __init__(self, addresses: Sequence[str]) -> None:
        self._channels = [grpc.aio.insecure_channel(address, OPTIONS) for address in addresses]
        self._wires = [Wire.over(channel) for channel in self._channels]

    def __getitem__(self, player: int) -> Wire:
        """The connection of a player by number."""
        return self._wires[player % len(self._wires)]

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for channel in self._channels:
            await channel.close()
