"""The service with a quick clock, for tests that cannot wait for whole banks: the same code with two other constants.

python -m tests.chaos.quick serve
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from unittest.mock import patch

from engine import clock, evolve, invariants
from engine.clock import SECOND_NS

DELAY_NS = 2 * SECOND_NS
BANK_NS = 3 * SECOND_NS
LONGEST_DECISION_NS = DELAY_NS + BANK_NS


@contextmanager
def quick_clock() -> Iterator[None]:
    """Decides by the quick clock in this process, until it is left."""
    with ExitStack() as patched:
        patched.enter_context(patch.object(clock, "DELAY_NS", DELAY_NS))
        for module in (clock, evolve, invariants):
            patched.enter_context(patch.object(module, "BANK_NS", BANK_NS))
        yield


if __name__ == "__main__":
    from service.__main__ import main

    with quick_clock():
        sys.exit(main())
