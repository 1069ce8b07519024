"""What is done to the service: each trouble once, from its beginning until everything runs as before."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from tests.chaos.arena import Arena
from tests.chaos.history import now_ns
from tests.support.postgres import connected
from tests.support.programs import frozen

Trouble: TypeAlias = Callable[[Arena], Awaitable[None]]

STEP_SECONDS = 2.0
STEPPED_CLOCK = """
    CREATE SCHEMA stepped;
    CREATE TABLE stepped.step (seconds float8 NOT NULL);
    INSERT INTO stepped.step VALUES (0);
    CREATE FUNCTION stepped.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE AS
        'SELECT pg_catalog.clock_timestamp() + make_interval(secs => seconds) FROM stepped.step';
    ALTER DATABASE postgres SET search_path = stepped, pg_catalog, public;
"""
"""From now on new sessions find this clock before PostgreSQL's own, and it can be stepped without the machine's."""


async def nothing(_: Arena) -> None:
    """Only the clients do what they should not."""


async def kill(arena: Arena) -> None:
    """SIGKILL of a replica; it is away for a while."""
    replica = arena.some_replica()
    with arena.injecting("kill -9"):
        await replica.kill()
        await asyncio.sleep(arena.chance.uniform(0.2, 2.0))
        await replica.start()


async def kill_at_a_deadline(arena: Arena) -> None:
    """SIGKILL of a replica right before a deadline that nobody may be going to keep."""
    clocks = [table.spectator.view.public.clock.running for table in arena.tables.values()]
    deadlines = [clock.deadline_unix_ns for clock in clocks if clock.deadline_unix_ns > now_ns()]
    if deadlines:
        await asyncio.sleep((min(deadlines) - now_ns()) / 1e9 - arena.chance.uniform(0.0, 0.4))
        await kill(arena)


def freeze(seconds: float) -> Trouble:
    """SIGSTOP of a replica for so long."""

    async def trouble(arena: Arena) -> None:
        with arena.injecting(f"SIGSTOP {seconds:g} s"):
            async with frozen(arena.some_replica().server.process):
                await asyncio.sleep(seconds)

    return trouble


async def roll(arena: Arena) -> None:
    """A rolling deploy: one replica after the other stops as planned, and another starts in its place."""
    for replica in arena.fleet.replicas:
        with arena.injecting("rolling deploy"):
            status = await replica.stop()
            assert status == 0, replica.server.log
            await replica.start()


def restart_postgres(mode: str) -> Trouble:
    """PostgreSQL stops, `fast` or `immediate` as in a crash, and starts."""

    async def trouble(arena: Arena) -> None:
        with arena.injecting(f"PostgreSQL {mode} restart"):
            await arena.fleet.restart_postgres(mode)

    return trouble


async def stop_postmaster(arena: Arena) -> None:
    """PostgreSQL lets no new session in, when a replica has just lost its sessions."""
    link = arena.chance.choice(arena.fleet.links)
    with arena.injecting("postmaster stopped"):
        arena.fleet.signal_postmaster(signal.SIGSTOP)
        try:
            await link.cut()
            link.mend()
            await asyncio.sleep(arena.chance.uniform(1.0, 4.0))
        finally:
            arena.fleet.signal_postmaster(signal.SIGCONT)


async def kill_nats(arena: Arena) -> None:
    """NATS is away for a while."""
    with arena.injecting("NATS killed"):
        arena.fleet.nats.kill()
        await asyncio.sleep(arena.chance.uniform(0.5, 3.0))
        arena.fleet.nats.start()


async def cut_off(arena: Arena) -> None:
    """A replica cannot reach the database, and does not hear that it cannot."""
    with arena.injecting("replica cut off"):
        async with arena.chance.choice(arena.fleet.links).unplugged():
            await asyncio.sleep(arena.chance.uniform(0.5, 5.0))


async def hold_commits(arena: Arena) -> None:
    """What a replica asks of the database is done, but it does not hear of it in time; clients hang up meanwhile."""
    with arena.injecting("commits held"):
        async with arena.chance.choice(arena.fleet.links).holding_answers():
            await asyncio.sleep(arena.chance.uniform(0.5, 2.5))


async def step_the_clock(arena: Arena) -> None:
    """The wall clock of the database's machine jumps."""
    with arena.injecting("clock step"):
        async with connected(arena.fleet.postgres.dsn()) as session:
            if await session.fetchval("SELECT to_regnamespace('stepped') IS NULL"):
                await session.execute(STEPPED_CLOCK)
                for link in arena.fleet.links:  # new sessions, which find the clock
                    await link.cut()
                    link.mend()
            await session.execute("UPDATE stepped.step SET seconds = $1 - seconds", STEP_SECONDS)
        await asyncio.sleep(2.0)
