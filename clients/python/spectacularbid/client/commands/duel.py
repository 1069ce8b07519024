"""Two bots and a match between them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from spectacularbid.client.bots import STRATEGIES, run_bot
from spectacularbid.client.commands.terminal import dice
from spectacularbid.client.service import Service
from spectacularbid.client.session import MatchSession, WatchSession
from spectacularbid.v1.match_service_pb2 import MatchUpdate
from spectacularbid.v1.views_pb2 import ResultView

NAMES = ("Ann", "Bob")
STYLES = ("greedy", "random")


@dataclass(frozen=True, slots=True)
class Duel:
    """Both seats, ONE first, and a place to watch from."""

    seats: tuple[MatchSession, MatchSession]
    gallery: WatchSession


async def seat_bots(service: Service, second_service: Service | None = None) -> Duel:
    """Make a match and seat both, the second over a connection of its own if one is given. Raises `ClientError`."""
    first = await service.create_match(NAMES[0])
    second = await (second_service or service).join_match(first.invite_code, NAMES[1])
    return Duel((first, second), service.watch_only(first.match_id, first.spectator_token))


async def play_out(
    duel: Duel, *, seed: int | None, on_updates: Sequence[Callable[[MatchUpdate], None]] = (lambda _: None,) * 2
) -> tuple[ResultView, ResultView]:
    """Let the bots play to the end; the result as each of them sees it. Raises `ClientError`."""
    bots = [
        asyncio.create_task(
            run_bot(
                session,
                STRATEGIES[style],
                rng=dice(None if seed is None else f"{seed} {style}"),
                on_update=on_update,
            )
        )
        for session, style, on_update in zip(duel.seats, STYLES, on_updates, strict=True)
    ]
    try:
        first, second = await asyncio.gather(*bots)
    finally:
        for bot in bots:
            bot.cancel()
        await asyncio.gather(*bots, return_exceptions=True)
    return first, second
