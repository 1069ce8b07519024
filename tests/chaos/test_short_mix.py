"""Real replicas, PostgreSQL and NATS under real matches, for a short while; `make chaos` does more."""

from __future__ import annotations

from tests.chaos import troubles
from tests.chaos.history import MACHINE
from tests.chaos.people import CARELESS
from tests.chaos.trial import Scenario, run_trial

MATCHES = 4
SECONDS = 10.0


async def test_careless_clients_and_a_rolling_deploy_cost_no_match_its_result() -> None:
    scenario = Scenario("clients and deploys", (troubles.roll, troubles.kill_nats), CARELESS)
    report = await run_trial(scenario, matches=MATCHES, seconds=SECONDS, seed=1, through_envoy=False)
    assert list(report.violations) == []
    assert len(report.history.answered) > 10


async def test_crashes_and_cuts_lose_no_command_and_abort_only_with_proof() -> None:
    each = (troubles.kill, troubles.restart_postgres("immediate"), troubles.freeze(2.0), troubles.cut_off)
    scenario = Scenario("crashes and cuts", each)
    report = await run_trial(scenario, matches=MATCHES, seconds=SECONDS, seed=2, through_envoy=False)
    assert list(report.violations) == []
    assert len([one for one in report.history.injected if one.kind != MACHINE]) >= len(each) - 1
    assert len(report.history.answered) > 10
