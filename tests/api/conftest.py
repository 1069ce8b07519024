"""One service for the tests of this folder, on a loop of their own; each test plays matches of its own."""

from collections.abc import AsyncIterator
from inspect import iscoroutinefunction
from pathlib import Path

import pytest
import pytest_asyncio

from tests.support.players import Table, new_table
from tests.support.server import Server, served


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Server]:
    """The service in this process."""
    async with served(tmp_path_factory.mktemp("service") / "matches.sqlite3") as running:
        yield running


@pytest_asyncio.fixture(loop_scope="session")
async def table(server: Server) -> Table:
    """A match that has just been started."""
    return await new_table(server.channel, start=True)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The tests of this folder share the loop on which the service runs."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents and isinstance(item, pytest.Function) and iscoroutinefunction(item.function):
            item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)
