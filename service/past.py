"""What the store has of one match, read into a state: a snapshot, where there is one of use, and the log behind it.

A snapshot is a cache of what the log folds to and no truth of its own: whatever is wrong with it, the log tells.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from engine import invariants
from engine.events import RoundDealt, Step
from engine.evolve import advance
from engine.state import MatchState
from service.logs import get_logger
from service.paging import pages
from service.ports import STEPS_A_PAGE, DamagedError, Store, StoreUnavailableError
from service.watches import RECENT_STEPS, Recent

SNAPSHOT_VERSIONS: Final = STEPS_A_PAGE
"""So many versions behind its last snapshot a match gets another, with the next round that begins.

So whoever does not know the match folds a page and a round at most, however long its log is.
"""


class Read(NamedTuple):
    """What was read: the state, None when there is no such match, the first step read, and how many were folded."""

    state: MatchState | None
    first: Step
    folded: int


class Past:
    """The past of one match, as the store has it."""

    def __init__(self, match_id: str, store: Store) -> None:
        self._match_id = match_id
        self._store = store
        self._kept = 0
        """The version of the last snapshot that is known here."""

    async def read(self, known: MatchState | None, recent: Recent) -> Read:
        """The state behind the known one; `recent` gets the steps. Raises StoreUnavailableError or DamagedError."""
        state = await self._snapshot() if known is None else known
        begins = 0 if state is None else state.version
        version = begins if known is not None else max(0, begins - RECENT_STEPS)  # streams may ask for these
        first: Step = ()
        async for page in pages(self._store, self._match_id, version):
            first = first or page[0]
            for step in page:
                version += 1
                recent.add(version, step)
                if version > begins:
                    state = advance(state, step)
        if version < begins:  # the store went back between two questions
            raise StoreUnavailableError("the log ends before its snapshot")
        return Read(state, first, version - begins)

    def snapshot(self, step: Step, after: MatchState) -> MatchState | None:
        """What to append as a snapshot with the step that leads to this state, if one is due."""
        if after.version - self._kept < SNAPSHOT_VERSIONS:
            return None
        return after if any(isinstance(event, RoundDealt) for event in step) else None

    def stored(self, snapshot: MatchState) -> None:
        """The snapshot was stored with its step."""
        self._kept = snapshot.version

    async def _snapshot(self) -> MatchState | None:
        """The last snapshot, if it is of use."""
        self._kept = 0
        try:
            state = await self._store.snapshot(self._match_id)
            if state is not None:
                invariants.check(state)
                self._kept = state.version
        except (DamagedError, AssertionError) as error:
            get_logger().warning("snapshot_passed_over", match_id=self._match_id, problem=str(error))
            return None
        return state
