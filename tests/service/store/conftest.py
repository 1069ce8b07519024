"""The stores that the contract is tested with."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from service.ports import Store
from service.store.sqlite import SqliteStore
from tests.support.store import OpenStore


@pytest.fixture(params=["sqlite"])
async def open_store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[OpenStore]:
    """Opens the store; what was opened is closed after the test."""
    assert request.param == "sqlite"
    opened: list[Store] = []

    async def open_again() -> Store:
        store = await SqliteStore.open(tmp_path / "matches.sqlite3")
        opened.append(store)
        return store

    yield open_again
    for store in opened:
        await store.close()


@pytest.fixture
async def store(open_store: OpenStore) -> Store:
    """An empty store."""
    return await open_store()
