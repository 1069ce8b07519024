"""A match whose log has several pages."""

from collections.abc import Sequence

import pytest

from engine.events import Step
from engine.evolve import replay
from service import paging
from service.ports import StoreUnavailableError
from tests.support import ports
from tests.support.ports import MemoryStore, Process
from tests.support.virtual_matches import MATCH_ID, bidding
from tests.support.virtual_time import in_virtual_time


class FailingStore(MemoryStore):
    """A store that is away when the page behind a version is asked for."""

    away_at = -1

    async def steps(self, match_id: str, after_version: int = 0) -> Sequence[Step]:
        if after_version == self.away_at:
            raise StoreUnavailableError
        return await super().steps(match_id, after_version)


@in_virtual_time
async def test_a_match_is_what_all_pages_of_its_log_make_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also when the store goes away between two of them: nothing of a half-read log is kept."""
    for module in (paging, ports):
        monkeypatch.setattr(module, "STEPS_A_PAGE", 2)
    store = FailingStore(**vars(bidding()))
    log = store.logs[MATCH_ID]
    assert len(log) > 4
    async with Process.running(store) as process:
        store.away_at = 4
        with pytest.raises(StoreUnavailableError):
            await process.matches.get(MATCH_ID).state()
        store.away_at = -1
        assert await process.matches.get(MATCH_ID).state() == replay(log)
