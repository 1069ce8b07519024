"""Envoy's stamp: a witness who may narrow what the service vouches for by itself, and do nothing else (record 14).

Envoy says of a command when its last byte had come, by a wall clock that nobody vouches for. While the event loop runs,
the service knows as much by itself, and learns how that clock stands to service time. After the loop stood still, the
service knows little of what has come meanwhile, and the witness tells it when.
"""

from __future__ import annotations

import re
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple, TypeVar

from google.protobuf.message import Message

from engine.clock import SECOND_NS, Arrival
from service.metrics.clock import ClockMetrics, WitnessUse
from service.rpc.arrival import Stamped
from service.rpc.auth import ARRIVAL_HEADER, address_of
from service.rpc.edge import Context, UnaryHandler
from service.timing_guard import STEP_NS

M = TypeVar("M", bound=Message)

NARROW_NS: Final = SECOND_NS // 10
"""A stamp of the service that is as narrow needs no witness; from it the service learns about the witness's clock."""
REACH_NS: Final = 2 * SECOND_NS
"""The witness moves no bound further. A longer standstill is a failure of the service whatever it says."""
COMPARISONS: Final = 8
"""The latest of so many count: the range that they span holds the truth when one of them does."""
FEWEST_COMPARISONS: Final = 3
"""The first call of a connection may have waited for it."""
COMPARE_EVERY_NS: Final = SECOND_NS
COMPARISON_LIFE_NS: Final = 60 * SECOND_NS
DRIFT_PPM: Final = 500
"""How fast two clocks may part that are kept right; ntpd slews none faster."""
PROXIES: Final = 64
"""So many addresses are told apart; of more the first known is forgotten."""
_STAMP: Final = re.compile(r"([0-9]{1,10})\.([0-9]{9}) ([0-9]{1,12})", re.ASCII)
"""When the headers came, and the microseconds until the last byte: `1700000000.123456789 4321`."""


class Comparison(NamedTuple):
    """When a proxy's clock showed `stamp_ns` it was ahead of service time by that much; negative is behind.

    `parted_ns` is how far service time then was from this machine's monotonic clock.
    """

    stamp_ns: int
    least_ns: int
    most_ns: int
    parted_ns: int

    def at(self, stamp_ns: int) -> tuple[int, int]:
        """What is left of it when the proxy's clock shows this. A later stamp never makes for an earlier arrival."""
        drift_ns = abs(stamp_ns - self.stamp_ns) * DRIFT_PPM // 1_000_000
        return self.least_ns - drift_ns, self.most_ns + drift_ns


class ProxyClock:
    """What is known of one proxy's wall clock."""

    def __init__(self) -> None:
        self._comparisons: deque[Comparison] = deque(maxlen=COMPARISONS)

    def compare(self, own: Arrival, stamp_ns: int, parted_ns: int) -> None:
        """Learn from a command whose arrival the service itself knows well; now and then is enough."""
        if not self._comparisons or abs(stamp_ns - self._comparisons[-1].stamp_ns) >= COMPARE_EVERY_NS:
            least_ns, most_ns = stamp_ns - own.latest_ns, stamp_ns - own.earliest_ns
            self._comparisons.append(Comparison(stamp_ns, least_ns, most_ns, parted_ns))

    def narrowed(self, own: Arrival, stamp_ns: int, parted_ns: int) -> Arrival | WitnessUse:
        """The part of the service's own interval that the stamp leaves, or why it cannot be believed."""
        known = [
            one.at(stamp_ns)
            for one in self._comparisons
            if abs(stamp_ns - one.stamp_ns) <= COMPARISON_LIFE_NS and abs(parted_ns - one.parted_ns) <= STEP_NS
        ]
        if len(known) < FEWEST_COMPARISONS:
            return WitnessUse.CLOCK_UNKNOWN
        said_earliest_ns = stamp_ns - max(most_ns for _, most_ns in known)
        said_latest_ns = stamp_ns - min(least_ns for least_ns, _ in known)
        earliest_ns, latest_ns = max(own.earliest_ns, said_earliest_ns), min(own.latest_ns, said_latest_ns)
        if earliest_ns > latest_ns or said_earliest_ns < own.latest_ns - REACH_NS:
            return WitnessUse.OUT_OF_RANGE
        return Arrival(earliest_ns, latest_ns, own.earliest_ns, own.latest_ns)


class Witness:
    """What the proxies on one listener say. Only they may reach it: who forges a stamp is believed like them.

    What is known of their clocks does not outlive a step of service time, or a sleep of the machine; `monotonic_ns`
    shows either.
    """

    def __init__(self, metrics: ClockMetrics, monotonic_ns: Callable[[], int] = time.monotonic_ns) -> None:
        self._metrics = metrics
        self._monotonic_ns = monotonic_ns
        self._clocks: OrderedDict[str, ProxyClock] = OrderedDict()

    def narrowed(self, own: Arrival, metadata: Iterable[tuple[str, str | bytes]], peer: str) -> Arrival:
        """The stamp of a command with these metadata from this peer; `own` where the witness adds nothing."""
        said = self._said(own, metadata, peer)
        if isinstance(said, WitnessUse):
            self._metrics.testified(said)
            return own
        self._metrics.testified(WitnessUse.NARROWED)
        return said

    def _said(self, own: Arrival, metadata: Iterable[tuple[str, str | bytes]], peer: str) -> Arrival | WitnessUse:
        stamp_ns = stamp_in(metadata)
        if stamp_ns is None:
            return WitnessUse.UNREADABLE
        clock, parted_ns = self._clock_of(address_of(peer)), own.latest_ns - self._monotonic_ns()
        if own.latest_ns - own.earliest_ns > NARROW_NS:
            return clock.narrowed(own, stamp_ns, parted_ns)
        clock.compare(own, stamp_ns, parted_ns)
        return WitnessUse.NOT_NEEDED

    def _clock_of(self, address: str) -> ProxyClock:
        clock = self._clocks.setdefault(address, ProxyClock())
        if len(self._clocks) > PROXIES:
            self._clocks.popitem(last=False)
        return clock


def stamp_in(metadata: Iterable[tuple[str, str | bytes]]) -> int | None:
    """When the last byte came by the proxy's clock, in nanoseconds since the Unix epoch.

    None unless there is exactly one well-formed header.
    """
    values = [value for key, value in metadata if key == ARRIVAL_HEADER]
    found = _STAMP.fullmatch(values[0]) if len(values) == 1 and isinstance(values[0], str) else None
    if found is None:
        return None
    seconds, nanoseconds, microseconds = map(int, found.groups())
    return seconds * SECOND_NS + nanoseconds + microseconds * 1_000


def witnessed(handler: UnaryHandler[M], witness: Witness) -> UnaryHandler[M]:
    """A unary handler that gets stamps as the witness leaves them. Nothing suspends before it."""

    async def call(stamped: Stamped[M], context: Context) -> bytes:
        arrival = witness.narrowed(stamped.arrival, context.invocation_metadata() or (), context.peer())
        return await handler(stamped._replace(arrival=arrival), context)

    return call
