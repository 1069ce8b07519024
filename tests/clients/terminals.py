"""A terminal that remembers, a person who types from a list, arguments as from a shell, and `play` with all three."""

from __future__ import annotations

import argparse
import asyncio
import io
from collections.abc import Iterable

from spectacularbid.client.commands import StartServer, add_parsers
from spectacularbid.client.commands.play import play
from spectacularbid.client.commands.terminal import Terminal
from spectacularbid.v1 import commands_pb2 as cm
from spectacularbid.v1 import views_pb2 as vw
from tests.clients.build import accepted, update
from tests.clients.peer import Matches, Playing, PlayScript, silence

FRIEND = ("--against", "friend")


class Paper(io.StringIO):
    """Everything that was said. Not a tty: clearing the screen shows as blank lines."""

    @property
    def lines(self) -> list[str]:
        """The lines that are not blank."""
        return [line for line in self.getvalue().splitlines() if line]


def paper_terminal() -> tuple[Terminal, Paper]:
    """A terminal and what was said on it."""
    paper = Paper()
    return Terminal(paper), paper


class Typed:
    """Types one line after the other whenever it is asked; then the end of input, or, `for_ever`, nothing more."""

    def __init__(self, lines: Iterable[str], *, interactive: bool = False, for_ever: bool = False) -> None:
        self.is_interactive = interactive
        self.left = list(lines)
        self._for_ever = for_ever

    async def next(self) -> str | None:
        """The next line."""
        if self.left:
            return self.left.pop(0)
        if self._for_ever:
            await asyncio.Event().wait()
        return None


def arguments(*words: str, start_server: StartServer | None = None) -> argparse.Namespace:
    """What the service's parser would make of a command line."""
    parser = argparse.ArgumentParser(prog="spectacular-bid")
    add_parsers(parser.add_subparsers(required=True), start_server=start_server)
    return parser.parse_args(words)


def showing(*views: vw.MatchView) -> PlayScript:
    """Shows the first view; each command is carried out and brings the next one."""

    async def script(table: Playing) -> None:
        await table.say(update(views[0]))
        for shown in views[1:]:
            command = await table.command()
            await table.answer(accepted(command.command_id, shown))
        await silence()

    return script


async def played(address: str, typed: Typed, *words: str) -> Paper:
    """What `play` said."""
    terminal, paper = paper_terminal()
    assert await play(terminal, arguments("play", "--server", address, *words), typed) == 0
    return paper


def sent(matches: Matches) -> list[cm.Command]:
    """The commands that the player sent."""
    return [command.command for table in matches.plays for command in table.commands]
