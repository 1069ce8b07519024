"""TimeService: one sample of the service's clock."""

from __future__ import annotations

from dataclasses import dataclass

from service.ports import Clock
from service.rpc.arrival import Stamped
from service.rpc.edge import Context, message_of
from spectacularbid.v1 import time_service_pb2 as pb


@dataclass(frozen=True, slots=True)
class TimeService:
    """Echoes the client's clock beside the service's."""

    clock: Clock

    async def sync(self, stamped: Stamped[pb.SyncRequest], _: Context) -> bytes:
        """One sample."""
        message = message_of(stamped)
        return pb.SyncResponse(
            client_sent_ns=message.client_sent_ns,
            received_unix_ns=stamped.arrival.latest_ns,
            transmitted_unix_ns=self.clock.now_ns(),
            error_bound_ns=self.clock.error_bound_ns(),
        ).SerializeToString()
