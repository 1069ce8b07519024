"""The service's time as this client can know it, and what the clocks of a view show at an instant.

Nothing here counts ticks: what is shown follows from the instants in the view and from `ClockSync.now_ns`.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

from spectacularbid.client.errors import ClientError
from spectacularbid.client.retry import attempt
from spectacularbid.client.settings import Settings
from spectacularbid.client.views import player_of
from spectacularbid.v1.tiles_pb2 import Seat
from spectacularbid.v1.time_service_pb2 import SyncRequest, SyncResponse
from spectacularbid.v1.views_pb2 import MatchView

if TYPE_CHECKING:
    from spectacularbid.v1.time_service_pb2_grpc import TimeServiceAsyncStub

SAMPLES = 8
SAMPLE_SECONDS = 2.0
SYNC_EVERY_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Sample:
    """One exchange. `sent_ns` and `returned_ns` are readings of this client's monotonic clock."""

    sent_ns: int
    received_unix_ns: int
    transmitted_unix_ns: int
    returned_ns: int
    server_error_bound_ns: int

    @property
    def offset_ns(self) -> int:
        """What to add to the monotonic clock to get the service's time."""
        return (self.received_unix_ns + self.transmitted_unix_ns - self.sent_ns - self.returned_ns) // 2

    @property
    def round_trip_ns(self) -> int:
        """The time spent on the way, without that spent in the service."""
        return max(0, (self.returned_ns - self.sent_ns) - (self.transmitted_unix_ns - self.received_unix_ns))


class ClockSync:
    """Maps this client's monotonic clock to the service's time by the best of the last samples."""

    def __init__(self, stub: TimeServiceAsyncStub, settings: Settings) -> None:
        self._stub = stub
        self._settings = settings
        self._samples: deque[Sample] = deque(maxlen=SAMPLES)

    async def sample(self) -> Sample:
        """Take one sample. Raises `ClientError`."""
        sent_ns = self._settings.monotonic_ns()
        request = SyncRequest(client_sent_ns=sent_ns)
        response: SyncResponse = await attempt(self._stub.Sync, request, seconds=SAMPLE_SECONDS)
        taken = Sample(
            sent_ns=sent_ns,
            received_unix_ns=response.received_unix_ns,
            transmitted_unix_ns=response.transmitted_unix_ns,
            returned_ns=self._settings.monotonic_ns(),
            server_error_bound_ns=response.error_bound_ns,
        )
        self.add(taken)
        return taken

    def add(self, taken: Sample) -> None:
        """Use a sample; the oldest one is forgotten."""
        self._samples.append(taken)

    async def keep_synced(self) -> None:
        """Sample for ever, through failures too. Run it as a task and cancel it."""
        while True:
            try:
                await self.sample()
            except ClientError as error:
                if error.is_final:
                    raise
            await self._settings.sleep(SYNC_EVERY_SECONDS)

    @property
    def is_synced(self) -> bool:
        """Whether there is a sample."""
        return bool(self._samples)

    def now_ns(self) -> int:
        """The service's time in nanoseconds since the Unix epoch. Raises LookupError before the first sample."""
        return self._settings.monotonic_ns() + self._best().offset_ns

    def error_bound_ns(self) -> int:
        """How far `now_ns` may be off: half a round trip and the service's own bound. Raises LookupError as above."""
        best = self._best()
        return best.round_trip_ns // 2 + best.server_error_bound_ns

    def _best(self) -> Sample:
        if not self._samples:
            raise LookupError("no sample of the service's time yet")
        return min(self._samples, key=lambda taken: taken.round_trip_ns)


def bank_remaining_ns(view: MatchView, seat: Seat.ValueType, now_ns: int) -> int:
    """What is left of a seat's bank at an instant of service time, once the delay of its decision is used up."""
    bank_ns = player_of(view, seat).bank_remaining_ns
    clock = view.public.clock
    if not clock.HasField("running") or clock.running.seat != seat:
        return max(0, bank_ns)
    bank_from_ns = max(now_ns, clock.running.delay_ends_at_unix_ns)
    return max(0, min(bank_ns, clock.running.deadline_unix_ns - bank_from_ns))


def delay_remaining_ns(view: MatchView, seat: Seat.ValueType, now_ns: int) -> int:
    """What is left of the delay of a seat's running decision at an instant of service time; 0 when none runs."""
    running = view.public.clock.running
    if not view.public.clock.HasField("running") or running.seat != seat:
        return 0
    since_ns = max(now_ns, running.started_at_unix_ns)
    return max(0, running.delay_ends_at_unix_ns - since_ns)
