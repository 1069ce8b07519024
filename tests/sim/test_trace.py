"""The same seed is the same world, to the last event of its trace."""

import os
import subprocess
import sys

from tests.sim.mutating import ROOT

SEEDS = 12


def traced(hash_seed: str) -> str:
    """The digests of some traces, made in a process of their own."""
    environment = os.environ | {"PYTHONHASHSEED": hash_seed}
    command = [sys.executable, "-m", "tests.sim", "digests", str(SEEDS)]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    return done.stdout


def test_three_processes_trace_the_same_events() -> None:
    """Whatever Python hashes strings with."""
    first = traced("0")
    assert len(set(first.split())) == SEEDS
    assert traced("1") == first
    assert traced("random") == first
