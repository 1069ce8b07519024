"""The audit of the pins: what it makes of the answers that it gets, above all of none."""

from __future__ import annotations

import importlib.util
from importlib.metadata import version
from types import ModuleType
from typing import Any

import pytest

from tests.support.tidy import ROOT


@pytest.fixture(scope="module")
def audit() -> ModuleType:
    """The script."""
    spec = importlib.util.spec_from_file_location("audit", ROOT / ".ci" / "audit.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def package(**more: object) -> dict[str, object]:
    """One package of a report."""
    return {"name": "p", "version": "1.0", **more}


VULNERABLE = package(vulns=[{"id": "PYSEC-1", "fix_versions": ["1.1"]}])
REPORTS: dict[str, tuple[dict[str, Any] | None, int, str]] = {
    "all is well": ({"dependencies": [package(vulns=[])]}, 0, "no known vulnerability in 1 packages"),
    "something is known": ({"dependencies": [package(vulns=[]), VULNERABLE]}, 1, "p 1.0: PYSEC-1, mended in ['1.1']"),
    "something is known beside a gap": ({"dependencies": [package(skip_reason="?"), VULNERABLE]}, 1, "PYSEC-1"),
    "of one nothing is known": (
        {"dependencies": [package(vulns=[]), package(skip_reason="?")]},
        3,
        "nothing is known of 1 packages",
    ),
    "no packages": ({"dependencies": []}, 3, "nothing is known of all packages"),
    "no answer": (None, 3, "nothing is known of all packages"),
}


@pytest.mark.parametrize("what", REPORTS)
def test_an_answer_that_is_missing_is_no_clean_bill(audit: ModuleType, what: str) -> None:
    """Only a service that knew every package can say that all is well."""
    report, status, words = REPORTS[what]
    judged, lines = audit.judged(report)
    assert judged == status
    assert words in lines[-1]


def test_pins_that_are_behind_are_named(audit: ModuleType) -> None:
    """And only those."""
    assert audit.behind({"a": "1", "b": "2", "c": "3"}, {"a": "1", "b": "2.1"}) == ["b 2 -> 2.1"]


def test_the_locks_are_read(audit: ModuleType) -> None:
    """What runs in the image is a part of what is installed here."""
    assert audit.pins(audit.LOCKS)["grpcio"] == version("grpcio")
