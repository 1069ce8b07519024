"""`promtool` and `prometheus`: from the PATH, or else from Debian's package, unpacked below `.tools`.

Nothing is installed on the machine, and no root is needed. Which version it is, Debian decides.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Literal

ROOT = Path(__file__).resolve().parent.parent
TOOLS = ROOT / ".tools"
FETCH_SECONDS = 300


class NoPrometheusError(Exception):
    """There is no Prometheus here, and none could be fetched; the text says what to do."""


@cache
def program(name: Literal["promtool", "prometheus"]) -> Path:
    """The path of the program. Raises NoPrometheusError."""
    installed = shutil.which(name)
    if installed is not None:
        return Path(installed)
    unpacked = TOOLS / "prometheus"
    if not unpacked.exists():
        _unpack_to(unpacked)
    return unpacked / "usr" / "bin" / name


def _unpack_to(folder: Path) -> None:
    with _fetched() as package:
        made = package.parent / "unpacked"
        _run("dpkg", "-x", str(package), str(made), cwd=package.parent)
        try:
            made.rename(folder)
        except OSError:
            if not folder.exists():  # another process was faster, otherwise
                raise


@contextmanager
def _fetched() -> Iterator[Path]:
    """Debian's package in a folder of its own; the lists of the machine are used if they know it."""
    TOOLS.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=TOOLS) as name:
        folder = Path(name)
        own_lists = ["-o", f"Dir::State::lists={folder}/lists", "-o", f"Dir::Cache={folder}/cache"]
        try:
            _run("apt-get", "download", "prometheus", cwd=folder)
        except NoPrometheusError:
            (folder / "lists").mkdir()
            _run("apt-get", *own_lists, "update", cwd=folder)
            _run("apt-get", *own_lists, "download", "prometheus", cwd=folder)
        yield next(folder.glob("prometheus_*.deb"))


def _run(*command: str, cwd: Path) -> None:
    try:
        subprocess.run(command, cwd=cwd, check=True, capture_output=True, text=True, timeout=FETCH_SECONDS)
    except (OSError, subprocess.SubprocessError) as error:
        text = "install Prometheus 2.42 or newer, so that promtool and prometheus are on the PATH"
        reason = getattr(error, "stderr", None) or error
        raise NoPrometheusError(f"{text} (Debian's package could not be fetched: {reason})") from error
