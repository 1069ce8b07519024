"""Two simple players, and what lets any player of that kind play a whole match."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import TypeAlias

from spectacularbid.client.actions import (
    READY_KINDS,
    bid_command,
    bids_of,
    expected_version_for,
    find,
    is_bid,
    net_price_points,
    offers,
)
from spectacularbid.client.deal_part import may_open
from spectacularbid.client.errors import ClientError
from spectacularbid.client.session import MatchSession
from spectacularbid.client.views import player_of
from spectacularbid.client.words import refusal_text
from spectacularbid.v1.commands_pb2 import Command
from spectacularbid.v1.match_service_pb2 import MatchUpdate
from spectacularbid.v1.outcomes_pb2 import (
    REFUSAL_REASON_MATCH_OVER,
    REFUSAL_REASON_STALE_VERSION,
    REFUSAL_REASON_TIME_EXPIRED,
    CommandOutcome,
)
from spectacularbid.v1.views_pb2 import LegalAction, MatchView, ResultView

Strategy: TypeAlias = Callable[[MatchView, Random], Command | None]

CHEAP_BIDS = 3
OPENING_EDGE_POINTS = 10
OVERTAKEN = frozenset({REFUSAL_REASON_MATCH_OVER, REFUSAL_REASON_TIME_EXPIRED, REFUSAL_REASON_STALE_VERSION})


class BotStuckError(ClientError):
    """The service refused what its own view had listed."""


def random_choice(view: MatchView, rng: Random) -> Command | None:
    """Any listed action; of bids only a few cheap ones, so that matches are decided at the table. None: none listed."""
    listed = [action for action in offers(view) if not is_bid(action) or _cheap_bids(view, action)]
    if not listed:
        return None
    action = rng.choice(listed)
    return bid_command(action, rng.choice(_cheap_bids(view, action))) if is_bid(action) else action.command


def greedy_choice(view: MatchView, rng: Random) -> Command | None:
    """The play that pays most, then the one with most pips; bids what the opening seems worth. None: none listed."""
    plays = list(find(view, "play_tile"))
    if plays:
        best = max(map(_play_value, plays))
        return rng.choice([action for action in plays if _play_value(action) == best]).command
    for action in find(view, "make_bid", "raise_bid"):
        if _is_worth_it(view, action):
            return bid_command(action, bids_of(action)[0])
    return next((action.command for action in offers(view) if not is_bid(action)), None)


def _cheap_bids(view: MatchView, action: LegalAction) -> list[int]:
    """The smallest bids that leave something to play with: paying all would lose at once."""
    balance = player_of(view, view.own.seat).balance_points
    return [points for points in bids_of(action)[:CHEAP_BIDS] if net_price_points(action, points) < balance]


def _play_value(action: LegalAction) -> tuple[int, int]:
    tile = action.command.play_tile.tile
    return action.transfer.paid_points, tile.low + tile.high


def _is_worth_it(view: MatchView, action: LegalAction) -> bool:
    """Whether the smallest bid costs no more than the opening seems worth, counting what accepting would bring."""
    if not _cheap_bids(view, action):
        return False
    price = net_price_points(action, bids_of(action)[0])
    foregone = sum(accept.transfer.paid_points for accept in find(view, "accept_bid"))
    sums = [held.tile.low + held.tile.high for held in view.own.hand]
    worth = OPENING_EDGE_POINTS + max((pips for pips in sums if pips % 5 == 0), default=0)
    return price + foregone <= worth


STRATEGIES: dict[str, Strategy] = {"random": random_choice, "greedy": greedy_choice}


async def run_bot(
    session: MatchSession,
    strategy: Strategy,
    *,
    rng: Random,
    on_update: Callable[[MatchUpdate], None] = lambda _: None,
) -> ResultView:
    """Play until the match has a result. Says Start, Continue and Reveal whenever they are listed.

    Raises `ClientError`; `BotStuckError` when a listed action is refused and nothing had changed meanwhile.
    """
    async with session.play() as table:
        async for update in table.updates():
            on_update(update)
            view = update.view
            if view.public.HasField("result"):
                return view.public.result
            ready = next(find(view, *READY_KINDS), None)
            if ready is not None and ready.command.HasField("start") and not may_open(view):
                continue
            command = ready.command if ready is not None else strategy(view, rng)
            if command is not None:
                outcome = await table.submit(command, expected_version_for(command, view))
                _check_progress(outcome, view)
    raise AssertionError("updates end with a result or an error")


def _check_progress(outcome: CommandOutcome, view: MatchView) -> None:
    """A refusal is fine when the match had moved on: a newer view is on its way."""
    if not outcome.HasField("refused") or outcome.refused.reason in OVERTAKEN:
        return
    if outcome.view.public.version <= view.public.version:
        raise BotStuckError(f"the service refused a listed action: {refusal_text(outcome.refused)}")
