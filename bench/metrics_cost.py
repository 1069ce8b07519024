"""What the metrics cost: CPU a command of PlayMatch in the event loop, and a scrape."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from typing import cast

from prometheus_client.exposition import choose_encoder

from bench.clock_cost import microseconds
from bench.report import TEXT, Table, Value
from engine import commands as cmd
from engine.clock import SECOND_NS, Arrival, Decision, Verdict
from engine.events import MatchCreated, Passed, PlayerSeated, Step
from engine.evolve import advance
from engine.seats import SEATS, Seat
from engine.view import Audience
from service import logs
from service.line import PlayerOrder
from service.measured_store import MeasuredStore
from service.metrics import Metrics
from service.metrics.timing import Instants
from service.ports import Append, Receipt, Store
from service.system.time import Anchor, service_time
from service.tracing import begin_command

MATCH_ID = "b" * 26
MESSAGES = 2
"""Sent for a command: the outcome to its sender, the update to the opponent."""
now_ns = service_time(Anchor("", 0))


def measure(*, quick: bool) -> list[Table]:
    """The metrics' table."""
    rounds = 5_000 if quick else 50_000
    metrics = Metrics()
    rows: list[list[Value]] = [[part, microseconds(work, rounds)] for part, work in _parts(metrics).items()]
    rows.append(["together", sum(float(row[1] or 0) for row in rows)])
    scrape_ms = microseconds(lambda: _scrape(metrics), 10) / 1e3
    notes = ["target: under 10 us, clock readings included", f"a scrape takes {scrape_ms:.1f} ms of CPU"]
    return [Table("Metrics: CPU microseconds a PlayMatch command", {"part": TEXT, "us": ".2f"}, rows, notes)]


def _parts(metrics: Metrics) -> dict[str, Callable[[], object]]:
    """What is counted and observed for one command, on metrics that know its match."""
    command, began_ns = cmd.Pass(), now_ns()
    receipt = Receipt(Arrival.at(began_ns), Decision(Seat.ONE, began_ns, 120 * SECOND_NS), 0, Verdict.IN_TIME)
    order = PlayerOrder(command, receipt.arrival, Seat.ONE, Audience.SEAT_ONE, "c", bytes(32))
    created: Step = (
        MatchCreated(began_ns, shared_device=False, start_timeout_ns=SECOND_NS, continue_timeout_ns=SECOND_NS),
        *(PlayerSeated(seat, "Ada") for seat in SEATS),
    )
    state, step = advance(None, created), (Passed(Seat.ONE),)
    metrics.game.stored(MATCH_ID, created, state)
    method = metrics.method("bench", "PlayMatch", "bidi_stream")
    store = MeasuredStore(cast("Store", _NoStore()), metrics.store, now_ns)
    change = Append(MATCH_ID, 1, step, None, live=True)

    def decided() -> None:
        instants = Instants(now_ns(), now_ns(), now_ns())
        metrics.game.decided(command, None)
        metrics.timing.judged(receipt, accepted=True)
        metrics.timing.committed({"match_id": MATCH_ID}, receipt.arrival, instants)

    def stored() -> None:
        _run(store.append(change))
        metrics.game.stored(MATCH_ID, step, state)

    def told() -> None:
        metrics.timing.published(now_ns() - began_ns)
        metrics.streams.delivered(now_ns() - began_ns)

    def messages() -> None:
        method.received.count += 1
        for _ in range(MESSAGES):
            method.sent.count += 1

    def about() -> None:
        begin_command(type(command).__name__, began_ns)
        logs.about.set((MATCH_ID, 1, order))
        logs.about.set(None)

    return {
        "outcome, margin, stages, arrival to commit": decided,
        "store, live matches": stored,
        "publishing, delivery": told,
        "messages": messages,
        "what logs would say, traces switched off": about,
    }


class _NoStore:
    """A store that has nothing to do, whatever it is asked."""

    def __getattr__(self, name: str) -> Callable[..., Awaitable[None]]:
        """Any method of the port."""
        return _done


async def _done(*_: object) -> None:
    pass


def _run(work: Coroutine[object, None, None]) -> None:
    """A coroutine that waits for nothing, to its end."""
    try:
        work.send(None)
    except StopIteration:
        return
    raise AssertionError


def _scrape(metrics: Metrics) -> bytes:
    encode, _ = choose_encoder("text/plain")
    text: bytes = encode(metrics.registry)
    return text
