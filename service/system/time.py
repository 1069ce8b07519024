"""The one line of time of a single-node service: the boot clock, anchored to wall time once a boot.

A step of the wall clock during a run changes nothing, and neither does one between two runs of the same boot.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

ANCHOR_KEY = "clock_anchor"
"""Where the store keeps the anchor."""
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_BOOT_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class Anchor(NamedTuple):
    """Service time is boot time plus `offset_ns`, for the boot with this id."""

    boot_id: str
    offset_ns: int

    def to_text(self) -> str:
        """For the store."""
        return json.dumps({"boot_id": self.boot_id, "offset_ns": self.offset_ns})

    @classmethod
    def from_text(cls, text: str) -> Anchor:
        """From the store."""
        fields = json.loads(text)
        return cls(fields["boot_id"], fields["offset_ns"])


def boot_id() -> str:
    """The kernel's id of this boot; empty where there is none, which makes every start a new boot."""
    return _BOOT_ID.read_text().strip() if _BOOT_ID.exists() else ""


def boot_ns() -> int:
    """Nanoseconds since the machine was started, sleep included."""
    return time.clock_gettime_ns(_BOOT_CLOCK)


def anchor(stored: str | None, *, not_before_ns: int) -> Anchor:
    """The stored anchor if it is of this boot, else a new one to wall time, never before `not_before_ns`."""
    here = boot_id()
    if stored is not None:
        earlier = Anchor.from_text(stored)
        if here and earlier.boot_id == here:
            return earlier
    return Anchor(here, max(time.time_ns(), not_before_ns) - boot_ns())


def service_time(anchored: Anchor) -> Callable[[], int]:
    """A function that tells the service time in nanoseconds since the Unix epoch."""
    offset_ns, clock_gettime_ns, clock = anchored.offset_ns, time.clock_gettime_ns, _BOOT_CLOCK

    def now_ns() -> int:
        return clock_gettime_ns(clock) + offset_ns

    return now_ns
