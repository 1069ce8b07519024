"""Events as messages: each in one form, which every message that tells of it has."""

from __future__ import annotations

from collections import Counter
from typing import get_args

from engine import events as ev
from engine.layout import End
from engine.scoring import Transfer
from engine.seats import Seat
from engine.tiles import Tile
from service.rpc import facts
from spectacularbid.v1 import match_service_pb2, outcomes_pb2

STEP: ev.Step = (
    ev.TilePlayed(Seat.ONE, Tile(5, 5), End.OPENING, 10, Transfer(Seat.TWO, 10, 10)),
    ev.ClockStopped(Seat.ONE, 0),
    ev.TileDrawn(Seat.TWO, Tile(0, 1), playable=False),
    ev.Passed(Seat.TWO),
    ev.ClockStarted(Seat.TWO, 1_790_000_000_000_000_000),
    ev.BidMade(Seat.TWO, 20),
)


def test_every_event_has_one_form() -> None:
    """Those of nearly every command and the others are all that there are."""
    others = (facts._Gathering, facts._Bidding, facts._TurningPoint)
    known = [*facts._OFTEN, *(kind for union in others for kind in get_args(union))]
    assert Counter(known) == Counter(get_args(ev.Event))


def test_an_outcome_and_an_update_tell_of_events_in_the_same_bytes() -> None:
    """The field has one number in both, and protobuf writes it so."""
    fields = facts.event_fields(STEP)
    update = match_service_pb2.MatchUpdate.FromString(fields)
    assert outcomes_pb2.Accepted.FromString(fields).events == update.events
    assert update.SerializeToString() == fields
    kinds = [event.WhichOneof("event") for event in update.events]
    assert kinds == ["tile_played", "clock_stopped", "tile_drawn", "passed", "clock_started", "bid_made"]
