"""A backup taken under load is restored, and the match is played to its end."""

import asyncio
import shutil
import stat
from pathlib import Path

import grpc

from spectacularbid.client.bots import greedy_choice
from spectacularbid.v1 import events_pb2
from tests.support.players import Table, is_over, new_table, play_until
from tests.support.server import Finished, run_command, server_process

LOADED_MATCHES = 4


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


async def test_a_backup_under_load_is_restored_and_the_match_is_finished(database: Path, tmp_path: Path) -> None:
    """Everything of one instant is in it; after the restore everybody goes on from there with the same tokens."""
    backup, restored = tmp_path / "backup.sqlite3", tmp_path / "restored" / "m.sqlite3"
    async with server_process(database) as server, grpc.aio.insecure_channel(server.address) as channel:
        table = await new_table(channel, start=True)
        quiet = await play_until(table, lambda view: view.public.HasField("settlement"))  # no bank burns
        enough = asyncio.Event()
        loaded = [await new_table(channel, start=True) for _ in range(LOADED_MATCHES)]
        load = [asyncio.create_task(played(other, enough)) for other in loaded]
        made = await admin(database, "store", "backup", str(backup))
        enough.set()
        await asyncio.gather(*load)
        await server.kill()  # the machine is gone
    assert (made.status, made.output) == (0, f"{backup} is made; the sealing key is not in it\n")
    assert stat.S_IMODE(backup.stat().st_mode) == 0o600
    restored.parent.mkdir()
    shutil.copy(backup, restored)
    shutil.copy(f"{database}.key", f"{restored}.key")
    assert (await admin(restored, "store", "check")).output == f"{LOADED_MATCHES + 1} matches, no problem\n"
    async with (
        server_process(restored, OUTAGE_MS="300") as server,
        grpc.aio.insecure_channel(server.address) as channel,
    ):
        table = table.at(channel)
        assert await table.view_of(quiet.own.seat) == quiet
        await played(table, asyncio.Event())
        assert (await table.one.view()).public.result.rated
        for other in loaded:
            await assert_ends_well(other.at(channel))
        assert await server.stop() == 0
    faults = (await admin(restored, "faults")).output
    assert "replica lost" in faults
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
