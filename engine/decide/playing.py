"""Playing, drawing, passing, and how a round ends (clauses connect.*, draw.*, block.*, readings D1 to D5, P3, P4)."""

from __future__ import annotations

from engine import commands as cmd
from engine import events as ev
from engine.decide import timing
from engine.legal import can_play, fits
from engine.refusals import Refusal, RefusalReason
from engine.scoring import block_transfer, block_winner, exhausts, play_transfer
from engine.state import MatchState, Phase, Round

PASSES_THAT_BLOCK = 2


def decide(state: MatchState, request: cmd.Request, now_ns: int) -> ev.Step | Refusal | None:
    """The answer to a command of play, None for any other."""
    command = request.command
    if isinstance(command, cmd.PlayTile):
        current = state.current
        return _play_refusal(state, current, request, command) or _play(state, current, request, command, now_ns)
    if isinstance(command, cmd.DrawTile):
        current = state.current
        return _draw_refusal(state, current, request) or _draw(current, request)
    if isinstance(command, cmd.Pass):
        current = state.current
        return _pass_refusal(state, current, request) or _pass(state, current, request, now_ns)
    return None


def _play_refusal(state: MatchState, current: Round, request: cmd.Request, play: cmd.PlayTile) -> Refusal | None:
    if play.tile not in current.hands[request.seat.index]:
        return Refusal(RefusalReason.TILE_NOT_IN_HAND)
    if current.must_play not in (None, play.tile):
        return Refusal(_must_play_reason(state))
    if fits(current.layout, play.tile, play.end):
        return None
    if current.layout.open_end(play.end) is None:
        return Refusal(RefusalReason.END_NOT_AVAILABLE)
    return Refusal(RefusalReason.TILE_DOES_NOT_FIT)  # connect.match


def _must_play_reason(state: MatchState) -> RefusalReason:
    if state.phase is Phase.OPENING:
        return RefusalReason.MUST_OPEN_WITH_RANKED_TILE  # opening.ranked, B3
    return RefusalReason.MUST_PLAY_DRAWN_TILE  # draw.must-play-drawn, D2


def _play(state: MatchState, current: Round, request: cmd.Request, play: cmd.PlayTile, now_ns: int) -> ev.Step:
    seat = request.seat
    total = current.layout.total_after(play.tile, play.end)
    payment = play_transfer(state.balances, seat, total)
    stopped = timing.charge(state, request.arrival)
    played = ev.TilePlayed(seat, play.tile, play.end, total, payment)
    # points.zero-loses: before the domino is considered (P3, P4)
    if payment is not None and exhausts(state.balances, payment):
        return stopped, played, ev.MatchWon(seat, ev.WinReason.BALANCE, now_ns)
    if len(current.hands[seat.index]) == 1:  # domino.last-tile, domino.no-hand-award
        return stopped, played, ev.RoundDominoed(seat, now_ns)
    return stopped, played, timing.next_decision(state, seat.other, now_ns)  # play.turn-passes


def _draw_refusal(state: MatchState, current: Round, request: cmd.Request) -> Refusal | None:
    if current.must_play is not None:
        return Refusal(_must_play_reason(state))
    if can_play(current.layout, current.hands[request.seat.index]):
        return Refusal(RefusalReason.CAN_PLAY_INSTEAD)
    if not current.boneyard:
        return Refusal(RefusalReason.BONEYARD_EMPTY)
    return None


def _draw(current: Round, request: cmd.Request) -> ev.Step:
    """One tile (draw.one-at-a-time); the clock of the turn runs on (draw.same-turn, clock.draws)."""
    tile = current.boneyard[0]
    return (ev.TileDrawn(request.seat, tile, playable=can_play(current.layout, (tile,))),)


def _pass_refusal(state: MatchState, current: Round, request: cmd.Request) -> Refusal | None:
    if current.must_play is not None:
        return Refusal(_must_play_reason(state))
    if can_play(current.layout, current.hands[request.seat.index]):
        return Refusal(RefusalReason.CAN_PLAY_INSTEAD)
    if current.boneyard:
        return Refusal(RefusalReason.CAN_DRAW_INSTEAD)
    return None


def _pass(state: MatchState, current: Round, request: cmd.Request, now_ns: int) -> ev.Step:
    turn_ended = timing.charge(state, request.arrival), ev.Passed(request.seat)
    if current.passes + 1 < PASSES_THAT_BLOCK:
        return *turn_ended, timing.next_decision(state, request.seat.other, now_ns)
    return *turn_ended, *_block(state, current, now_ns)  # block.two-passes, D3


def _block(state: MatchState, current: Round, now_ns: int) -> ev.Step:
    winner = block_winner(current.hands)
    payment = block_transfer(state.balances, current.hands)
    blocked = ev.RoundBlocked(current.hands, winner, payment, now_ns)
    if payment is not None and exhausts(state.balances, payment):  # points.zero-loses
        return blocked, ev.MatchWon(payment.payer.other, ev.WinReason.BALANCE, now_ns)
    return (blocked,)
