"""A service process of a test's own, or several on a PostgreSQL, and the admin commands beside it."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.support.cluster import Cluster, cluster
from tests.support.postgres import PostgresServer, postgres_server


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """The file of the service."""
    return tmp_path / "m.sqlite3"


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A server."""
    with postgres_server() as server:
        yield server


@pytest.fixture
async def shared(postgres: PostgresServer, tmp_path: Path) -> AsyncIterator[Cluster]:
    """What replicas share."""
    async with cluster(postgres, tmp_path) as shared:
        yield shared
