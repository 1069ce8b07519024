"""What matches cost in which nobody moves."""

from __future__ import annotations

import time
from dataclasses import replace

from bench.load.job import Sizes, Transport, UnderTest
from bench.processes import Cores, Server, cpu_seconds, resident_bytes
from bench.report import TEXT, Table, Value
from bench.runs import floor, job_of, playing, service

LINE_UP = (
    (UnderTest.SERVICE, 0),
    (UnderTest.SERVICE, 100),
    (UnderTest.SERVICE, 1_000),
    (UnderTest.FLOOR, 1_000),
)
WINDOW_SECONDS, QUICK_WINDOW_SECONDS = 30, 5
SETTLING_SECONDS = 2
"""From the last Start until the window begins."""
TARGET = "<= 150 MB, <= 0.02 core"
COLUMNS = {"server": TEXT, "matches": ",d", "streams": ",d", "memory MB": ".0f", "busy core": ".3f", "target": TEXT}


def measure(*, quick: bool) -> list[Table]:
    """Memory and CPU by matches."""
    window_seconds, cores = QUICK_WINDOW_SECONDS if quick else WINDOW_SECONDS, Cores.apart()
    rows = [_row(under_test, matches, window_seconds, cores) for under_test, matches in LINE_UP]
    notes = [
        f"started matches, both players watching over connections of their own; {window_seconds} s; {cores}",
        "memory: resident set of the server process at the end; busy core: its CPU seconds a second",
    ]
    return [Table("Idle matches", COLUMNS, rows, notes)]


def _row(under_test: UnderTest, matches: int, window_seconds: int, cores: Cores) -> tuple[Value, ...]:
    is_service = under_test is UnderTest.SERVICE
    starts = replace(job_of(Transport.SUBMIT, matches=matches, commands=0), under_test=under_test, hold=True)
    with service(cores) if is_service else floor(cores, Sizes()) as server:
        if matches:
            with playing(starts, [server], cores):
                memory, busy = _observed(server, window_seconds)
        else:
            memory, busy = _observed(server, window_seconds)
    return under_test, matches, 2 * matches, memory, busy, TARGET if is_service and matches >= 1_000 else ""


def _observed(server: Server, window_seconds: int) -> tuple[float | None, float | None]:
    """Megabytes, and cores in use."""
    time.sleep(SETTLING_SECONDS)
    before = cpu_seconds(server.pid)
    time.sleep(window_seconds)
    after, memory = cpu_seconds(server.pid), resident_bytes(server.pid)
    busy = None if before is None or after is None else (after - before) / window_seconds
    return None if memory is None else memory / 1e6, busy
