"""Playing scenarios, whole or with a crash at an effect, and seeds: what each violates, and how to see it again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from tests.sim.process import SimProcess
from tests.sim.replica_scenarios import REPLICA_SCENARIOS, ReplicaScenario
from tests.sim.scenarios import SCENARIOS, Scenario
from tests.sim.simulation import ALONE, SHARED, Mode, Simulation
from tests.sim.stage import ReplicaStage, Stage
from tests.sim.world import MS_NS

RESTART_AFTER_CRASH_NS = 300 * MS_NS


@dataclass(frozen=True, slots=True)
class ScenarioRun:
    """What became of a scenario. `effects` are those of the first process; those to die at are a range of them."""

    violations: list[str]
    ending: str | None
    effects: list[str]
    to_die_at: range
    counts: Counter[str]
    """What happened, as `tally` names it."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A run that violated something: what, and the command that shows it."""

    violation: str
    command: str


def play_scenario(
    scenario: Scenario, *, dies_at: int = 0, keeps_dying_commit: bool = False, is_printing: bool = False
) -> ScenarioRun:
    """Play a scenario; with `dies_at` the process dies right before that effect, and another one starts."""
    stage = Stage(scenario.wish, is_printing=is_printing)
    stage.machine.weather.odds_of_dying_commit = float(keeps_dying_commit)
    first: list[SimProcess] = []

    def prepare(process: SimProcess) -> None:
        if not first:
            first.append(process)
            process.crash_at_effect = dies_at
            if dies_at:
                stage.machine.restart_after_ns = RESTART_AFTER_CRASH_NS

    bounds: list[int] = []
    stage.machine.before_start = prepare
    for instant_ns in (scenario.from_ns, scenario.until_ns):
        stage.world.at(instant_ns, lambda: bounds.append(len(first[0].effects)))
    scenario.script(stage)
    violations = stage.play(scenario.runs_until_ns)
    if not dies_at and stage.ending != scenario.ending:
        violations = [*violations, f"a scenario ends as it should: {stage.ending}, not {scenario.ending}"]
    to_die_at = range(bounds[0] + 1, bounds[1] + 1)
    return ScenarioRun(violations, stage.ending, first[0].effects, to_die_at, stage.truth.counts)


def play_among_replicas(scenario: ReplicaScenario, *, is_printing: bool = False) -> ScenarioRun:
    """Play a scenario of two replicas; nobody dies in it who is not told to."""
    stage = ReplicaStage(scenario.wish, plays=scenario.plays, is_printing=is_printing)
    scenario.script(stage)
    violations = stage.play(scenario.runs_until_ns)
    if stage.ending != scenario.ending:
        violations = [*violations, f"a scenario ends as it should: {stage.ending}, not {scenario.ending}"]
    return ScenarioRun(violations, stage.ending, [], range(0), stage.truth.counts)


def whole_scenarios() -> Iterator[Finding]:
    """What the scenarios violate without a crash."""
    for scenario in SCENARIOS:
        for violation in play_scenario(scenario).violations:
            yield Finding(violation, f"make sim SCENARIO='{scenario.name}'")


def crashes_in(scenario: Scenario) -> Iterator[Finding]:
    """What a scenario violates with a crash at any of its effects, whether or not the commit under way is made."""
    for dies_at in play_scenario(scenario).to_die_at:
        for kept in (False, True):
            run = play_scenario(scenario, dies_at=dies_at, keeps_dying_commit=kept)
            for violation in run.violations:
                yield Finding(violation, f"make sim SCENARIO='{scenario.name}' DIES_AT={dies_at} KEPT={int(kept)}")


@dataclass(frozen=True, slots=True)
class Survey:
    """What became of many seeds."""

    findings: list[Finding]
    counts: Counter[str]


def survey(seeds: range, modes: tuple[Mode, ...]) -> Survey:
    """Play seeds, the modes in turn."""
    survey = Survey([], Counter())
    for seed in seeds:
        report = Simulation(seed, modes[seed % len(modes)]).run()
        survey.counts.update(report.counts)
        survey.findings.extend(Finding(violation, report.command) for violation in report.violations)
    return survey


def everything(seed_count: int) -> Iterator[Finding]:
    """All that one process can violate, the quickest first."""
    yield from whole_scenarios()
    for scenario in SCENARIOS:
        if scenario.dies_everywhere:
            yield from crashes_in(scenario)
    for seed in range(seed_count):
        yield from survey(range(seed, seed + 1), ALONE).findings
        yield from survey(range(seed, seed + 1), (Mode.ENVOY,)).findings


def among_replicas(seed_count: int) -> Iterator[Finding]:
    """What several replicas violate: in the scenarios, then in seeds, each in all modes."""
    for scenario in REPLICA_SCENARIOS:
        for violation in play_among_replicas(scenario).violations:
            yield Finding(violation, f"make sim SCENARIO='{scenario.name}'")
    for seed in range(seed_count):
        for mode in SHARED:
            yield from survey(range(seed, seed + 1), (mode,)).findings
