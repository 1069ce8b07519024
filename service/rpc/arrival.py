"""The stamp: taken in the deserializer, the first moment at which the whole message is in.

An interceptor would run when the headers arrive; a client that sends those early and the message late would gain time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, NamedTuple, TypeVar

from google.protobuf.message import DecodeError, Message

from engine.clock import Arrival
from service.metrics.families import Counter
from service.ports import Clock

M = TypeVar("M", bound=Message)


class Stamped(NamedTuple, Generic[M]):
    """A message and its arrival; `message` is None when the bytes were no such message."""

    arrival: Arrival
    message: M | None


def stamping(kind: type[M], clock: Clock, received: Counter | None = None) -> Callable[[bytes], Stamped[M]]:
    """A request deserializer that stamps first, counts as `received`, and parses then.

    It never raises: grpc would answer UNKNOWN.
    """
    counter = Counter() if received is None else received

    def deserialize(data: bytes) -> Stamped[M]:
        arrival = clock.arrival()
        counter.count += 1
        try:
            return Stamped(arrival, kind.FromString(data))
        except DecodeError:
            return Stamped(arrival, None)

    return deserialize
