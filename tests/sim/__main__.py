"""The command line: a seed or a scenario with its trace, many seeds with a summary, the mutants, digests of traces."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import islice

from tests.sim.mutating import mutate
from tests.sim.replica_scenarios import REPLICA_SCENARIOS
from tests.sim.runs import among_replicas, everything, play_among_replicas, play_scenario, survey
from tests.sim.scenarios import SCENARIOS
from tests.sim.simulation import ALONE, REPLICATED, Mode, Simulation

say = partial(print, flush=True)
CHUNK = 100
ENDINGS = "a scenario ends"
"""What says only that a scenario ended otherwise: no invariant, so no proof against a mutant."""


def main() -> int:
    """Run one of the commands; the exit status is 1 when anything was violated."""
    parser = argparse.ArgumentParser(prog="python -m tests.sim", description=__doc__)
    commands = parser.add_subparsers(required=True)
    seed = commands.add_parser("seed", help="play one seed and print its trace")
    seed.add_argument("seed", type=int)
    seed.add_argument("mode", type=Mode)
    seed.set_defaults(run=_seed)
    scenario = commands.add_parser("scenario", help="play one scenario and print its trace")
    scenario.add_argument("name", choices=[scenario.name for scenario in (*SCENARIOS, *REPLICA_SCENARIOS)])
    scenario.add_argument("--dies-at", type=int, default=0, help="let the process die before this effect")
    scenario.add_argument("--kept", action="store_true", help="the commit under way is made all the same")
    scenario.set_defaults(run=_scenario)
    many = commands.add_parser("many", help="play many seeds, the modes in turn")
    many.add_argument("first", type=int)
    many.add_argument("count", type=int)
    many.add_argument("--replicas", action="store_true", help="only the modes with several replicas; else those of one")
    many.add_argument("--tails", action="store_true", help="only the mode in which their database loses its tail")
    many.set_defaults(run=_many)
    digests = commands.add_parser("digests", help="print the digests of the traces of some seeds")
    digests.add_argument("count", type=int)
    digests.set_defaults(run=_digests)
    hunt = commands.add_parser("hunt", help="look for the first violation in all scenarios and some seeds")
    hunt.add_argument("seeds", type=int)
    hunt.add_argument("--replicas", action="store_true", help="only those with several replicas")
    hunt.set_defaults(run=_hunt)
    mutants = commands.add_parser("mutants", help="take rules away, one at a time, and hunt")
    mutants.add_argument("names", nargs="*", help="only those whose names hold one of these words")
    mutants.set_defaults(run=lambda arguments: mutate(arguments.names))
    arguments = parser.parse_args()
    status: int = arguments.run(arguments)
    return status


def _seed(arguments: argparse.Namespace) -> int:
    report = Simulation(arguments.seed, arguments.mode, is_printing=True).run()
    say()
    _print_counts(report.counts)
    return _print_violations(report.violations)


def _scenario(arguments: argparse.Namespace) -> int:
    replicated = next((scenario for scenario in REPLICA_SCENARIOS if scenario.name == arguments.name), None)
    if replicated is not None:
        run = play_among_replicas(replicated, is_printing=True)
    else:
        scenario = next(scenario for scenario in SCENARIOS if scenario.name == arguments.name)
        run = play_scenario(scenario, dies_at=arguments.dies_at, keeps_dying_commit=arguments.kept, is_printing=True)
    say(f"\nended: {run.ending}")
    return _print_violations(run.violations)


def _many(arguments: argparse.Namespace) -> int:
    last = arguments.first + arguments.count
    chunks = [range(first, min(first + CHUNK, last)) for first in range(arguments.first, last, CHUNK)]
    modes = (Mode.TAILS,) if arguments.tails else REPLICATED if arguments.replicas else ALONE
    counts: Counter[str] = Counter()
    found = 0
    with ProcessPoolExecutor(2) as pool:
        for part in pool.map(partial(survey, modes=modes), chunks):
            counts.update(part.counts)
            found += len(part.findings)
            for finding in part.findings:
                say(finding.command, finding.violation, sep="\n    ")
    _print_counts(counts)
    matches, losses = counts["match"], counts["won by time"]
    say(f"{arguments.count} seeds, {matches} matches, {losses} losses on time, {found} violations")
    return found > 0


def _digests(arguments: argparse.Namespace) -> int:
    modes = tuple(Mode)
    for seed in range(arguments.count):
        say(Simulation(seed, modes[seed % len(modes)]).run().digest)
    return 0


def _hunt(arguments: argparse.Namespace) -> int:
    found = among_replicas(arguments.seeds) if arguments.replicas else everything(arguments.seeds)
    proofs = (finding for finding in found if not finding.violation.startswith(ENDINGS))
    for finding in islice(proofs, 1):
        say(f"{finding.violation.split(':')[0]} | {finding.command}")
        return 1
    return 0


def _print_counts(counts: Counter[str]) -> None:
    for name in sorted(counts):
        say(f"{counts[name]:8}  {name}")


def _print_violations(violations: list[str]) -> int:
    say("\nNothing is violated." if not violations else "\nVIOLATED", *violations, sep="\n    ")
    return len(violations) > 0


if __name__ == "__main__":
    sys.exit(main())
