"""`smoke`: one whole match between two bots, checked from the outside."""

from __future__ import annotations

import argparse
import asyncio
import time
from contextlib import AsyncExitStack

from spectacularbid.client.commands.checks import Witness, result_problems
from spectacularbid.client.commands.duel import NAMES, Duel, play_out, seat_bots
from spectacularbid.client.commands.terminal import (
    EXIT_DONE,
    EXIT_FAILED,
    CommandFailedError,
    Terminal,
    expect_answer,
    open_service,
    run_to_exit_status,
)
from spectacularbid.client.digest import Desync
from spectacularbid.client.service import Service
from spectacularbid.client.settings import Settings


def run(args: argparse.Namespace) -> int:
    """0 when the match was played and every check held, else 1."""
    return run_to_exit_status(lambda terminal: smoke(terminal, args))


async def smoke(terminal: Terminal, args: argparse.Namespace) -> int:
    """Play and check within `args.timeout` seconds; says one summary line. Raises CommandFailedError, ClientError."""
    desyncs: list[Desync] = []
    settings = Settings(on_desync=desyncs.append)
    try:
        async with asyncio.timeout(args.timeout), AsyncExitStack() as stack:
            first, second = [
                await stack.enter_async_context(
                    open_service(args.server, tls=args.tls, ca=args.ca, player=player, settings=settings)
                )
                for player in args.players
            ]
            await expect_answer(first, args.server)
            return await _play_and_check(terminal, (first, second), args.seed, desyncs)
    except TimeoutError:
        raise CommandFailedError(f"smoke failed: not finished within {args.timeout} s") from None


async def _play_and_check(
    terminal: Terminal, services: tuple[Service, Service], seed: int | None, desyncs: list[Desync]
) -> int:
    constants = (await services[0].rules()).constants
    began = time.monotonic()
    duel = await seat_bots(*services)
    gallery = Witness("spectator", constants)
    seats = [Witness(name, constants) for name in NAMES]
    watching = asyncio.create_task(_watch(duel, gallery))
    try:
        await play_out(duel, seed=seed, on_updates=[seat.see for seat in seats])
        await watching
    finally:
        watching.cancel()
    witnesses = [*seats, gallery]
    results = [result for witness in witnesses for result in witness.results]
    problems = [problem for witness in witnesses for problem in witness.problems]
    problems += [f"version {desync.version}: the digest does not match" for desync in desyncs]
    problems += result_problems(results, viewers=len(witnesses))
    for seat in duel.seats:
        problems += seat.part.problems(await seat.deal_proof()) if seat.part.is_committed else []
    seconds = time.monotonic() - began
    if problems:
        terminal.say(f"smoke failed: {'; '.join(problems)}")
        return EXIT_FAILED
    terminal.say(
        f"smoke passed: match {duel.gallery.match_id}, {gallery.rounds} rounds, {gallery.version} versions,"
        f" {seconds:.1f} s, one rated result seen by all"
    )
    return EXIT_DONE


async def _watch(duel: Duel, witness: Witness) -> None:
    async for update in duel.gallery.updates():
        witness.see(update)
        if update.view.HasField("own"):
            witness.note("the spectator sees a hand")
