"""What an operator reads past the service: matches, faults, the check of the store. It never shows a secret."""

import asyncio
import base64
import re
import shutil
import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing
from pathlib import Path

import grpc
import pytest
from google.protobuf import json_format

from spectacularbid.v1 import views_pb2
from tests.support.players import RESIGN, Table, new_table, play_until
from tests.support.server import Finished, run_command, served, server_process, without_grpc_noise

TILE = re.compile(r"(?<!\d)[0-6]-[0-6](?!\d)")


@asynccontextmanager
async def running(database: Path, **settings: str) -> AsyncIterator[grpc.aio.Channel]:
    """A channel to a service process."""
    async with server_process(database, **settings) as server, grpc.aio.insecure_channel(server.address) as channel:
        yield channel


async def admin(database: Path, *arguments: str, **settings: str) -> Finished:
    """An admin command."""
    return await run_command("admin", *arguments, database=database, **settings)


async def public_of(database: Path, match_id: str) -> views_pb2.PublicView:
    """What `admin match` shows."""
    finished = await admin(database, "match", match_id)
    assert finished.status == 0, finished
    return json_format.Parse(finished.output, views_pb2.PublicView())


async def test_live_matches_are_listed_by_phase(database: Path) -> None:
    """With the service running and after it has stopped; a match that is over is not live."""
    async with running(database) as channel:
        fresh, opening = await new_table(channel), await new_table(channel, start=True)
        handover = await new_table(channel, start=True, shared_device=True)
        over = await new_table(channel, start=True)
        await over.one.do(RESIGN)
        finished = await admin(database, "matches")
    lines = finished.output.splitlines()
    matches = {match_id: rest for match_id, _, rest in (line.partition("  ") for line in lines[:3])}
    assert matches[fresh.one.match_id].startswith("not_started  version    2  round   0  points 150:150  waits until 2")
    assert re.match(
        r"opening      version +\d+  round   1  points 150:150  seat (ONE|TWO) until 2", matches[opening.one.match_id]
    )
    assert matches[handover.one.match_id].endswith("handover")
    assert lines[3:] == ["not_started: 1", "opening: 2", "3 live matches"]
    assert over.one.match_id not in finished.output
    assert (finished.status, finished.errors) == (0, "")
    assert sorted((await admin(database, "matches")).output.splitlines()) == sorted(lines)


async def test_a_match_is_shown_as_every_spectator_sees_it(database: Path) -> None:
    """In the middle and at the end: the same message, so nothing that a spectator may not see."""
    async with running(database) as channel:
        table = await new_table(channel, start=True)
        await play_until(table, beyond_the_opening)
        assert await public_of(database, table.one.match_id) == (await table.spectator.view()).public
        await table.one.do(RESIGN)
        assert await public_of(database, table.one.match_id) == (await table.spectator.view()).public


def beyond_the_opening(view: views_pb2.MatchView) -> bool:
    """Somebody has drawn."""
    return view.public.boneyard_size < 12


async def test_no_answer_holds_a_secret(database: Path) -> None:
    """No token, no invite code, no key, no entropy of the deal, no tile in a hand or in the boneyard."""
    async with running(database) as channel:
        table = await new_table(channel, start=True)
        await play_until(table, beyond_the_opening)
        answers = [
            await admin(database, *words)
            for words in (
                ("matches",),
                ("match", table.one.match_id),
                ("faults",),
                ("store", "check"),
                ("store", "backup", str(database.with_name("copy"))),
                ("abort", table.one.match_id, "--reason", "so it was decided"),
                ("drain",),
            )
        ]
    assert [answer.status for answer in answers] == [0] * len(answers)
    said = "".join(answer.output + answer.errors for answer in answers)
    for secret in await secrets_of(database, table):
        assert secret not in said
    assert not TILE.search(said)
    assert '"hands"' not in said
    assert '"own"' not in said


async def secrets_of(database: Path, table: Table) -> list[str]:
    """Every secret text of a match and its service."""
    key = base64.b64decode(database.with_name("m.sqlite3.key").read_text(encoding="ascii"))
    return [table.one.token, table.two.token, table.spectator.token, table.invite_code, *texts_of(key)]


def texts_of(secret: bytes) -> list[str]:
    """How bytes may be written."""
    return [secret.hex(), base64.b64encode(secret).decode()]


async def test_an_unknown_match_is_a_clear_no(database: Path) -> None:
    """Status 1."""
    async with running(database):
        finished = await admin(database, "match", "nowhere")
    assert (finished.status, finished.output) == (1, "")
    assert without_grpc_noise(finished.errors) == ["spectacular-bid: there is no match nowhere"]


async def test_the_fault_ledger_is_listed(database: Path) -> None:
    """After a crash there is a row for it."""
    async with running(database):
        assert (await admin(database, "faults")).output == "0 faults\n"
    async with running(database):
        row, count = (await admin(database, "faults")).output.splitlines()
    assert re.match(
        r"\d{4}-\d\d-\d\dT\S+  +\d+\.\d{3} s  replica lost +every match +the service stopped without notice$", row
    )
    assert count == "1 faults"


async def test_a_sound_store_passes_the_check(database: Path) -> None:
    """While matches are played, and after a crash."""
    async with running(database) as channel:
        await (await new_table(channel, start=True)).one.do(RESIGN)
        await play_until(await new_table(channel, start=True), beyond_the_opening)
        assert (await admin(database, "store", "check")).output == "2 matches, no problem\n"
    finished = await admin(database, "store", "check")
    assert (finished.status, finished.output) == (0, "2 matches, no problem\n")


def changed(statement: str) -> Callable[[Path], None]:
    """Somebody edits the database."""

    def change(database: Path) -> None:
        with closing(sqlite3.connect(database)) as connection, connection:
            assert connection.execute(statement).rowcount

    return change


def newer(database: Path) -> None:
    """A later version of the service had it."""
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("PRAGMA user_version = 1000")


def other_key(database: Path) -> None:
    """The key of another service."""
    key = database.with_name("m.sqlite3.key")
    key.write_text(base64.b64encode(bytes(32)).decode(), encoding="ascii")


def cut(database: Path) -> None:
    """Half of the file is lost."""
    with database.open("r+b") as file:
        file.truncate(database.stat().st_size // 2)


DAMAGE = {
    "a lost step": (
        changed("DELETE FROM steps WHERE version = 3"),
        r"Match \S+: the log has \d+ versions, the match is at",
    ),
    "a changed step": (
        changed("UPDATE steps SET events = replace(events, 'ready', 'Ready') WHERE version = 3"),
        r"Match \S+: a stored value is damaged",
    ),
    "a step that does not fit": (
        changed("UPDATE steps SET events = (SELECT events FROM steps WHERE version = 2) WHERE events LIKE '%dealt%'"),
        r"Match \S+: version \d+ of the log does not follow from what is before it\.",
    ),
    "a changed sealed value": (
        changed("UPDATE deals SET secret = zeroblob(60)"),
        r"Match \S+: a value at \S+/secret is sealed with an unknown key\.",
    ),
    "a wrong deadline": (changed("UPDATE matches SET due_ns = 1"), r"Match \S+: its deadline or its end"),
    "a lost deal": (changed("DELETE FROM deals"), r"Match \S+: the secret of its deal is not the one"),
    "a newer schema": (newer, r"The schema is 1000, but this version of the service works with \d+\."),
    "another key": (other_key, r"\S+m.sqlite3.key lacks the sealing key \w{16} of this database\."),
    "no key": (lambda database: database.with_name("m.sqlite3.key").unlink(), r"The sealing key \S+ is not there\."),
    "half a file": (cut, "SQLite"),
}


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a database with a match, left by a planned stop."""
    folder = tmp_path_factory.mktemp("sound")
    asyncio.run(_played(folder / "m.sqlite3"))
    return folder


async def _played(database: Path) -> None:
    async with served(database) as server:
        await play_until(await new_table(server.channel, start=True), beyond_the_opening)


@pytest.mark.parametrize("what", DAMAGE)
async def test_the_check_names_each_damage(sound: Path, tmp_path: Path, what: str) -> None:
    """Status 1, a sentence for each problem, and no traceback."""
    damage, sentence = DAMAGE[what]
    database = shutil.copytree(sound, tmp_path / "damaged") / "m.sqlite3"
    damage(database)
    finished = await admin(database, "store", "check")
    assert (finished.status, finished.errors) == (1, "")
    *problems, count = finished.output.splitlines()
    assert count == f"{len(problems)} problems"
    assert re.match(sentence, problems[0]), problems


async def test_a_damaged_match_points_to_the_check(database: Path) -> None:
    """Status 2 for the list and the match alike."""
    async with running(database) as channel:
        table = await new_table(channel, start=True)
    changed("UPDATE steps SET events = '[' WHERE version = 2")(database)
    for words in (("matches",), ("match", table.one.match_id)):
        finished = await admin(database, *words)
        assert (finished.status, finished.output) == (2, "")
        assert finished.errors.endswith("; see: spectacular-bid admin store check\n")


@pytest.mark.parametrize(
    "words", [("matches",), ("match", "x"), ("faults",), ("store", "check"), ("store", "backup", "b")]
)
async def test_reading_makes_nothing(database: Path, words: tuple[str, ...]) -> None:
    """No database, no key, no backup of what is not there."""
    finished = await admin(database, *words)
    assert (finished.status, finished.output) == (2, "")
    assert without_grpc_noise(finished.errors) == [f"spectacular-bid: There is no database {database}."]
    assert not any(database.parent.iterdir())


@pytest.fixture
def diary(database: Path) -> Path:
    """A file that is no database."""
    database.write_text("a diary, long enough to look like something else than nothing", encoding="utf-8")
    return database


async def test_a_file_that_is_no_database_is_a_clear_error(diary: Path) -> None:
    """The check finds it, the others cannot read it."""
    check = await admin(diary, "store", "check")
    assert (check.status, check.output.splitlines()[0]) == (1, "SQLite cannot read the file: file is not a database")
    faults = await admin(diary, "faults")
    assert (faults.status, faults.output) == (2, "")
    assert faults.errors == "spectacular-bid: the store cannot be read: file is not a database\n"
