"""Every reason of refusal over the real port: a sentence, the figures, and nothing changed (X3)."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest

from engine.refusals import RefusalReason
from spectacularbid.v1 import outcomes_pb2 as out
from spectacularbid.v1 import views_pb2
from spectacularbid.v1.commands_pb2 import Command
from spectacularbid.v1.outcomes_pb2 import CommandOutcome
from spectacularbid.v1.outcomes_pb2 import RefusalReason as Reason
from spectacularbid.v1.views_pb2 import MatchView
from tests.support.players import (
    ACCEPT,
    CONTINUE,
    DECLINE,
    DRAW,
    ENDS,
    PASS,
    RESIGN,
    REVEAL,
    START,
    Situation,
    Table,
    bid,
    hand_of,
    legal_commands,
    new_table,
    play,
    raise_to,
    situation,
    tile_text,
)
from tests.support.server import Server
from tests.support.unchanged import changing_nothing

Maker = Callable[[MatchView], Command]
EVENTFUL = 12
"""A match whose first round runs out of tiles to draw and goes on."""
WHOLE_SET = [f"{low}-{high}" for low in range(7) for high in range(low, 7)]


def in_phase(phase: views_pb2.Phase.ValueType) -> Situation:
    """Somebody is on turn in this phase."""
    return lambda view: view.public.phase == phase


def offers(kind: str) -> Situation:
    """The only thing to do is this."""
    return lambda view: [command.WhichOneof("command") for command in legal_commands(view)] == [kind]


def has_drawn(view: MatchView) -> bool:
    """A tile that can be played was just drawn, and there is another one."""
    drawn = view.public.phase == views_pb2.PHASE_PLAYING and view.own.HasField("must_play")
    return drawn and len(view.own.hand) > 1


def can_play(view: MatchView) -> bool:
    """Tiles are being played and one fits, one does not, and no side arm is open yet."""
    fits = [bool(held.playable_ends) for held in view.own.hand]
    is_playing = view.public.phase == views_pb2.PHASE_PLAYING and not view.own.HasField("must_play")
    return is_playing and any(fits) and not all(fits) and len(view.public.layout.ends) == 2


def in_auction(*, standing: bool) -> Situation:
    """A first bid, or an answer to one, is due."""
    return lambda view: view.public.HasField("auction") and (view.public.auction.standing_points > 0) is standing


OPENING, SETTLED = in_phase(views_pb2.PHASE_OPENING), in_phase(views_pb2.PHASE_SETTLED)
FIRST_BID, STANDING_BID = in_auction(standing=False), in_auction(standing=True)


def open_end(view: MatchView) -> str:
    """The name of an end of the table."""
    return next(name for name, end in ENDS.items() if end == view.public.layout.ends[0].end)


def missing_tile(view: MatchView) -> Command:
    """A play of a tile that lies anywhere but in the own hand."""
    return play(f"{next(tile for tile in WHOLE_SET if tile not in hand_of(view))} {open_end(view)}")


def played_tile(view: MatchView) -> Command:
    """A play of a tile that lies on the table."""
    placed = view.public.layout.main_line[0]
    return play(f"{placed.first}-{placed.second} {open_end(view)}")


def not_the_must_play(view: MatchView) -> str:
    """A tile of the own hand other than the one that must be played."""
    return next(tile for tile in hand_of(view) if tile != tile_text(view.own.must_play))


def fitting_nowhere(view: MatchView) -> Command:
    """A play of a tile of the own hand at an end that it does not match."""
    tile = next(held.tile for held in view.own.hand if not held.playable_ends)
    return play(f"{tile_text(tile)} {open_end(view)}")


def at_a_closed_side_arm(view: MatchView) -> Command:
    """A play at an arm that is not open yet."""
    tile = next(held.tile for held in view.own.hand if held.playable_ends)
    return play(f"{tile_text(tile)} N")


def unaffordable(view: MatchView) -> Command:
    """Five points more than the own balance."""
    return bid(view.public.auction.maximum_points + 5)


@dataclass(frozen=True)
class Row:
    """In a situation a command is refused."""

    reason: RefusalReason
    given: Situation
    command: Command | Maker
    by_the_other: bool = False
    figures: tuple[str, ...] = ()
    name: str = ""


R = RefusalReason
ROWS = [
    Row(R.WRONG_PHASE, OPENING, bid(15), name="a bid while the opening is due"),
    Row(R.WRONG_PHASE, OPENING, START, name="a second start"),
    Row(R.WRONG_PHASE, OPENING, CONTINUE, name="a continue in the middle of a round"),
    Row(R.WRONG_PHASE, OPENING, REVEAL, name="a reveal online"),
    Row(R.WRONG_PHASE, OPENING, bid(15), by_the_other=True, name="a bid by the other while the opening is due"),
    Row(R.WRONG_PHASE, can_play, ACCEPT, name="accepting outside an auction"),
    Row(R.WRONG_PHASE, SETTLED, PASS, name="a pass between rounds"),
    Row(R.WRONG_PHASE, FIRST_BID, raise_to(20), name="a raise before any bid"),
    Row(R.WRONG_PHASE, FIRST_BID, ACCEPT, name="accepting no bid"),
    Row(R.WRONG_PHASE, STANDING_BID, DECLINE, name="declining a bid"),
    Row(R.NOT_YOUR_TURN, OPENING, DRAW, by_the_other=True, name="drawing while the other opens"),
    Row(R.NOT_YOUR_TURN, can_play, DRAW, by_the_other=True, name="drawing while the other decides"),
    Row(R.NOT_YOUR_TURN, STANDING_BID, ACCEPT, by_the_other=True, name="accepting the own bid"),
    Row(R.NOT_YOUR_TURN, FIRST_BID, DECLINE, by_the_other=True, name="the jockey speaking first"),
    Row(R.TILE_NOT_IN_HAND, can_play, missing_tile, name="a tile of somebody else"),
    Row(R.TILE_NOT_IN_HAND, can_play, played_tile, name="a tile on the table"),
    Row(R.TILE_NOT_IN_HAND, OPENING, lambda view: play(f"{missing_of(view)} open"), name="opening with a missing tile"),
    Row(R.MUST_PLAY_DRAWN_TILE, has_drawn, lambda view: play(f"{not_the_must_play(view)} W"), name="another tile"),
    Row(R.MUST_PLAY_DRAWN_TILE, has_drawn, DRAW, name="a further draw"),
    Row(R.MUST_PLAY_DRAWN_TILE, has_drawn, PASS, name="a pass after a playable draw"),
    Row(
        R.MUST_OPEN_WITH_RANKED_TILE,
        OPENING,
        lambda view: play(f"{not_the_must_play(view)} open"),
        name="another opening tile",
    ),
    Row(R.MUST_OPEN_WITH_RANKED_TILE, OPENING, DRAW, name="drawing instead of opening"),
    Row(R.END_NOT_AVAILABLE, can_play, at_a_closed_side_arm, name="a closed side arm"),
    Row(
        R.END_NOT_AVAILABLE,
        OPENING,
        lambda view: play(f"{tile_text(view.own.must_play)} E"),
        name="an end of an empty table",
    ),
    Row(R.TILE_DOES_NOT_FIT, can_play, fitting_nowhere, name="a tile that does not fit"),
    Row(R.CAN_PLAY_INSTEAD, can_play, DRAW, name="drawing although a tile fits"),
    Row(R.CAN_PLAY_INSTEAD, can_play, PASS, name="passing although a tile fits"),
    Row(R.BONEYARD_EMPTY, offers("pass_turn"), DRAW, name="drawing from nothing"),
    Row(R.CAN_DRAW_INSTEAD, offers("draw_tile"), PASS, name="passing although there is something to draw"),
    Row(R.BID_TOO_LOW, FIRST_BID, bid(10), figures=("minimum_points",), name="a bid of 10"),
    Row(R.BID_TOO_LOW, FIRST_BID, bid(0), figures=("minimum_points",), name="a bid of 0"),
    Row(R.BID_TOO_LOW, FIRST_BID, bid(-5), figures=("minimum_points",), name="a bid of -5"),
    Row(R.BID_TOO_LOW, FIRST_BID, bid(-(2**31)), figures=("minimum_points",), name="a bid of -2^31"),
    Row(
        R.BID_TOO_LOW,
        STANDING_BID,
        lambda view: raise_to(view.public.auction.standing_points),
        figures=("minimum_points",),
        name="raising to the standing bid",
    ),
    Row(R.BID_NOT_MULTIPLE_OF_FIVE, FIRST_BID, bid(17), figures=("step_points",), name="a bid of 17"),
    Row(R.BID_NOT_MULTIPLE_OF_FIVE, FIRST_BID, bid(2**31 - 1), figures=("step_points",), name="a bid of 2^31-1"),
    Row(R.BID_UNAFFORDABLE, FIRST_BID, bid(2**31 - 3), figures=("maximum_points",), name="the largest bid there is"),
    Row(R.BID_UNAFFORDABLE, FIRST_BID, unaffordable, figures=("maximum_points",), name="five points too many"),
]


def missing_of(view: MatchView) -> str:
    """A tile that is not in the own hand."""
    return next(tile for tile in WHOLE_SET if tile not in hand_of(view))


def check_refused(outcome: CommandOutcome, row_reason: RefusalReason, figures: tuple[str, ...]) -> None:
    """The reason, a sentence for people, and exactly these figures as numbers."""
    assert outcome.HasField("refused")
    refused = outcome.refused
    assert Reason.Name(refused.reason) == f"REFUSAL_REASON_{row_reason.name}"
    assert refused.message.endswith(".")
    assert refused.message[0].isupper()
    assert sorted(refused.details) == sorted(figures)
    assert all(figure.lstrip("-").isdigit() for figure in refused.details.values())


@pytest.fixture(scope="module")
def tables() -> dict[Situation, tuple[Table, MatchView]]:
    """Matches that stand at a situation: a refused command leaves them there."""
    return {}


@pytest.mark.parametrize("row", ROWS, ids=[f"{row.reason.name}: {row.name}" for row in ROWS])
async def test_a_command_against_the_rules_is_refused_and_changes_nothing(
    server: Server, tables: dict[Situation, tuple[Table, MatchView]], row: Row
) -> None:
    """Not a version, not a clock, not a message to the other player; the view comes with the refusal."""
    if row.given not in tables:
        tables[row.given] = await situation(server, row.given, seed=EVENTFUL)
    table, view = tables[row.given]
    on_turn, waiting = table.seat(view.own.seat), table.seat(3 - view.own.seat)
    sender, opponent = (waiting, on_turn) if row.by_the_other else (on_turn, waiting)
    command = row.command if isinstance(row.command, Command) else row.command(view)
    async with changing_nothing(table, opponent=opponent):
        outcome = await sender.submit(command)
        check_refused(outcome, row.reason, row.figures)
        assert outcome.view == await sender.view()
        assert not outcome.repeated


async def test_a_second_start_by_the_same_seat_is_refused(server: Server) -> None:
    """S3: it waits for the other seat."""
    table = await new_table(server.channel)
    await table.one.do(START)
    async with changing_nothing(table):
        check_refused(await table.one.submit(START), R.ALREADY_READY, ())
    await table.two.do(START)


async def test_resigning_before_the_start_is_refused(server: Server) -> None:
    """X1: one may leave then."""
    table = await new_table(server.channel)
    async with changing_nothing(table):
        check_refused(await table.one.submit(RESIGN), R.WRONG_PHASE, ())


@pytest.mark.parametrize("version", [1, 2**62])
async def test_a_command_for_another_version_is_refused_with_the_current_one(server: Server, version: int) -> None:
    """The second of a double click, or a client that has lost its place."""
    table = await new_table(server.channel, start=True)
    view = await table.on_turn_view()
    player = table.seat(view.own.seat)
    command = legal_commands(view)[0]
    async with changing_nothing(table, opponent=table.seat(3 - view.own.seat)):
        outcome = await player.submit(command, expected_version=version)
        check_refused(outcome, R.STALE_VERSION, ("current_version",))
        assert outcome.refused.details["current_version"] == str(view.public.version)
    accepted = await player.submit(command, expected_version=view.public.version)
    assert accepted.accepted.version == view.public.version + 1


AFTER_THE_END = {"start": START, "continue": CONTINUE, "draw": DRAW, "bid": bid(15), "resign": RESIGN}


@pytest.mark.parametrize("command", AFTER_THE_END.values(), ids=AFTER_THE_END)
async def test_after_the_end_every_command_is_refused(server: Server, command: Command) -> None:
    """By either player; the result stands."""
    async with finished(server) as table:
        for player in table.seats:
            check_refused(await player.submit(command, expected_version=1), R.MATCH_OVER, ())


@asynccontextmanager
async def finished(server: Server) -> AsyncIterator[Table]:
    """A match that was given up; nothing may happen to it any more."""
    table = await new_table(server.channel, start=True)
    await table.one.do(RESIGN)
    async with changing_nothing(table):
        yield table


async def test_the_text_is_the_same_wherever_a_missing_tile_lies(server: Server) -> None:
    """Channel 9: a refusal tells nothing of the other hand or of the boneyard."""
    table, view = await situation(server, can_play)
    player = table.seat(view.own.seat)
    end = open_end(view)
    texts = set()
    async with changing_nothing(table, opponent=table.seat(3 - view.own.seat)):
        for tile in sorted(set(WHOLE_SET) - set(hand_of(view))):
            outcome = await player.submit(play(f"{tile} {end}"))
            texts.add((outcome.refused.reason, outcome.refused.message, str(outcome.refused.details)))
    assert len(texts) == 1


def test_every_reason_but_the_late_one_is_shown_here() -> None:
    """TIME_EXPIRED is in test_expiry.py, with a clock that can be set."""
    others = {R.MATCH_OVER, R.STALE_VERSION, R.ALREADY_READY}
    assert {row.reason for row in ROWS} | others == set(RefusalReason) - {R.TIME_EXPIRED}


def test_the_reasons_of_the_wire_are_those_of_the_engine() -> None:
    """Name by name and number by number."""
    wire = {name.removeprefix("REFUSAL_REASON_"): number for name, number in out.RefusalReason.items()}
    assert wire == {"UNSPECIFIED": 0} | {reason.name: reason.value for reason in RefusalReason}
