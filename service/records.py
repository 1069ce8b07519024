"""The record of a service read from outside: states from their logs, and whether everything fits together."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from engine import invariants
from engine.events import Step
from engine.evolve import advance
from engine.state import MatchState
from service.fair_deal import server_commitment
from service.ports import DamagedError, Records, StoredMatch


async def live_states(records: Records) -> AsyncIterator[tuple[str, MatchState]]:
    """Every match that is not over, by id. Raises DamagedError."""
    for row in await records.stored_matches():
        if row.live:
            yield row.match_id, _folded(await records.steps(row.match_id))


async def state_of(records: Records, match_id: str) -> MatchState | None:
    """A match as it is stored, None when there is none with this id. Raises DamagedError."""
    steps = await records.steps(match_id)
    return _folded(steps) if steps else None


async def problems(records: Records) -> AsyncIterator[str]:
    """A sentence for each thing that does not fit: of the store as a whole or, if that is sound, of each match."""
    damages = await records.damages()
    for damage in damages:
        yield damage
    if not damages:
        for row in await records.stored_matches():
            try:
                problem = await _problem_of(records, row)
            except DamagedError as error:
                problem = str(error)
            if problem is not None:
                yield f"Match {row.match_id}: {problem}."


async def _problem_of(records: Records, row: StoredMatch) -> str | None:
    """The first thing that is wrong with a match."""
    steps = await records.steps(row.match_id)
    if len(steps) != row.version:
        return f"the log has {len(steps)} versions, the match is at version {row.version}"
    state = _folded(steps)
    if (state.due_ns, state.result is None) != (row.due_ns, row.live):
        return "its deadline or its end is not that of its log"
    deal = await records.deal_secrets(row.match_id)
    if deal is None or server_commitment(row.match_id, deal.secret) != state.server_commitment:
        return "the secret of its deal is not the one that was committed to"
    return None


def _folded(steps: Sequence[Step]) -> MatchState:
    """The state after the last step. Raises DamagedError when one does not follow from those before it."""
    state: MatchState | None = None
    for version, step in enumerate(steps, start=1):
        try:
            state = advance(state, step)
            invariants.check(state)
        except Exception as error:  # whatever a log that nobody decided on may run into
            raise DamagedError(f"version {version} of the log does not follow from what is before it") from error
    if state is None:
        raise DamagedError("there is no log")
    return state
