"""Many states of many matches, for tests that hold in any state."""

from functools import cache

from engine.evolve import advance
from engine.state import MatchState, Phase
from tests.support.rules.given import ONE, TWO, bidding, on_shared_device, playing
from tests.support.rules.self_play import Chooser, choose_greedily, choose_randomly, self_play


@cache
def many_states() -> tuple[MatchState, ...]:
    """Some hundred states: of random and greedy matches, online and on a shared device, and rare ones by hand."""
    return (
        *_on_the_way(range(8), choose_randomly, shared_device=False, every=9),
        *_on_the_way(range(2), choose_greedily, shared_device=False, every=17),
        *_on_the_way(range(4), choose_randomly, shared_device=True, every=9),
        *RARE,
    )


RARE = (
    playing("2-3", one="3-4 1-1", two="0-0", must_play="3-4"),
    playing("", one="5-5 1-1", two="0-0", must_play="5-5"),
    playing("2-3", one="3-4 1-1", boneyard=""),
    playing("2-3", one="1-1", boneyard=""),
    playing("2-3 [3-3] 3-6 / 3-1 / 3-0", one="0-1 1-6 2-6", two="0-0"),
    playing("2-3 [3-3] 3-6", one="3-4 0-1", two="0-0"),
    on_shared_device(playing("2-3", one="3-4 1-1", two="0-0")),
    *(bidding(), bidding(standing=15), bidding(standing=20), bidding(jockey=TWO, standing=145)),
    *(bidding(jockey=TWO, balances=(10, 290)), bidding(jockey=TWO, balances=(15, 285))),
    *(bidding(jockey=ONE, balances=(5, 295), standing=15), bidding(jockey=ONE, balances=(5, 295), standing=25)),
)


def _on_the_way(seeds: range, choose: Chooser, *, shared_device: bool, every: int) -> tuple[MatchState, ...]:
    """Every so-many-eth state of some matches, and more of the auctions and openings."""
    states: list[MatchState] = []
    for seed in seeds:
        state: MatchState | None = None
        for step in self_play(seed, choose, shared_device=shared_device, hasty=False).log:
            state = advance(state, step)
            states.append(state)
    rarer = (Phase.BIDDING, Phase.OPENING)
    return tuple(state for index, state in enumerate(states) if index % (3 if state.phase in rarer else every) == 0)
