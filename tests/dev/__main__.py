"""`make dev`: the service on three replicas, with everything around it, until Ctrl-C."""

from __future__ import annotations

import asyncio
import signal
import sys
import time

from tests.support.envoy import Envoy, envoy
from tests.support.fleet import Fleet, fleet

TEXT = """
Spectacular Bid runs on {count} replicas behind Envoy, started in {seconds:.1f} s.

{exports}

  play against a bot       spectacular-bid play --server {door}
  play against a friend    spectacular-bid play --server {door} --against friend
  watch two bots           spectacular-bid demo --server {door}
  browsers (gRPC-Web)      http://{door}
  Envoy's own page         http://127.0.0.1:{admin_port}
{replicas}

(The command is .venv/bin/spectacular-bid in this folder.) Ctrl-C stops everything, and all matches are gone.
"""
REPLICA = "  replica {number}, process {pid:<8}gRPC {address}, metrics http://127.0.0.1:{metrics_port}/metrics"


async def main() -> None:
    """Run everything until SIGINT or SIGTERM."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    began = time.monotonic()
    async with fleet() as running, envoy([replica.envoy_port for replica in running.replicas]) as door:
        sys.stdout.write(_text(running, door, seconds=time.monotonic() - began))
        sys.stdout.flush()
        await stop.wait()
        sys.stdout.write("Stopping ...\n")


def _text(running: Fleet, door: Envoy, *, seconds: float) -> str:
    replicas = [
        REPLICA.format(
            number=number,
            pid=replica.server.process.pid,
            address=replica.address,
            metrics_port=replica.metrics_port,
        )
        for number, replica in enumerate(running.replicas, start=1)
    ]
    return TEXT.format(
        count=len(replicas),
        seconds=seconds,
        exports="\n".join(f"export {name}={value}" for name, value in running.settings.items()),
        door=door.address,
        admin_port=door.admin_port,
        replicas="\n".join(replicas),
    )


if __name__ == "__main__":
    asyncio.run(main())
