"""Exact counts of legal command sequences, by the engine and by the second reading of the rules."""

from typing import TypedDict

import pytest

from engine import commands as cmd
from engine.clock import Arrival
from engine.decide import decide
from engine.legal import legal_actions
from engine.state import MatchState, Phase
from tests.support.rules import reference
from tests.support.rules.given import ONE, TWO, Match, playing, then, with_balances
from tests.support.rules.notation import order, play
from tests.support.rules.universe import spelled_out


class Shares(TypedDict):
    """Both hands, and the boneyard in drawing order."""

    one: str
    two: str
    boneyard: str


FIRST: Shares = {
    "one": "0-1 0-5 1-4 1-5 4-4 4-5 5-6",
    "two": "0-0 1-3 2-2 2-5 2-6 3-4 6-6",
    "boneyard": "1-1 3-6 0-6 1-6 3-5 2-3 2-4 0-3 1-2 0-2 4-6 5-5 3-3 0-4",
}
SECOND: Shares = {
    "one": "0-0 0-3 0-4 2-4 2-6 3-5 4-6",
    "two": "1-1 1-6 2-3 2-5 3-3 3-4 4-5",
    "boneyard": "1-4 2-2 4-4 5-6 0-6 1-2 1-3 3-6 0-5 1-5 5-5 0-2 0-1 6-6",
}
THIRD: Shares = {
    "one": "0-1 0-5 0-6 1-6 2-6 3-4 4-6",
    "two": "0-3 1-2 1-3 1-4 2-3 4-5 5-6",
    "boneyard": "2-5 2-2 3-6 0-0 0-2 4-4 3-5 2-4 6-6 1-5 0-4 5-5 3-3 1-1",
}
FOUR_ARMS = (
    "5-6 open, 2-5 W, draw, draw, 3-6 E, 2-2 W, draw, draw, draw, 3-5 E, 2-6 W, 1-6 W, 1-3 W, 4-5 E, 3-4 E, draw, "
    "2-3 N, draw, 2-4 S, 4-4 S"
)
POSITIONS: dict[str, tuple[MatchState, str, list[int]]] = {
    "ranked opening with a spinner": (
        Match(deal=order(**FIRST)).start().state,
        "",
        [1, 2, 4, 8, 20, 40, 76, 164, 306, 612, 1210],
    ),
    "ranked opening with sides soon open": (
        Match(deal=order(**SECOND)).start().state,
        "",
        [1, 4, 12, 58, 230, 1182, 3512],
    ),
    "ranked opening without a double": (
        Match(deal=order(**THIRD)).start().state,
        "",
        [1, 5, 13, 35, 94, 238, 512, 1069, 1606, 2678],
    ),
    "free opening": (playing("", **FIRST), "", [7, 15, 34, 73, 161, 263, 590, 1083, 2270, 3876]),
    "free opening of the other seat": (playing("", **SECOND, turn=TWO), "", [7, 23, 63, 213, 563, 2086, 5428]),
    "a payer with ten points": (
        with_balances(playing("", **THIRD, turn=TWO), 10, 290),
        "",
        [7, 24, 70, 203, 530, 1277, 2622],
    ),
    "with four arms to the end of the round": (
        playing("", **FIRST),
        FOUR_ARMS,
        [
            *(1, 3, 12, 12, 27, 27, 27, 45, 66, 81, 186, 228, 225, 309, 420, 582, 801, 768, 726, 528, 438, 150),
            0,
        ],
    ),
    "with most of the boneyard to the end of the round": (
        playing("", **FIRST),
        "4-4 open, 3-4 E, 1-4 W, 1-3 E",
        [
            *(6, 6, 22, 42, 124, 230, 704, 1012, 1414, 270, 116, 104, 28, 76, 4, 4, 8, 12, 18, 30, 42, 42, 54, 78, 84),
            *(72, 102, 96, 132, 204, 132, 36, 36, 48, 72, 96, 72, 24, 24, 0),
        ],
    ),
}
"""A state, moves to make first, and the number of move sequences of each length from 1 on."""


def moves(state: MatchState) -> list[cmd.Command]:
    """The legal commands of the player on turn while the round lasts."""
    if state.turn is None or state.phase not in (Phase.OPENING, Phase.PLAYING):
        return []
    return list(spelled_out(legal_actions(state, state.turn)))


def after(state: MatchState, command: cmd.Command) -> MatchState:
    """The state after a command that takes no time."""
    assert state.decision is not None
    now_ns = state.decision.started_at_ns
    request = cmd.Request(state.decision.seat, command, Arrival.at(now_ns))
    return then(state, decide(state, request, now_ns=now_ns, deal=()))


def total(state: MatchState) -> int:
    """The exposed total."""
    return state.current.layout.exposed_total


def plainly(state: MatchState) -> reference.Round:
    """The same round for the second reading of the rules, which is told nothing but what lies where."""
    current = state.current
    one, two = (frozenset((held.low, held.high) for held in current.hands[seat.index]) for seat in (ONE, TWO))
    player = 0 if state.turn is ONE else 1
    is_ranked = current.must_play is not None
    return reference.Round(
        hands=(one, two),
        boneyard=tuple((drawn.low, drawn.high) for drawn in current.boneyard),
        player=reference.ranked((one, two))[0] if is_ranked else player,
        must=reference.ranked((one, two))[1] if is_ranked else None,
        balances=(state.balances.one, state.balances.two),
    )


def named(command: cmd.Command) -> reference.Move:
    """A command as the second reading of the rules names it."""
    if isinstance(command, cmd.PlayTile):
        return "play", (command.tile.low, command.tile.high), command.end.value
    return reference.DRAW if isinstance(command, cmd.DrawTile) else reference.PASS


def plain_total(here: reference.Round) -> int:
    """The exposed total as the second reading counts it."""
    return here.table.total()


@pytest.mark.clause(
    *("opening.ranked", "opening.heaviest", "connect.match", "connect.sides-after-mains", "ends.exposed-only"),
    *("ends.award", "draw.one-at-a-time", "draw.must-play-drawn", "draw.pass-last", "domino.last-tile"),
    *("block.two-passes", "play.turn-passes", "C7", "D2", "D3"),
)
@pytest.mark.parametrize("position", POSITIONS)
def test_the_engine_and_the_second_reading_count_the_same_sequences(position: str) -> None:
    """At each depth: the exact number, and how often each exposed total stands at its end."""
    state, prefix, counts = POSITIONS[position]
    plain = plainly(state)
    for text in filter(None, prefix.split(", ")):
        command = MOVES.get(text) or play(text)
        state, plain = after(state, command), plain.after(named(command))
    seen = reference.perft(state, len(counts), moves=moves, after=after, total=total)
    assert [sum(totals.values()) for totals in seen] == counts
    walked = reference.perft(
        plain, len(counts), moves=reference.Round.moves, after=reference.Round.after, total=plain_total
    )
    assert seen == walked


MOVES: dict[str, cmd.Command] = {"draw": cmd.DrawTile(), "pass": cmd.Pass()}
