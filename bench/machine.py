"""Where the figures were made: without this they mean nothing."""

from __future__ import annotations

import os
import platform
import sqlite3
import statistics
import tempfile
import time
from importlib.metadata import version
from pathlib import Path

SYNC_PROBES = 50
PAGE_BYTES = 4096
_PACKAGES = ("grpcio", "protobuf", "uvloop")


def data_folder() -> Path:
    """Where databases go: /var/tmp is on the disk where /tmp may be memory, in which a commit costs nothing."""
    lasting = Path("/var/tmp")  # noqa: S108  only folders with random names are made in it
    return lasting if os.access(lasting, os.W_OK) else Path(tempfile.gettempdir())


def facts() -> dict[str, str]:
    """Name and value of what matters for speed."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    packages = ", ".join(f"{package} {version(package)}" for package in _PACKAGES)
    return {
        "machine": f"{usable} cores, {_processor()}, {platform.system()} {platform.release()}",
        "software": f"Python {platform.python_version()}, {packages}, SQLite {sqlite3.sqlite_version}",
        "disk": f"{sync_ms(data_folder()):.2f} ms to write and sync a page in {data_folder()} (median)",
        "load": "{:.2f} in the last minute, before this run (0 is a quiet machine)".format(*os.getloadavg()),
    }


def sync_ms(folder: Path) -> float:
    """What every commit waits for at least."""
    spent = []
    with tempfile.TemporaryFile(dir=folder) as file:
        for _ in range(SYNC_PROBES):
            began = time.perf_counter()
            file.write(bytes(PAGE_BYTES))
            file.flush()
            os.fsync(file.fileno())
            spent.append(time.perf_counter() - began)
    return 1e3 * statistics.median(spent)


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()
