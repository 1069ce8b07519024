"""Matches kept in files."""

from __future__ import annotations

from pathlib import Path

import pytest

from spectacularbid.client import Token
from spectacularbid.client.commands.saved import SavedMatch, SavedOpponent, default_path, load, save
from spectacularbid.client.commands.terminal import CommandFailedError
from spectacularbid.client.deal_part import DealPart
from spectacularbid.v1.tiles_pb2 import SEAT_ONE, SEAT_TWO, Seat


@pytest.mark.parametrize("opponent", [None, SavedOpponent("greedy", Token("secret-two"))])
def test_a_saved_match_is_for_its_owner_alone(tmp_path: Path, opponent: SavedOpponent | None) -> None:
    """What is read is what was written, and no other user can read it."""
    path = tmp_path / "deep" / "m.json"
    match = SavedMatch("127.0.0.1:1", "m", Token("secret-one"), opponent)
    assert save(path, match)
    assert path.stat().st_mode & 0o077 == 0
    found = load(path)
    assert (found.server, found.match_id, found.token.reveal()) == ("127.0.0.1:1", "m", "secret-one")
    assert (found.opponent and found.opponent.token.reveal()) == (opponent and "secret-two")
    assert "secret" not in repr(found)


@pytest.mark.parametrize("seat", [SEAT_ONE, SEAT_TWO])
def test_a_saved_match_keeps_the_part_in_the_deal(tmp_path: Path, seat: Seat.ValueType) -> None:
    """Whoever has committed can still open after a restart of the client; a part without a commitment is none."""
    path, entropy = tmp_path / "m.json", bytes(range(32))
    part = DealPart("m", seat, entropy=entropy)
    bot = SavedOpponent("greedy", Token("t"), DealPart("m", SEAT_TWO))
    assert save(path, SavedMatch("s", "m", Token("t"), bot, part))
    found = load(path)
    assert found.part is not None
    assert (found.part.reveal(), found.part.seat) == (entropy, seat)
    assert found.opponent is not None
    assert found.opponent.part is None


def test_where_nothing_can_be_written_saving_says_so(tmp_path: Path) -> None:
    """A file stands where the folder should be."""
    (tmp_path / "file").touch()
    assert not save(tmp_path / "file" / "m.json", SavedMatch("s", "m", Token("t")))


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"server": 1, "match_id": "m"}', '{"opponent": 1}'])
def test_another_file_is_no_saved_match(tmp_path: Path, text: str) -> None:
    """One sentence, no traceback."""
    path = tmp_path / "m.json"
    path.write_text(text)
    with pytest.raises(CommandFailedError, match="is not a saved match"):
        load(path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    """With the reason."""
    with pytest.raises(CommandFailedError, match=r"none\.json cannot be read: No such file"):
        load(tmp_path / "none.json")


def test_matches_are_kept_in_the_users_state_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The one that the environment names, or else the usual one."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert default_path("m") == tmp_path / "spectacular-bid" / "m.json"
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert default_path("m") == tmp_path / ".local" / "state" / "spectacular-bid" / "m.json"
