"""Scripted scenarios, whole, and with a crash at every effect that the outside could see."""

import pytest

from engine.clock import Arrival
from engine.faults import FaultCause
from service.timing_guard import TimingGuard
from tests.sim.replica_scenarios import REPLICA_SCENARIOS, ReplicaScenario
from tests.sim.runs import crashes_in, play_among_replicas, play_scenario
from tests.sim.scenarios import SCENARIOS, Scenario

BY_NAME = [pytest.param(scenario, id=scenario.name) for scenario in SCENARIOS]
TO_DIE_IN = [pytest.param(scenario, id=scenario.name) for scenario in SCENARIOS if scenario.dies_everywhere]


@pytest.mark.parametrize("scenario", BY_NAME)
def test_a_scenario_violates_nothing_and_ends_as_it_should(scenario: Scenario) -> None:
    assert play_scenario(scenario).violations == []


@pytest.mark.parametrize("scenario", [pytest.param(scenario, id=scenario.name) for scenario in REPLICA_SCENARIOS])
def test_a_scenario_of_two_replicas_violates_nothing_and_ends_as_it_should(scenario: ReplicaScenario) -> None:
    assert play_among_replicas(scenario).violations == []


@pytest.mark.parametrize("scenario", TO_DIE_IN)
def test_a_crash_at_any_effect_violates_nothing(scenario: Scenario) -> None:
    """Before each call of the store, each commit, each answer of it, each publication and each reply."""
    assert list(crashes_in(scenario)) == []


def test_every_cause_aborts_a_match_in_some_scenario() -> None:
    """As the evidence names it: a row of the ledger, or the stamp that proves nothing."""
    causes = {
        name
        for counts in (
            *(play_scenario(scenario).counts for scenario in SCENARIOS),
            *(play_among_replicas(scenario).counts for scenario in REPLICA_SCENARIOS),
        )
        for name in counts
        if name.startswith("abort cause")
    }
    wanted = {cause.value for cause in FaultCause if cause is not FaultCause.STAMP_STRADDLES} | {"a stamp"}
    assert causes == {f"abort cause: {cause}" for cause in wanted}


def test_a_wrong_stamp_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The auditor knows the true arrival; `make mutants` takes many more rules away."""
    monkeypatch.setattr(TimingGuard, "arrival", lambda guard: Arrival.at(guard.now_ns()))
    violations = play_scenario(SCENARIOS[0]).violations
    assert any(violation.startswith("a stamp holds the arrival") for violation in violations)
