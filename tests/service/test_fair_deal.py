"""The provably fair deal: fixed vectors that every implementation shares, and what holds for any key."""

import json
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.tiles import DOUBLE_SIX, Tile
from service import fair_deal

SHARED = json.loads((Path(__file__).parents[2] / "clients/conformance/fair-deal-v1.json").read_text(encoding="utf-8"))
BYTES_32 = st.binary(min_size=32, max_size=32)
SAMPLE = 5_600
MEAN = SAMPLE / len(DOUBLE_SIX)


def text(order: tuple[Tile, ...]) -> str:
    """The tiles as the vectors write them."""
    return " ".join(f"{tile.low}-{tile.high}" for tile in order)


def sample() -> list[tuple[Tile, ...]]:
    """The orders of the same keys in every run."""
    return [fair_deal.order(number.to_bytes(32, "big")) for number in range(SAMPLE)]


@pytest.mark.parametrize("vector", SHARED["vectors"], ids=lambda vector: vector["name"])
def test_every_step_gives_the_fixed_bytes(vector: dict[str, Any]) -> None:
    """Commitments, transcript, keys and orders, for seats that take part and seats that do not."""
    match_id, secret = vector["matchId"], bytes.fromhex(vector["secret"])
    one, two = map(bytes.fromhex, vector["entropies"])
    server = fair_deal.server_commitment(match_id, secret)
    first, second = (
        entropy and fair_deal.seat_commitment(match_id, seat, entropy) for seat, entropy in ((1, one), (2, two))
    )
    rules = bytes.fromhex(vector["rulesHash"])
    transcript = fair_deal.transcript(match_id, rules, server, (first, second), (one, two))
    assert server.hex() == vector["serverCommitment"]
    assert [first.hex(), second.hex()] == vector["seatCommitments"]
    assert transcript.hex() == vector["transcript"]
    for fixed in vector["rounds"]:
        key = fair_deal.round_key(secret, transcript, fixed["number"])
        assert (key.hex(), text(fair_deal.order(key))) == (fixed["key"], fixed["order"])


@pytest.mark.parametrize("fixed", SHARED["keys"], ids=lambda fixed: fixed["key"][:8])
def test_a_key_gives_the_fixed_order(fixed: dict[str, str]) -> None:
    """The shuffle alone."""
    assert text(fair_deal.order(bytes.fromhex(fixed["key"]))) == fixed["order"]


def test_the_encoding_is_what_the_specification_says() -> None:
    """Four bytes of length before each part, so that no two lists of parts read the same."""
    assert fair_deal.enc(b"ab", b"", b"c") == b"\0\0\0\2ab\0\0\0\0\0\0\0\1c"
    assert fair_deal.enc(b"ab", b"c") != fair_deal.enc(b"a", b"bc")


@given(BYTES_32)
def test_an_order_is_all_28_tiles(key: bytes) -> None:
    """None twice, none missing, and always the same."""
    order = fair_deal.order(key)
    assert sorted(order) == sorted(DOUBLE_SIX)
    assert fair_deal.order(key) == order


@given(BYTES_32, BYTES_32, BYTES_32, st.integers(1, 2**32 - 2))
def test_each_party_and_each_round_changes_the_key(secret: bytes, one: bytes, two: bytes, number: int) -> None:
    """Who knows all but one of the parts knows nothing of the deal."""

    def key(secret: bytes, one: bytes, two: bytes, number: int) -> bytes:
        transcript = fair_deal.transcript("m", bytes(32), bytes(32), (b"", b""), (one, two))
        return fair_deal.round_key(secret, transcript, number)

    def other(raw: bytes) -> bytes:
        return bytes((raw[0] ^ 1,)) + raw[1:]

    keys = {
        key(secret, one, two, number),
        key(other(secret), one, two, number),
        key(secret, other(one), two, number),
        key(secret, one, other(two), number),
        key(secret, one, two, number + 1),
    }
    assert len(keys) == 5


def test_every_tile_comes_to_every_place_equally_often() -> None:
    """A chi-square test over tile and place with 27 x 27 degrees of freedom, over a fixed sample."""
    seen = Counter(spot for order in sample() for spot in enumerate(order))
    chi_square = sum((count - MEAN) ** 2 / MEAN for count in seen.values())
    assert len(seen) == 28 * 28
    assert 576 < chi_square < 882  # mean 729, standard deviation 38


def test_neighbours_in_an_order_are_independent() -> None:
    """A shuffle that is too short would leave pairs together: each ordered pair is due once in 28 deals."""
    pairs = Counter(pair for order in sample()[:2_800] for pair in pairwise(order))
    assert max(pairs.values()) < 170  # mean 100, standard deviation 10
    assert min(pairs[one, two] for one in DOUBLE_SIX for two in DOUBLE_SIX if one != two) > 45
