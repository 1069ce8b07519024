"""How many calls of Python code a command takes in the service: a cost that no other work on the machine changes.

In a server caches are cold, and what a command costs follows the number of its calls and small objects more than what
they do. So this is the figure to look at first after a change; whether the time follows, `grpc` says.
"""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from pathlib import Path

from bench import runs
from bench.load.job import Transport
from bench.processes import Cores
from bench.report import TEXT, Table, Value

MATCHES = 50
PARTS = ("engine", "service/rpc", "service/store", "service/metrics", "service")
"""Folders, the special ones first; what is in none of them is the standard library's and other packages'."""


def measure(*, quick: bool) -> list[Table]:
    """The table of calls."""
    job = runs.job_of(Transport.PLAY, matches=MATCHES, commands=1_000 if quick else 10_000)
    cores = Cores.apart()
    with tempfile.TemporaryDirectory(prefix="spectacular-bid-bench-") as folder:
        path = Path(folder) / "counts"
        with (
            runs.service(cores, module=["bench.counted", str(path), str(job.warm_up)]) as server,
            runs.playing(job, [server], cores),
        ):
            pass
        counted = json.loads(path.read_text(encoding="utf-8"))
    commands, python, c = counted["commands"], _by_part(counted["python"]), _by_part(counted["c"])
    rows: list[list[Value]] = [
        [name or "libraries in Python", python[name] / commands, c[name] / commands] for name in (*PARTS, "")
    ]
    rows.append(["together", python.total() / commands, c.total() / commands])
    columns = {"code in": TEXT, "called": ".1f", "calls C": ".1f"}
    title = f"Calls in the event loop's thread for a command over PlayMatch, {MATCHES} matches, {commands:,} commands"
    note = "a coroutine counts as called each time it goes on; matches that begin anew meanwhile are in it"
    return [Table(title, columns, rows, [note])]


def _by_part(counts: list[tuple[str, int]]) -> Counter[str]:
    parts: Counter[str] = Counter()
    for path, count in counts:
        parts[next((part for part in PARTS if path.startswith(f"{part}/")), "")] += count
    return parts
