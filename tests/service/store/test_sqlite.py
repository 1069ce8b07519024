"""What is special about the SQLite store: one file, one process, shared commits, and what goes wrong with disks."""

import asyncio
import resource
import sqlite3
import stat
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from itertools import islice
from pathlib import Path

import pytest

from engine.view import Audience
from service.ports import StoreOpenError, StoreUnavailableError, VersionConflictError
from service.store.json_forms import StoredFormatError
from service.store.sqlite import SqliteStore
from tests.support.store import CREATED, creation, move, outcome, turn
from tests.support.tidy import ROOT

APPEND = [sys.executable, "-m", "tests.service.store.appending_process"]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the file is."""
    return tmp_path / "matches.sqlite3"


@pytest.fixture
async def store(path: Path) -> AsyncIterator[SqliteStore]:
    """A store that does not wait long for a lock."""
    store = await SqliteStore.open(path, busy_timeout_ms=10)
    yield store
    await store.close()


def stranger(path: Path) -> AbstractContextManager[sqlite3.Connection]:
    """Another connection to the file, as a shell or a backup has one."""
    return closing(sqlite3.connect(path, isolation_level=None))


async def test_changes_that_wait_together_share_a_commit(store: SqliteStore) -> None:
    """One hundred changes that are handed in at once need no hundred commits."""
    await asyncio.gather(*(store.append(creation(f"m{number}")) for number in range(100)))
    assert len(await store.live_matches()) == 100
    assert store.commits <= 10


async def test_a_lone_change_waits_for_no_company(store: SqliteStore) -> None:
    """Each is committed as soon as it is there."""
    before = store.commits
    await store.append(creation("m"))
    for version in range(1, 10):
        await store.append(move("m", version))
    assert store.commits == before + 10


def acknowledged_before_death(path: Path) -> dict[str, int]:
    """Has another process append until it is killed; the last acknowledged version of each match."""
    with subprocess.Popen([*APPEND, path], cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        lines = list(islice(process.stdout, 400))
        process.kill()
        lines += process.stdout.readlines()
    words = [line.split() for line in lines if line.endswith("\n")]  # the last line may have been cut short
    return {match_id: int(version) for match_id, version in words}


async def test_what_is_acknowledged_survives_the_death_of_the_process(path: Path) -> None:
    """A process is killed while it appends: nothing acknowledged is missing and no version is skipped."""
    acknowledged = await asyncio.to_thread(acknowledged_before_death, path)
    assert sum(acknowledged.values()) >= 400
    store = await SqliteStore.open(path)
    for match_id, version in acknowledged.items():
        steps = await store.steps(match_id)
        assert len(steps) >= version
        assert steps == [CREATED, *(turn(number) for number in range(2, len(steps) + 1))]
        assert await store.command(match_id, Audience.SEAT_ONE, f"c{version - 1}") is not None
    await store.close()


def answer_of_another_process(path: Path) -> tuple[int, str]:
    """Exit code and stderr of a process that wants the file too."""
    second = subprocess.run([*APPEND, path], cwd=ROOT, check=False, capture_output=True, text=True)
    return second.returncode, second.stderr


async def test_a_file_is_served_by_one_process(store: SqliteStore, path: Path) -> None:
    """The second one is told so in one sentence, and can have it when the first is gone."""
    sentence = f"Another process serves {path}; a SQLite file can have only one."
    assert await asyncio.to_thread(answer_of_another_process, path) == (1, f"{sentence}\n")
    with pytest.raises(StoreOpenError, match=f"^{sentence}$"):
        await SqliteStore.open(path)
    await store.close()
    await (await SqliteStore.open(path)).close()


async def test_a_newer_schema_is_refused(path: Path) -> None:
    """An old service must not write into what it does not understand; nothing is changed."""
    await (await SqliteStore.open(path)).close()
    with stranger(path) as connection:
        (current,) = connection.execute("PRAGMA user_version").fetchone()
        connection.execute("PRAGMA user_version = 1000")
    with pytest.raises(StoreOpenError, match=r"has schema 1000, but this version of the service knows only \d+\. Use"):
        await SqliteStore.open(path)
    with stranger(path) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (1000,)
        connection.execute(f"PRAGMA user_version = {current}")
    await (await SqliteStore.open(path)).close()


@pytest.fixture
def diary(path: Path) -> Path:
    """Something else is where the store should be."""
    path.write_text("Dear diary, " * 100, encoding="utf-8")
    return path


async def test_a_file_that_is_no_database_is_refused(diary: Path) -> None:
    """The operator learns why."""
    with pytest.raises(StoreOpenError, match="cannot be used as the store: file is not a database"):
        await SqliteStore.open(diary)


async def test_a_folder_that_does_not_exist_is_named(tmp_path: Path) -> None:
    """The operator learns which path was wrong."""
    with pytest.raises(StoreOpenError, match=r"/nowhere/matches.sqlite3.lock cannot be opened: No such file"):
        await SqliteStore.open(tmp_path / "nowhere" / "matches.sqlite3")


async def test_an_old_sqlite_is_refused(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It could not read the schema."""
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 31, 1))
    with pytest.raises(StoreOpenError, match="or newer is needed"):
        await SqliteStore.open(path)


async def test_a_link_to_the_file_is_the_same_file(store: SqliteStore, path: Path, tmp_path: Path) -> None:
    """Nobody gets around the lock by another name."""
    await store.append(creation("m"))
    link = tmp_path / "link.sqlite3"
    link.symlink_to(path)
    with pytest.raises(StoreOpenError, match="Another process"):
        await SqliteStore.open(link)


def modes(folder: Path) -> dict[str, int]:
    """Who may do what with each file."""
    return {file.name: stat.S_IMODE(file.stat().st_mode) for file in folder.iterdir()}


async def test_others_on_the_machine_cannot_read_the_file(store: SqliteStore, tmp_path: Path) -> None:
    """Hands, names and hashes of tokens are in it."""
    await store.append(creation("m"))
    names = (
        "matches.sqlite3",
        "matches.sqlite3.lock",
        "matches.sqlite3-wal",
        "matches.sqlite3-shm",
        "matches.sqlite3.key",
    )
    assert modes(tmp_path) == dict.fromkeys(names, 0o600)


async def test_a_commit_survives_a_crash_of_the_machine(store: SqliteStore) -> None:
    """No test can pull the plug, so the settings that it depends on are pinned."""
    await store.append(creation("m"))
    connection = store._writer._connection
    assert connection is not None
    names = ("journal_mode", "synchronous", "fullfsync", "foreign_keys")
    settings = {name: connection.execute(f"PRAGMA {name}").fetchone()[0] for name in names}
    assert settings == {"journal_mode": "wal", "synchronous": 2, "fullfsync": 1, "foreign_keys": 1}


async def test_a_commit_writes_and_reads_few_pages(store: SqliteStore) -> None:
    """With what SQLite takes by itself, 200 matches under way cost a fifth more system calls."""
    await store.append(creation("m"))
    connection = store._writer._connection
    assert connection is not None
    settings = {
        name: connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("wal_autocheckpoint", "cache_size")
    }
    assert settings == {"wal_autocheckpoint": 4_000, "cache_size": -8_000}


@contextmanager
def locked(_: SqliteStore, path: Path) -> Iterator[None]:
    """Another connection keeps the file locked."""
    with stranger(path) as connection:
        connection.execute("BEGIN IMMEDIATE")
        yield


@contextmanager
def full(store: SqliteStore, _: Path) -> Iterator[None]:
    """The database may not have another page."""
    connection = store._writer._connection
    assert connection is not None
    (highest,) = connection.execute("PRAGMA max_page_count").fetchone()
    connection.execute("PRAGMA max_page_count = 1")  # SQLite takes the present size instead
    try:
        yield
    finally:
        connection.execute(f"PRAGMA max_page_count = {highest}")


@contextmanager
def short_of_space(_: SqliteStore, path: Path) -> Iterator[None]:
    """The operating system writes nothing beyond the present end of the log, so that COMMIT itself fails."""
    usual = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (path.with_name(f"{path.name}-wal").stat().st_size, usual[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, usual)


@contextmanager
def broken(store: SqliteStore, _: Path) -> Iterator[None]:
    """The connection itself is of no use any more."""
    connection = store._writer._connection
    assert connection is not None
    connection.close()
    yield


@contextmanager
def changed(_: SqliteStore, path: Path) -> Iterator[None]:
    """Somebody works on the schema."""
    with stranger(path) as connection:
        connection.execute("ALTER TABLE steps RENAME TO elsewhere")
        try:
            yield
        finally:
            connection.execute("ALTER TABLE elsewhere RENAME TO steps")


Trouble = Callable[[SqliteStore, Path], AbstractContextManager[None]]


@pytest.mark.parametrize("trouble", [locked, full, short_of_space, broken, changed])
async def test_trouble_makes_the_store_unavailable_until_it_is_over(
    store: SqliteStore, path: Path, trouble: Trouble
) -> None:
    """All that share the commit fail, also one that conflicts; the database's words stay inside; then all is well."""
    await store.append(creation("m"))
    changes = [move("m", 1, record=outcome("long" * 10_000)), move("m", 5), creation("n")]
    with trouble(store, path):
        errors = await asyncio.gather(*map(store.append, changes), return_exceptions=True)
        assert [type(error) for error in errors] == [StoreUnavailableError] * 3
        assert {str(error) for error in errors} == {"the store cannot answer now"}
        assert all(isinstance(error, BaseException) and isinstance(error.__cause__, sqlite3.Error) for error in errors)
    results = await asyncio.gather(*map(store.append, changes), return_exceptions=True)
    assert [None if result is None else type(result) for result in results] == [None, VersionConflictError, None]
    assert await store.steps("m") == [CREATED, turn(2)]
    assert await store.steps("n") == [CREATED]


async def test_reads_are_unavailable_until_the_trouble_is_over(store: SqliteStore, path: Path) -> None:
    """A later read finds everything again."""
    await store.append(creation("m"))
    assert await store.steps("m") == [CREATED]
    with changed(store, path), pytest.raises(StoreUnavailableError, match=r"^the store cannot answer now$"):
        await store.steps("m")
    assert await store.steps("m") == [CREATED]


async def test_reads_do_not_wait_behind_writes(path: Path) -> None:
    """While a write waits for a stranger, what was acknowledged can be read."""
    store = await SqliteStore.open(path, busy_timeout_ms=60_000)
    await store.append(creation("m"))
    with stranger(path) as connection:
        connection.execute("BEGIN IMMEDIATE")
        append = asyncio.ensure_future(store.append(move("m", 1)))
        assert await store.steps("m") == [CREATED]
        assert await store.steps("m") == [CREATED]
        assert not append.done()
    await append
    assert await store.steps("m") == [CREATED, turn(2)]
    await store.close()


async def test_a_damaged_step_is_reported_as_such(store: SqliteStore, path: Path) -> None:
    """It must not be taken for trouble that passes."""
    await store.append(creation("m"))
    with stranger(path) as connection:
        connection.execute("""UPDATE steps SET events = '[{"t":"nonsense"}]'""")
    with pytest.raises(StoredFormatError):
        await store.steps("m")


async def test_a_zero_character_does_not_end_an_id(store: SqliteStore) -> None:
    """Nobody's command is taken for another one."""
    await store.append(creation("m"))
    await store.append(move("m", 1, record=outcome("a\0b")))
    await store.append(move("m", 2, record=outcome("a\0c")))
    assert await store.command("m", Audience.SEAT_ONE, "a\0b") == outcome("a\0b")
    assert await store.command("m", Audience.SEAT_ONE, "a") is None


async def test_facts_about_the_service_are_kept(path: Path) -> None:
    """The last value counts, also after reopening."""
    store = await SqliteStore.open(path)
    assert await store.meta("anchor") is None
    await store.set_meta("anchor", "boot-1 5")
    await store.set_meta("anchor", "boot-2 7")
    assert await store.meta("anchor") == "boot-2 7"
    await store.close()
    store = await SqliteStore.open(path)
    assert await store.meta("anchor") == "boot-2 7"
    await store.close()
