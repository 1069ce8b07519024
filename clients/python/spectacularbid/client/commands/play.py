"""`play`: a person in one seat, or two who share the device, in plain lines."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Callable
from pathlib import Path

from spectacularbid.client.commands.lines import DescriptorLines, Lines
from spectacularbid.client.commands.player import HELP, Player
from spectacularbid.client.commands.saved import SavedMatch, default_path, save
from spectacularbid.client.commands.seating import (
    TOKEN_VARIABLE,
    saved_match,
    start_opponent,
    take_new_seat,
)
from spectacularbid.client.commands.terminal import (
    EXIT_DONE,
    Terminal,
    expect_answer,
    open_service,
    run_to_exit_status,
)
from spectacularbid.client.errors import ClientError
from spectacularbid.client.service import DEFAULT_TARGET, Service
from spectacularbid.client.settings import Connection, Settings

STANDARD_INPUT = 0


def run(args: argparse.Namespace) -> int:
    """0 when the match is over or was left to be resumed."""
    return run_to_exit_status(lambda terminal: play(terminal, args, DescriptorLines(STANDARD_INPUT)))


async def play(terminal: Terminal, args: argparse.Namespace, lines: Lines) -> int:
    """Take a seat and play. Raises CommandFailedError or ClientError."""
    before = saved_match(args)
    server = before.server if before else args.server or DEFAULT_TARGET
    settings = Settings(on_connection=_teller_of_breaks(terminal))
    async with open_service(server, tls=args.tls, settings=settings) as service:
        await expect_answer(service, server)
        if before is None:
            session, opponent = await take_new_seat(service, server, args, terminal)
            before = SavedMatch(server, session.match_id, session.token, opponent, session.part)
        await _play_match(terminal, service, before, lines)
    return EXIT_DONE


async def _play_match(terminal: Terminal, service: Service, match: SavedMatch, lines: Lines) -> None:
    path = default_path(match.match_id)
    way_back = _way_back(match, path if save(path, match) else None)
    clock = service.clock()
    helpers = [asyncio.create_task(clock.keep_synced())]
    if match.opponent is not None:
        helpers.append(start_opponent(service, match.match_id, match.opponent, terminal))
    try:
        async with service.resume(match.match_id, match.token, match.part).play() as table:
            player = Player(table, terminal=terminal, lines=lines, clock=clock, rules=service.rules)
            terminal.say(*HELP)
            if await player.play():
                way_back = ""
                path.unlink(missing_ok=True)
    except ClientError as error:
        way_back = "" if error.is_final else way_back
        raise
    finally:
        if way_back:
            terminal.say("", f"To go on: {way_back}")
        for helper in helpers:
            helper.cancel()
        await asyncio.gather(*helpers, return_exceptions=True)


def _way_back(match: SavedMatch, path: Path | None) -> str:
    """The command that resumes a match. Without a file it must hold the token: nobody else knows it."""
    if path is not None:
        return f"spectacular-bid play --resume {path}"
    token = f"{TOKEN_VARIABLE}={match.token.reveal()}"
    return f"{token} spectacular-bid play --server {match.server} --match {match.match_id}"


def _teller_of_breaks(terminal: Terminal) -> Callable[[Connection], None]:
    """Says when the connection is lost and found again, once each."""
    last = Connection.CONNECTED

    def tell(now: Connection) -> None:
        nonlocal last
        if now is not last:
            terminal.say("Connected again." if now is Connection.CONNECTED else "Connection lost; trying again ...")
        last = now

    return tell
