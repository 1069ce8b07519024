"""What a command costs over gRPC, beside the least that grpc.aio itself would take on this machine in this minute."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from bench.load.job import Job, Measured, Transport
from bench.processes import Cores
from bench.report import TEXT, Table, Value
from bench.runs import job_of, run_floor, run_service

MATCHES = (1, 50, 200)
COMMANDS, QUICK_COMMANDS = 10_000, 2_000
REPEATS, QUICK_REPEATS = 3, 1
"""Of each row. What else the processor did meanwhile only ever adds, so the least is what the code costs."""
PACED_MATCHES, PACE_PER_SECOND = 50, 200
PACED_SECONDS, QUICK_PACED_SECONDS = 10, 3
TARGETS = {
    Transport.PLAY: "first <= 0.50, goals <= 0.35, 0.30",
    Transport.SUBMIT: "goal <= 0.80",
}
LOAD_COLUMNS = {
    "transport": TEXT,
    "matches": ",d",
    "CPU s / 1,000": ".3f",
    "median": ".3f",
    "floor": ".3f",
    "ratio": ".2f",
    "commands/s": ",.0f",
    "p50 ms": ".2f",
    "p99 ms": ".2f",
    "views read": ".2f",
    "client busy": ".0%",
    "target": TEXT,
}
PACED_COLUMNS = {"server": TEXT, "CPU s / 1,000": ".3f", "p50 ms": ".2f", "p99 ms": ".2f", "target": TEXT}


def measure(*, quick: bool) -> list[Table]:
    """Both tables: as fast as it goes, and at a pace."""
    cores = Cores.apart()
    return [_closed_loop(quick=quick, cores=cores), _paced(quick=quick, cores=cores)]


def _closed_loop(*, quick: bool, cores: Cores) -> Table:
    commands, repeats = (QUICK_COMMANDS, QUICK_REPEATS) if quick else (COMMANDS, REPEATS)
    rows = [
        _row(job_of(transport, matches=matches, commands=commands), repeats, cores)
        for transport in Transport
        for matches in MATCHES
    ]
    notes = [
        f"{repeats} times {commands:,} accepted commands a row, one under way in each match at all times; {cores}",
        "CPU: user and system seconds of the server process for 1,000 commands, storing and syncing included; the run",
        "that took least, which is the row's, and the median; so does the floor, which ran after each",
        "floor: bare grpc.aio that answers and pushes messages of the same length, same client; ratio: CPU over floor",
        "p50, p99: from sending a command until its outcome was read; with many matches mostly waiting for the others",
        "views read: by both players, for each command",
    ]
    return Table("gRPC: as fast as it goes", LOAD_COLUMNS, rows, notes)


def _row(job: Job, repeats: int, cores: Cores) -> tuple[Value, ...]:
    runs, floors = [], []
    for _ in range(repeats):
        runs.append(run_service(job, cores))
        floors.append(run_floor(job, cores, runs[-1].sizes))
    found, cpu = _least(runs)
    _, floor = _least(floors)
    return (
        job.transport,
        job.matches,
        cpu,
        None if cpu is None else median(filter(None, map(per_thousand, runs))),
        floor,
        cpu / floor if cpu is not None and floor else None,
        found.commands / found.seconds,
        found.p50_ms,
        found.p99_ms,
        found.views / found.commands,
        found.client_cpu_seconds / found.seconds,
        "p50 <= 1 ms" if job.transport is Transport.PLAY and job.matches == 1 else TARGETS[job.transport],
    )


def _least(runs: Sequence[Measured]) -> tuple[Measured, float | None]:
    """The run that took least CPU, and how much for 1,000 commands."""
    found = min(runs, key=lambda run: per_thousand(run) or 0.0)
    return found, per_thousand(found)


def _paced(*, quick: bool, cores: Cores) -> Table:
    seconds = QUICK_PACED_SECONDS if quick else PACED_SECONDS
    job = job_of(
        Transport.PLAY, matches=PACED_MATCHES, commands=PACE_PER_SECOND * seconds, pace_per_second=PACE_PER_SECOND
    )
    found = run_service(job, cores)
    least = run_floor(job, cores, found.sizes)
    rows = [
        ("service", per_thousand(found), found.p50_ms, found.p99_ms, "p50 <= 2.5, p99 <= 8"),
        ("floor", per_thousand(least), least.p50_ms, least.p99_ms, ""),
    ]
    note = f"{PACE_PER_SECOND} commands a second for {seconds} s; latency counts from the tick that asked for a command"
    return Table(f"gRPC: PlayMatch at a pace, {PACED_MATCHES} matches", PACED_COLUMNS, rows, [note])


def per_thousand(found: Measured) -> float | None:
    """Server CPU seconds for 1,000 commands."""
    return None if found.server_cpu_seconds is None else 1e3 * found.server_cpu_seconds / found.commands
