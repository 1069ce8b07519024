"""Hidden tiles and deal secrets lie sealed in the database: who has the file and not the key sees no hand."""

import base64
import json
import sqlite3
from pathlib import Path

import pytest

from engine import events as ev
from engine.deal import deal
from engine.seats import PerSeat, Seat
from engine.tiles import DOUBLE_SIX, Tile
from service.ports import Append, DealSecrets
from service.store.json_forms import StoredFormatError
from service.store.sealed_steps import HIDDEN, sealed_step_of, sealed_step_text
from service.store.sealing import KEY_BYTES, Seal, SealingKeyError, seal_from
from service.store.sqlite import SqliteStore, StoreOpenError
from tests.support.store import creation

SEAL = Seal(bytes(range(KEY_BYTES)))
DEALT = deal(DOUBLE_SIX)
STEP: ev.Step = (
    ev.RoundDealt(1, DEALT.hands, DEALT.boneyard, Seat.TWO, None, Tile(2, 2)),
    ev.ClockStarted(Seat.TWO, 7),
    ev.TileDrawn(Seat.TWO, Tile(3, 5), playable=True),
)
SECRETS = DealSecrets(b"r" * 32, b"server secret " * 2 + b"1234", PerSeat(b"entropy of seat one 1234567890 a", b""))


async def stored(path: Path) -> None:
    """Writes a match whose first step hides something."""
    store = await SqliteStore.open(path)
    first: Append = creation("m")._replace(deal=SECRETS)
    await store.append(first._replace(events=(*first.events, *STEP)))
    assert (await store.steps("m"))[0] == (*first.events, *STEP)
    assert await store.deal_secrets("m") == SECRETS
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
        rows = list(connection.execute("SELECT * FROM steps")) + list(connection.execute("SELECT * FROM deals"))
        text = repr(rows)
    for tile in DOUBLE_SIX:
        assert f'"{tile.low}-{tile.high}' not in text
        assert f"{tile.low}-{tile.high} " not in text
    assert "server secret" not in text
    assert "entropy of seat" not in text


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
    (tmp_path / "m.sqlite3.key").write_bytes(base64.b64encode(bytes(KEY_BYTES)))
    with pytest.raises(StoreOpenError, match="not the sealing key"):
        await SqliteStore.open(tmp_path / "m.sqlite3")


@pytest.mark.parametrize("text", ["", "no key", base64.b64encode(b"short").decode(), "\N{SNOWMAN}"])
def test_a_file_that_holds_no_key_is_refused(tmp_path: Path, text: str) -> None:
    """With a sentence that says what is needed."""
    (tmp_path / "key").write_text(text, encoding="utf-8")
    with pytest.raises(SealingKeyError, match="sealing key"):
        seal_from(tmp_path / "key")
