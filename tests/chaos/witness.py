"""What the machine did to the replicas by itself: on a busy one a process waits for a processor as if it were stopped.

Only Linux tells; elsewhere the machine is taken to have had time for everybody.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.chaos.history import MACHINE, History, Injected, now_ns
from tests.support.fleet import Fleet

LOOK_SECONDS = 0.1
STALL_NS = 50_000_000
"""Waiting so long in one look widens stamps."""


async def watch_machine(fleet: Fleet, history: History) -> None:
    """Record, until cancelled, when a replica's event loop had to wait for a processor."""
    waited: dict[int, int] = {}
    looked_ns = now_ns()
    while True:
        await asyncio.sleep(LOOK_SECONDS)
        from_ns, looked_ns = looked_ns, now_ns()
        for replica in fleet.replicas:
            if not replica.is_running:
                continue
            pid = replica.server.process.pid
            total_ns = _waited_ns(pid)
            if total_ns - waited.get(pid, total_ns) >= STALL_NS:
                history.injected.append(Injected(MACHINE, from_ns, looked_ns))
            waited[pid] = total_ns


def _waited_ns(pid: int) -> int:
    """How long the main thread of a process has been ready to run and was not run, since it was started."""
    try:
        return int(Path(f"/proc/{pid}/schedstat").read_text(encoding="ascii").split()[1])
    except OSError:
        return 0
