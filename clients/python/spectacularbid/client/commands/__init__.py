"""Commands for a terminal: play, bot, smoke, demo, verify."""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from spectacularbid.client.bots import STRATEGIES
from spectacularbid.client.commands import bot, demo, play, smoke, verify
from spectacularbid.client.commands.demo import StartServer
from spectacularbid.client.commands.seating import BOT_PREFIX, FRIEND, TOKEN_VARIABLE
from spectacularbid.client.service import DEFAULT_TARGET

__all__ = ["StartServer", "add_parsers"]


class Subparsers(Protocol):
    """What `ArgumentParser.add_subparsers` returns."""

    def add_parser(self, name: str, **options: Any) -> argparse.ArgumentParser:  # noqa: ANN401 - as argparse has it
        """Add a command."""


def add_parsers(subparsers: Subparsers, *, start_server: StartServer | None = None) -> None:
    """Add the five commands. Each sets `run`, a function from the parsed arguments to an exit status.

    `start_server` lets `demo` start a server when none answers at the default address.
    """
    _add_play(subparsers)
    _add_bot(subparsers)
    _add_smoke(subparsers)
    _add_demo(subparsers, start_server)
    _add_verify(subparsers)


def _add_play(subparsers: Subparsers) -> None:
    parser = _add_command(subparsers, "play", "play a match in this terminal, line by line")
    _add_server(parser, default=None)
    opponents = [FRIEND, *(f"{BOT_PREFIX}{name}" for name in STRATEGIES)]
    parser.add_argument("--name", default="Player", help="your name, as the other player sees it")
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--against", choices=opponents, default=f"{BOT_PREFIX}greedy", help="the opponent of a new match")
    how.add_argument("--join", metavar="CODE", help="take the free seat of a friend's match")
    how.add_argument("--pass-and-play", action="store_true", help="two players share this device")
    how.add_argument("--resume", metavar="FILE", help="go on with a match that was left")
    how.add_argument("--match", metavar="ID", help="go on with a match by its id and --token")
    parser.add_argument("--second-name", default="Second player", help="the second name for --pass-and-play")
    parser.add_argument("--token", help=f"the token for --match; better put it in {TOKEN_VARIABLE}")
    parser.set_defaults(run=play.run)


def _add_bot(subparsers: Subparsers) -> None:
    parser = _add_command(subparsers, "bot", "let a bot create or join a match and play it")
    _add_server(parser)
    parser.add_argument("--name", default="Bot", help="the bot's name, as the other player sees it")
    parser.add_argument("--strategy", choices=sorted(STRATEGIES), default="greedy", help="how it plays")
    parser.add_argument("--join", metavar="CODE", help="take the free seat of a match instead of making one")
    _add_seed(parser)
    parser.set_defaults(run=bot.run)


def _add_smoke(subparsers: Subparsers) -> None:
    parser = _add_command(subparsers, "smoke", "play a match between two bots and check it from the outside")
    _add_server(parser)
    parser.add_argument("--timeout", type=float, default=60.0, metavar="SECONDS", help="the longest it may take")
    parser.add_argument(
        "--ca", type=Path, metavar="FILE", help="encrypt, and trust only the authorities in this PEM file"
    )
    parser.add_argument(
        "--as",
        dest="players",
        type=Path,
        nargs=2,
        metavar="FOLDER",
        default=(None, None),
        help="who creates and who joins, to a service that asks: folders with tls.crt and tls.key, or token",
    )
    _add_seed(parser)
    parser.set_defaults(run=smoke.run)


def _add_demo(subparsers: Subparsers, start_server: StartServer | None) -> None:
    parser = _add_command(subparsers, "demo", "watch a match between two bots, told line by line")
    _add_server(parser, default=None)
    _add_seed(parser)
    parser.set_defaults(run=partial(demo.run, start_server=start_server))


def _add_verify(subparsers: Subparsers) -> None:
    parser = _add_command(subparsers, "verify", "check that the tiles of a finished match were dealt fairly")
    _add_server(parser)
    parser.add_argument("file", nargs="?", metavar="FILE", help="a proof as JSON")
    parser.add_argument("--match", metavar="ID", help="ask the service for the proof of this match")
    parser.add_argument("--token", help=f"a token of the match; better put it in {TOKEN_VARIABLE}")
    parser.set_defaults(run=verify.run)


def _add_command(subparsers: Subparsers, name: str, text: str) -> argparse.ArgumentParser:
    return subparsers.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}.")


def _add_server(parser: argparse.ArgumentParser, default: str | None = DEFAULT_TARGET) -> None:
    parser.add_argument(
        "--server", default=default, metavar="HOST:PORT", help=f"where the service is (default {DEFAULT_TARGET})"
    )
    parser.add_argument("--tls", action="store_true", help="encrypt the connection")


def _add_seed(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--seed", type=int, help="makes the bots' choices repeatable; the deal stays the service's")
