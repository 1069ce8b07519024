"""What a command costs over gRPC, beside the least that grpc.aio itself would take on this machine in this minute."""

from __future__ import annotations

from bench.load.job import Measured, Transport
from bench.processes import Cores
from bench.report import TEXT, Table, Value
from bench.runs import job_of, run_floor, run_service

MATCHES = (1, 50, 200)
COMMANDS, QUICK_COMMANDS = 20_000, 2_000
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
    return [_closed_loop(QUICK_COMMANDS if quick else COMMANDS, cores), _paced(quick=quick, cores=cores)]


def _closed_loop(commands: int, cores: Cores) -> Table:
    rows = [_row(transport, matches, commands, cores) for transport in Transport for matches in MATCHES]
    notes = [
        f"{commands:,} accepted commands a row, one under way in each match at all times; {cores}",
        "CPU: user and system seconds of the server process for 1,000 commands, storing and syncing included",
        "floor: bare grpc.aio that answers and pushes messages of the same length, same client; ratio: CPU over floor",
        "p50, p99: from sending a command until its outcome was read; with many matches mostly waiting for the others",
        "views read: by both players, for each command",
    ]
    return Table("gRPC: as fast as it goes", LOAD_COLUMNS, rows, notes)


def _row(transport: Transport, matches: int, commands: int, cores: Cores) -> tuple[Value, ...]:
    job = job_of(transport, matches=matches, commands=commands)
    found = run_service(job, cores)
    cpu = per_thousand(found)
    least = per_thousand(run_floor(job, cores, found.sizes))
    return (
        transport,
        matches,
        cpu,
        least,
        cpu / least if cpu is not None and least else None,
        found.commands / found.seconds,
        found.p50_ms,
        found.p99_ms,
        found.views / found.commands,
        found.client_cpu_seconds / found.seconds,
        "p50 <= 1 ms" if transport is Transport.PLAY and matches == 1 else TARGETS[transport],
    )


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
