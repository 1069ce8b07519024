"""What a command costs the service on PostgreSQL, beside the same on SQLite in the same run.

`BENCH_DATABASE_URL` names a PostgreSQL database for it, which is brought into the schema and filled with matches.
"""

from __future__ import annotations

import base64
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from bench.grpc_cost import per_thousand
from bench.load.job import Transport
from bench.processes import ROOT, Cores
from bench.report import TEXT, Table, Value
from bench.runs import job_of, run_service

MATCHES = (1, 50, 200)
COMMANDS, QUICK_COMMANDS = 20_000, 2_000
COLUMNS = {
    "matches": ",d",
    "SQLite CPU s / 1,000": ".3f",
    "PostgreSQL CPU s / 1,000": ".3f",
    "ratio": ".2f",
    "commands/s": ",.0f",
    "p50 ms": ".2f",
    "p99 ms": ".2f",
    "target": TEXT,
}
VARIABLE = "BENCH_DATABASE_URL"


def measure(*, quick: bool) -> list[Table]:
    """One table; an empty one where no database is named."""
    title = "PostgreSQL: PlayMatch as fast as it goes"
    address = os.environ.get(VARIABLE)
    if address is None:
        return [Table(title, COLUMNS, [], [f"not measured: {VARIABLE} names no database"])]
    commands, cores = QUICK_COMMANDS if quick else COMMANDS, Cores.apart()
    with tempfile.TemporaryDirectory(prefix="spectacular-bid-bench-") as folder:
        settings = _settings(address, Path(folder) / "sealing.key")
        migrating = {**os.environ, **settings}
        subprocess.run([sys.executable, "-m", "service", "migrate"], cwd=ROOT, env=migrating, check=True)
        rows = [_row(matches, commands, cores, settings) for matches in MATCHES]
    notes = [
        f"{commands:,} accepted commands a row, one under way in each match at all times; {cores}",
        "CPU: user and system seconds of the service process; PostgreSQL runs wherever it runs, and is not counted",
        "commands/s and latency are those on PostgreSQL",
    ]
    return [Table(title, COLUMNS, rows, notes)]


def _settings(address: str, key_file: Path) -> dict[str, str]:
    key_file.write_bytes(base64.b64encode(bytes(32)))  # the same for a database that was used before
    return {
        "SPECBID_DATABASE_URL": address,
        "SPECBID_DURABILITY": "single-node",
        "SPECBID_SEALING_KEY_FILE": str(key_file),
    }


def _row(matches: int, commands: int, cores: Cores, settings: dict[str, str]) -> tuple[Value, ...]:
    job = job_of(Transport.PLAY, matches=matches, commands=commands)
    on_sqlite, found = run_service(job, cores), run_service(job, cores, settings)
    least, cpu = per_thousand(on_sqlite), per_thousand(found)
    ratio = cpu / least if cpu is not None and least else None
    rate = found.commands / found.seconds
    return matches, least, cpu, ratio, rate, found.p50_ms, found.p99_ms, "ratio <= 2.5"
