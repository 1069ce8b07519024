"""`bot`: one bot in one seat."""

from __future__ import annotations

import argparse

from spectacularbid.client.bots import STRATEGIES, run_bot
from spectacularbid.client.commands.terminal import (
    EXIT_DONE,
    Terminal,
    dice,
    expect_answer,
    open_service,
    run_to_exit_status,
)
from spectacularbid.client.text import result_text
from spectacularbid.v1.match_service_pb2 import MatchUpdate
from spectacularbid.v1.views_pb2 import MatchView


def run(args: argparse.Namespace) -> int:
    """0 when the match was played to its end."""
    return run_to_exit_status(lambda terminal: bot(terminal, args))


async def bot(terminal: Terminal, args: argparse.Namespace) -> int:
    """Join, or create and wait, and play. Raises CommandFailedError or ClientError."""
    async with open_service(args.server, tls=args.tls) as service:
        await expect_answer(service, args.server)
        if args.join:
            session = await service.join_match(args.join, args.name)
        else:
            session = await service.create_match(args.name)
            terminal.say(f"Invite code: {session.invite_code}")
        last = MatchView()

        def remember(update: MatchUpdate) -> None:
            last.CopyFrom(update.view)

        result = await run_bot(session, STRATEGIES[args.strategy], rng=dice(args.seed), on_update=remember)
        terminal.say(result_text(last, result))
    return EXIT_DONE
