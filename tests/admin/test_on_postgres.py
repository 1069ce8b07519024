"""The operator's commands on PostgreSQL: any replica's socket, one database, the same answers."""

import base64
import re
from pathlib import Path

from google.protobuf import json_format

from spectacularbid.v1 import views_pb2
from tests.support.cluster import NO_FILE, Cluster
from tests.support.players import is_over, new_table, play_until
from tests.support.postgres import connected
from tests.support.server import Finished, run_command, without_grpc_noise

WHY = "the players agreed to start anew"


async def admin(shared: Cluster, *words: str, **settings: str) -> Finished:
    """An admin command."""
    return await run_command("admin", *words, database=NO_FILE, **shared.shared | settings)


async def test_matches_are_shown_checked_and_aborted(shared: Cluster, tmp_path: Path) -> None:
    """Through one replica's socket, seen at the other."""
    socket = {"ADMIN_SOCKET": str(tmp_path / "admin")}
    async with shared.replica(**socket) as one, shared.replica() as other:
        table = await new_table(other.channel, start=True)
        view = await play_until(table, lambda view: view.public.boneyard_size < 13)
        shown = await admin(shared, "match", table.one.match_id)
        assert json_format.Parse(shown.output, views_pb2.PublicView()) == (await table.spectator.view()).public
        listed = await admin(shared, "matches")
        assert listed.output.startswith(f"{table.one.match_id}  ")
        assert listed.output.endswith("1 live matches\n")
        assert (await admin(shared, "store", "check")).output == "1 matches, no problem\n"
        assert (await admin(shared, "faults")).output == "0 faults\n"
        assert (await admin(shared, "abort", table.one.match_id, "--reason", WHY, **socket)).status == 0
        assert not is_over(view)
        assert (await table.at(one.channel).one.view()).public.result.aborted.evidence == WHY
        async with table.spectator.watching() as watch:
            assert await watch.read()
        assert (await admin(shared, "matches")).output == "0 live matches\n"
        assert (await admin(shared, "drain", **socket)).status == 0
        assert await one.server.ended() == 0


async def test_what_cannot_be_asked_is_a_clear_error(shared: Cluster, tmp_path: Path) -> None:
    """No socket, no database, no schema, a backup that is PostgreSQL's own affair."""
    assert_sentence(await admin(shared, "drain"), 2, "name the socket of the service here: SPECBID_ADMIN_SOCKET")
    backup = await admin(shared, "store", "backup", str(tmp_path / "b"))
    assert_sentence(backup, 1, "PostgreSQL is backed up with pg_dump")
    nowhere = {"DATABASE_URL": "postgresql://sesame@127.0.0.1:1/nothing"}
    gone = await admin(shared, "matches", **nowhere)
    assert_sentence(gone, 2, "PostgreSQL cannot be reached at the address of SPECBID_DATABASE_URL.")
    assert "sesame" not in gone.errors
    unmade = await admin(shared, "matches", DATABASE_URL=(await shared.postgres.new_dsn()).reveal())
    assert_sentence(unmade, 2, "PostgreSQL lacks a table of the service: run `spectacular-bid migrate`")


async def first_problem(shared: Cluster, **settings: str) -> str:
    """What the check of the store finds first."""
    finished = await admin(shared, "store", "check", **settings)
    assert (finished.status, finished.errors) == (1, "")
    return finished.output.splitlines()[0]


async def test_the_check_names_each_damage(shared: Cluster, tmp_path: Path) -> None:
    """Of the schema, the keys, a log."""
    empty = (await shared.postgres.new_dsn()).reveal()
    assert (await first_problem(shared, DATABASE_URL=empty)).startswith("PostgreSQL has schema 0, but ")
    async with shared.replica() as replica:
        table = await new_table(replica.channel, start=True)
        await replica.server.stop()
    assert (await admin(shared, "store", "check")).output == "1 matches, no problem\n"
    none, other = tmp_path / "none", tmp_path / "other"
    assert await first_problem(shared, SEALING_KEY_FILE=str(none)) == f"The sealing key {none} is not there."
    other.write_bytes(base64.b64encode(bytes(32)))
    lacking = await first_problem(shared, SEALING_KEY_FILE=str(other))
    assert re.fullmatch(rf"{other} lacks the sealing key \w{{16}} of this database\.", lacking)
    async with connected(shared.dsn.reveal()) as connection:
        await connection.execute("UPDATE steps SET events = '[' WHERE version = 2")
    assert (await first_problem(shared)).startswith(f"Match {table.one.match_id}: a stored value is damaged")
    damaged = await admin(shared, "match", table.one.match_id)
    assert_sentence(damaged, 2, "; see: spectacular-bid admin store check")


async def test_sealing_anew_retires_the_old_key(shared: Cluster) -> None:
    """When nobody serves; then everything opens without the old key, and the match goes on."""
    old, new = shared.key_file.read_bytes(), base64.b64encode(bytes(range(100, 132)))
    async with shared.replica() as replica:
        table = await new_table(replica.channel, start=True)
        view = await play_until(table, lambda view: view.public.boneyard_size < 13)
        shared.key_file.write_bytes(new + b"\n" + old)
        assert_sentence(await admin(shared, "reseal"), 2, "replicas serve this database (1): stop them first.")
        await replica.server.stop()
    async with connected(shared.dsn.reveal()) as connection:
        await connection.execute(
            "INSERT INTO snapshots VALUES ($1, 1, 1, 'sealed with the old key')", table.one.match_id
        )
    resealed = await admin(shared, "reseal")
    assert re.match(r"\d+ rows are sealed with the first key now", resealed.output)
    async with connected(shared.dsn.reveal()) as connection:
        assert await connection.fetch("TABLE snapshots") == []
    shared.key_file.write_bytes(new)
    assert (await admin(shared, "store", "check")).output == "1 matches, no problem\n"
    async with shared.replica() as replica:
        assert (await table.at(replica.channel).view_of(view.own.seat)).own.hand == view.own.hand
        await replica.server.stop()
    shared.key_file.write_bytes(old)
    assert_sentence(await admin(shared, "reseal"), 2, "lacks the sealing key")


async def test_a_value_that_cannot_be_opened_leaves_everything_as_it_was(shared: Cluster) -> None:
    """The command fails, and every row is still under the old key."""
    async with shared.replica() as replica:
        table = await new_table(replica.channel, start=True)
        await replica.server.stop()
    rows = "SELECT version, events FROM steps ORDER BY version"
    async with connected(shared.dsn.reveal()) as connection:
        before = await connection.fetch(rows)
        await connection.execute("UPDATE deals SET entropy_two = decode(repeat('00', 60), 'hex')")
        failed = await admin(shared, "reseal")
        assert_sentence(failed, 2, f"the database cannot be sealed anew: a value at {table.one.match_id}/two is sealed")
        assert await connection.fetch(rows) == before


def assert_sentence(finished: Finished, status: int, sentence: str) -> None:
    """This status, and one sentence on standard error alone."""
    assert (finished.status, finished.output) == (status, ""), finished
    (line,) = without_grpc_noise(finished.errors)
    assert sentence in line
