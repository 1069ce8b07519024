"""Short questions to a view."""

from __future__ import annotations

from spectacularbid.v1.tiles_pb2 import SEAT_ONE, SEAT_TWO, Seat
from spectacularbid.v1.views_pb2 import MatchView, PlayerView

NAME_BY_SEAT = {SEAT_ONE: "Seat ONE", SEAT_TWO: "Seat TWO"}


def player_of(view: MatchView, seat: Seat.ValueType) -> PlayerView:
    """The player at a seat; an empty one for a seat that the view does not list."""
    return next((player for player in view.public.players if player.seat == seat), PlayerView(seat=seat))


def name_of(view: MatchView, seat: Seat.ValueType) -> str:
    """The name of the player at a seat, or of the seat while it is free."""
    return player_of(view, seat).display_name or NAME_BY_SEAT.get(seat, "nobody")


def own_seat(view: MatchView) -> Seat.ValueType | None:
    """The viewer's seat; None for a spectator."""
    return view.own.seat if view.HasField("own") else None


def is_over(view: MatchView) -> bool:
    """Whether the match has ended."""
    return view.public.HasField("result")
