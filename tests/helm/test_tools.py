"""The programs that these tests use are there, and are what they are taken for."""

import subprocess
from pathlib import Path

import pytest

TOOLS = Path(__file__).resolve().parent.parent.parent / ".tools" / "helm"


@pytest.mark.parametrize(("program", "version"), [("helm-3", "v3.17.2"), ("helm-4", "v4.3.1")])
def test_helm_is_the_version_that_is_named(program: str, version: str) -> None:
    answer = subprocess.run([TOOLS / program, "version", "--short"], check=True, capture_output=True, text=True)
    assert answer.stdout.startswith(version)
