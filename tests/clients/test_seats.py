"""`play`: getting a seat, leaving it, and coming back."""

from __future__ import annotations

from pathlib import Path

import grpc
import pytest

from spectacularbid.client import UnauthenticatedError
from spectacularbid.client.commands.play import play
from spectacularbid.client.commands.saved import default_path, load
from spectacularbid.client.commands.terminal import CommandFailedError
from tests.clients.build import TWO, paid, view, won
from tests.clients.build import play as playing_of
from tests.clients.peer import Matches, Playing, StatusError
from tests.clients.terminals import FRIEND, Typed, arguments, paper_terminal, played, showing

PLAYS = [playing_of("5-3 W", 15, paid(TWO, 15)), playing_of("5-3 E", 7)]


@pytest.fixture(autouse=True)
def _state_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))


@pytest.mark.parametrize("lines", [["quit"], []], ids=["quit", "end of input"])
async def test_leaving_says_how_to_go_on(address: str, matches: Matches, lines: list[str]) -> None:
    """The token is in a file for the owner alone, and not on the screen."""
    matches.play_scripts.append(showing(view(2, actions=PLAYS)))
    paper = await played(address, Typed(lines), *FRIEND)
    path = default_path("m")
    assert paper.lines[-1] == f"To go on: spectacular-bid play --resume {path}"
    assert load(path).token.reveal() == "secret-one"
    assert "secret" not in paper.getvalue()


async def test_a_match_is_resumed_from_its_file(address: str, matches: Matches) -> None:
    """With the server and token in it."""
    matches.play_scripts.append(showing(view(2, actions=PLAYS), won(3)))
    await played(address, Typed(["quit"]), *FRIEND)
    terminal, paper = paper_terminal()
    await play(terminal, arguments("play", "--resume", str(default_path("m"))), Typed(["1"]))
    assert paper.lines[-2] == "Ann wins: the opponent's balance reached zero (rated)"
    assert matches.authorizations == ["Bearer secret-one"] * 2
    assert len(matches.creates) == 1


async def test_a_match_that_cannot_be_kept_in_a_file_leaves_its_token(
    address: str, matches: Matches, tmp_path: Path
) -> None:
    """Else nobody could ever go on with it."""
    (tmp_path / "spectacular-bid").touch()
    matches.play_scripts.append(showing(view(2, actions=PLAYS)))
    paper = await played(address, Typed(["quit"]), *FRIEND)
    way_back = f"SPECBID_TOKEN=secret-one spectacular-bid play --server {address} --match m"
    assert paper.lines[-1] == f"To go on: {way_back}"


async def test_a_match_is_resumed_by_id_and_token(
    address: str, matches: Matches, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The token may be in the environment, where process lists do not show it."""
    monkeypatch.setenv("SPECBID_TOKEN", "secret-two")
    matches.play_scripts.append(showing(won(3)))
    await played(address, Typed([]), "--match", "m")
    assert matches.authorizations == ["Bearer secret-two"]
    monkeypatch.delenv("SPECBID_TOKEN")
    with pytest.raises(CommandFailedError, match="SPECBID_TOKEN"):
        await played(address, Typed([]), "--match", "m")


async def test_a_friend_joins_with_the_code(address: str, matches: Matches) -> None:
    """And sits in seat TWO."""
    matches.play_scripts.append(showing(won(3)))
    await played(address, Typed([]), "--join", "invite", "--name", "Bob")
    assert [join.display_name for join in matches.joins] == ["Bob"]
    assert matches.authorizations == ["Bearer secret-two"]


async def test_a_bot_takes_the_other_seat(address: str, matches: Matches) -> None:
    """It plays on a stream of its own, and is remembered with the match."""
    matches.play_scripts.append(showing(view(2, actions=PLAYS)))
    await played(address, Typed(["quit"], interactive=False), "--against", "bot:random")
    assert [join.display_name for join in matches.joins] == ["Random bot"]
    opponent = load(default_path("m")).opponent
    assert opponent is not None
    assert (opponent.strategy, opponent.token.reveal()) == ("random", "secret-two")


async def test_a_bad_token_is_no_match_to_go_on_with(address: str, matches: Matches) -> None:
    """The error is raised, and nothing is said about going on."""

    async def script(_: Playing) -> None:
        raise StatusError(grpc.StatusCode.UNAUTHENTICATED, "INVALID_TOKEN")

    matches.play_scripts.append(script)
    terminal, paper = paper_terminal()
    args = arguments("play", "--server", address, "--match", "m", "--token", "wrong")
    with pytest.raises(UnauthenticatedError):
        await play(terminal, args, Typed([]))
    assert "To go on" not in paper.getvalue()
