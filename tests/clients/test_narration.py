"""Events as lines."""

from __future__ import annotations

import pytest

from spectacularbid.client.narrate import MISSED, Narrator
from spectacularbid.v1 import events_pb2 as ev
from spectacularbid.v1.tiles_pb2 import Seat
from tests.clients.build import END_BY_LETTER, ONE, TWO, paid, tile, update, view


def played(seat: Seat.ValueType, text: str, total: int, transfer: ev.Transfer | None = None) -> ev.Event:
    which, end = text.split()
    return ev.Event(
        tile_played=ev.TilePlayed(
            seat=seat, tile=tile(which), end=END_BY_LETTER[end], exposed_total=total, transfer=transfer
        )
    )


DREW = ev.Event(tile_drawn=ev.TileDrawn(seat=ONE))
BLOCKED = ev.RoundBlocked(
    hands=[
        ev.ShownHand(seat=ONE, tiles=[tile("3-1")], pips=4),
        ev.ShownHand(seat=TWO, tiles=[tile("6-6")], pips=12),
    ],
    winner=ONE,
    transfer=paid(TWO, 10),
)

STORIES: list[tuple[list[ev.Event], list[str]]] = [
    ([ev.Event(round_dealt=ev.RoundDealt(round_number=1))], ["Round 1: ranked opening"]),
    ([ev.Event(round_dealt=ev.RoundDealt(round_number=2, jockey=TWO))], ["Round 2: Bob is the jockey"]),
    ([played(ONE, "6-4 W", 10, paid(TWO, 10))], ["  Ann plays 6-4 at W: total 10, +10 (160-140)"]),
    (
        [played(TWO, "6-4 W", 20, paid(ONE, 5, earned=20))],
        ["  Bob plays 6-4 at W: total 20, earned 20, paid 5 (all they had) (145-155)"],
    ),
    ([DREW, DREW, played(ONE, "6-6 open", 12)], ["  Ann draws 2 and plays 6-6 at the opening: total 12"]),
    ([DREW, ev.Event(passed=ev.Passed(seat=ONE))], ["  Ann draws 1 and passes"]),
    ([ev.Event(bid_made=ev.BidMade(seat=ONE, points=15))], ["  Ann bids 15"]),
    ([ev.Event(bidding_declined=ev.BiddingDeclined(seat=ONE))], ["  Ann declines bidding"]),
    (
        [ev.Event(bid_accepted=ev.BidAccepted(bidder=TWO, points=20, credit_points=15, transfer=paid(TWO, 5)))],
        ["  Bob opens for 5 (bid 20, credit 15) (155-145)"],
    ),
    (
        [ev.Event(bid_accepted=ev.BidAccepted(bidder=ONE, points=15, transfer=paid(ONE, 15)))],
        ["  Ann opens for 15 (bid 15) (135-165)"],
    ),
    (
        [
            ev.Event(clock_stopped=ev.ClockStopped(seat=ONE, bank_used_ns=2_500_000_000)),
            ev.Event(round_dominoed=ev.RoundDominoed(seat=ONE)),
        ],
        ["  Ann dominoes", "  Ann 150 points, bank 1:57.5; Bob 150 points, bank 2:00.0"],
    ),
    (
        [ev.Event(round_blocked=BLOCKED)],
        [
            "  Blocked: Ann holds 3-1 = 4; Bob holds 6-6 = 12; Bob pays: earned 10, paid 10",
            "  Ann 160 points, bank 2:00.0; Bob 140 points, bank 2:00.0",
        ],
    ),
    ([ev.Event(handover_opened=ev.HandoverOpened(seat=TWO))], ["  the device goes to Bob"]),
    (
        [ev.Event(clocks_suspended=ev.ClocksSuspended()), ev.Event(clocks_resumed=ev.ClocksResumed())],
        ["The service is being restarted; the clocks stand still", "The clocks go on"],
    ),
    ([ev.Event(continue_timed_out=ev.ContinueTimedOut())], ["Nobody waited any longer for Continue"]),
    ([ev.Event(player_seated=ev.PlayerSeated(seat=TWO, display_name="Bob"))], ["Bob takes a seat"]),
    ([ev.Event.FromString(b"\xa2\x06\x03new"), ev.Event(match_won=ev.MatchWon(winner=ONE))], []),
]


@pytest.mark.parametrize(("events", "lines"), STORIES)
def test_events_become_lines(events: list[ev.Event], lines: list[str]) -> None:
    """From 150 to 150; what is newer than this client has no line."""
    narrator = Narrator()
    assert narrator.tell(update(1)) == []
    assert narrator.tell(update(2, *events)) == lines


def test_missing_events_are_owned_up_to() -> None:
    """But not at the first update, which never has them all; balances are taken from the view."""
    narrator = Narrator()
    assert narrator.tell(update(1, complete=False)) == []
    assert narrator.tell(update(view(5, balances=(200, 100)), complete=False)) == [MISSED]
    told = narrator.tell(update(view(6, balances=(210, 90)), played(ONE, "6-4 W", 10, paid(TWO, 10))))
    assert told == ["  Ann plays 6-4 at W: total 10, +10 (210-90)"]
