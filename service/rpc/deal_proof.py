"""The proof of the deal of a match that is over: the secrets, and what the log says was dealt and drawn."""

from __future__ import annotations

from collections.abc import Iterable

from engine.events import RoundDealt, Step, TileDrawn
from engine.seats import SEATS
from engine.state import MatchState
from service import fair_deal
from service.dealing import transcript_of
from service.paging import pages
from service.ports import DealSecrets, Store
from service.rpc.facts import SEAT_NUMBERS, TILES
from service.rpc.statuses import NOT_OVER, StatusError
from spectacularbid.v1 import deal_pb2


async def deal_proof(store: Store, match_id: str, state: MatchState) -> deal_pb2.DealProof:
    """The proof. Raises FAILED_PRECONDITION while the match goes on."""
    if state.result is None:
        raise StatusError(NOT_OVER)
    secrets = await store.deal_secrets(match_id)
    assert secrets is not None
    steps = [step async for page in pages(store, match_id) for step in page]
    seats = [
        deal_pb2.SeatProof(seat=SEAT_NUMBERS[seat], commitment=commitment, entropy=entropy)
        for seat, commitment, entropy in zip(SEATS, state.commitments, secrets.entropies, strict=True)
    ]
    return deal_pb2.DealProof(
        match_id=match_id,
        rules_hash=secrets.rules_hash,
        server_commitment=state.server_commitment,
        secret=secrets.secret,
        seats=seats,
        rounds=_rounds(steps, secrets, transcript_of(match_id, state, secrets)),
    )


def _rounds(steps: Iterable[Step], secrets: DealSecrets, transcript: bytes) -> list[deal_pb2.RoundProof]:
    rounds: list[deal_pb2.RoundProof] = []
    for event in (event for step in steps for event in step):
        match event:
            case RoundDealt():
                key = fair_deal.round_key(secrets.secret, transcript, event.number)
                rounds.append(_round(event, key))
            case TileDrawn(seat, tile):
                rounds[-1].drawn.append(deal_pb2.DrawnTile(seat=SEAT_NUMBERS[seat], tile=TILES[tile]))
            case _:
                pass
    return rounds


def _round(dealt: RoundDealt, key: bytes) -> deal_pb2.RoundProof:
    return deal_pb2.RoundProof(
        round_number=dealt.number,
        order=[TILES[tile] for tile in fair_deal.order(key)],
        hands=[
            deal_pb2.DealtHand(seat=SEAT_NUMBERS[seat], tiles=[TILES[tile] for tile in hand])
            for seat, hand in zip(SEATS, dealt.hands, strict=True)
        ],
    )
