"""What is played: commands, rounds, matches."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum

from prometheus_client import CollectorRegistry, Gauge

from engine import commands as cmd
from engine import events as ev
from engine.refusals import Refusal, RefusalReason
from engine.state import MatchState, Phase
from service.metrics.families import Counters, Histograms

COMMANDS = (
    cmd.Start,
    cmd.Continue,
    cmd.Reveal,
    cmd.DeclineBidding,
    cmd.Bid,
    cmd.Raise,
    cmd.AcceptBid,
    cmd.PlayTile,
    cmd.DrawTile,
    cmd.Pass,
    cmd.Resign,
    cmd.CommitEntropy,
)
_LIVE = tuple(phase for phase in Phase if phase is not Phase.OVER)
_MINUTES = (10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1200.0, 1800.0, 3600.0, 7200.0)


class Failure(Enum):
    """Why a command got no outcome, although it had its place in the line."""

    UNAVAILABLE = "unavailable"
    CLOCKS_STAND = "clocks_stand"
    INVALID = "invalid"
    INTERNAL_ERROR = "internal_error"


def _word(member: Enum) -> str:
    return member.name.lower()


class GameMetrics:
    """Commands by what came of them, and matches by where they stand."""

    def __init__(self, registry: CollectorRegistry) -> None:
        commands = Counters(
            registry,
            "specbid_commands",
            "Commands by what came of them: accepted, the reason of the refusal, or why there is no outcome.",
            ["kind", "outcome"],
        )
        outcomes = ("accepted", *map(_word, RefusalReason))
        self._decided = {
            (kind, outcome): commands.child(kind.__name__, outcome) for kind in COMMANDS for outcome in outcomes
        }
        self._failed = {(kind, why): commands.child(kind.__name__, why.value) for kind in COMMANDS for why in Failure}
        self._repeated = Counters(
            registry, "specbid_commands_repeated", "Commands whose id was stored already; they got the first outcome."
        ).child()
        self._created = Counters(registry, "specbid_matches_created", "Matches created.").child()
        finished = Counters(registry, "specbid_matches_finished", "Matches that ended, by how.", ["result"])
        self._finished = {why: finished.child(_word(why)) for why in (*ev.WinReason, *ev.AbortReason)}
        self._duration = Histograms(
            registry, "specbid_match_duration_seconds", "From the creation of a match to its end.", _MINUTES
        ).child()
        rounds = Counters(registry, "specbid_rounds_finished", "Rounds that ended, by how.", ["ending"])
        self._dominoed, self._blocked = rounds.child("domino"), rounds.child("blocked")
        live = Gauge(
            "specbid_matches_live",
            "Matches that are not over, by phase; unread: found at the start and not needed since.",
            ["phase"],
            registry=registry,
        )
        self._live: dict[Phase, Gauge] = {phase: live.labels(_word(phase)) for phase in _LIVE}
        self._unread = live.labels("unread")
        self._recovered = Gauge(
            "specbid_recovered_matches", "Live matches that this process found when it started.", registry=registry
        )
        self._replayed = Counters(
            registry, "specbid_replayed_versions", "Versions folded again because a match was not in memory."
        ).child()
        self._places: dict[str, Phase | None] = {}
        """Of each live match its phase, None while it is unread."""

    def decided(self, command: cmd.Command, refusal: Refusal | None) -> None:
        """A command was decided and its outcome stored."""
        self._decided[type(command), "accepted" if refusal is None else _word(refusal.reason)].count += 1

    def failed(self, command: cmd.Command, why: Failure) -> None:
        """A command got no outcome."""
        self._failed[type(command), why].inc()

    def repeated(self) -> None:
        """A command got the outcome that its id had already."""
        self._repeated.inc()

    def recovered(self, match_ids: Iterable[str]) -> None:
        """These matches are live, as a process finds when it starts."""
        for match_id in match_ids:
            self._place(match_id, None)
        self._recovered.set(len(self._places))

    def loaded(self, match_id: str, versions: int, state: MatchState) -> None:
        """So many versions of a match were folded up to this state."""
        self._replayed.add(versions)
        self._place(match_id, state.phase)

    def stored(self, match_id: str, step: ev.Step, state: MatchState) -> None:
        """A step was stored and brought the match to this state; its end may have been read before that was heard."""
        for event in step:
            match event:
                case ev.MatchCreated():
                    self._created.inc()
                    self._place(match_id, state.phase)
                case ev.RoundDominoed():
                    self._dominoed.inc()
                case ev.RoundBlocked():
                    self._blocked.inc()
                case ev.MatchWon() | ev.MatchAborted():
                    self._finished[event.reason].inc()
                    self._duration.observe_ns(event.at_ns - state.options.created_at_ns)
                case _:
                    pass
        if match_id not in self._places:
            return  # a read of its end was faster
        if self._places[match_id] is not state.phase:
            self._place(match_id, state.phase)

    def _place(self, match_id: str, phase: Phase | None) -> None:
        """The match stands here now and nowhere else."""
        if match_id in self._places:
            self._gauge(self._places.pop(match_id)).dec()
        if phase is not Phase.OVER:
            self._places[match_id] = phase
            self._gauge(phase).inc()

    def _gauge(self, phase: Phase | None) -> Gauge:
        return self._unread if phase is None else self._live[phase]
