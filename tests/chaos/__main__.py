"""`make chaos`: every scenario, or one by its name, through Envoy; prints the table and what was violated."""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
import time
from pathlib import Path

from tests.chaos.table import table
from tests.chaos.trial import SCENARIOS, Report, Scenario, run_trial

EVIDENCE = Path(".chaos")
"""Where the logs of a trial with violations are left."""


def main() -> int:
    """Run the scenarios one after the other; 1 when anything was violated."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("scenario", nargs="?", help="only this one, such as: SIGSTOP 2 s")
    parser.add_argument("--matches", type=int, default=20, help="how many at a time")
    parser.add_argument("--seconds", type=float, default=20.0, help="how long trouble is made in each")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    chosen = [one for one in SCENARIOS if arguments.scenario in (None, one.name)]
    if not chosen:
        parser.error("scenarios are: " + "; ".join(one.name for one in SCENARIOS))
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that nothing is left running then either
    reports = [_run(scenario, arguments) for scenario in chosen]
    sys.stdout.write("\n" + table(reports))
    return int(any(report.violations for report in reports))


def _run(scenario: Scenario, arguments: argparse.Namespace) -> Report:
    began = time.monotonic()
    report = asyncio.run(
        run_trial(
            scenario, matches=arguments.matches, seconds=arguments.seconds, seed=arguments.seed, through_envoy=True
        )
    )
    seconds = time.monotonic() - began
    sys.stdout.write(f"{scenario.name}: {len(report.violations)} violations ({seconds:.0f} s)\n")
    for violation in report.violations:
        sys.stdout.write(f"  {violation}\n")
    if report.violations:
        EVIDENCE.mkdir(exist_ok=True)
        for number, lines in enumerate(report.logs, start=1):
            (EVIDENCE / f"{scenario.name}, replica {number}.log").write_text("\n".join(lines), encoding="utf-8")
        sys.stdout.write(f"  what the replicas logged is in {EVIDENCE}/\n")
    sys.stdout.flush()
    return report


if __name__ == "__main__":
    sys.exit(main())
