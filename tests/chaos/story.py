"""One stored match told again: each version with its state and what made it, and the faults that may concern it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from engine import events as ev
from engine.evolve import advance
from engine.faults import Fault
from engine.state import MatchState
from service.ports import CommandRecord
from tests.chaos.history import Stored, StoredMatch


@dataclass(frozen=True)
class Story:
    """`states[v]` and `steps[v]` belong to version v; there is no version 0."""

    match_id: str
    stored: StoredMatch
    states: Sequence[MatchState | None]
    steps: Sequence[ev.Step]
    faults: Sequence[Fault]
    """The rows of the ledger that concern the match."""

    @property
    def versions(self) -> range:
        """All of them."""
        return range(1, len(self.states))

    @property
    def last(self) -> MatchState:
        """The match at the end."""
        return self.state(len(self.states) - 1)

    def state(self, version: int) -> MatchState:
        """The match at a version."""
        state = self.states[version]
        assert state is not None
        return state

    def accepted(self, version: int) -> list[CommandRecord]:
        """The records of commands that claim to have made this version."""
        return [one for one in self.stored.records if one.refusal is None and one.version == version]


def stories(stored: Stored) -> list[Story]:
    """Every match whose versions can be told: 1, 2, 3 and on."""
    return [_told(match_id, match, stored) for match_id, match in stored.matches.items()]


def has_gap(match: StoredMatch) -> bool:
    """Whether a version is missing, or there twice, so that the match cannot be told."""
    return [version for version, _ in match.steps] != list(range(1, match.version + 1))


def _told(match_id: str, match: StoredMatch, stored: Stored) -> Story:
    states: list[MatchState | None] = [None]
    steps: list[ev.Step] = [()]
    for _, step in () if has_gap(match) else match.steps:
        states.append(advance(states[-1], step))
        steps.append(step)
    faults = [row.fault for row in stored.ledger if row.match_id in (None, match_id)]
    return Story(match_id, match, states, steps, faults)


def loss_on_time(step: ev.Step) -> ev.MatchWon | None:
    """The loss on time in a step, if it is one."""
    wins = (event for event in step if isinstance(event, ev.MatchWon) and event.reason is ev.WinReason.TIME)
    return next(wins, None)


def timing_failure(step: ev.Step) -> ev.MatchAborted | None:
    """The abort for a timing failure in a step, if it is one."""
    for event in step:
        if isinstance(event, ev.MatchAborted) and event.reason is ev.AbortReason.TIMING_FAILURE:
            return event
    return None
