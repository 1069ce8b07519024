"""The marker with which a test names the clauses of docs/RULES.md that it carries."""

import pytest


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "clause(*ids): the clauses of docs/RULES.md that this test carries")
