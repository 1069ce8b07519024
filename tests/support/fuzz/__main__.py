"""Coverage-guided fuzzing with atheris: `python -m tests.support.fuzz CORPUS SECONDS`, ends with 0 or at a mistake."""

import sys
from pathlib import Path

import atheris
import structlog

with atheris.instrument_imports(include=["engine", "service"]):
    from tests.support.fuzz.target import Target

from tests.support.fuzz.inputs import seeds
from tests.support.virtual_matches import MATCH_ID

LONGEST_INPUT = 400
SLOWEST_SECONDS = 5
MOST_MIB = 2_048


def main() -> None:
    """Fuzz for so many seconds, from the seeds on; what was found to be different is left in the corpus."""
    corpus, seconds = Path(sys.argv[1]), int(sys.argv[2])
    structlog.configure(logger_factory=structlog.ReturnLoggerFactory())
    for number, seed in enumerate(seeds(MATCH_ID)):
        (corpus / f"seed-{number}").write_bytes(seed)
    options = {
        "max_total_time": seconds,
        "max_len": LONGEST_INPUT,
        "timeout": SLOWEST_SECONDS,
        "rss_limit_mb": MOST_MIB,
        "artifact_prefix": f"{corpus}/mistake-",
        "print_final_stats": 1,
        "seed": 1,
    }
    target = Target()
    atheris.Setup(["fuzz", *(f"-{name}={value}" for name, value in options.items()), str(corpus)], target.take)
    atheris.Fuzz()


main()
