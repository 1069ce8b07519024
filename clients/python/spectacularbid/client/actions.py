"""The legal actions that a view lists, and how to make commands of them."""

from __future__ import annotations

from collections.abc import Iterator

from spectacularbid.v1.commands_pb2 import Bid, Command, Raise
from spectacularbid.v1.views_pb2 import BidRange, LegalAction, MatchView

READY_KINDS = frozenset({"start", "continue_round", "reveal"})


def kind_of(action: LegalAction) -> str:
    """The field of `Command` that the action would set; "" for what is newer than this client."""
    match action.WhichOneof("action"):
        case "command":
            return action.command.WhichOneof("command") or ""
        case "make_bid":
            return "make_bid"
        case "raise_bid":
            return "raise_bid"
        case _:
            return ""


def offers(view: MatchView) -> list[LegalAction]:
    """The listed actions that this client knows, in the order of the view; bid ranges only when they hold a bid."""
    return [action for action in view.own.legal_actions if kind_of(action) and (not is_bid(action) or bids_of(action))]


def find(view: MatchView, *kinds: str) -> Iterator[LegalAction]:
    """The listed actions of these kinds."""
    return (action for action in offers(view) if kind_of(action) in kinds)


def is_bid(action: LegalAction) -> bool:
    """Whether the action is a range of bids or raises."""
    return action.WhichOneof("action") in {"make_bid", "raise_bid"}


def bid_range(action: LegalAction) -> BidRange:
    """The range of a bid action."""
    return action.raise_bid if action.HasField("raise_bid") else action.make_bid


def bids_of(action: LegalAction) -> range:
    """Every bid that a bid action allows, in points."""
    allowed = bid_range(action)
    return range(allowed.minimum_points, allowed.maximum_points + 1, max(1, allowed.step_points))


def net_price_points(action: LegalAction, points: int) -> int:
    """What a winning bid of so many points would cost."""
    return max(0, points - bid_range(action).credit_points)


def bid_command(action: LegalAction, points: int) -> Command:
    """The command for a bid within a bid action's range."""
    if action.HasField("raise_bid"):
        return Command(raise_bid=Raise(points=points))
    return Command(make_bid=Bid(points=points))


def expected_version_for(command: Command, view: MatchView) -> int | None:
    """The version to send with a command chosen from a view. None for being ready: both players may be so at once."""
    return None if command.WhichOneof("command") in {"start", "continue_round"} else view.public.version
