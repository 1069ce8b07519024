"""Run one job, given as JSON; the result goes to standard output."""

from __future__ import annotations

import asyncio
import gc
import sys

from bench import loops
from bench.load.crossing import Crossing
from bench.load.hands import Hand
from bench.load.job import Job
from bench.load.pace import AtOnce, Ticks
from bench.load.players import Player, Session, play
from bench.load.sources import Source, source_of
from bench.load.tally import Tally
from bench.load.wires import Wires

ENTERING = 100
"""Calls that begin at a time: of a burst of more than 1,000 grpc drops some as CANCELLED."""


async def run(job: Job) -> None:
    """Seat everybody, play until all commands are answered, report; hold the streams if asked to."""
    tally = Tally(job)
    ticks = Ticks(job.pace_per_second) if job.pace_per_second else None
    most_moves = 1 if job.hold else job.warm_up + job.commands
    door = asyncio.Semaphore(ENTERING)
    session = Session(job.transport, tally, ticks or AtOnce(), door, most_moves)
    async with Wires([_address(job, player) for player in range(2 * job.matches)]) as wires:
        source = source_of(job, wires[0], door)
        pairs = await asyncio.gather(*(source.new_match() for _ in range(job.matches)))
        gc.collect()
        gc.freeze()
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(_keep_playing(source, pair, wires, table, session))
                for table, pair in enumerate(pairs)
            ]
            if ticks is not None:
                tasks.append(group.create_task(ticks.run()))
            await tally.done.wait()
            print(tally.measured().to_text(), flush=True)
            if job.hold:
                await asyncio.to_thread(sys.stdin.read)
            for task in tasks:
                task.cancel()


def _address(job: Job, player: int) -> str:
    """Of the server for a player; those of a match are neighbours."""
    return job.addresses[(player if job.apart else player // 2) % len(job.addresses)]


async def _keep_playing(source: Source, first: tuple[Hand, Hand], wires: Wires, table: int, session: Session) -> None:
    """One match after the other at this table."""
    pair = first
    while True:
        crossing = Crossing()
        async with asyncio.TaskGroup() as group:
            for seat, hand in enumerate(pair):
                group.create_task(play(wires[2 * table + seat], Player(hand, seat, crossing), session))
        pair = await source.new_match()


if __name__ == "__main__":
    loops.run(run(Job.from_text(sys.argv[1])))
