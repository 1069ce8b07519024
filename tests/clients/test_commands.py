"""The commands as a shell sees them: statuses, sentences, one whole small match."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from spectacularbid.client.commands import demo as demo_module
from spectacularbid.client.commands.bot import bot
from spectacularbid.client.commands.demo import demo
from spectacularbid.client.commands.smoke import smoke
from spectacularbid.client.commands.terminal import (
    EXIT_DONE,
    EXIT_FAILED,
    EXIT_INTERRUPTED,
    CommandFailedError,
    Terminal,
    run_to_exit_status,
)
from spectacularbid.client.errors import UnauthenticatedError, UnavailableError
from spectacularbid.v1 import events_pb2 as ev
from spectacularbid.v1 import views_pb2 as vw
from spectacularbid.v1.tiles_pb2 import END_OPENING
from tests.clients.build import ONE, START, TWO, accepted, paid, tile, update, view, won
from tests.clients.peer import Matches, Playing, Watching, serving, silence
from tests.clients.terminals import arguments, paper_terminal

NOBODY = "127.0.0.1:1"


def raising(error: BaseException) -> Callable[[Terminal], object]:
    """A command that fails."""

    async def command(_: Terminal) -> int:
        raise error

    return command


@pytest.mark.parametrize(
    ("error", "status", "words"),
    [
        (CommandFailedError("No server answers at x."), EXIT_FAILED, "No server answers at x.\n"),
        (UnavailableError("gone"), EXIT_FAILED, "The service cannot be reached any longer: gone.\n"),
        (
            UnauthenticatedError("send a token", reason="INVALID_TOKEN"),
            EXIT_FAILED,
            "The service says: send a token (INVALID_TOKEN).\n",
        ),
        (KeyboardInterrupt(), EXIT_INTERRUPTED, ""),
        (BrokenPipeError(), EXIT_DONE, ""),
    ],
)
def test_expected_failures_are_a_sentence_and_a_status(
    error: BaseException,
    status: int,
    words: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Never a traceback."""
    assert run_to_exit_status(raising(error)) == status  # type: ignore[arg-type] # it never returns
    assert capsys.readouterr().err == words


def test_our_own_mistakes_are_not_hidden() -> None:
    """What nobody expected keeps its traceback."""
    with pytest.raises(ZeroDivisionError):
        run_to_exit_status(raising(ZeroDivisionError()))  # type: ignore[arg-type] # it never returns


@pytest.mark.parametrize("words", [["play"], ["bot"], ["smoke"], ["demo"]])
def test_without_a_server_a_command_fails_in_one_sentence(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Run as the service's own entry point would run it."""
    args = arguments(*words, "--server", NOBODY)
    assert args.run(args) == EXIT_FAILED
    assert capsys.readouterr().err == f"No server answers at {NOBODY}.\n"


@pytest.mark.parametrize(
    "words",
    [
        ["play", "--against", "nobody"],
        ["play", "--join", "x", "--pass-and-play"],
        ["bot", "--strategy", "clever"],
        ["smoke", "--seed", "x"],
        [],
    ],
)
def test_wrong_arguments_are_a_usage_error(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Status 2, as everywhere."""
    with pytest.raises(SystemExit) as caught:
        arguments(*words)
    assert caught.value.code == 2
    assert "usage:" in capsys.readouterr().err


OPENING = ev.Event(
    tile_played=ev.TilePlayed(seat=ONE, tile=tile("6-4"), end=END_OPENING, exposed_total=10, transfer=paid(TWO, 150))
)
DEALT = ev.Event(round_dealt=ev.RoundDealt(round_number=1))
ENDED = ev.Event(match_won=ev.MatchWon(winner=ONE))


class SmallMatch:
    """Both say Start, and seat ONE has won: the smallest match that bots can play and people can watch."""

    def __init__(self, ending: vw.MatchView) -> None:
        self._ending = ending
        self._is_over = asyncio.Event()
        self._starts = 0

    async def play(self, playing: Playing) -> None:
        """One seat's stream."""
        await playing.say(update(view(2, actions=[START])))
        command = await playing.command()
        self._starts += 1
        if self._starts == 2:
            self._is_over.set()
            await playing.answer(accepted(command.command_id, self._ending, DEALT, OPENING, ENDED))
        else:
            await playing.answer(accepted(command.command_id, view(3)))
            await self._is_over.wait()
            await playing.say(update(self._ending))
        await silence()

    async def watch(self, watching: Watching) -> None:
        """The spectator's stream."""
        await watching.say(update(self._public(view(2)), complete=False))
        await self._is_over.wait()
        await watching.say(update(self._public(self._ending), DEALT, OPENING, ENDED))
        await silence()

    def _public(self, seen: vw.MatchView) -> vw.MatchView:
        return vw.MatchView(public=seen.public)


def seat(matches: Matches, ending: vw.MatchView) -> None:
    """Let the peer play a small match."""
    small = SmallMatch(ending)
    matches.play_scripts.append(small.play)
    matches.watch_scripts.append(small.watch)


async def test_smoke_passes_when_all_see_one_rated_result(address: str, matches: Matches) -> None:
    """One summary line."""
    seat(matches, won(4))
    terminal, paper = paper_terminal()
    assert await smoke(terminal, arguments("smoke", "--server", address)) == EXIT_DONE
    (line,) = paper.lines
    assert line.startswith("smoke passed: match m, 0 rounds, 4 versions, ")


async def test_smoke_fails_on_a_fault(address: str, matches: Matches) -> None:
    """Each viewer's complaint is in the one line."""
    ending = won(4)
    ending.public.players[0].balance_points = 305
    seat(matches, ending)
    terminal, paper = paper_terminal()
    assert await smoke(terminal, arguments("smoke", "--server", address)) == EXIT_FAILED
    (line,) = paper.lines
    assert line.startswith("smoke failed: ")
    assert "spectator, version 4: the balances sum to 305" in line


async def test_smoke_ends_in_time(address: str, matches: Matches) -> None:
    """Whatever the service does."""
    matches.play_scripts.append(lambda _: silence())
    matches.watch_scripts.append(lambda _: silence())
    terminal, _ = paper_terminal()
    with pytest.raises(CommandFailedError, match=r"not finished within 0\.05 s"):
        await smoke(terminal, arguments("smoke", "--server", address, "--timeout", "0.05"))


TOLD = [
    "Round 1: ranked opening",
    "  Ann plays 6-4 at the opening: total 10, +150 (300-0)",
    "Ann wins: the opponent's balance reached zero (rated)",
    "0 rounds, 4 versions",
]


async def test_the_demo_tells_a_match_as_a_spectator_sees_it(address: str, matches: Matches) -> None:
    """Names, events, result."""
    seat(matches, won(4))
    terminal, paper = paper_terminal()
    assert await demo(terminal, arguments("demo", "--server", address, "--seed", "1"), None) == EXIT_DONE
    assert paper.lines[0] == "Match m: Ann (greedy bot) against Bob (random bot)"
    assert paper.lines[1:-1] == TOLD
    assert matches.authorizations.count("Bearer secret-spectator") == 1


async def test_the_demo_starts_a_server_when_none_is_there(matches: Matches, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the hook that it was given, and it stops it in the end."""
    monkeypatch.setattr(demo_module, "DEFAULT_TARGET", NOBODY)
    seat(matches, won(4))
    running: list[str] = []

    @asynccontextmanager
    async def start_server() -> AsyncIterator[str]:
        async with serving(matches) as address:
            running.append(address)
            yield address
            running.remove(address)

    terminal, paper = paper_terminal()
    args = arguments("demo", start_server=start_server)
    assert await demo(terminal, args, args.run.keywords["start_server"]) == EXIT_DONE
    assert paper.lines[2:-1] == TOLD
    assert running == []


async def test_the_demo_starts_no_server_in_place_of_a_named_one() -> None:
    """Whoever names one wants that one."""

    def start_server() -> object:
        raise AssertionError

    terminal, _ = paper_terminal()
    args: argparse.Namespace = arguments("demo", "--server", NOBODY)
    with pytest.raises(CommandFailedError, match="No server answers"):
        await demo(terminal, args, start_server)  # type: ignore[arg-type] # it is never called


async def test_a_bot_creates_a_match_or_joins_one(address: str, matches: Matches) -> None:
    """And says how it went."""

    async def script(playing: Playing) -> None:
        await playing.say(update(won(3, TWO)))
        await silence()

    matches.play_scripts.append(script)
    terminal, paper = paper_terminal()
    assert await bot(terminal, arguments("bot", "--server", address)) == EXIT_DONE
    assert await bot(terminal, arguments("bot", "--server", address, "--join", "invite")) == EXIT_DONE
    result = "Bob wins: the opponent's balance reached zero (rated)"
    assert paper.lines == ["Invite code: invite", result, result]
    assert (len(matches.creates), len(matches.joins)) == (1, 1)
