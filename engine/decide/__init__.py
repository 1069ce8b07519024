"""Every rule: a request or a service command in, events or a refusal out. Pure.

`decide` answers players in the order of precedence of `refusals`: over, late, stale, wrong phase, not your turn, and
then what the command's own rule says. `decide_service` answers the service. Both take the instant at which the result
is stored, because the next decision begins then (K3), and the order of the next deal, for the commands that may deal.
"""

from __future__ import annotations

from typing import NamedTuple

from engine.clock import Verdict
from engine.commands import Request, Resign
from engine.decide import bidding, playing, readiness, timing
from engine.decide.phases import fits_phase, is_on_turn
from engine.decide.service import ServiceRuling, decide_service
from engine.decide.timing import NO_FAULTS, Evidence
from engine.events import ClockStopped, Step
from engine.refusals import Refusal, RefusalReason
from engine.state import MatchState
from engine.tiles import Tile

__all__ = ["NO_FAULTS", "Evidence", "Ruling", "ServiceRuling", "decide", "decide_service"]


class Ruling(NamedTuple):
    """The answer to a request: events when it is accepted, else a refusal.

    A late request is refused and still brings events: the loss on time, or the abort where nothing can be proven.
    """

    events: Step
    refusal: Refusal | None
    verdict: Verdict


def decide(
    state: MatchState, request: Request, *, now_ns: int, deal: tuple[Tile, ...], evidence: Evidence = NO_FAULTS
) -> Ruling:
    """The ruling on `request`, to be stored at `now_ns`; `deal` is the order of the 28 tiles for the next round."""
    if state.result is not None:
        if timing.was_in_time_after_all(state, request):
            text = f"a command stamped at {request.arrival.latest_ns} was found behind a settled expiry"
            return _failed(text, now_ns, Verdict.IN_TIME)
        return _refused(RefusalReason.MATCH_OVER)
    verdict = timing.verdict(state, request, evidence)
    if verdict is Verdict.UNPROVABLE:
        return Ruling(timing.unprovable(request.arrival, now_ns), Refusal(RefusalReason.MATCH_OVER), verdict)
    if timing.is_after_deadline(state, request.arrival):
        reason = RefusalReason.TIME_EXPIRED if verdict is Verdict.LATE else RefusalReason.MATCH_OVER
        return Ruling(timing.expiry(state, evidence, now_ns), Refusal(reason), verdict)
    if request.expected_version not in (None, state.version):
        return _refused(RefusalReason.STALE_VERSION, verdict, current_version=state.version)
    if not fits_phase(state, request):
        return _refused(RefusalReason.WRONG_PHASE, verdict)
    if not is_on_turn(state, request):
        return _refused(RefusalReason.NOT_YOUR_TURN, verdict)
    answer = (
        playing.decide(state, request, now_ns)
        or bidding.decide(state, request, now_ns)
        or readiness.decide(state, request, now_ns, deal)
    )
    if isinstance(answer, Refusal):
        return Ruling((), answer, verdict)
    if isinstance(answer[0], ClockStopped) and not isinstance(request.command, Resign):
        doubt = timing.charge_doubt(state, request.arrival, evidence)
        if doubt is not None:
            return _failed(doubt, now_ns, verdict)
    return Ruling(answer, None, verdict)


def _failed(evidence: str, now_ns: int, verdict: Verdict) -> Ruling:
    return Ruling(timing.timing_failure(evidence, now_ns), Refusal(RefusalReason.MATCH_OVER), verdict)


def _refused(reason: RefusalReason, verdict: Verdict = Verdict.NOT_TIMED, **figures: int) -> Ruling:
    return Ruling((), Refusal(reason, tuple(figures.items())), verdict)
