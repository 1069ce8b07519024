"""Connecting and counting ends."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine import commands as cmd
from engine import events as ev
from engine.evolve import advance
from engine.layout import End, Layout, OpenEnd
from engine.legal import fits, legal_actions
from engine.refusals import RefusalReason
from engine.scoring import Transfer, play_transfer
from engine.seats import PerSeat
from engine.state import MatchState
from engine.tiles import DOUBLE_SIX, Tile
from tests.support.rules import reference
from tests.support.rules.given import (
    ONE,
    TWO,
    events_of,
    played,
    playing,
    reason_of,
    sent,
    started_clock,
    then,
    when,
)
from tests.support.rules.notation import layout, layout_text, play, plays, tile
from tests.support.rules.properties import UNHURRIED
from tests.support.rules.universe import spelled_out

SEQUENCES = [
    ("5-5 open, 5-2 E, 5-3 W, 5-0 N", [10, 12, 5, 5]),
    ("5-3 open, 5-5 E, 5-2 E", [8, 13, 5]),
    ("6-6 open, 6-3 W, 3-3 W, 6-5 E", [12, 15, 18, 11]),
    ("2-5 open, 5-5 E, 5-3 E, 5-1 N, 5-4 S", [7, 12, 5, 6, 10]),
    ("0-0 open, 0-5 E, 0-1 W", [0, 5, 6]),
    ("4-6 open, 6-6 E, 4-4 W, 6-1 E, 6-5 N, 5-5 N", [10, 16, 20, 9, 14, 19]),
    ("1-2 open, 2-3 E, 3-4 E, 4-5 E, 1-6 W", [3, 4, 5, 6, 11]),
]
"""Plays and the exposed total after each."""


@pytest.mark.clause("ends.opening-double", "ends.unused-branch", "ends.exposed-only", "ends.award", "C1", "C2", "C4")
@pytest.mark.parametrize(("texts", "totals"), SEQUENCES)
def test_only_exposed_ends_count_after_each_play(texts: str, totals: list[int]) -> None:
    """Faults 1, 2 and 7: a free side of the spinner counts nothing; the first double branches wherever it came."""
    state = playing("", one="0-0", two="0-1")
    for command, total in zip(plays(texts), totals, strict=True):
        assert state.current.layout.total_after(command.tile, command.end) == total
        event = event_of_play(state, command)
        assert event.exposed_total == total
        earned = total if total and total % 5 == 0 else 0
        assert event.transfer == (Transfer(TWO, earned, earned) if earned else None)
        state = laid(state, command)
    assert state.current.layout.exposed_total == totals[-1]


def playable_ends(table: Layout, held: Tile) -> tuple[End, ...]:
    """Where the tile may be joined, in the order of the ends."""
    return tuple(end for end in End if fits(table, held, end))


def event_of_play(state: MatchState, command: cmd.PlayTile) -> ev.TilePlayed:
    """The play of a tile that ONE holds for the occasion."""
    return played(events_of(when(holding(state, command.tile), ONE, command)))


def laid(state: MatchState, command: cmd.PlayTile) -> MatchState:
    """The table after the play, with ONE to play again."""
    table = layout_text(state.current.layout.place(command.tile, command.end))
    return playing(table, one="0-0", two="0-1")


def holding(state: MatchState, held: Tile) -> MatchState:
    """The same table with ONE holding this tile and one more."""
    spare = "3-3" if held != tile("3-3") else "6-6"
    return playing(layout_text(state.current.layout), one=f"{held.low}-{held.high} {spare}", two="0-1")


LAYOUTS = [
    ("[5-5]", "W5=5 E5=5", 10),
    ("3-5", "W3=3 E5=5", 8),
    ("[5-5] 5-2", "W5=10 E2=2", 12),
    ("3-5 [5-5]", "W3=3 E5=10", 13),
    ("3-5 [5-5] 5-2", "W3=3 E2=2 N5=0 S5=0", 5),
    ("3-5 [5-5] 5-2 / 5-0", "W3=3 E2=2 N0=0 S5=0", 5),
    ("3-5 [5-5] 5-2 / / 5-0", "W3=3 E2=2 N5=0 S0=0", 5),
    ("3-5 [5-5] 5-2 / 5-0 / 5-1", "W3=3 E2=2 N0=0 S1=1", 6),
    ("2-3 [3-3] 3-6 6-6 / 3-1", "W2=2 E6=12 N1=1 S3=0", 15),
    ("4-4 4-3 [3-3] 3-6 / 3-5 5-5 / 3-2 2-2", "W4=8 E6=6 N5=10 S2=4", 28),
    ("4-4 4-3 [3-3] 3-6", "W4=8 E6=6 N3=0 S3=0", 14),
    ("0-4 4-4 4-3 [3-3] 3-6", "W0=0 E6=6 N3=0 S3=0", 6),
    ("[3-3] 3-5 5-5", "W3=6 E5=10", 16),
    ("1-2 2-3 3-4", "W1=1 E4=4", 5),
]
"""A layout, its connections as direction, value to match and pips counted, and the exposed total."""


@pytest.mark.clause(
    *("connect.spinner", "connect.sides-after-mains", "ends.opening-double", "ends.unused-branch", "ends.later-double"),
    *("ends.exposed-only", "C1", "C2", "C3", "C4", "C5", "C6", "C7"),
)
@pytest.mark.parametrize(("text", "ends", "total"), LAYOUTS)
def test_each_end_counts_what_it_shows(text: str, ends: str, total: int) -> None:
    """The connections, the value to match at each, and what each adds to the total."""
    table = layout(text)
    assert " ".join(f"{end.value}{value}={counts}" for end, value, counts in table.ends) == ends
    assert table.exposed_total == total


@pytest.mark.clause("connect.match")
@pytest.mark.parametrize(
    ("text", "command", "after"),
    [
        ("3-5", "5-1 E", "3-5 5-1"),
        ("3-5", "3-1 W", "1-3 3-5"),
        ("3-5", "5-5 E", "3-5 [5-5]"),
        ("3-5", "3-3 W", "[3-3] 3-5"),
        ("3-5 [5-5] 5-2", "5-1 N", "3-5 [5-5] 5-2 / 5-1"),
        ("3-5 [5-5] 5-2", "5-1 S", "3-5 [5-5] 5-2 / / 5-1"),
        ("3-5 [5-5] 5-2 / 5-1", "1-1 N", "3-5 [5-5] 5-2 / 5-1 1-1"),
        ("3-5 [5-5] 5-2 / 5-1 1-1", "1-6 N", "3-5 [5-5] 5-2 / 5-1 1-1 1-6"),
        ("[5-5]", "5-2 W", "2-5 [5-5]"),
    ],
)
def test_a_tile_joins_with_its_matching_half_inwards(text: str, command: str, after: str) -> None:
    """Equal values meet; the other half becomes the end."""
    state = sent(playing(text, one=f"{command.split(maxsplit=1)[0]} 0-0", two="0-1"), (ONE, play(command)))
    assert layout_text(state.current.layout) == after


@pytest.mark.clause("connect.match", "connect.sides-after-mains", "C3", "C7")
@pytest.mark.parametrize(
    ("text", "command", "reason"),
    [
        ("3-5", "2-1 E", RefusalReason.TILE_DOES_NOT_FIT),
        ("3-5", "3-1 E", RefusalReason.TILE_DOES_NOT_FIT),
        ("3-5", "3-1 N", RefusalReason.END_NOT_AVAILABLE),
        ("3-5", "3-1 open", RefusalReason.END_NOT_AVAILABLE),
        ("[5-5]", "5-1 N", RefusalReason.END_NOT_AVAILABLE),
        ("3-5 [5-5]", "5-1 S", RefusalReason.END_NOT_AVAILABLE),
        ("3-5 [5-5] 5-2", "2-1 N", RefusalReason.TILE_DOES_NOT_FIT),
        ("", "5-1 E", RefusalReason.END_NOT_AVAILABLE),
    ],
)
def test_a_tile_cannot_be_joined_elsewhere(text: str, command: str, reason: RefusalReason) -> None:
    """Neither at an end of another value nor at an end that does not exist now."""
    state = playing(text, one=f"{command.split(maxsplit=1)[0]} 0-0", two="0-1")
    assert reason_of(when(state, ONE, play(command))) is reason


@pytest.mark.clause("connect.spinner", "connect.sides-after-mains", "C2", "C3")
@pytest.mark.parametrize(
    ("text", "ends"),
    [
        ("[5-5]", "WE"),
        ("2-5 [5-5]", "E"),
        ("[5-5] 5-2", "W"),
        ("2-5 [5-5] 5-3", "NS"),
        ("2-5 [5-5] 5-3 / 5-1", "S"),
        ("2-5 [5-5] 5-3 / / 5-1", "N"),
        ("2-5 [5-5] 5-3 / 5-1 / 5-0", ""),
    ],
)
def test_the_sides_open_once_both_main_arms_are_occupied(text: str, ends: str) -> None:
    """Fault 2: also when the first double did not open; both together, in any order."""
    assert "".join(end.value for end in playable_ends(layout(text), tile("5-6"))) == ends


@pytest.mark.clause("connect.spinner", "ends.later-double", "C1", "C5")
def test_a_crossed_later_double_has_no_sides() -> None:
    """Fault 4: covered on both sides it takes nothing more and counts nothing."""
    table = layout("6-3 3-3 3-5 [5-5] 5-2")
    assert playable_ends(table, tile("3-0")) == ()
    assert table.exposed_total == 6 + 2


@pytest.mark.clause("C1")
def test_a_round_may_have_no_spinner() -> None:
    """Without a double there are two ends for ever."""
    table = layout("1-2 2-3 3-4 4-6 6-0")
    assert table.spinner_index is None
    assert [end for end, _, _ in table.ends] == [End.WEST, End.EAST]


@pytest.mark.clause("C7")
def test_an_opening_tile_has_one_place() -> None:
    """Fault 13: on an empty table no side is asked for."""
    assert playable_ends(Layout(), tile("5-3")) == (End.OPENING,)


@pytest.mark.clause("C7")
def test_the_player_chooses_among_several_ends() -> None:
    """Fault 10: a play to the south lands on the south; the north stays free. Mirror images are two plays."""
    state = playing("2-5 [5-5] 5-3", one="5-1 0-0", two="0-1")
    assert list(spelled_out(legal_actions(state, ONE))) == [play("1-5 N"), play("1-5 S")]
    after = sent(state, (ONE, play("5-1 S"))).current.layout
    assert layout_text(after) == "2-5 [5-5] 5-3 / / 5-1"
    assert after.open_end(End.NORTH) == OpenEnd(End.NORTH, value=5, counts=0)
    assert playable_ends(layout("[5-5]"), tile("5-6")) == (End.WEST, End.EAST)
    assert playable_ends(layout("3-6 6-5"), tile("3-5")) == (End.WEST, End.EAST)


@pytest.mark.clause("play.turn-passes")
@pytest.mark.parametrize(("text", "command"), [("4-6", "4-4 W"), ("2-3", "3-5 E"), ("2-3", "3-4 E"), ("4-6", "6-6 E")])
def test_play_passes_to_the_opponent_after_every_play(text: str, command: str) -> None:
    """Fault 5: no extra turn after a double or a score."""
    state = playing(text, one=f"{command.split(maxsplit=1)[0]} 0-0", two="0-1")
    step = events_of(when(state, ONE, play(command)))
    assert started_clock(step).seat is TWO
    assert then(state, when(state, ONE, play(command))).turn is TWO


@pytest.mark.clause("C3", "C4", "D1")
def test_a_four_armed_round_is_the_same_after_every_reload() -> None:
    """Fault 8: folding the stored events again gives the same ends at every ply."""
    state = reloaded = playing("", one="5-5 5-3 5-1 1-6", two="5-2 5-0 0-3")
    for seat, text in zip([ONE, TWO] * 3, ["5-5 open", "5-2 E", "5-3 W", "5-0 S", "5-1 N", "0-3 S"], strict=True):
        ruling = when(state, seat, play(text))
        state, reloaded = then(state, ruling), advance(reloaded, events_of(ruling))
        assert reloaded == state
        assert legal_actions(reloaded, seat.other) == legal_actions(state, seat.other)
    assert layout_text(state.current.layout) == "3-5 [5-5] 5-2 / 5-1 / 5-0 0-3"


@pytest.mark.clause(
    *("connect.match", "connect.spinner", "connect.sides-after-mains", "ends.opening-double", "ends.unused-branch"),
    *("ends.later-double", "ends.exposed-only", "C4", "C5", "C6"),
)
@UNHURRIED
@given(st.lists(st.integers(min_value=0, max_value=9_999), min_size=1, max_size=24))
def test_any_layout_has_the_ends_of_the_reference_table(choices: list[int]) -> None:
    """Place by place: connections, counts and totals of the second reading of the rules, and the total foreseen."""
    table, walked, left = Layout(), reference.Table(), list(DOUBLE_SIX)
    for choice in choices:
        options = [(held, End(where)) for held in left for where in walked.fits(held)]
        assert options == [(held, end) for held in left for end in playable_ends(table, held)]
        if not options:
            break
        held, end = options[choice % len(options)]
        foreseen = table.total_after(held, end)
        table, walked = table.place(held, end), walked.joined(held, end.value)
        left.remove(held)
        seen = {open_end.end.value: (open_end.value, open_end.counts) for open_end in table.ends}
        assert seen == {where: (walked.open_value(where), walked.counted(where)) for where in walked.directions()}
        assert table.exposed_total == foreseen == walked.total()
        assert layout(layout_text(table)) == table
        assert sorted(table.tiles()) == sorted(set(DOUBLE_SIX) - set(left))


@pytest.mark.clause("ends.exposed-only", "C7")
def test_there_are_at_most_four_ends() -> None:
    """Four arms of a spinner, whatever lies on them."""
    assert len(layout("4-4 4-3 [3-3] 3-6 / 3-5 5-5 / 3-2 2-2").ends) == 4


def test_joining_where_nothing_fits_is_our_own_mistake() -> None:
    """The layout asserts an available end and a matching half."""
    for text in ("3-1 N", "2-1 E"):
        with pytest.raises(AssertionError):
            layout("3-5").place(play(text).tile, play(text).end)


@pytest.mark.clause("C8")
def test_a_zero_total_is_no_award() -> None:
    """Double blank alone, and blanks all around."""
    assert play_transfer(PerSeat(150, 150), ONE, layout("[0-0]").exposed_total) is None
    state = playing("", one="0-0 1-2", two="0-1")
    assert event_of_play(state, play("0-0 open")).transfer is None
