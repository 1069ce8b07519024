"""Looks in the store for what other processes did and nobody told, where several serve the same matches.

A message of the bus may be lost, a process may die with deadlines that only it would have settled, and one that stops
may suspend matches without knowing that another has started. Each costs time then, and nothing else.
"""

from __future__ import annotations

import asyncio

from service.logs import get_logger
from service.matches import Matches
from service.ports import Bus, Clock, Store, StoreUnavailableError
from service.watermark import Watermark

TURN_SECONDS = 0.5
ORPHANED_NS = 1_000_000_000
"""A match that needed the service so long ago has lost the process that knew of it, or that is in trouble."""


class Lookout:
    """Looks around until it is cancelled."""

    def __init__(self, store: Store, bus: Bus, clock: Clock, matches: Matches, watermark: Watermark) -> None:
        self._store = store
        self._bus = bus
        self._clock = clock
        self._matches = matches
        self._watermark = watermark
        self._departures = 0
        self._next_look = 0.0

    async def run(self) -> None:
        """Look around until cancelled."""
        while True:
            await asyncio.sleep(TURN_SECONDS)
            try:
                await self._settle_orphans()
                await self._look_for_versions()
            except StoreUnavailableError:
                get_logger().warning("nothing_looked_for")
            except Exception as error:  # noqa: BLE001  a mistake of ours must not end all looking
                get_logger().error("lookout_failed", exc_info=error)

    async def _settle_orphans(self) -> None:
        for match_id in await self._store.overdue(self._clock.now_ns() - ORPHANED_NS):
            self._matches.get(match_id).look_again()
        if self._watermark.is_leaving:
            return  # its door closes soon or has: whoever comes resumes them
        if (departures := self._watermark.departures) > self._departures:
            await self._matches.resume()
            self._departures = departures

    async def _look_for_versions(self) -> None:
        now, every = asyncio.get_running_loop().time(), self._bus.poll_seconds
        if every is None or now < self._next_look:
            return
        self._next_look = now + every - TURN_SECONDS / 2
        watched = {match.match_id: match for match in self._matches.watched()}
        for match_id, version in (await self._store.versions(list(watched)) if watched else {}).items():
            if watched[match_id].is_behind(version):
                watched[match_id].heard(version)
