"""A backup taken under load is restored, and the matches are played to their end."""

import asyncio
import shutil
import stat
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import grpc

from service.secret import Secret
from service.store.postgres_schema import migrate
from spectacularbid.client.bots import greedy_choice
from spectacularbid.v1 import events_pb2, views_pb2
from tests.support.cluster import NO_FILE, Cluster
from tests.support.players import Table, is_over, new_table, play_until
from tests.support.server import Finished, run_command, server_process

LOADED_MATCHES = 4
ALL_SOUND = f"{LOADED_MATCHES + 1} matches, no problem\n"


async def admin(database: Path, *arguments: str) -> Finished:
    """An admin command."""
    return await run_command("admin", *arguments, database=database)


async def assert_ends_well(table: Table) -> None:
    """With a winner; or without a result where a bank burned while no service was there."""
    await played(table, asyncio.Event())
    result = (await table.one.view()).public.result
    assert result.rated or result.aborted.reason == events_pb2.ABORT_REASON_TIMING_FAILURE


async def played(table: Table, enough: asyncio.Event) -> None:
    """Play a match as greedy bots do, to its end unless there is enough before."""
    view = await table.on_turn_view()
    while not enough.is_set() and not is_over(view):
        command = greedy_choice(view, table.chance)
        assert command is not None
        await table.seat(view.own.seat).submit(command)
        view = await table.on_turn_view()


@dataclass(frozen=True)
class Evening:
    """Matches that are being played: one at rest, in which no bank burns, with its view then, and others."""

    quiet: Table
    view: views_pb2.MatchView
    loaded: list[Table]

    async def goes_on_at(self, channel: grpc.aio.Channel) -> None:
        """Everybody goes on from there with the same tokens; the match at rest has a winner in the end."""
        table = self.quiet.at(channel)
        assert await table.view_of(self.view.own.seat) == self.view
        await played(table, asyncio.Event())
        assert (await table.one.view()).public.result.rated
        for other in self.loaded:
            await assert_ends_well(other.at(channel))


@asynccontextmanager
async def evening(channel: grpc.aio.Channel) -> AsyncIterator[Evening]:
    """Plays matches inside the block."""
    quiet = await new_table(channel, start=True)
    view = await play_until(quiet, lambda view: view.public.HasField("settlement"))
    enough = asyncio.Event()
    loaded = [await new_table(channel, start=True) for _ in range(LOADED_MATCHES)]
    load = [asyncio.create_task(played(table, enough)) for table in loaded]
    yield Evening(quiet, view, loaded)
    enough.set()
    await asyncio.gather(*load)


async def test_a_backup_under_load_is_restored_and_the_matches_are_finished(database: Path, tmp_path: Path) -> None:
    """Everything of one instant is in it."""
    backup, restored = tmp_path / "backup.sqlite3", tmp_path / "restored" / "m.sqlite3"
    async with server_process(database) as server, grpc.aio.insecure_channel(server.address) as channel:
        async with evening(channel) as matches:
            made = await admin(database, "store", "backup", str(backup))
        await server.kill()  # the machine is gone
    assert (made.status, made.output) == (0, f"{backup} is made; the sealing key is not in it\n")
    assert stat.S_IMODE(backup.stat().st_mode) == 0o600
    restored.parent.mkdir()
    shutil.copy(backup, restored)
    shutil.copy(f"{database}.key", f"{restored}.key")
    assert (await admin(restored, "store", "check")).output == ALL_SOUND
    async with (
        server_process(restored, OUTAGE_MS="300") as server,
        grpc.aio.insecure_channel(server.address) as channel,
    ):
        await matches.goes_on_at(channel)
        assert await server.stop() == 0
    faults = (await admin(restored, "faults")).output
    assert "replica lost" in faults
    assert "outage" in faults


async def on_database(shared: Cluster, name: str) -> Cluster:
    """The same with an empty database of its own."""
    await shared.postgres.execute(f"CREATE DATABASE {name}")
    return replace(shared, dsn=Secret(shared.postgres.dsn().removesuffix("postgres") + name))


async def run(shared: Cluster, program: str, *arguments: str) -> None:
    """One of PostgreSQL's own programs, as docs/OPERATIONS.md has it."""
    command = shared.postgres.binaries / program
    process = await asyncio.create_subprocess_exec(command, *arguments, f"--dbname={shared.dsn.reveal()}")
    assert await process.wait() == 0


async def test_a_dump_under_load_is_restored_and_the_matches_are_finished(shared: Cluster, tmp_path: Path) -> None:
    """The same with PostgreSQL, whose programs do it."""
    dump = tmp_path / "matches.dump"
    before = await on_database(shared, "before")
    await migrate(before.dsn)
    async with before.replicas(2) as (one, other):
        async with evening(one.channel) as matches:
            await run(before, "pg_dump", "--format=custom", f"--file={dump}")
        for replica in (one, other):
            await replica.server.kill()
    after = await on_database(shared, "after")
    await run(after, "pg_restore", "--exit-on-error", "--no-owner", str(dump))
    check = await run_command("admin", "store", "check", database=NO_FILE, **after.shared)
    assert check.output == ALL_SOUND
    async with after.replica(OUTAGE_MS="300") as replica:
        await matches.goes_on_at(replica.channel)
        assert await replica.server.stop() == 0
    faults = (await run_command("admin", "faults", database=NO_FILE, **after.shared)).output
    assert faults.count("replica lost") == 2
    assert "outage" in faults


async def test_a_backup_never_overwrites(database: Path, tmp_path: Path) -> None:
    """Status 2; the file that is there stays as it is."""
    older = tmp_path / "older"
    older.write_text("an older backup", encoding="utf-8")
    async with server_process(database):
        finished = await admin(database, "store", "backup", str(older))
    assert (finished.status, finished.output) == (2, "")
    assert finished.errors == f"spectacular-bid: {older} cannot be made: File exists.\n"
    assert older.read_text(encoding="utf-8") == "an older backup"
