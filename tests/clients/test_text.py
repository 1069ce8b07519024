"""Views as text."""

from __future__ import annotations

import pytest

from spectacularbid.client.text import (
    action_text,
    auction_text,
    clock_text,
    ends_text,
    hand_text,
    headline,
    layout_text,
    player_text,
    result_text,
    settlement_text,
    view_lines,
)
from spectacularbid.client.words import bank_text, refusal_text, seconds_text, transfer_text
from spectacularbid.v1 import events_pb2 as ev
from spectacularbid.v1 import outcomes_pb2 as oc
from spectacularbid.v1 import views_pb2 as vw
from tests.clients import build
from tests.clients.build import ACCEPT, DRAW, ONE, SECOND_NS, TWO, bids, layout, paid, play, tile, view

MS = 1_000_000


@pytest.mark.parametrize(
    "text",
    [
        "6-4",
        "[3-3]",
        "2-3 [3-3] 3-6 6-6 / 3-1",
        "2-3 [3-3] 3-6 / 3-1 1-5 / 3-0",
        "2-3 [3-3] 3-6 / / 3-0",
    ],
)
def test_a_layout_reads_from_left_to_right_and_outwards(text: str) -> None:
    """The spinner in brackets, the side arms after slashes."""
    assert layout_text(layout(text)) == text


def test_an_empty_table_is_called_so() -> None:
    """Rather than an empty line, which a screen reader would skip."""
    assert layout_text(vw.LayoutView()) == "empty"


def test_ends_have_letters_and_counts() -> None:
    """With the exposed total."""
    table = layout("2-3 [3-3] 3-6 6-6 / 3-1", ends="W 2 2, E 6 12, N 1 1", total=15)
    assert ends_text(table) == "Ends: W 2 counts 2, E 6 counts 12, N 1 counts 1; exposed total 15"
    assert ends_text(vw.LayoutView()) == "Ends: none; exposed total 0"


@pytest.mark.parametrize(
    ("transfer", "text"),
    [(paid(TWO, 15), "earned 15, paid 15"), (paid(TWO, 5, earned=20), "earned 20, paid 5 (all they had)")],
)
def test_a_transfer_says_what_was_earned_and_paid(transfer: ev.Transfer, text: str) -> None:
    """They differ when the payer has too little."""
    assert transfer_text(transfer) == text


def test_a_player_has_points_chips_tiles_and_a_bank() -> None:
    """A chip is five points."""
    shown = view(balances=(165, 135), hand="5-3 4-4", turn=ONE)
    ann, bob = shown.public.players
    assert player_text(shown, ann, None) == "  Ann (you): 165 points (33 chips), 2 tiles, bank 2:00.0, on turn"
    bob.ready = True
    assert player_text(shown, bob, None) == "  Bob: 135 points (27 chips), 2 tiles, bank 2:00.0, ready"
    assert player_text(shown, vw.PlayerView(seat=TWO), None) == "  Bob: free"
    assert player_text(vw.MatchView(), vw.PlayerView(seat=TWO), None) == "  Seat TWO: free"


@pytest.mark.parametrize(
    ("span_ns", "bank", "seconds"),
    [
        (120 * SECOND_NS, "2:00.0", "120.0 s"),
        (119_999 * MS, "1:59.9", "119.9 s"),
        (9_049 * MS, "0:09.0", "9.0 s"),
        (0, "0:00.0", "0.0 s"),
        (-5, "0:00.0", "0.0 s"),
    ],
)
def test_times_are_rounded_down_and_never_negative(span_ns: int, bank: str, seconds: str) -> None:
    """A clock shows no more than is left."""
    assert (bank_text(span_ns), seconds_text(span_ns)) == (bank, seconds)


RUNNING = vw.ClockView(
    running=vw.RunningClock(
        seat=ONE,
        started_at_unix_ns=0,
        delay_ends_at_unix_ns=10 * SECOND_NS,
        deadline_unix_ns=130 * SECOND_NS,
    )
)


@pytest.mark.parametrize(
    ("clock", "now_ns", "text"),
    [
        (RUNNING, None, "Clock: Ann decides, delay 10.0 s, bank 2:00.0"),
        (RUNNING, 8 * SECOND_NS, "Clock: Ann decides, delay 2.0 s, bank 2:00.0"),
        (RUNNING, 70 * SECOND_NS, "Clock: Ann decides, delay 0.0 s, bank 1:00.0"),
        (
            vw.ClockView(stopped=vw.StoppedClock(reason=vw.STOP_REASON_HANDOVER)),
            0,
            "Clocks stopped: the device is being handed over",
        ),
        (
            vw.ClockView(
                stopped=vw.StoppedClock(reason=vw.STOP_REASON_WAITING_FOR_CONTINUE, ends_at_unix_ns=60 * SECOND_NS)
            ),
            0,
            "Clocks stopped: waiting for Continue, 60.0 s left",
        ),
        (
            vw.ClockView(stopped=vw.StoppedClock(reason=vw.StopReason.ValueType(99))),
            0,
            "Clocks stopped: reason 99",
        ),
        (vw.ClockView(), 0, "Clocks unknown"),
    ],
)
def test_a_clock_runs_for_someone_or_names_why_not(clock: vw.ClockView, now_ns: int | None, text: str) -> None:
    """Also a reason of tomorrow."""
    assert clock_text(view(clock=clock), now_ns) == text


@pytest.mark.parametrize(
    ("auction", "text"),
    [
        (
            vw.AuctionView(jockey=TWO, credit_points=15, minimum_points=15, maximum_points=150),
            "Auction: jockey Bob (credit 15); next bid 15 to 150",
        ),
        (
            vw.AuctionView(
                jockey=TWO,
                bidder=ONE,
                standing_points=20,
                net_price_points=20,
                credit_points=15,
                minimum_points=25,
                maximum_points=20,
            ),
            "Auction: jockey Bob (credit 15); standing bid 20 by Ann, net price 20; no further bid can be paid",
        ),
    ],
)
def test_an_auction_says_who_stands_where(auction: vw.AuctionView, text: str) -> None:
    """The jockey, the bid with its price, and what may follow."""
    assert auction_text(view(auction=auction)) == text


HANDS = [
    ev.ShownHand(seat=ONE, tiles=[tile("3-1")], pips=4),
    ev.ShownHand(seat=TWO, tiles=[tile("6-6"), tile("6-0")], pips=18),
]


@pytest.mark.parametrize(
    ("settlement", "text"),
    [
        (vw.SettlementView(dominoed=ev.RoundDominoed(seat=TWO)), "Bob dominoed and is the next jockey"),
        (
            vw.SettlementView(blocked=ev.RoundBlocked(hands=HANDS, winner=ONE, transfer=paid(TWO, 20))),
            "Blocked: Ann holds 3-1 = 4; Bob holds 6-6 6-0 = 18; Bob pays: earned 20, paid 20",
        ),
        (
            vw.SettlementView(blocked=ev.RoundBlocked(hands=HANDS[:1])),
            "Blocked: Ann holds 3-1 = 4; nothing is paid",
        ),
        (vw.SettlementView(), "The round ended"),
    ],
)
def test_a_settlement_says_how_the_round_ended(settlement: vw.SettlementView, text: str) -> None:
    """By a domino or a block, or by something of tomorrow."""
    assert settlement_text(view(), settlement) == text


@pytest.mark.parametrize(
    ("result", "text"),
    [
        (
            vw.ResultView(won=ev.MatchWon(winner=TWO, reason=ev.WIN_REASON_TIME), rated=True),
            "Bob wins: the opponent's time ran out (rated)",
        ),
        (
            vw.ResultView(aborted=ev.MatchAborted(reason=ev.ABORT_REASON_TIMING_FAILURE, evidence="E7")),
            "The match is aborted: a timing failure of the service - E7 (not rated)",
        ),
        (
            vw.ResultView(won=ev.MatchWon(winner=ONE, reason=ev.WinReason.ValueType(42)), rated=True),
            "Ann wins: reason 42 (rated)",
        ),
        (vw.ResultView(), "The match ended (not rated)"),
    ],
)
def test_a_result_says_how_the_match_ended(result: vw.ResultView, text: str) -> None:
    """With the rated flag, and a number for a reason of tomorrow."""
    assert result_text(view(), result) == text


@pytest.mark.parametrize(
    ("listed", "text"),
    [
        (play("5-3 W", 15, paid(TWO, 15)), "play 5-3 at W: total 15, +15"),
        (play("5-3 W", 20, paid(TWO, 5, earned=20)), "play 5-3 at W: total 20, earned 20, paid 5 (all they had)"),
        (play("6-6 open", 12), "play 6-6 at the opening: total 12"),
        (bids(15, 40), "bid N (15..40 step 5, costs N)"),
        (bids(20, 165, credit=15, raising=True), "raise N (20..165 step 5, costs N - 15, at least 0)"),
        (build.action(ACCEPT.command, paid(TWO, 5)), "accept the bid: +5"),
        (ACCEPT, "accept the bid"),
        (DRAW, "draw a tile"),
        (vw.LegalAction(), "something this client is too old to name"),
    ],
)
def test_a_legal_action_says_what_it_would_bring(listed: vw.LegalAction, text: str) -> None:
    """Also what this client does not know."""
    assert action_text(listed) == text


@pytest.mark.parametrize(
    ("refused", "text"),
    [
        (oc.Refused(reason=oc.REFUSAL_REASON_BID_TOO_LOW, message="The bid is too low."), "The bid is too low."),
        (oc.Refused(reason=oc.REFUSAL_REASON_BID_TOO_LOW), "bid too low"),
        (oc.Refused(reason=oc.RefusalReason.ValueType(99)), "reason 99"),
    ],
)
def test_a_refusal_has_words(refused: oc.Refused, text: str) -> None:
    """The service's, or ours when it sent none."""
    assert refusal_text(refused) == text


def test_a_hand_shows_where_each_tile_fits() -> None:
    """By the letters of the ends."""
    hand = view(hand="5-3 4-4").own.hand
    hand[0].playable_ends.extend([build.END_BY_LETTER["W"], build.END_BY_LETTER["N"]])
    assert hand_text(hand) == "5-3 (W N), 4-4"


def test_a_headline_tolerates_a_phase_of_tomorrow() -> None:
    """By its number."""
    assert headline(view(3, phase=vw.Phase.ValueType(77))) == "Version 3: phase 77"
    shown = view(4, phase=vw.PHASE_PLAYING, round_number=2, opening=vw.OPENING_PRIVILEGE_BOUGHT)
    assert headline(shown) == "Version 4, round 2: playing (opening bought)"


def test_a_whole_view_reads_from_top_to_bottom() -> None:
    """Everything that a player needs, once."""
    shown = view(
        12,
        hand="5-3",
        balances=(155, 145),
        phase=vw.PHASE_PLAYING,
        round_number=2,
        opening=vw.OPENING_PRIVILEGE_RANKED,
        turn=ONE,
        layout=layout("[6-6] 6-4", ends="W 6 12, E 4 4", total=16),
        boneyard_size=13,
        passes=1,
        last_transfer=paid(TWO, 5),
        clock=RUNNING,
    )
    shown.own.must_play.CopyFrom(tile("5-3"))
    assert view_lines(shown, 0) == [
        "Version 12, round 2: playing (ranked opening)",
        "  Ann (you): 155 points (31 chips), 1 tiles, bank 2:00.0, on turn",
        "  Bob: 145 points (29 chips), 1 tiles, bank 2:00.0",
        "Table: [6-6] 6-4",
        "Ends: W 6 counts 12, E 4 counts 4; exposed total 16",
        "Boneyard 13, passes in a row 1",
        "Last transfer: Bob pays; earned 5, paid 5",
        "Clock: Ann decides, delay 10.0 s, bank 2:00.0",
        "Your hand: 5-3",
        "You must play 5-3",
    ]
