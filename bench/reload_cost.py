"""What it costs to read a match that is not in memory, with and without a snapshot, and to write the snapshots."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path
from typing import NamedTuple, TypeAlias

from bench import loops
from bench.backends import backends
from bench.clock_cost import microseconds
from bench.machine import data_folder
from bench.processes import family_cpu_seconds
from bench.recorded import choose_cheaply, log_of
from bench.report import TEXT, Table, Value
from engine.events import Step
from engine.state import MatchState
from service.past import SNAPSHOT_VERSIONS, Past
from service.ports import Append, Heartbeat, Store
from service.secret import Secret
from service.store.postgres import PostgresStore
from service.store.sealing import KEY_BYTES, Seal
from service.store.snapshot_rows import snapshot_row
from service.store.sqlite import SqliteStore
from service.watches import Recent

Log: TypeAlias = Sequence[tuple[Step, MatchState]]
LENGTHS, QUICK_LENGTHS = (64, 256, 700, 8_192), (64, 700)
REPEATS, APPENDS = 7, 500
SEAL = Seal(bytes(KEY_BYTES))
READ = {"store": TEXT, "versions": "d", "folded": "d", "without, CPU ms": ".2f", "with, CPU ms": ".2f"}
WRITTEN = {"store": TEXT, "append, CPU us": ".0f", "with one, CPU us": ".0f", "database adds, CPU us": ".0f"}


class Figures(NamedTuple):
    """The rows of both tables."""

    read: list[list[Value]]
    written: list[list[Value]]


def measure(*, quick: bool) -> list[Table]:
    """Two tables: reading, and what is added to writing."""
    lengths = QUICK_LENGTHS if quick else LENGTHS
    log = next(found for seed in count() if len(found := log_of(seed, choose_cheaply)) >= max(lengths))
    logs = [log[:length] for length in lengths]
    figures = Figures([], [])
    with tempfile.TemporaryDirectory(prefix="spectacular-bid-bench-", dir=data_folder()) as folder:
        loops.run(_on_sqlite(Path(folder) / "matches.sqlite3", logs, figures))
    with backends(core=None) as shared:
        address = shared.new_database("reload")["SPECBID_DATABASE_URL"]
        loops.run(_on_postgres(address, shared.postgres_pid, logs, figures))
    row = snapshot_row("m" * 26, max((state for _, state in log[:APPENDS]), key=_row_bytes), SEAL)
    sealing_us = microseconds(lambda: snapshot_row(row[0], log[300][1], SEAL), 1_000)
    notes = [
        f"to write and seal one: {sealing_us:.0f} us; the largest row: {len(row[3])} bytes",
        f"one in {SNAPSHOT_VERSIONS} commands or more, so a command pays 1 / {SNAPSHOT_VERSIONS} of that at most",
    ]
    return [
        Table("Reading a match that is not in memory, without and with its snapshot", READ, figures.read),
        Table("Appending a step, without and with a snapshot", WRITTEN, figures.written, notes),
    ]


def _row_bytes(state: MatchState) -> int:
    return len(snapshot_row("m" * 26, state, SEAL)[3])


async def _on_sqlite(path: Path, logs: Sequence[Log], figures: Figures) -> None:
    store = await SqliteStore.open(path)
    await _measured("SQLite", store, lambda: 0.0, logs, figures)
    await store.close()


async def _on_postgres(address: str, pid: int, logs: Sequence[Log], figures: Figures) -> None:
    store = await PostgresStore.open(Secret(address), seal=SEAL, replica_id="bench", durability="single-node")
    await store.beat(Heartbeat(0, 0))
    await _measured("PostgreSQL", store, lambda: family_cpu_seconds(pid) or 0.0, logs, figures)
    await store.close()


async def _measured(
    name: str, store: Store, database_cpu: Callable[[], float], logs: Sequence[Log], figures: Figures
) -> None:
    for log in logs:
        for kept in (False, True):
            await _write(store, f"{len(log)} {kept}", log, kept=kept)
        without, _ = await _read(store, f"{len(log)} False", log[-1][1])
        with_one, folded = await _read(store, f"{len(log)} True", log[-1][1])
        figures.read.append([name, len(log), folded, without, with_one])
    costs, database = [], []
    for each in (0, 1):
        began, began_database = time.process_time(), database_cpu()
        for version, (step, state) in enumerate(logs[-1][:APPENDS]):
            kept_state = state if each else None
            await store.append(Append(f"append {each}", version, step, None, live=True, snapshot=kept_state))
        costs.append(1e6 * (time.process_time() - began) / APPENDS)
        database.append(1e6 * (database_cpu() - began_database) / APPENDS)
    figures.written.append([name, *costs, database[1] - database[0] if any(database) else None])


async def _write(store: Store, match_id: str, log: Log, *, kept: bool) -> None:
    past = Past(match_id, store)
    for version, (step, state) in enumerate(log):
        snapshot = past.snapshot(step, state) if kept else None
        await store.append(Append(match_id, version, step, None, live=True, snapshot=snapshot))
        if snapshot is not None:
            past.stored(snapshot)


async def _read(store: Store, match_id: str, expected: MatchState) -> tuple[float, int]:
    """CPU milliseconds of this process, the least of some, and how many versions were folded."""
    least, folded = float("inf"), 0
    for _ in range(REPEATS):
        began = time.process_time()
        found = await Past(match_id, store).read(None, Recent())
        least, folded = min(least, 1e3 * (time.process_time() - began)), found.folded
        assert found.state == expected
    return least, folded
