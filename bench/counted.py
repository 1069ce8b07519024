"""`python -m bench.counted FILE WARM_UP`: the service, whose loop counts the calls that its Python code makes.

Counting begins with the command after so many and is written to the file at the stop: how many commands were decided,
and of each caller, how often it was called and how often it called code in C. Other threads are not counted, nor is
what runs inside of extension modules such as gRPC's.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from types import CodeType, FrameType

from bench.processes import ROOT
from engine.decide import decide
from service.__main__ import main as run_service


class Counts:
    """A profile function that counts."""

    def __init__(self, warm_up: int) -> None:
        self._before = warm_up
        self._python: Counter[CodeType] = Counter()
        self._c: Counter[CodeType] = Counter()

    def see(self, frame: FrameType, event: str, _: object) -> None:
        """Called by the interpreter for each call, and each time that a coroutine goes on."""
        if event == "call":
            self._python[frame.f_code] += 1
            if self._before and frame.f_code is decide.__code__:
                self._before -= 1
                if not self._before:
                    self._python.clear()
                    self._c.clear()
        elif event == "c_call":
            self._c[frame.f_code] += 1

    def to_text(self) -> str:
        """For the bench."""
        return json.dumps(
            {
                "commands": self._python[decide.__code__],
                "python": [[_place(code), count] for code, count in self._python.items()],
                "c": [[_place(code), count] for code, count in self._c.items()],
            }
        )


def _place(code: CodeType) -> str:
    """The file of a function: a path of the project, or nothing for one of a library."""
    path = Path(code.co_filename)
    return str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) and "site-packages" not in path.parts else ""


def main() -> int:
    """Serve, then write."""
    path, warm_up = Path(sys.argv[1]), int(sys.argv[2])
    sys.argv[1:] = ["serve"]
    counts = Counts(warm_up)
    sys.setprofile(counts.see)
    try:
        return run_service()
    finally:
        sys.setprofile(None)
        path.write_text(counts.to_text(), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
