"""Applying the mutants, each to a copy of the source, and hunting for a violation there."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from tempfile import TemporaryDirectory

from tests.sim.mutants import Mutant
from tests.sim.replica_mutants import MUTANTS

ROOT = Path(__file__).resolve().parent.parent.parent
COPIED = ("engine", "service", "proto", "tests/sim")
say = partial(print, flush=True)
SEEDS = 400
"""How many seeds a mutant may survive in before it has survived."""
COPIES = 2
"""How many mutants are hunted at the same time."""


class DriftError(AssertionError):
    """A mutant's text is not in the source exactly once: the source has moved on, and so must the mutant."""


def mutated(mutant: Mutant, root: Path) -> dict[Path, str]:
    """The texts of the files that the mutant changes below `root`. Raises DriftError."""
    texts: dict[Path, str] = {}
    for change in mutant.changes:
        path = root / change.path
        text = texts.get(path) or path.read_text(encoding="utf-8")
        if text.count(change.old) != 1:
            raise DriftError(f"{mutant.name}: {change.path} has this {text.count(change.old)} times: {change.old!r}")
        texts[path] = text.replace(change.old, change.new)
    return texts


def mutate(names: Sequence[str]) -> int:
    """Hunt the mutants whose names hold one of these words, all without any; print a table. 1 when one survives."""
    chosen = [mutant for mutant in MUTANTS if not names or any(name in mutant.name for name in names)]
    survivors = 0
    with TemporaryDirectory() as folder, ThreadPoolExecutor(COPIES) as pool:
        free: SimpleQueue[Path] = SimpleQueue()
        for number in range(COPIES):
            free.put(_copy(Path(folder) / str(number)))
        for mutant, proof in zip(chosen, pool.map(lambda mutant: _hunt(mutant, free), chosen), strict=True):
            survivors += not proof
            say(f"{mutant.name:62}  {proof or 'SURVIVED'}")
    say(f"{len(chosen)} mutants, {survivors} survived")
    return survivors > 0


def _copy(root: Path) -> Path:
    for folder in COPIED:
        shutil.copytree(ROOT / folder, root / folder, ignore=shutil.ignore_patterns("__pycache__"))
    return root


def _hunt(mutant: Mutant, free: SimpleQueue[Path]) -> str:
    """What kills the mutant, empty when nothing does."""
    root = free.get()
    try:
        with _applied(mutant, root):
            # The clock of a file is coarser than this loop, so compiled code must not be kept.
            environment = os.environ | {"PYTHONPATH": f"{root}:{root / 'proto'}", "PYTHONDONTWRITEBYTECODE": "1"}
            command = [sys.executable, "-m", "tests.sim", "hunt", str(SEEDS)]
            command += ["--replicas"] if mutant.among_replicas else []
            done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=False)
            assert done.returncode in (0, 1), done.stderr
            assert bool(done.stdout) == bool(done.returncode), done.stderr
            return done.stdout.strip()
    finally:
        free.put(root)


@contextmanager
def _applied(mutant: Mutant, root: Path) -> Iterator[None]:
    changed = mutated(mutant, root)
    before = {path: path.read_text(encoding="utf-8") for path in changed}
    for path, text in changed.items():
        path.write_text(text, encoding="utf-8")
    try:
        yield
    finally:
        for path, text in before.items():
            path.write_text(text, encoding="utf-8")
