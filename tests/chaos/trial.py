"""One trial: people play, trouble comes again and again, then it ends, every match is decided, and all is checked."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from engine.events import AbortReason, MatchAborted, MatchWon
from service.ports import LedgerRow
from tests.chaos import rows, troubles
from tests.chaos.arena import Arena, arena
from tests.chaos.check import check
from tests.chaos.history import History, Stored
from tests.chaos.people import CAREFUL, CARELESS, Habits
from tests.chaos.quick import quick_clock
from tests.chaos.troubles import Trouble

PAUSE_SECONDS = (0.3, 2.0)
"""From one trouble to the next."""
LATE = Habits(aims_at_the_deadline=0.3, lets_it_pass=0.15)
"""Players to whom the deadline matters."""
DOUBLE = Habits(sends_twice=1.0)
RASH = Habits(hangs_up=0.3, aims_at_the_deadline=0.1)


@dataclass(frozen=True)
class Scenario:
    """What happens in a trial, one trouble after the other in turn."""

    name: str
    troubles: Sequence[Trouble]
    habits: Habits = CAREFUL
    steps_seconds: float = 0.0
    """How far service time may leave the clients' clock."""


SCENARIOS = (
    Scenario("careless clients", (troubles.nothing,), CARELESS),
    Scenario("every command to two replicas at once", (troubles.nothing,), DOUBLE),
    Scenario("rolling deploy (SIGTERM)", (troubles.roll,), LATE),
    Scenario("NATS killed", (troubles.kill_nats,)),
    Scenario("kill -9 at random", (troubles.kill,)),
    Scenario("kill -9 at a deadline", (troubles.kill_at_a_deadline,), LATE),
    Scenario("SIGSTOP 0.3 s", (troubles.freeze(0.3),), LATE),
    Scenario("SIGSTOP 2 s", (troubles.freeze(2.0),), LATE),
    Scenario("SIGSTOP 6 s", (troubles.freeze(6.0),), LATE),
    Scenario("PostgreSQL fast restart", (troubles.restart_postgres("fast"),)),
    Scenario("PostgreSQL immediate restart", (troubles.restart_postgres("immediate"),)),
    Scenario("postmaster stopped", (troubles.stop_postmaster,), LATE),
    Scenario("replica cut off from PostgreSQL", (troubles.cut_off,), LATE),
    Scenario("COMMIT held, client gone", (troubles.hold_commits,), RASH),
    Scenario("wall clock jumps by 2 s", (troubles.step_the_clock,), LATE, steps_seconds=2 * troubles.STEP_SECONDS),
    Scenario(
        "everything in turn",
        (
            *(troubles.kill, troubles.freeze(2.0), troubles.kill_nats, troubles.restart_postgres("immediate")),
            *(troubles.cut_off, troubles.roll, troubles.hold_commits),
        ),
        CARELESS,
    ),
)


@dataclass(frozen=True)
class Report:
    """What a trial left behind."""

    scenario: Scenario
    history: History
    stored: Stored
    violations: Sequence[str]
    logs: Sequence[Sequence[str]]
    """What the process of each replica that ran last has written."""

    @property
    def endings(self) -> Counter[str]:
        """How many matches ended how."""
        return Counter(_ending(match.steps[-1][1][-1]) for match in self.stored.matches.values())

    @property
    def ledger(self) -> Counter[str]:
        """How many rows each cause has."""
        return Counter(row.fault.cause.value for row in _distinct(self.stored.ledger))


async def run_trial(scenario: Scenario, *, matches: int, seconds: float, seed: int, through_envoy: bool) -> Report:
    """Run one trial on a fleet of its own."""
    async with arena(seed, through_envoy=through_envoy) as ring:
        async with ring.played(matches, scenario.habits):
            await _trouble(ring, scenario, seconds)
        stored = await rows.of_server(ring.fleet.postgres.dsn(), ring.fleet.seal)
    logs = [replica.server.log for replica in ring.fleet.replicas]
    ring.history.apart_ns += int(scenario.steps_seconds * 1e9)
    with quick_clock():
        return Report(scenario, ring.history, stored, check(ring.history, stored), logs)


async def _trouble(ring: Arena, scenario: Scenario, seconds: float) -> None:
    """One trouble after the other until the time is over; each is over when this returns."""
    loop = asyncio.get_running_loop()
    ends = loop.time() + seconds
    while True:
        for trouble in scenario.troubles:
            await asyncio.sleep(ring.chance.uniform(*PAUSE_SECONDS))
            if loop.time() >= ends:
                return
            await trouble(ring)


def _ending(event: object) -> str:
    match event:
        case MatchWon():
            return event.reason.value
        case MatchAborted(AbortReason.TIMING_FAILURE):
            return "no result"
        case MatchAborted():
            return event.reason.value
        case _:
            return "undecided"


def _distinct(ledger: Sequence[LedgerRow]) -> set[LedgerRow]:
    return set(ledger)
