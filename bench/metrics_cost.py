"""What the metrics cost: CPU a command of PlayMatch in the event loop, and how long a scrape takes."""

from __future__ import annotations

import time
from collections.abc import Callable

from prometheus_client.exposition import choose_encoder

from bench.clock_cost import microseconds
from bench.report import TEXT, Table, Value
from engine import commands as cmd
from engine.clock import SECOND_NS, Arrival, Decision, Verdict
from engine.events import MatchCreated, Passed, PlayerSeated, Step
from engine.evolve import advance
from engine.seats import SEATS, Seat
from engine.view import Audience
from service.metrics import Metrics
from service.metrics.store import Operation, StoreOutcome
from service.metrics.timing import Instants
from service.ports import CommandRecord, Receipt

MATCH_ID = "b" * 26
DELIVERIES = 2
"""Messages a command: the outcome to its sender, the update to the opponent."""


def measure(*, quick: bool) -> list[Table]:
    """The metrics' tables."""
    rounds = 5_000 if quick else 50_000
    metrics = Metrics()
    rows: list[list[Value]] = [[part, microseconds(work, rounds)] for part, work in _parts(metrics).items()]
    total_us = sum(float(row[1] or 0) for row in rows)
    scrape_ms = microseconds(lambda: _scrape(metrics), 10) / 1e3
    rows.append(["together", total_us])
    notes = [
        "with the call itself, some 0.05 us each; target: under 10 us",
        f"a scrape takes {scrape_ms:.1f} ms of CPU",
    ]
    return [Table("Metrics: CPU microseconds a PlayMatch command", {"part": TEXT, "us": ".2f"}, rows, notes)]


def _parts(metrics: Metrics) -> dict[str, Callable[[], object]]:
    """What is counted and observed for one command, on metrics that know its match."""
    now_ns = time.time_ns()
    decision = Decision(Seat.ONE, now_ns, 120 * SECOND_NS)
    receipt = Receipt(Arrival.at(now_ns), decision, 0, Verdict.IN_TIME)
    record = CommandRecord(Audience.SEAT_ONE, "c", bytes(32), 2, None, receipt)
    created: Step = (
        MatchCreated(now_ns, shared_device=False, start_timeout_ns=SECOND_NS, continue_timeout_ns=SECOND_NS),
        *(PlayerSeated(seat, "Ada") for seat in SEATS),
    )
    state = advance(None, created)
    metrics.game.stored(MATCH_ID, created, state)
    step = (Passed(Seat.ONE),)
    command = cmd.Pass()
    method = metrics.method("bench", "PlayMatch", "bidi_stream")

    def decided() -> None:
        metrics.game.decided(command, record.refusal)
        metrics.timing.judged(receipt, accepted=True)
        at = Instants(time.time_ns(), time.time_ns(), time.time_ns())
        metrics.timing.committed({"match_id": MATCH_ID}, receipt.arrival, at)

    def told() -> None:
        metrics.timing.published(time.time_ns() - now_ns)
        metrics.streams.delivered(time.time_ns() - now_ns)

    def messages() -> None:
        method.received()
        for _ in range(DELIVERIES):
            method.sent()

    def stored() -> None:
        began_ns = time.time_ns()
        metrics.store.done(Operation.APPEND, StoreOutcome.OK, time.time_ns() - began_ns)
        metrics.game.stored(MATCH_ID, step, state)

    return {
        "command, margin, stages, arrival to commit": decided,
        "store operation, match": stored,
        "publishing, delivery": told,
        "messages": messages,
    }


def _scrape(metrics: Metrics) -> bytes:
    encode, _ = choose_encoder("text/plain")
    text: bytes = encode(metrics.registry)
    return text
