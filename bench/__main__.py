"""`python -m bench`: measure, print tables, keep them as JSON if asked to."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

from bench import (
    calls_cost,
    clock_cost,
    engine_cost,
    grpc_cost,
    idle_cost,
    machine,
    metrics_cost,
    postgres_cost,
    reload_cost,
    secrecy_cost,
)
from bench.report import Table

Measure: TypeAlias = Callable[..., list[Table]]
SUITES: dict[str, Measure] = {
    "engine": engine_cost.measure,
    "clock": clock_cost.measure,
    "calls": calls_cost.measure,
    "metrics": metrics_cost.measure,
    "secrecy": secrecy_cost.measure,
    "grpc": grpc_cost.measure,
    "idle": idle_cost.measure,
    "postgres": postgres_cost.measure,
    "reload": reload_cost.measure,
}


def main() -> None:
    """Run the suites that were asked for."""
    parser = argparse.ArgumentParser(prog="python -m bench", description="Measure speed (docs/PERFORMANCE.md).")
    parser.add_argument("suite", nargs="?", choices=[*SUITES, "all"], default="all", help="what to measure (all)")
    parser.add_argument("--quick", action="store_true", help="a tenth of the work: to see that it runs, not to quote")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures to this file")
    arguments = parser.parse_args()
    about = {"command": _command(arguments), **machine.facts()}
    for name, fact in about.items():
        print(f"{name:>9}: {fact}")
    tables = []
    for suite in SUITES if arguments.suite == "all" else [arguments.suite]:
        for table in SUITES[suite](quick=arguments.quick):
            print(f"\n{table.to_text()}", flush=True)
            tables.append(table.to_json())
    if arguments.json:
        arguments.json.write_text(json.dumps({**about, "tables": tables}, indent=2) + "\n", encoding="utf-8")


def _command(arguments: argparse.Namespace) -> str:
    """The command that makes the same tables."""
    return " ".join(["python -m bench", arguments.suite, *(["--quick"] if arguments.quick else [])])


if __name__ == "__main__":
    main()
