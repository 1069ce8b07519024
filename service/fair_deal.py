"""The provably fair deal, version 1: commitments before, recomputable by anyone after.

The service commits to 32 random bytes before anyone joins; each seat may commit to 32 bytes of its own. All three fix
the order of the tiles of every round, so one honest party makes it uniform. Nothing is revealed before the match is
over. It proves that nobody chose the tiles; it does not hide them from the service (docs/FAIR-DEAL.md).
"""

from __future__ import annotations

import hashlib
import hmac
from functools import partial
from itertools import chain, count

from engine.tiles import DOUBLE_SIX, Tile

ENTROPY_BYTES = 32
_TAG = b"spectacular-bid/deal/v1/"


def enc(*parts: bytes) -> bytes:
    """The parts one after another, each behind its length in four bytes, big end first."""
    return b"".join([len(part).to_bytes(4, "big") + part for part in parts])


def digest(tag: bytes, *parts: bytes) -> bytes:
    """SHA-256 over the tag and the parts, 32 bytes."""
    return hashlib.sha256(enc(_TAG + tag, *parts)).digest()


def server_commitment(match_id: str, secret: bytes) -> bytes:
    """What the service publishes before anyone joins."""
    return digest(b"server-commit", match_id.encode(), secret)


def seat_commitment(match_id: str, seat: int, entropy: bytes) -> bytes:
    """What the player of seat 1 or 2 may publish before starting."""
    return digest(b"seat-commit", match_id.encode(), bytes((seat,)), entropy)


def rules_hash(text: str) -> bytes:
    """The identity of the rules that the match is played by: SHA-256 of the rule text in UTF-8."""
    return hashlib.sha256(text.encode()).digest()


def transcript(
    match_id: str,
    rules: bytes,
    server: bytes,
    commitments: tuple[bytes, bytes],
    entropies: tuple[bytes, bytes],
) -> bytes:
    """All that was said before the first deal. A seat that takes no part has empty bytes for both."""
    return digest(b"transcript", match_id.encode(), rules, server, *commitments, *entropies)


def round_key(secret: bytes, transcript_digest: bytes, round_number: int) -> bytes:
    """The key of one round's order, 32 bytes."""
    message = enc(_TAG + b"round-key", transcript_digest, round_number.to_bytes(4, "big"))
    return hmac.digest(secret, message, "sha256")


def order(key: bytes) -> tuple[Tile, ...]:
    """All 28 tiles: Fisher-Yates from the last place down, over the canonical order, without bias."""
    tiles = list(DOUBLE_SIX)
    chance = chain.from_iterable(map(partial(_block, key), count()))
    for last in range(len(tiles) - 1, 0, -1):
        bound = last + 1
        limit = 256 - 256 % bound  # bytes that would favour the small numbers are passed over
        while (byte := next(chance)) >= limit:
            pass
        chosen = byte % bound
        tiles[last], tiles[chosen] = tiles[chosen], tiles[last]
    return tuple(tiles)


def _block(key: bytes, number: int) -> bytes:
    """The random bytes of the round with this key, 32 at a time."""
    return hmac.digest(key, enc(_TAG + b"block", number.to_bytes(8, "big")), "sha256")
