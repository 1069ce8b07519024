"""A service process of a test's own, and the admin commands beside it."""

from pathlib import Path

import pytest


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """The file of the service."""
    return tmp_path / "m.sqlite3"
