"""How a player gets a seat: by creating, joining, sharing a device, or going on with a match."""

from __future__ import annotations

import argparse
import asyncio
import os
from dataclasses import replace
from pathlib import Path

from spectacularbid.client.bots import STRATEGIES, run_bot
from spectacularbid.client.commands.saved import SavedMatch, SavedOpponent, load
from spectacularbid.client.commands.terminal import CommandFailedError, Terminal, dice, sentence
from spectacularbid.client.errors import ClientError
from spectacularbid.client.service import DEFAULT_TARGET, Service
from spectacularbid.client.session import MatchSession
from spectacularbid.client.token import Token

TOKEN_VARIABLE = "SPECBID_TOKEN"  # noqa: S105 - a name, not a token
FRIEND = "friend"
BOT_PREFIX = "bot:"


def saved_match(args: argparse.Namespace) -> SavedMatch | None:
    """The match that the arguments say to go on with; None for a new one. Raises CommandFailedError."""
    if args.resume is not None:
        found = load(Path(args.resume))
        return replace(found, server=args.server or found.server)
    if args.match is None:
        return None
    token = args.token or os.environ.get(TOKEN_VARIABLE, "")
    if not token:
        raise CommandFailedError(f"--match needs --token, or the token in {TOKEN_VARIABLE}.")
    return SavedMatch(args.server or DEFAULT_TARGET, args.match, Token(token))


async def take_new_seat(
    service: Service, server: str, args: argparse.Namespace, terminal: Terminal
) -> tuple[MatchSession, SavedOpponent | None]:
    """Create or join as the arguments say; seats the opponent, too, if that is a bot. Raises `ClientError`."""
    if args.join:
        return await service.join_match(args.join, args.name), None
    if args.pass_and_play:
        return await service.create_shared_match(args.name, args.second_name), None
    session = await service.create_match(args.name)
    if args.against == FRIEND:
        terminal.say(f"Invite code for your friend: {session.invite_code}")
        terminal.say(f"They join with: spectacular-bid play --server {server} --join {session.invite_code}")
        return session, None
    strategy = args.against.removeprefix(BOT_PREFIX)
    seat = await service.join_match(session.invite_code, f"{strategy.capitalize()} bot")
    return session, SavedOpponent(strategy, seat.token, seat.part)


def start_opponent(service: Service, match_id: str, opponent: SavedOpponent, terminal: Terminal) -> asyncio.Task[None]:
    """Let the bot play in the other seat until the task is cancelled."""

    async def play() -> None:
        session = service.resume(match_id, opponent.token, opponent.part)
        try:
            await run_bot(session, STRATEGIES[opponent.strategy], rng=dice(None))
        except ClientError as error:
            terminal.say(f"The bot gave up. {sentence(error)}")

    return asyncio.create_task(play())
