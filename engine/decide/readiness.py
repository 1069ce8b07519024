"""Start, Continue, Reveal and Resign (readings S1 to S3, K7, X1), and dealing the next round."""

from __future__ import annotations

from engine import commands as cmd
from engine import events as ev
from engine.deal import deal as deal_tiles
from engine.deal import ranked_opening
from engine.decide import timing
from engine.refusals import Refusal, RefusalReason
from engine.seats import Seat
from engine.state import MatchState
from engine.tiles import Tile


def decide(state: MatchState, request: cmd.Request, now_ns: int, deal: tuple[Tile, ...]) -> ev.Step | Refusal:
    """The answer to a command that is neither a play nor a bid."""
    match request.command:
        case cmd.Reveal():
            return ev.HandRevealed(request.seat), ev.ClockStarted(request.seat, now_ns)
        case cmd.Resign():
            return _resign(state, request, now_ns)
        case cmd.CommitEntropy(commitment):
            return _commit(state, request.seat, commitment)
        case _:
            return _ready(state, request, now_ns, deal)


def _commit(state: MatchState, seat: Seat, commitment: bytes) -> ev.Step | Refusal:
    """Until the own Start; a later commitment replaces an earlier one.

    Not once the other seat has opened: who knows that seat's entropy could choose among deals.
    """
    if state.ready[seat.index]:
        return Refusal(RefusalReason.ALREADY_READY)
    if state.opened[seat.other.index]:
        return Refusal(RefusalReason.WRONG_PHASE)
    return (ev.EntropyCommitted(seat, commitment),)


def _ready(state: MatchState, request: cmd.Request, now_ns: int, deal: tuple[Tile, ...]) -> ev.Step | Refusal:
    seat = request.seat
    if state.ready[seat.index]:
        return Refusal(RefusalReason.ALREADY_READY)  # S3
    if state.options.shared_device or state.ready[seat.other.index]:  # S1
        return (ev.PlayerReady(seat), *deal_round(state, now_ns, deal))
    return (ev.PlayerReady(seat),)


def deal_round(state: MatchState, now_ns: int, deal: tuple[Tile, ...]) -> ev.Step:
    """All 28 tiles afresh, and the first decision of the round (deal.redeal, deal.hands, B4)."""
    dealt = deal_tiles(deal)
    number = 1 if state.round is None else state.round.number + 1
    settled = state.settlement
    if isinstance(settled, ev.RoundDominoed):  # auction.after-domino: the opponent of the jockey speaks first
        turn = settled.seat.other
        round_dealt = ev.RoundDealt(number, dealt.hands, dealt.boneyard, turn, settled.seat, None)
    else:  # opening.ranked: before the first round and after a blocked one
        turn, tile = ranked_opening(dealt.hands)
        round_dealt = ev.RoundDealt(number, dealt.hands, dealt.boneyard, turn, None, tile)
    return round_dealt, timing.next_decision(state, turn, now_ns)


def _resign(state: MatchState, request: cmd.Request, now_ns: int) -> ev.Step:
    won = ev.MatchWon(request.seat.other, ev.WinReason.RESIGNATION, now_ns)
    return (won,) if state.decision is None else (timing.charge(state, request.arrival), won)
