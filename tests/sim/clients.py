"""Clients as the service sees them: what they hold, how they travel, and how they misbehave without wanting to."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import TypeAlias

import grpc
from google.protobuf.message import Message

from spectacularbid.v1 import match_service_pb2 as pb
from spectacularbid.v1 import views_pb2
from tests.sim.machine import ClientCall, WayIn
from tests.sim.transport import Caller
from tests.sim.world import MS_NS

View: TypeAlias = views_pb2.MatchView | views_pb2.SpectatorView
_RESPONSES: dict[str, type[pb.WatchMatchResponse | pb.PlayMatchResponse | pb.SpectateMatchResponse]] = {
    "WatchMatch": pb.WatchMatchResponse,
    "PlayMatch": pb.PlayMatchResponse,
    "SpectateMatch": pb.SpectateMatchResponse,
}
_GONE = (grpc.StatusCode.OK, grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED, grpc.StatusCode.RESOURCE_EXHAUSTED)
"""How a stream may end: with a resume point, with its process, or because the client did not read."""


@dataclass(frozen=True, slots=True)
class Fidgets:
    """How likely a client's own faults are; all zero for a client with a good line."""

    delay: float = 0.0
    loss: float = 0.0
    lost_answer: float = 0.0
    duplicate: float = 0.0
    cancel: float = 0.0
    disconnect: float = 0.0
    storm: float = 0.0
    slow_reader: float = 0.0
    gives_up: float = 0.0


CALM = Fidgets()
FIDGETY = Fidgets(
    delay=0.1,
    loss=0.06,
    lost_answer=0.06,
    duplicate=0.08,
    cancel=0.06,
    disconnect=0.04,
    storm=0.02,
    slow_reader=0.03,
    gives_up=0.03,
)


class Client:
    """Somebody with a token of a match."""

    def __init__(self, machine: WayIn, chance: Random, holder: str, match_id: str, fidgets: Fidgets) -> None:
        self.machine, self.chance, self.holder, self.match_id, self.fidgets = machine, chance, holder, match_id, fidgets
        self.world, self.truth = machine.world, machine.truth
        self.is_silent = False
        """Whether it has stopped sending, because the world is about to end."""
        self._base_ns = chance.randrange(MS_NS // 5, 25 * MS_NS)

    def latency_ns(self) -> int:
        """How long the next message travels, one way."""
        return self._base_ns + self.chance.randrange(MS_NS, 5 * MS_NS)

    def happens(self, fault: str) -> bool:
        """Whether this fault of the client happens now; it is counted."""
        if self.chance.random() >= getattr(self.fidgets, fault):
            return False
        self.truth.count(f"client {fault}")
        return True


class Watcher(Client):
    """A client that watches, by one of the methods that stream, and watches again whenever that ends."""

    def __init__(
        self,
        machine: WayIn,
        chance: Random,
        holder: str,
        match_id: str,
        fidgets: Fidgets,
        *,
        token: str,
        method: str = "SpectateMatch",
    ) -> None:
        super().__init__(machine, chance, holder, match_id, fidgets)
        self.cursor = 0
        self.view: View | None = None
        self.stream: ClientCall | None = None
        self.healthy_since_ns: int | None = None
        """Since when its stream has been open without any fault of its own."""
        self.is_sent_away = False
        """Whether the service has said that this stream goes away."""
        self._token, self._method = token, method
        self._storms = 0
        self._floor = 0

    def connect(self) -> None:
        """Begin to watch from the version last seen."""
        if self.is_silent and self.view is not None and self.view.public.HasField("result"):
            return
        caller = Caller(self._received, lambda code: self._stream_ended(caller, code), self.latency_ns)
        self.stream = ClientCall(self.machine, self._method, self._token, caller)
        self.stream.send(self._opening().SerializeToString(), None, self.latency_ns())
        self.healthy_since_ns, self._floor, self.is_sent_away = None, self.cursor, False

    def disconnect(self, again_after_ns: int) -> None:
        """Lose the connection and come back."""
        if self.stream is not None:
            self.stream.cancel()
            self.stream, self.healthy_since_ns = None, None
            self.world.after(again_after_ns, self._reconnect)

    def begin_anew(self) -> None:
        """What was seen is no more."""
        self.truth.count("watch begun anew")
        self.cursor, self.view = 0, None

    def saw(self, view: View) -> None:
        """A view came that is not older than the last one."""

    def stream_ended(self, stream: ClientCall) -> None:
        """The service has ended this stream."""

    def answered(self, message: pb.PlayMatchResponse, sent_ns: int) -> None:
        """An outcome or a command's error came on a PlayMatch stream."""

    def _opening(self) -> Message:
        if self._method == "PlayMatch":
            return pb.PlayMatchRequest(open=pb.PlayMatchOpen(match_id=self.match_id, after_version=self.cursor))
        if self._method == "WatchMatch":
            return pb.WatchMatchRequest(match_id=self.match_id, after_version=self.cursor)
        return pb.SpectateMatchRequest(match_id=self.match_id, after_version=self.cursor)

    def _received(self, data: bytes, sent_ns: int) -> None:
        message = _RESPONSES[self._method].FromString(data)
        which = message.WhichOneof("message")
        if which == "update":
            self._updated(message.update.view, sent_ns)
        elif which == "going_away":
            self.truth.count("going away")
            self.is_sent_away = True
        elif isinstance(message, pb.PlayMatchResponse) and which in ("outcome", "error"):
            self._floor = max(self._floor, message.outcome.view.public.version)
            self.answered(message, sent_ns)
        self._fidget()

    def _updated(self, view: View, sent_ns: int) -> None:
        version = view.public.version
        if version < self._floor:
            self.truth.violated("a watch is monotone", f"{self.match_id} {self.holder} {version} after {self._floor}")
        self._floor = version
        if self.healthy_since_ns is None and self.stream is not None and self.stream.caller.is_reading:
            self.healthy_since_ns = self.world.now_ns
        self.take_view(view, sent_ns)

    def take_view(self, view: View, sent_ns: int) -> None:
        """Go on from the newest view, whichever way it came."""
        self.truth.shown[self.match_id, self.holder].setdefault(view.public.version, sent_ns)
        if self.view is None or view.public.version >= self.view.public.version:
            self.cursor, self.view = view.public.version, view
            self.saw(view)

    def _stream_ended(self, caller: Caller, code: grpc.StatusCode) -> None:
        if self.stream is not None and self.stream.caller is caller:
            if code is grpc.StatusCode.OUT_OF_RANGE and self.truth.losses:
                self.begin_anew()
            elif code not in _GONE:
                self.truth.violated("a watch can be resumed", f"{self.match_id} {self.holder} {self.cursor}: {code}")
            ended, self.stream, self.healthy_since_ns = self.stream, None, None
            self.stream_ended(ended)
            self.world.after(self.chance.randrange(30 * MS_NS, 200 * MS_NS), self._reconnect)

    def _reconnect(self) -> None:
        if self.stream is not None:
            return
        self.connect()
        if self._storms > 0:
            self._storms -= 1
            self.disconnect(self.chance.randrange(MS_NS, 30 * MS_NS))

    def _fidget(self) -> None:
        if self.is_silent or self.stream is None:
            return
        if self.happens("disconnect"):
            self.disconnect(self.chance.randrange(10 * MS_NS, 1_500 * MS_NS))
        elif self.happens("storm"):
            self._storms = 8
            self.disconnect(MS_NS)
        elif self.happens("slow_reader"):
            stream = self.stream
            stream.caller.is_reading, self.healthy_since_ns = False, None
            self.world.after(self.chance.randrange(200 * MS_NS, 7_000 * MS_NS), stream.read_again)
