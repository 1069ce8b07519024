"""Which command has a meaning when, and whose it is: one table."""

from __future__ import annotations

from engine import commands as cmd
from engine.state import MatchState, Phase

_BY_PHASE: dict[Phase, frozenset[type[cmd.Command]]] = {
    Phase.NOT_STARTED: frozenset({cmd.Start, cmd.CommitEntropy}),
    Phase.BIDDING: frozenset({cmd.Bid, cmd.DeclineBidding, cmd.Raise, cmd.AcceptBid}),
    Phase.OPENING: frozenset({cmd.PlayTile, cmd.DrawTile, cmd.Pass}),
    Phase.PLAYING: frozenset({cmd.PlayTile, cmd.DrawTile, cmd.Pass}),
    Phase.SETTLED: frozenset({cmd.Continue}),
    Phase.OVER: frozenset(),
}
_FIRST_SPEECH = frozenset({cmd.Bid, cmd.DeclineBidding})
_ANSWERS = frozenset({cmd.Raise, cmd.AcceptBid})
_WITHOUT_TURN = frozenset({cmd.Start, cmd.CommitEntropy, cmd.Continue, cmd.Resign})


def fits_phase(state: MatchState, request: cmd.Request) -> bool:
    """Whether the command can mean anything now, whoever sends it."""
    kind = type(request.command)
    if state.suspended_at_ns is not None:
        return False
    if kind is cmd.Resign:
        return state.phase is not Phase.NOT_STARTED and (request.names_seat or state.turn is not None)
    if state.handover is not None:
        return kind is cmd.Reveal
    if kind not in _BY_PHASE[state.phase]:
        return False
    auction = state.round.auction if state.round else None
    if auction is None:
        return True
    return kind in (_FIRST_SPEECH if auction.standing is None else _ANSWERS)


def is_on_turn(state: MatchState, request: cmd.Request) -> bool:
    """Whether the command is this seat's to send."""
    return type(request.command) in _WITHOUT_TURN or request.seat is state.turn
