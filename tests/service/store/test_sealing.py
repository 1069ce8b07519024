"""Hidden tiles and deal secrets lie sealed in the database: who has the file and not the key sees no hand."""

import asyncio
import base64
import json
import sqlite3
from pathlib import Path

import pytest

from engine import events as ev
from engine.deal import deal
from engine.seats import PerSeat, Seat
from engine.tiles import DOUBLE_SIX, Tile
from service.ports import Append, DamagedError, DealSecrets, StoreOpenError, UnknownFormatError
from service.store.json_forms import StoredFormatError
from service.store.sealed_steps import HIDDEN, sealed_step_of, sealed_step_text
from service.store.sealing import KEY_BYTES, Seal, SealingKeyError, seal_from
from service.store.sqlite import SqliteStore, reseal
from tests.support.server import run_command
from tests.support.store import creation, move, state_at

SEAL = Seal(bytes(range(KEY_BYTES)))
DEALT = deal(DOUBLE_SIX)
STEP: ev.Step = (
    ev.RoundDealt(1, DEALT.hands, DEALT.boneyard, Seat.TWO, None, Tile(2, 2)),
    ev.ClockStarted(Seat.TWO, 7),
    ev.TileDrawn(Seat.TWO, Tile(3, 5), playable=True),
)
SECRETS = DealSecrets(b"r" * 32, b"server secret " * 2 + b"1234", PerSeat(b"entropy of seat one 1234567890 a", b""))


async def stored(path: Path, match_id: str = "m") -> None:
    """Writes a match whose first step hides something."""
    store = await SqliteStore.open(path)
    first: Append = creation(match_id)._replace(deal=SECRETS)
    await store.append(first._replace(events=(*first.events, *STEP), snapshot=state_at(1)))
    assert (await store.steps(match_id))[0] == (*first.events, *STEP)
    assert await store.snapshot(match_id) == state_at(1)
    assert await store.deal_secrets(match_id) == SECRETS
    await store.close()


def test_a_step_is_read_as_it_was_written() -> None:
    """With the key, in its place."""
    assert sealed_step_of(sealed_step_text(STEP, SEAL, "m/2"), SEAL, "m/2") == STEP


def test_a_step_that_hides_nothing_is_not_touched() -> None:
    """It costs nothing and stays readable."""
    assert "sealed" not in sealed_step_text(STEP[1:2], SEAL, "m/2")


def test_what_is_public_of_a_deal_stays_readable() -> None:
    """Round, turn and clock; hands, boneyard, the forced tile and the drawn one do not."""
    events = json.loads(sealed_step_text(STEP, SEAL, "m/2"))
    assert events[0]["number" if "number" in events[0] else "n"] == 1
    for event in events:
        assert not set(HIDDEN.get(event["t"], ())) & event.keys()


@pytest.mark.parametrize(
    ("seal", "place"),
    [(Seal(bytes(KEY_BYTES)), "m/2"), (SEAL, "m/3"), (SEAL, "n/2")],
    ids=["another key", "another version", "another match"],
)
def test_a_sealed_value_opens_only_with_its_key_and_in_its_place(seal: Seal, place: str) -> None:
    """So nobody can move a hand from one match into another either."""
    with pytest.raises(StoredFormatError):
        sealed_step_of(sealed_step_text(STEP, SEAL, "m/2"), seal, place)


async def test_the_file_shows_no_hidden_tile_and_no_secret(tmp_path: Path) -> None:
    """What an analyst with the database sees: all rows of all tables."""
    await stored(tmp_path / "m.sqlite3")
    with sqlite3.connect(tmp_path / "m.sqlite3") as connection:
        queries = "SELECT * FROM steps", "SELECT * FROM deals", "SELECT * FROM snapshots"
        rows = [list(connection.execute(query)) for query in queries]
    assert all(rows)
    text = repr(rows)
    for tile in DOUBLE_SIX:
        assert f'"{tile.low}-{tile.high}' not in text
        assert f"{tile.low}-{tile.high} " not in text
    assert "boneyard" not in text
    assert "server secret" not in text
    assert "entropy of seat" not in text


UNUSABLE: list[tuple[str, type[DamagedError]]] = [
    ("UPDATE snapshots SET format = 2", UnknownFormatError),
    ("UPDATE snapshots SET version = 2", StoredFormatError),
    ("UPDATE snapshots SET match_id = 'n'", StoredFormatError),
    ("UPDATE snapshots SET state = substr(state, 1, 99)", StoredFormatError),
    ("UPDATE snapshots SET state = zeroblob(99)", StoredFormatError),
    ("UPDATE snapshots SET state = x''", StoredFormatError),
]


@pytest.mark.parametrize(("change", "error"), UNUSABLE, ids=[change for change, _ in UNUSABLE])
async def test_a_snapshot_that_is_not_what_was_written_is_told_apart(
    tmp_path: Path, change: str, error: type[DamagedError]
) -> None:
    """Of another format, version or match, cut short, sealed with another key; the next one takes its place."""
    await stored(tmp_path / "m.sqlite3")
    store = await SqliteStore.open(tmp_path / "m.sqlite3")
    await store.append(creation("n"))
    with sqlite3.connect(tmp_path / "m.sqlite3") as connection:
        connection.execute(change)
        ((match_id,),) = connection.execute("SELECT match_id FROM snapshots")
    with pytest.raises(error):
        await store.snapshot(match_id)
    await store.append(move(match_id, 1)._replace(snapshot=state_at(2)))
    assert await store.snapshot(match_id) == state_at(2)
    await store.close()


async def test_a_key_is_made_for_its_owner_alone_and_kept(tmp_path: Path) -> None:
    """The embedded default needs no preparation."""
    await stored(tmp_path / "m.sqlite3")
    key = tmp_path / "m.sqlite3.key"
    assert key.stat().st_mode & 0o777 == 0o600
    before = key.read_bytes()
    store = await SqliteStore.open(tmp_path / "m.sqlite3")
    assert (await store.steps("m"))[0][-3:] == STEP
    await store.close()
    assert key.read_bytes() == before


async def test_another_key_stops_the_start(tmp_path: Path) -> None:
    """Better than a service that cannot read its matches."""
    await stored(tmp_path / "m.sqlite3")
    put_keys(tmp_path, NEW)
    with pytest.raises(StoreOpenError, match=r"lacks the sealing key [0-9a-f]{16}, with which this database"):
        await SqliteStore.open(tmp_path / "m.sqlite3")


async def test_a_key_that_is_gone_stops_the_start_and_no_other_is_made(tmp_path: Path) -> None:
    """It may still be in a backup."""
    await stored(tmp_path / "m.sqlite3")
    (tmp_path / "m.sqlite3.key").unlink()
    for _ in range(2):
        with pytest.raises(StoreOpenError, match=r"the sealing key .* is missing"):
            await SqliteStore.open(tmp_path / "m.sqlite3")
    assert not (tmp_path / "m.sqlite3.key").exists()


@pytest.mark.parametrize("text", ["", "no key", base64.b64encode(b"short").decode(), "\N{SNOWMAN}"])
def test_a_file_that_holds_no_key_is_refused(tmp_path: Path, text: str) -> None:
    """With a sentence that says what is needed."""
    (tmp_path / "key").write_text(text, encoding="utf-8")
    with pytest.raises(SealingKeyError, match="sealing key"):
        seal_from(tmp_path / "key")


NEW = base64.b64encode(bytes(range(100, 100 + KEY_BYTES))).decode()


def put_keys(folder: Path, *keys: str) -> None:
    """Make these the keys of the database."""
    (folder / "m.sqlite3.key").write_text("\n".join(keys) + "\n", encoding="ascii")


def old_key(folder: Path) -> str:
    """The key that was made for the database."""
    return (folder / "m.sqlite3.key").read_text(encoding="ascii").strip()


async def readable(path: Path) -> list[str]:
    """Reads everything; the ids of the keys that the database still needs."""
    store = await SqliteStore.open(path)
    try:
        for match_id in ("m", "n"):
            assert (await store.steps(match_id))[0][-3:] == STEP
            assert await store.deal_secrets(match_id) == SECRETS
        return (await store.meta("sealing_key") or "").split()
    finally:
        await store.close()


async def rotated(folder: Path) -> tuple[str, str]:
    """A database with a match of before and one of after a new key; the old key, and the id of the new one."""
    await stored(folder / "m.sqlite3")
    old = old_key(folder)
    put_keys(folder, NEW, old)
    await stored(folder / "m.sqlite3", "n")
    return old, Seal(base64.b64decode(NEW)).key_id


async def test_the_first_key_seals_and_every_key_opens(tmp_path: Path) -> None:
    """So a new key can be put before the old one between two starts."""
    old, new_id = await rotated(tmp_path)
    assert await readable(tmp_path / "m.sqlite3") == [Seal(base64.b64decode(old)).key_id, new_id]


async def test_an_old_key_that_is_still_needed_cannot_be_left_out(tmp_path: Path) -> None:
    """The start says so, not the first match that cannot be read."""
    old, _ = await rotated(tmp_path)
    put_keys(tmp_path, NEW)
    with pytest.raises(StoreOpenError, match=Seal(base64.b64decode(old)).key_id):
        await SqliteStore.open(tmp_path / "m.sqlite3")


async def test_sealing_anew_retires_the_old_key(tmp_path: Path) -> None:
    """Every row is under the first key then, and nothing that the old one opens is left in the file."""
    old, new_id = await rotated(tmp_path)
    database = tmp_path / "m.sqlite3"
    old_id = bytes.fromhex(Seal(base64.b64decode(old)).key_id)
    marks = old_id, base64.b64encode(old_id[:6])
    assert all(mark in database.read_bytes() for mark in marks)
    assert await asyncio.to_thread(reseal, database) == 4
    with sqlite3.connect(database) as connection:  # a cache: nothing is lost with it
        assert list(connection.execute("SELECT * FROM snapshots")) == []
    put_keys(tmp_path, NEW)
    assert await readable(database) == [new_id]
    files = await asyncio.to_thread(lambda: b"".join(file.read_bytes() for file in tmp_path.iterdir()))
    assert not any(mark in files for mark in marks)
    assert await asyncio.to_thread(reseal, database) == 4


async def test_the_command_line_seals_anew(tmp_path: Path) -> None:
    """And says in a sentence why it cannot."""
    await rotated(tmp_path)
    done = await run_command("admin", "reseal", database=tmp_path / "m.sqlite3")
    assert (done.status, done.output) == (
        0,
        "4 rows are sealed with the first key now; the other keys can be removed\n",
    )
    put_keys(tmp_path, base64.b64encode(bytes(KEY_BYTES)).decode())
    for database, because in (("m.sqlite3", "lacks the sealing key"), ("none.sqlite3", "there is no database")):
        failed = await run_command("admin", "reseal", database=tmp_path / database)
        assert failed.status == 2
        assert because in failed.errors


async def test_a_value_that_cannot_be_opened_leaves_everything_as_it_was(tmp_path: Path) -> None:
    """The command fails, and the old key is still named."""
    old, new_id = await rotated(tmp_path)
    database = tmp_path / "m.sqlite3"
    with sqlite3.connect(database) as connection:
        connection.execute("UPDATE deals SET secret = zeroblob(80) WHERE match_id = 'n'")
        before = list(connection.execute("SELECT * FROM steps"))
    with pytest.raises(StoreOpenError, match="cannot be sealed anew"):
        await asyncio.to_thread(reseal, database)
    with sqlite3.connect(database) as connection:
        assert list(connection.execute("SELECT * FROM steps")) == before
        needed = connection.execute("SELECT value FROM meta WHERE key = 'sealing_key'").fetchone()
    assert needed == (f"{Seal(base64.b64decode(old)).key_id} {new_id}",)
