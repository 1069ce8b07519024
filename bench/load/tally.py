"""Counting: which commands are measured, how long they took, and what server and client used meanwhile."""

from __future__ import annotations

import asyncio
import time
from typing import NamedTuple

from bench.load.job import Job, Measured, Sizes
from bench.processes import cpu_seconds, family_cpu_seconds


class _Moment(NamedTuple):
    seconds: float
    server_cpu_seconds: float | None
    database_cpu_seconds: float | None
    client_cpu_seconds: float


class Tally:
    """The commands of one run, from the first sent to the last answered."""

    def __init__(self, job: Job) -> None:
        self.done = asyncio.Event()
        self._job = job
        self._to_send = job.warm_up + job.commands
        self._to_answer = self._to_send
        self._latencies: list[float] = []
        self._deliveries: list[float] = []
        self._answer_bytes = self._push_bytes = self._pushes = self._request_bytes = 0
        self._began = self._now()

    def may_send(self) -> bool:
        """Whether one more command is wanted; if so it counts as sent."""
        self._to_send -= 1
        return self._to_send >= 0

    def answered(self, latency_seconds: float, *, request_bytes: int, answer_bytes: int) -> None:
        """A command got its outcome."""
        self._to_answer -= 1
        if self._to_answer < self._job.commands:
            self._latencies.append(latency_seconds)
            self._request_bytes += request_bytes
            self._answer_bytes += answer_bytes
        elif self._to_answer == self._job.commands:
            self._began = self._now()
            self._pushes = self._push_bytes = 0
            self._deliveries.clear()
        if self._to_answer == 0:
            self._ended = self._now()
            self.done.set()

    def pushed(self, push_bytes: int) -> None:
        """A player read a view that was not the answer to a command of its own."""
        self._pushes += 1
        self._push_bytes += push_bytes

    def delivered(self, seconds: float) -> None:
        """A player read what the other's command made."""
        self._deliveries.append(seconds)

    def measured(self) -> Measured:
        """The result, once `done`."""
        began, ended, count = self._began, self._ended, len(self._latencies)
        return Measured(
            commands=count,
            seconds=ended.seconds - began.seconds,
            server_cpu_seconds=_between(began.server_cpu_seconds, ended.server_cpu_seconds),
            client_cpu_seconds=ended.client_cpu_seconds - began.client_cpu_seconds,
            p50_ms=_ranked_ms(self._latencies, 50),
            p99_ms=_ranked_ms(self._latencies, 99),
            views=count + self._pushes,
            sizes=Sizes(
                self._request_bytes // max(count, 1),
                self._answer_bytes // max(count, 1),
                self._push_bytes // max(self._pushes, 1),
            ),
            database_cpu_seconds=_between(began.database_cpu_seconds, ended.database_cpu_seconds),
            delivery_p50_ms=_ranked_ms(self._deliveries, 50),
            delivery_p99_ms=_ranked_ms(self._deliveries, 99),
        )

    def _now(self) -> _Moment:
        servers = [cpu_seconds(pid) for pid in self._job.server_pids]
        known = [spent for spent in servers if spent is not None]
        of_servers = sum(known) if len(known) == len(servers) else None
        database = None if self._job.database_pid is None else family_cpu_seconds(self._job.database_pid)
        return _Moment(time.perf_counter(), of_servers, database, time.process_time())


def _between(before: float | None, after: float | None) -> float | None:
    return None if before is None or after is None else after - before


def _ranked_ms(seconds: list[float], percent: int) -> float:
    return 1e3 * sorted(seconds)[len(seconds) * percent // 100] if seconds else 0.0
