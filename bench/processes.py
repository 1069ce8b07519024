"""Processes under test: started on a core of their own, ready when they say so, measured by what the kernel counts."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
READY_SECONDS = 30.0
STOP_SECONDS = 60.0
LOOK_AGAIN_SECONDS = 0.02


class NotReadyError(Exception):
    """A server did not come up; the text says how it ended, if it did, and holds its log."""


@dataclass(frozen=True, slots=True)
class Cores:
    """Where server and client run; None where the system cannot pin or has one core only."""

    server: int | None
    client: int | None

    @classmethod
    def apart(cls) -> Cores:
        """The last core for the server, the first, which also serves interrupts, for the client."""
        usable = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
        return cls(usable[-1], usable[0]) if len(usable) > 1 else cls(None, None)

    def __str__(self) -> str:
        if self.server is None:
            return "server and client are not pinned"
        return f"server pinned to core {self.server}, client to core {self.client}"


@dataclass(frozen=True, slots=True)
class Server:
    """A server that listens."""

    address: str
    pid: int
    log: Path


@contextmanager
def on_core(core: int | None) -> Iterator[None]:
    """What is started inside runs on this core, with all its threads."""
    if core is None:
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {core})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


@contextmanager
def serving(arguments: Sequence[str], *, core: int | None, log: Path, settings: Mapping[str, str]) -> Iterator[Server]:
    """A Python module as a server, until the context is left. It must log a JSON line with the event "serving"."""
    with on_core(core), log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, *arguments],
            cwd=ROOT,
            env=_environment(settings),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=output,
        )
    try:
        yield Server(_address(process, log), process.pid, log)
    finally:
        _stop(process)


def _environment(settings: Mapping[str, str]) -> dict[str, str]:
    """The caller's, without what might be set for another server."""
    ours = {name: value for name, value in os.environ.items() if not name.startswith("SPECBID_")}
    return {**ours, **settings}


def _address(process: subprocess.Popen[bytes], log: Path) -> str:
    give_up = time.monotonic() + READY_SECONDS
    while time.monotonic() < give_up and process.poll() is None:
        for line in log.read_text(encoding="utf-8").splitlines():
            if line.startswith("{") and line.endswith("}") and (fields := json.loads(line))["event"] == "serving":
                return str(fields["address"])
        time.sleep(LOOK_AGAIN_SECONDS)
    ended = "does not serve" if process.poll() is None else f"ended with {process.returncode}"
    raise NotReadyError(f"the server {ended}: {log.read_text(encoding='utf-8')}")


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def cpu_seconds(pid: int) -> float | None:
    """User and system time of a process, all threads; None where there is no /proc. In steps of a clock tick, 10 ms."""
    stat = Path(f"/proc/{pid}/stat")
    if not stat.exists():
        return None
    fields = stat.read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def family_cpu_seconds(pid: int) -> float | None:
    """The same of a process and its children, also of those that have ended and were waited for."""
    own = Path(f"/proc/{pid}/stat")
    if not own.exists():
        return None
    ticks = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # ended meanwhile, and then its parent's account has it
            fields = stat.read_text(encoding="utf-8").rpartition(")")[2].split()
            if stat == own or int(fields[1]) == pid:
                ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def resident_bytes(pid: int) -> int | None:
    """Memory of a process that is in RAM; None where there is no /proc."""
    statm = Path(f"/proc/{pid}/statm")
    if not statm.exists():
        return None
    return int(statm.read_text(encoding="utf-8").split()[1]) * os.sysconf("SC_PAGE_SIZE")
