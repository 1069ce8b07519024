"""What `smoke` would notice."""

from __future__ import annotations

import pytest

from spectacularbid.client.commands.checks import MOST_PROBLEMS, Witness, result_problems, view_problems
from spectacularbid.v1.events_pb2 import MatchAborted
from spectacularbid.v1.rules_service_pb2 import RulesConstants
from spectacularbid.v1.views_pb2 import MatchView, ResultView
from tests.clients.build import BANK_NS, TWO, layout, update, view, won

CONSTANTS = RulesConstants(starting_points=150, tiles=28, bank_ns=BANK_NS)
SOUND = view(3, hand="5-3", round_number=1, boneyard_size=24, layout=layout("6-6 6-1", ends="W 6 12, E 1 1", total=13))


def changed(**public: object) -> MatchView:
    """The sound view with other public fields."""
    made = MatchView()
    made.CopyFrom(SOUND)
    for name, value in public.items():
        setattr(made.public, name, value)
    return made


def with_balances(one: int, two: int) -> MatchView:
    """The sound view with other balances."""
    made = changed()
    made.public.players[0].balance_points, made.public.players[1].balance_points = one, two
    return made


def with_total(total: int) -> MatchView:
    """The sound view with another exposed total."""
    made = changed()
    made.public.layout.exposed_total = total
    return made


def with_bank(bank_ns: int) -> MatchView:
    """The sound view with another bank."""
    made = changed()
    made.public.players[0].bank_remaining_ns = bank_ns
    return made


def without_a_tile() -> MatchView:
    """The sound view with a tile missing from the own hand."""
    made = changed()
    del made.own.hand[:]
    return made


@pytest.mark.parametrize(
    ("shown", "problems"),
    [
        (SOUND, []),
        (view(1), []),
        (with_balances(150, 155), ["the balances sum to 305"]),
        (with_balances(-5, 305), ["a balance is negative"]),
        (with_total(15), ["the exposed total is not the sum of the ends"]),
        (changed(boneyard_size=23), ["there are 27 tiles"]),
        (with_bank(BANK_NS + 1), ["a bank is out of bounds"]),
        (with_bank(-1), ["a bank is out of bounds"]),
        (without_a_tile(), ["the own hand has another size than the public says"]),
    ],
)
def test_a_view_must_be_consistent(shown: MatchView, problems: list[str]) -> None:
    """One fault, one sentence."""
    assert list(view_problems(shown, CONSTANTS)) == problems


def test_versions_must_not_go_back_nor_follow_the_result() -> None:
    """As one viewer sees them."""
    witness = Witness("Ann", CONSTANTS)
    for shown in (view(2), view(1), won(3), view(4)):
        witness.see(update(shown))
    assert witness.problems == [
        "Ann, version 1: the version went back from 2",
        "Ann, version 4: something came after the result",
    ]
    assert (witness.version, len(witness.results)) == (4, 1)


def test_the_list_of_problems_is_bounded() -> None:
    """A broken service fills no memory."""
    witness = Witness("Ann", CONSTANTS)
    for version in range(1, 100):
        witness.see(update(view(version, balances=(1, 2))))
    assert len(witness.problems) == MOST_PROBLEMS


WON, LOST = won(9).public.result, won(9, TWO).public.result
ABORTED = ResultView(aborted=MatchAborted())


@pytest.mark.parametrize(
    ("results", "problems"),
    [
        ([WON, WON], []),
        ([WON], ["2 viewers saw 1 results"]),
        ([WON, LOST], ["the viewers saw different results"]),
        ([ABORTED, ABORTED], ["the match ended without a rated result"]),
    ],
)
def test_all_must_see_the_one_rated_result(results: list[ResultView], problems: list[str]) -> None:
    """Once each."""
    assert list(result_problems(results, viewers=2)) == problems
