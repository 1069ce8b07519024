"""An Envoy in front of the machine: it stamps commands by a clock that is wrong and drifts, but never steps."""

from __future__ import annotations

from service.rpc.auth import ARRIVAL_HEADER
from tests.sim.world import MS_NS, SECOND_NS, World

PEER = "ipv4:10.0.0.7:41234"


class Envoy:
    """Whatever its clock shows, the command is on the machine the moment that it is stamped."""

    def __init__(self, world: World) -> None:
        chance = world.chance("envoy")
        self._world = world
        self._ahead_ns = chance.choice((0, 150 * MS_NS, -150 * MS_NS, 1800 * SECOND_NS))
        self._drift_ppm = chance.randrange(-400, 401)

    def header(self) -> tuple[str, str]:
        """What goes with a command that comes now."""
        world = self._world
        shown_ns = world.service_ns() - world.stepped_ns + self._ahead_ns
        seconds, nanoseconds = divmod(shown_ns + world.now_ns * self._drift_ppm // 1_000_000, SECOND_NS)
        return ARRIVAL_HEADER, f"{seconds}.{nanoseconds:09d} 0"
