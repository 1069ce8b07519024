"""`demo`: one match between two bots, told line by line as a spectator may know it."""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TypeAlias

from spectacularbid.client.commands.duel import NAMES, STYLES, play_out, seat_bots
from spectacularbid.client.commands.terminal import (
    EXIT_DONE,
    CommandFailedError,
    Terminal,
    answers,
    expect_answer,
    no_answer,
    open_service,
    run_to_exit_status,
)
from spectacularbid.client.narrate import Narrator
from spectacularbid.client.service import DEFAULT_TARGET, Service
from spectacularbid.client.text import result_lines
from spectacularbid.v1.match_service_pb2 import MatchUpdate

StartServer: TypeAlias = Callable[[], AbstractAsyncContextManager[str]]
"""Starts a server for as long as the context lasts; gives its address."""

LONGEST_SECONDS = 60


def run(args: argparse.Namespace, start_server: StartServer | None) -> int:
    """0 when the match was told to its end."""
    return run_to_exit_status(lambda terminal: demo(terminal, args, start_server))


async def demo(terminal: Terminal, args: argparse.Namespace, start_server: StartServer | None) -> int:
    """Tell one match. Raises CommandFailedError or ClientError."""
    try:
        async with asyncio.timeout(LONGEST_SECONDS), _service(terminal, args, start_server) as service:
            await _tell_match(terminal, service, args.seed)
    except TimeoutError:
        raise CommandFailedError(f"The match did not end within {LONGEST_SECONDS} s.") from None
    return EXIT_DONE


@asynccontextmanager
async def _service(
    terminal: Terminal, args: argparse.Namespace, start_server: StartServer | None
) -> AsyncIterator[Service]:
    """The server that was named, or the one at the default address, or else one of our own."""
    server = args.server or DEFAULT_TARGET
    async with open_service(server, tls=args.tls) as service:
        if await answers(service):
            yield service
            return
    if args.server or start_server is None:
        raise no_answer(server)
    async with start_server() as address, open_service(address) as service:
        terminal.say(f"No server answers at {server}, so one was started at {address}.")
        await expect_answer(service, address)
        yield service


async def _tell_match(terminal: Terminal, service: Service, seed: int | None) -> None:
    duel = await seat_bots(service)
    began = time.monotonic()
    players = " against ".join(f"{name} ({style} bot)" for name, style in zip(NAMES, STYLES, strict=True))
    terminal.say(f"Match {duel.gallery.match_id}: {players}")
    updates = duel.gallery.updates()
    narrator = Narrator()
    terminal.say(*narrator.tell(await anext(updates)))  # from here on nothing is missed
    telling = asyncio.create_task(_tell(terminal, narrator, updates))
    try:
        await play_out(duel, seed=seed)
        await telling
    finally:
        telling.cancel()
        await asyncio.gather(telling, return_exceptions=True)
    terminal.say(f"Told in {time.monotonic() - began:.1f} s.")


async def _tell(terminal: Terminal, narrator: Narrator, updates: AsyncIterator[MatchUpdate]) -> None:
    async for update in updates:
        terminal.say(*narrator.tell(update))
        public = update.view.public
        if public.HasField("result"):
            versions = f"{public.round_number} rounds, {public.version} versions"
            terminal.say(*result_lines(update.view, public.result), versions)
