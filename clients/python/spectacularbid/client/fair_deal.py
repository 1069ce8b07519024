"""The provably fair deal, version 1, computed from the text of docs/FAIR-DEAL.md alone: what a proof must satisfy."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterator, Sequence

from spectacularbid.v1.deal_pb2 import DealProof, RoundProof, SeatProof
from spectacularbid.v1.tiles_pb2 import SEAT_ONE, SEAT_TWO, Seat

PREFIX = b"spectacular-bid/deal/v1/"
ENTROPY_BYTES = 32
HASH_BYTES = 32
HAND = 7
SET = [(low, high) for low in range(7) for high in range(low, 7)]
SEATS = {SEAT_ONE: "ONE", SEAT_TWO: "TWO"}


def seat_commitment(match_id: str, seat: Seat.ValueType, entropy: bytes) -> bytes:
    """What a seat publishes before it opens its entropy."""
    return _hash(b"seat-commit", match_id.encode(), bytes([seat]), entropy)


def server_commitment(match_id: str, secret: bytes) -> bytes:
    """What the service publishes when the match is made."""
    return _hash(b"server-commit", match_id.encode(), secret)


def transcript(proof: DealProof) -> bytes:
    """The digest of everything that was said before the first deal."""
    seats = proof.seats
    commitments, entropies = [seat.commitment for seat in seats], [seat.entropy for seat in seats]
    head = (proof.match_id.encode(), proof.rules_hash, proof.server_commitment)
    return _hash(b"transcript", *head, *commitments, *entropies)


def round_key(secret: bytes, digest: bytes, number: int) -> bytes:
    """The key of a round's order."""
    return hmac.digest(secret, _framed(PREFIX + b"round-key", digest, number.to_bytes(4, "big")), "sha256")


def tile_order(key: bytes) -> list[tuple[int, int]]:
    """The 28 tiles in the order that a key gives."""
    tiles, chance = list(SET), _stream(key)
    for place in range(27, 0, -1):
        byte = next(chance)
        while byte >= 256 // (place + 1) * (place + 1):
            byte = next(chance)
        other = byte % (place + 1)
        tiles[place], tiles[other] = tiles[other], tiles[place]
    return tiles


def problems(proof: DealProof) -> list[str]:
    """What is wrong with a proof, a sentence each; empty when every tile follows from what was committed to."""
    if [seat.seat for seat in proof.seats] != list(SEATS):
        return ["The proof does not name both seats, ONE first."]
    if len(proof.secret) != ENTROPY_BYTES or len(proof.rules_hash) != HASH_BYTES:
        return ["The secret and the hash of the rules must have 32 bytes each."]
    found = []
    if server_commitment(proof.match_id, proof.secret) != proof.server_commitment:
        found.append("The service's secret is not the one that it committed to.")
    for seat in proof.seats:
        found += _seat_problems(proof, seat)
    digest = transcript(proof)
    for number, each in enumerate(proof.rounds, start=1):
        if each.round_number != number:
            return [*found, f"Round {number} is missing or out of place."]
        found += _round_problems(each, tile_order(round_key(proof.secret, digest, number)))
    return found


def _seat_problems(proof: DealProof, seat: SeatProof) -> Iterator[str]:
    name = SEATS[seat.seat]
    if not seat.entropy:
        if seat.commitment and proof.rounds:
            yield f"Seat {name} committed to entropy that was never opened, and yet tiles were dealt."
    elif not seat.commitment:
        yield f"Seat {name} has entropy that it never committed to."
    elif len(seat.entropy) != ENTROPY_BYTES or seat_commitment(proof.match_id, seat.seat, seat.entropy) != (
        seat.commitment
    ):
        yield f"Seat {name}'s entropy is not the one that it committed to."


def _round_problems(each: RoundProof, order: Sequence[tuple[int, int]]) -> Iterator[str]:
    where = f"Round {each.round_number}"
    if [(tile.low, tile.high) for tile in each.order] != order:
        yield f"{where}: the order of the tiles does not follow from the secrets."
    hands = {hand.seat: sorted((tile.low, tile.high) for tile in hand.tiles) for hand in each.hands}
    for place, (seat, name) in enumerate(SEATS.items()):
        if hands.get(seat) != sorted(order[place * HAND : (place + 1) * HAND]):
            yield f"{where}: the hand of seat {name} is not the one that was due."
    boneyard = order[2 * HAND :]
    for place, drawn in enumerate(each.drawn):
        if place >= len(boneyard) or (drawn.tile.low, drawn.tile.high) != boneyard[place]:
            yield f"{where}: draw {place + 1} is not the tile that was due."


def _framed(*parts: bytes) -> bytes:
    return b"".join(len(part).to_bytes(4, "big") + part for part in parts)


def _hash(tag: bytes, *parts: bytes) -> bytes:
    return hashlib.sha256(_framed(PREFIX + tag, *parts)).digest()


def _stream(key: bytes) -> Iterator[int]:
    block = 0
    while True:
        yield from hmac.digest(key, _framed(PREFIX + b"block", block.to_bytes(8, "big")), "sha256")
        block += 1
