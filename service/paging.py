"""Reading the log of a match, however long it is, without keeping the store or the event loop to itself."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from engine.events import Step
from service.ports import STEPS_A_PAGE, Store


async def pages(store: Store, match_id: str, after_version: int = 0) -> AsyncIterator[Sequence[Step]]:
    """The steps of versions after_version + 1 and on, in order, as the pages that the store gives, none of them empty.

    Each page is a question of its own to the store, and others' turns come before the next. Raises
    StoreUnavailableError.
    """
    while page := await store.steps(match_id, after_version):
        yield page
        if len(page) < STEPS_A_PAGE:
            return
        after_version += len(page)
