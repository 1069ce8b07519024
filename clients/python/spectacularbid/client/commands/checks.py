"""What must hold in every view, checked from the outside."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from spectacularbid.client.views import player_of
from spectacularbid.v1.match_service_pb2 import MatchUpdate
from spectacularbid.v1.rules_service_pb2 import RulesConstants
from spectacularbid.v1.views_pb2 import MatchView, ResultView

MOST_PROBLEMS = 10


class Witness:
    """Looks at every update of one viewer and notes what is wrong, up to `MOST_PROBLEMS`."""

    def __init__(self, who: str, constants: RulesConstants) -> None:
        self._who = who
        self._constants = constants
        self.problems: list[str] = []
        self.version = 0
        self.rounds = 0
        self.results: list[ResultView] = []

    def see(self, update: MatchUpdate) -> None:
        """Check an update."""
        public = update.view.public
        for problem in (*self._course(update), *view_problems(update.view, self._constants)):
            self.note(f"version {public.version}: {problem}")
        self.version = max(self.version, public.version)
        self.rounds = max(self.rounds, public.round_number)
        if public.HasField("result"):
            self.results.append(public.result)

    def note(self, problem: str) -> None:
        """Note a problem."""
        if len(self.problems) < MOST_PROBLEMS:
            self.problems.append(f"{self._who}, {problem}")

    def _course(self, update: MatchUpdate) -> Iterator[str]:
        if update.view.public.version < self.version:
            yield f"the version went back from {self.version}"
        if self.results:
            yield "something came after the result"


def view_problems(view: MatchView, constants: RulesConstants) -> Iterator[str]:
    """What is wrong within one view."""
    public, players = view.public, view.public.players
    total = sum(player.balance_points for player in players)
    if total != 2 * constants.starting_points:
        yield f"the balances sum to {total}"
    if any(player.balance_points < 0 for player in players):
        yield "a balance is negative"
    if any(not 0 <= player.bank_remaining_ns <= constants.bank_ns for player in players):
        yield "a bank is out of bounds"
    if public.layout.exposed_total != sum(end.counts for end in public.layout.ends):
        yield "the exposed total is not the sum of the ends"
    on_table = sum(len(tiles) for tiles in (public.layout.main_line, public.layout.north, public.layout.south))
    tiles = on_table + public.boneyard_size + sum(player.hand_size for player in players)
    if public.round_number and tiles != constants.tiles:
        yield f"there are {tiles} tiles"
    if view.HasField("own") and len(view.own.hand) != player_of(view, view.own.seat).hand_size:
        yield "the own hand has another size than the public says"


def result_problems(results: Sequence[ResultView], *, viewers: int) -> Iterator[str]:
    """What is wrong with the results that the viewers saw: each must have seen the same rated one, once."""
    if len(results) != viewers:
        yield f"{viewers} viewers saw {len(results)} results"
    if any(result != results[0] for result in results):
        yield "the viewers saw different results"
    if not all(result.HasField("won") and result.rated for result in results):
        yield "the match ended without a rated result"
