"""Chance from the operating system."""

from collections import Counter
from itertools import pairwise

from engine.tiles import DOUBLE_SIX
from service.rpc.requests import match_id_of
from service.system.chance import SystemEntropy

DEALS = 5_600
MEAN = DEALS / len(DOUBLE_SIX)


def test_a_deal_is_all_28_tiles_in_some_order() -> None:
    """None twice, none missing."""
    for _ in range(100):
        assert sorted(SystemEntropy().deal()) == sorted(DOUBLE_SIX)


def test_every_tile_is_dealt_to_every_place_equally_often() -> None:
    """A chi-square test over tile and place with 27 x 27 degrees of freedom; a fair dealer fails once in 10^12 runs."""
    entropy = SystemEntropy()
    seen = Counter(spot for _ in range(DEALS) for spot in enumerate(entropy.deal()))
    chi_square = sum((count - MEAN) ** 2 / MEAN for count in seen.values())
    assert len(seen) == 28 * 28
    assert 480 < chi_square < 1_030  # mean 729, standard deviation 38


def test_neighbours_in_a_deal_are_independent() -> None:
    """A riffle that is too short would leave pairs together: each ordered pair is due once in 28 deals."""
    entropy = SystemEntropy()
    deals = [entropy.deal() for _ in range(2_800)]
    pairs = Counter(pair for order in deals for pair in pairwise(order))
    assert max(pairs.values()) < 170  # mean 100, standard deviation 10
    assert min(pairs[one, two] for one in DOUBLE_SIX for two in DOUBLE_SIX if one != two) > 45


def test_ids_and_tokens_are_fresh_and_well_formed() -> None:
    """No counters, nothing that tells how many there are."""
    entropy = SystemEntropy()
    ids = {match_id_of(entropy.match_id()) for _ in range(1_000)}
    tokens = {entropy.token("sbs_") for _ in range(1_000)}
    assert len(ids) == len(tokens) == 1_000
    assert all(token.startswith("sbs_") and len(token) == 47 for token in tokens)
