"""What the service costs on PostgreSQL and as several replicas, beside the same on SQLite in the same run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from bench.backends import Backends, backends
from bench.grpc_cost import per_thousand
from bench.load.job import Job, Measured, Transport
from bench.processes import Cores
from bench.report import TEXT, Table, Value
from bench.runs import job_of, run_replicas, run_service

MATCHES, PACE_PER_SECOND = 50, 100
COMMANDS, QUICK_COMMANDS = 20_000, 2_000
PACED_SECONDS, QUICK_PACED_SECONDS = 30, 5
COLUMNS = {
    "store": TEXT,
    "replicas": ",d",
    "load": TEXT,
    "players": TEXT,
    "CPU s / 1,000": ".3f",
    "to SQLite": ".2f",
    "PostgreSQL CPU s / 1,000": ".3f",
    "commands/s": ",.0f",
    "p50 ms": ".2f",
    "p99 ms": ".2f",
    "delivery p50 ms": ".2f",
    "delivery p99 ms": ".2f",
    "target": TEXT,
}


class Run(NamedTuple):
    """One row: how many replicas on PostgreSQL (0 is one process on SQLite) get which load."""

    replicas: int
    job: Job
    target: str = ""


def measure(*, quick: bool) -> list[Table]:
    """One table."""
    cores, rows, base = Cores.apart(), [], None
    with backends(cores.client) as behind:
        for number, run in enumerate(_runs(quick=quick)):
            found = _measured(run, behind, cores, f"run_{number}")
            base = base or per_thousand(found)
            rows.append(_row(run, found, base))
    commands = QUICK_COMMANDS if quick else COMMANDS
    notes = [
        f"PlayMatch, {MATCHES} matches, a fresh database a row; {commands:,} commands in a closed loop, or at a pace",
        f"{cores}; all replicas share the server's core, PostgreSQL 18 and NATS that of the client",
        "together, apart: both players of a match on one replica, or each on another one",
        "CPU: user and system seconds of all replicas together, and of all of PostgreSQL's processes",
        "delivery: from sending a command until the other player has read what it made",
    ]
    return [Table("PostgreSQL and replicas", COLUMNS, rows, notes)]


def _runs(*, quick: bool) -> Iterator[Run]:
    fast = job_of(Transport.PLAY, matches=MATCHES, commands=QUICK_COMMANDS if quick else COMMANDS)
    seconds = QUICK_PACED_SECONDS if quick else PACED_SECONDS
    paced = replace(fast, commands=PACE_PER_SECOND * seconds, pace_per_second=PACE_PER_SECOND)
    yield Run(0, fast)
    yield Run(1, fast, "to SQLite <= 2.5")
    for replicas in (2, 3):
        yield Run(replicas, fast)
        yield Run(replicas, replace(fast, apart=True))
    yield Run(2, paced)
    yield Run(2, replace(paced, apart=True), "delivery p99 within 20 ms of the row above")


def _measured(run: Run, behind: Backends, cores: Cores, database: str) -> Measured:
    if not run.replicas:
        return run_service(run.job, cores)
    job = replace(run.job, database_pid=behind.postgres_pid)
    return run_replicas(job, cores, run.replicas, behind.new_database(database))


def _row(run: Run, found: Measured, base: float | None) -> list[Value]:
    cpu, of_database, pace = per_thousand(found), found.database_cpu_seconds, run.job.pace_per_second
    return [
        "PostgreSQL" if run.replicas else "SQLite",
        run.replicas or 1,
        f"{pace} a second" if pace else "closed loop",
        "apart" if run.job.apart else "together",
        cpu,
        cpu / base if cpu is not None and base and not pace else None,
        None if of_database is None else 1e3 * of_database / found.commands,
        found.commands / found.seconds,
        found.p50_ms,
        found.p99_ms,
        found.delivery_p50_ms,
        found.delivery_p99_ms,
        run.target,
    ]
