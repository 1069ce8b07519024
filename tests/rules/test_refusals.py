"""Refusals: every reason, and which one counts when several apply."""

from dataclasses import dataclass
from itertools import pairwise

import pytest

from engine import commands as cmd
from engine import events as ev
from engine.evolve import advance
from engine.layout import End
from engine.refusals import Refusal, RefusalReason
from engine.seats import Seat
from engine.state import MatchState, Phase
from tests.support.rules.given import (
    ONE,
    STARTED_NS,
    TWO,
    Match,
    bidding,
    playing,
    seconds,
    sent,
    served,
    when,
)
from tests.support.rules.notation import play
from tests.support.rules.samples import many_states
from tests.support.rules.universe import EVERY_COMMAND

R = RefusalReason
LATE_NS = seconds(130)
IN_PLAY = playing("2-3", one="3-4 1-1", two="0-0 3-5", boneyard="3-6 2-2")
DRAWN = playing("2-3", one="3-4 1-1", two="0-0", must_play="3-4")
FORCED = playing("", one="5-5 1-1", two="0-0", must_play="5-5")
BARE = playing("2-3", one="3-4 1-1", two="0-0", boneyard="")
UNABLE = playing("2-3", one="1-1", two="0-0", boneyard="")
LOST = advance(IN_PLAY, served(IN_PLAY, cmd.CheckClock(STARTED_NS + LATE_NS)))
STARTED_BY_ONE = sent(Match().state, (ONE, cmd.Start()))


@dataclass(frozen=True)
class Both:
    """A request to which two reasons apply."""

    state: MatchState
    seat: Seat
    command: cmd.Command
    at_ns: int = seconds(1)
    version: int | None = None


PRECEDENCE: dict[tuple[RefusalReason, RefusalReason], Both | str] = {
    (R.MATCH_OVER, R.TIME_EXPIRED): Both(LOST, ONE, play("3-4 E"), at_ns=LATE_NS),
    (R.TIME_EXPIRED, R.STALE_VERSION): Both(IN_PLAY, ONE, play("3-4 E"), at_ns=LATE_NS, version=3),
    (R.STALE_VERSION, R.WRONG_PHASE): Both(IN_PLAY, ONE, cmd.Start(), version=3),
    (R.WRONG_PHASE, R.NOT_YOUR_TURN): Both(IN_PLAY, TWO, cmd.Bid(15)),
    (R.NOT_YOUR_TURN, R.ALREADY_READY): "being ready is nobody's turn",
    (R.ALREADY_READY, R.TILE_NOT_IN_HAND): "Start and Continue play no tile",
    (R.TILE_NOT_IN_HAND, R.MUST_PLAY_DRAWN_TILE): Both(DRAWN, ONE, play("0-0 E")),
    (R.MUST_PLAY_DRAWN_TILE, R.MUST_OPEN_WITH_RANKED_TILE): "nothing is drawn before the opening",
    (R.MUST_OPEN_WITH_RANKED_TILE, R.END_NOT_AVAILABLE): Both(FORCED, ONE, play("1-1 E")),
    (R.END_NOT_AVAILABLE, R.TILE_DOES_NOT_FIT): Both(IN_PLAY, ONE, play("1-1 N")),
    (R.TILE_DOES_NOT_FIT, R.CAN_PLAY_INSTEAD): "a play is not refused for another play",
    (R.CAN_PLAY_INSTEAD, R.BONEYARD_EMPTY): Both(BARE, ONE, cmd.DrawTile()),
    (R.BONEYARD_EMPTY, R.CAN_DRAW_INSTEAD): "a draw needs tiles, a pass needs none",
    (R.CAN_DRAW_INSTEAD, R.BID_TOO_LOW): "a pass is no bid",
    (R.BID_TOO_LOW, R.BID_NOT_MULTIPLE_OF_FIVE): Both(bidding(jockey=TWO), ONE, cmd.Bid(12)),
    (R.BID_NOT_MULTIPLE_OF_FIVE, R.BID_UNAFFORDABLE): Both(bidding(jockey=TWO), ONE, cmd.Bid(303)),
    # Neighbours among those that can meet, where the next in order cannot.
    (R.WRONG_PHASE, R.ALREADY_READY): Both(STARTED_BY_ONE, ONE, cmd.Continue()),
    (R.NOT_YOUR_TURN, R.TILE_NOT_IN_HAND): Both(IN_PLAY, TWO, play("3-4 E")),
    (R.NOT_YOUR_TURN, R.BID_TOO_LOW): Both(bidding(jockey=TWO), TWO, cmd.Bid(5)),
    (R.TILE_NOT_IN_HAND, R.MUST_OPEN_WITH_RANKED_TILE): Both(FORCED, ONE, play("0-0 open")),
    (R.TILE_NOT_IN_HAND, R.END_NOT_AVAILABLE): Both(IN_PLAY, ONE, play("0-0 N")),
    (R.MUST_PLAY_DRAWN_TILE, R.END_NOT_AVAILABLE): Both(DRAWN, ONE, play("1-1 N")),
    (R.MUST_PLAY_DRAWN_TILE, R.TILE_DOES_NOT_FIT): Both(DRAWN, ONE, play("1-1 E")),
    (R.MUST_PLAY_DRAWN_TILE, R.CAN_PLAY_INSTEAD): Both(DRAWN, ONE, cmd.DrawTile()),
    (R.MUST_OPEN_WITH_RANKED_TILE, R.CAN_PLAY_INSTEAD): Both(FORCED, ONE, cmd.Pass()),
    (R.CAN_PLAY_INSTEAD, R.CAN_DRAW_INSTEAD): Both(IN_PLAY, ONE, cmd.Pass()),
    (R.BID_TOO_LOW, R.BID_UNAFFORDABLE): Both(bidding(jockey=TWO, balances=(5, 295)), ONE, cmd.Bid(10)),
}


@pytest.mark.clause("auto.refused", "K5")
@pytest.mark.parametrize(("pair", "both"), [item for item in PRECEDENCE.items() if isinstance(item[1], Both)])
def test_the_earlier_reason_counts(pair: tuple[RefusalReason, RefusalReason], both: Both) -> None:
    """Both reasons apply, as the second list of this file knows them, and the first is given."""
    applying = reasons(both.state, both.seat, both.command, is_late=both.at_ns >= LATE_NS, version=both.version)
    assert applying >= set(pair)
    ruling = when(both.state, both.seat, both.command, at_ns=both.at_ns, version=both.version)
    assert ruling.refusal is not None
    assert ruling.refusal.reason is pair[0]


def test_every_pair_of_neighbours_is_in_the_table() -> None:
    """Each has its request, or the reason why none can exist."""
    assert set(pairwise(RefusalReason)) <= set(PRECEDENCE)
    assert all(earlier < later for earlier, later in PRECEDENCE)


ALONE = [
    (LOST, TWO, cmd.Pass(), R.MATCH_OVER, {}),
    (IN_PLAY, ONE, cmd.Bid(15), R.WRONG_PHASE, {}),
    (IN_PLAY, TWO, play("3-5 E"), R.NOT_YOUR_TURN, {}),
    (STARTED_BY_ONE, ONE, cmd.Start(), R.ALREADY_READY, {}),
    (IN_PLAY, ONE, play("3-5 E"), R.TILE_NOT_IN_HAND, {}),
    (DRAWN, ONE, cmd.Pass(), R.MUST_PLAY_DRAWN_TILE, {}),
    (FORCED, ONE, play("1-1 open"), R.MUST_OPEN_WITH_RANKED_TILE, {}),
    (IN_PLAY, ONE, play("3-4 N"), R.END_NOT_AVAILABLE, {}),
    (IN_PLAY, ONE, play("3-4 W"), R.TILE_DOES_NOT_FIT, {}),
    (IN_PLAY, ONE, cmd.DrawTile(), R.CAN_PLAY_INSTEAD, {}),
    (UNABLE, ONE, cmd.DrawTile(), R.BONEYARD_EMPTY, {}),
    (playing("2-3", one="1-1", two="0-0"), ONE, cmd.Pass(), R.CAN_DRAW_INSTEAD, {}),
    (bidding(jockey=TWO, standing=20), ONE, cmd.Raise(20), R.BID_TOO_LOW, {"minimum_points": 25}),
    (bidding(jockey=TWO), ONE, cmd.Bid(17), R.BID_NOT_MULTIPLE_OF_FIVE, {"step_points": 5}),
    (bidding(jockey=TWO), ONE, cmd.Bid(155), R.BID_UNAFFORDABLE, {"maximum_points": 150}),
]


@pytest.mark.clause("auto.refused", "X3")
@pytest.mark.parametrize(("state", "seat", "command", "reason", "figures"), ALONE)
def test_each_reason_has_its_case(
    state: MatchState, seat: Seat, command: cmd.Command, reason: RefusalReason, figures: dict[str, int]
) -> None:
    """Refused for that alone, with the public figures that explain it."""
    ruling = when(state, seat, command)
    assert ruling.events == ()
    assert ruling.refusal == Refusal(reason, tuple(figures.items()))


def test_a_stale_version_is_refused_with_the_current_one() -> None:
    """Fault 119: the same version twice is one event; without a version, or with the right one, it is accepted."""
    ruling = when(IN_PLAY, ONE, play("3-4 E"), version=19)
    assert (ruling.events, ruling.refusal) == ((), Refusal(R.STALE_VERSION, (("current_version", 20),)))
    assert when(IN_PLAY, ONE, play("3-4 E"), version=20).refusal is None
    assert when(IN_PLAY, ONE, play("3-4 E")).refusal is None


@pytest.mark.clause("auto.refused", "X3")
@pytest.mark.parametrize("part", range(8))
def test_any_request_in_any_state_is_refused_for_the_first_reason_that_applies(part: int) -> None:
    """And accepted when none does; a refusal brings no event."""
    for state in many_states()[part::8]:
        for seat in Seat:
            for command in EVERY_COMMAND:
                ruling = when(state, seat, command)
                expected = min(reasons(state, seat, command), default=None)
                assert (ruling.refusal.reason if ruling.refusal else None) == expected, command
                assert bool(ruling.events) is (expected is None)


def reasons(
    state: MatchState, seat: Seat, command: cmd.Command, *, is_late: bool = False, version: int | None = None
) -> set[RefusalReason]:
    """Every reason that applies to the request, each looked at by itself."""
    lost = isinstance(state.result, ev.MatchWon) and state.result.winner is not seat
    found = {
        R.MATCH_OVER: state.result is not None,
        R.TIME_EXPIRED: is_late and (state.turn is seat or lost),
        R.STALE_VERSION: version not in (None, state.version),
        R.WRONG_PHASE: type(command) not in with_meaning(state),
        R.NOT_YOUR_TURN: not isinstance(command, cmd.Start | cmd.Continue) and state.turn is not seat,
        R.ALREADY_READY: isinstance(command, cmd.Start | cmd.Continue) and state.ready[seat.index],
    }
    applying = {reason for reason, applies in found.items() if applies}
    return applying | reasons_in_play(state, seat, command) | reasons_in_bidding(state, seat, command)


def with_meaning(state: MatchState) -> set[type[cmd.Command]]:
    if state.handover is not None:
        return {cmd.Reveal}
    if state.phase is Phase.BIDDING:
        first = state.current.auction is not None and state.current.auction.standing is None
        return {cmd.Bid, cmd.DeclineBidding} if first else {cmd.Raise, cmd.AcceptBid}
    moves: set[type[cmd.Command]] = {cmd.PlayTile, cmd.DrawTile, cmd.Pass}
    between: dict[Phase, set[type[cmd.Command]]] = {
        Phase.NOT_STARTED: {cmd.Start},
        Phase.SETTLED: {cmd.Continue},
        Phase.OVER: set(),
    }
    return between.get(state.phase, moves)


def reasons_in_play(state: MatchState, seat: Seat, command: cmd.Command) -> set[RefusalReason]:
    if state.round is None or not isinstance(command, cmd.PlayTile | cmd.DrawTile | cmd.Pass):
        return set()
    here, hand = state.round, state.round.hands[seat.index]
    values = {end: value for end, value, _ in here.layout.ends} if here.layout.main_line else {End.OPENING: None}
    breaks_force = here.must_play is not None and getattr(command, "tile", None) != here.must_play
    found = {
        R.MUST_PLAY_DRAWN_TILE: breaks_force and bool(here.layout.main_line),
        R.MUST_OPEN_WITH_RANKED_TILE: breaks_force and not here.layout.main_line,
    }
    if isinstance(command, cmd.PlayTile):
        value = values.get(command.end, -1)
        found[R.TILE_NOT_IN_HAND] = command.tile not in hand
        found[R.END_NOT_AVAILABLE] = command.end not in values
        found[R.TILE_DOES_NOT_FIT] = value is not None and value not in command.tile
    else:
        fits = any(value is None or value in held for held in hand for value in values.values())
        found[R.CAN_PLAY_INSTEAD] = fits
        found[R.BONEYARD_EMPTY] = isinstance(command, cmd.DrawTile) and not here.boneyard
        found[R.CAN_DRAW_INSTEAD] = isinstance(command, cmd.Pass) and bool(here.boneyard)
    return {reason for reason, applies in found.items() if applies}


def reasons_in_bidding(state: MatchState, seat: Seat, command: cmd.Command) -> set[RefusalReason]:
    auction = state.round.auction if state.round else None
    if auction is None or not isinstance(command, cmd.Bid | cmd.Raise):
        return set()
    least = 15 if auction.standing is None else auction.standing.points + 5
    price = command.points - (15 if seat is auction.jockey else 0)
    found = {
        R.BID_TOO_LOW: command.points < least,
        R.BID_NOT_MULTIPLE_OF_FIVE: command.points % 5 != 0,
        R.BID_UNAFFORDABLE: price > state.balances[seat.index],
    }
    return {reason for reason, applies in found.items() if applies}
