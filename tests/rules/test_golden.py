"""Cases worked out by hand from the rule text. `golden.json` says in words what each kind and case means."""

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from engine import commands as cmd
from engine import events as ev
from engine.auction import Auction, StandingBid
from engine.clock import Arrival
from engine.deal import ranked_opening
from engine.decide import decide
from engine.evolve import advance
from engine.layout import End, Layout
from engine.legal import legal_actions
from engine.refusals import RefusalReason
from engine.scoring import exhausts, moved, play_transfer, transfer
from engine.seats import SEATS, PerSeat, Seat
from engine.state import MatchState
from engine.tiles import DOUBLE_SIX, HIGHEST_PIP, Tile
from tests.support.rules.given import (
    FIRST_HAND,
    ONE,
    SECOND_HAND,
    bidding_on,
    events_of,
    playing,
    reason_of,
    sent,
    then,
    when,
    with_balances,
    with_bank,
)
from tests.support.rules.notation import layout_text, play
from tests.support.rules.universe import spelled_out

COPY = Path(__file__).parent / "golden.json"
ORIGINAL = Path(__file__).parents[3] / "shared" / "rules" / "golden.json"
Case: TypeAlias = dict[str, Any]  # as JSON has it
GOLDEN: Case = json.loads(COPY.read_text(encoding="utf-8"))


def exposed(case: Case) -> None:
    table = placed(case)
    assert table.exposed_total == case["total"]
    payment = play_transfer(PerSeat(150, 150), Seat.ONE, table.exposed_total)
    assert (payment.earned if payment else 0) == case["award"]
    assert {open_end.end.value: open_end.value for open_end in table.ends} == case["ends"]


def transferred(case: Case) -> None:
    balances, payer = PerSeat(*case["balances"]), SEATS[case["payer"]]
    payment = transfer(balances, payer, case["earned"])
    assert (payment.earned, payment.paid) == (case["earned"], case["paid"])
    assert moved(balances, payment) == PerSeat(*case["after"])
    assert exhausts(balances, payment) is case["over"]


def ranked(case: Case) -> None:
    opening = ranked_opening(PerSeat(*(tuple(Tile(*pair) for pair in hand) for hand in case["hands"])))
    assert opening == (SEATS[case["seat"]], Tile(*case["tile"]))


def blocked(case: Case) -> None:
    one, two = map(text, case["hands"])
    missing = next(str(value) for value in range(HIGHEST_PIP + 1) if str(value) not in one + two)
    state = playing(f"[{missing}-{missing}]", one=one, two=two, boneyard="", passes=1)
    step = events_of(when(with_balances(state, *case["balances"]), ONE, cmd.Pass()))
    (block,) = [event for event in step if isinstance(event, ev.RoundBlocked)]
    assert block.winner is SEATS[case["winner"]]
    assert (block.transfer.paid if block.transfer else 0) == case["paid"]
    after = advance(with_balances(state, *case["balances"]), step)
    assert after.balances == PerSeat(*case["after"])
    assert (after.result is not None) is case["over"]


def auctioned(case: Case) -> None:
    state = auction_of(case, standing=None)
    names = {"decline": cmd.DeclineBidding, "bid": cmd.Bid, "raise": cmd.Raise, "accept": cmd.AcceptBid}
    for number, name, *points in case["script"]:
        state = sent(state, (SEATS[number], names[name](*points)))
    assert state.balances == PerSeat(*case["after"])
    last = state.current.last_transfer
    assert (last.paid if last else 0) == case["paid"]
    assert seat_number(state.turn) == case["opener"]
    assert seat_number(state.result.winner if isinstance(state.result, ev.MatchWon) else None) == case["winner"]


def auction_answers(case: Case) -> None:
    standing = None if case["standing"] is None else StandingBid(SEATS[case["standing"][0]], case["standing"][1])
    state = auction_of(case, standing=standing)
    assert seat_number(state.turn) == case["seat"]
    assert offered(state, SEATS[case["seat"]]) == in_order(case["legal"])


def clocked(case: Case) -> None:
    draws, hand = case["draws_at"], "1-1" if case["draws_at"] else "1-1 3-5"
    unplayable = ["0-1", "0-4", "0-5", "0-6"][1 : len(draws)]
    state = playing("2-3", one=hand, two="0-0", boneyard=" ".join([*unplayable, "3-5"] if draws else []))
    state = with_bank(state, 1_000 * case["bank_us"])
    for at_us in draws:
        state = then(state, when(state, ONE, cmd.DrawTile(), at_ns=1_000 * at_us))
    for at_us in case["illegal_at"]:
        assert reason_of(when(state, ONE, cmd.Pass(), at_ns=1_000 * at_us)) is RefusalReason.CAN_PLAY_INSTEAD
    ruling = when(state, ONE, play("3-5 E"), at_ns=1_000 * case["end_at"])
    assert (ruling.refusal is not None) is case["expired"]
    assert advance(state, ruling.events).banks_ns.one == 1_000 * case["bank_after_us"]


def clocked_turns(case: Case) -> None:
    state = playing("2-3", one="0-0 0-1 0-2 0-3 0-4 0-5 0-6", boneyard="")
    for length_us in case["lengths_us"]:
        state = turn_taken(turn_taken(state, length_us), 0)
    assert state.banks_ns.one == 1_000 * case["bank_after_us"]


def turn_taken(state: MatchState, length_us: int) -> MatchState:
    """The state after any legal turn of this length."""
    assert state.decision is not None
    seat, at_ns = state.decision.seat, state.decision.started_at_ns + 1_000 * length_us
    request = cmd.Request(seat, next(spelled_out(legal_actions(state, seat))), Arrival.at(at_ns))
    return then(state, decide(state, request, now_ns=at_ns, deal=DOUBLE_SIX))


def legal(case: Case) -> None:
    table, hand, forced = placed(case), case["hand"], case.get("must_play", case.get("forced"))
    rest = [tile for tile in DOUBLE_SIX if tile not in table.tiles() and list(tile) not in hand]
    state = playing(
        layout_text(table),
        one=text(hand),
        boneyard=text(rest[: case["boneyard"]]),
        must_play=None if forced is None else text([forced]),
    )
    assert offered(state, ONE) == in_order(case["legal"])


def placed(case: Case) -> Layout:
    table = Layout()
    for tile, end in case["place"]:
        table = table.place(Tile(*tile), End(end))
    return table


def text(pairs: Iterable[Iterable[int]]) -> str:
    return " ".join("-".join(map(str, pair)) for pair in pairs)


def auction_of(case: Case, *, standing: StandingBid | None) -> MatchState:
    one, two = case["balances"]
    auction = Auction(SEATS[case["jockey"]], standing)
    return bidding_on(playing("", one=FIRST_HAND, two=SECOND_HAND), auction, (one, two))


def seat_number(seat: Seat | None) -> int | None:
    return None if seat is None else SEATS.index(seat)


def offered(state: MatchState, seat: Seat) -> list[Any]:
    return in_order([spoken(command) for command in spelled_out(legal_actions(state, seat))])


def in_order(actions: list[Any]) -> list[Any]:
    return sorted(actions, key=str)


def spoken(command: cmd.Command) -> list[Any]:
    """A command as the cases write it."""
    names = {cmd.DrawTile: "draw", cmd.Pass: "pass", cmd.AcceptBid: "accept", cmd.DeclineBidding: "decline"}
    match command:
        case cmd.PlayTile(tile, end):
            return ["play", list(tile), end.value]
        case cmd.Bid(points):
            return ["bid", points]
        case cmd.Raise(points):
            return ["raise", points]
        case _:
            return [names[type(command)]]


KINDS: dict[str, Callable[[Case], None]] = {
    "exposed": exposed,
    "transfer": transferred,
    "ranked": ranked,
    "block": blocked,
    "auction": auctioned,
    "auction_legal": auction_answers,
    "clock": clocked,
    "clock_turns": clocked_turns,
    "legal": legal,
}


@pytest.mark.parametrize("case", [pytest.param(case, id=case["id"]) for case in GOLDEN["cases"]])
def test_golden_case(case: Case) -> None:
    """The engine says what the hand-worked case says."""
    KINDS[case["kind"]](case)


def test_every_kind_of_golden_case_is_known_and_used() -> None:
    """No kind of case is forgotten by the tests, and none is empty."""
    assert set(KINDS) == set(GOLDEN["kinds"]) == {case["kind"] for case in GOLDEN["cases"]}


def test_the_copy_equals_the_original_where_both_exist() -> None:
    """The cases here are those beside the rule text."""
    assert not ORIGINAL.exists() or ORIGINAL.read_bytes() == COPY.read_bytes()
