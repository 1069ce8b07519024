"""Many seeds of every mix of faults: no invariant is ever violated, and everything that can happen does."""

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pytest

from tests.sim.runs import survey
from tests.sim.simulation import SHARED, Mode, Simulation

SEEDS = 180
SEEDS_AMONG_REPLICAS = 110
"""Each takes as long as several with one process."""
STORE_FAULTS = ("slow store", "store locked", "store full", "store gone", "write fails", "answer lost", "slow reads")
FAULTS = [f"fault {kind}" for kind in ("stall", "sigstop", "sleep", "step", "crash", *STORE_FAULTS)]
LEDGER = [
    f"ledger {cause}"
    for cause in ("stamp straddles", "replica lost", "store gap", "clock fault", "not committed", "publish stall")
]
ABORTS = [f"abort cause: {cause}" for cause in ("a stamp", "replica lost", "store gap", "clock fault")]
CLIENT_FAULTS = [
    f"client {fault}"
    for fault in (
        "delay",
        "loss",
        "lost_answer",
        "duplicate",
        "cancel",
        "disconnect",
        "storm",
        "slow_reader",
        "gives_up",
    )
]
ON_TIME = ["won by time", "accepted in the last 100 ms", "verdict in time", "verdict in time by doubt"]
PROOFS = ["verdict late", "refused TIME_EXPIRED", "verdict unprovable"]
BETWEEN_REPLICAS = [
    f"fault {kind}" for kind in ("cut off", "no answers", "connection stuck", "database restarts", "failover")
] + ["fault news away", "fault news lossy"]
TROUBLED_COMMITS = [f"happened: {kind}" for kind in ("answer lost", "late commit", "lost commit")]
SOMETIMES = {
    Mode.LIGHT: [*FAULTS, *LEDGER, *ABORTS, *ON_TIME, *PROOFS],
    Mode.HEAVY: [*FAULTS, *LEDGER, *ABORTS, *ON_TIME, *PROOFS, *CLIENT_FAULTS, "ledger outage", "planned restart"],
    Mode.CLIENT: [*CLIENT_FAULTS, *ON_TIME, "hostile command", "won by resignation"],
    Mode.PLANNED: ["planned restart", "clocks suspended", "going away", *ON_TIME],
    Mode.REPLICAS: [
        *(f"fault {kind}" for kind in ("stall", "sigstop", "crash", "crash at an effect", "slow store", "slow reads")),
        *BETWEEN_REPLICAS,
        *TROUBLED_COMMITS,
        *(f"ledger {cause}" for cause in ("replica lost", "store gap", "not committed", "publish stall")),
        *(f"abort cause: {cause}" for cause in ("store gap", "not committed")),
        *CLIENT_FAULTS,
        *ON_TIME,
        *("news lost", "replica fenced", "fenced replica came back", "planned restart", "hostile command"),
        "command stamped by two processes",
    ],
    Mode.ENVOY: [
        *(f"fault {kind}" for kind in ("stall", "sigstop", "sleep", "step", "crash")),
        *("stamp narrowed", *ON_TIME, *PROOFS),
    ],
    Mode.TAILS: [
        *("fault tail lost", "ledger commits lost", "abort cause: commits lost", "watch begun anew"),
        *("replica fenced", "fenced replica came back", "won by time"),
    ],
    Mode.DEPLOYS: ["planned restart", "clocks suspended", "going away", "command stamped by two processes", *ON_TIME],
}
"""What must have happened at least once in each mode."""


@pytest.mark.timeout(900)
@pytest.mark.parametrize("mode", [pytest.param(mode, id=mode.value) for mode in Mode])
def test_no_seed_violates_anything_and_everything_happens_sometimes(mode: Mode) -> None:
    """In a process of its own: measuring which rules are covered would double the time."""
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        seeds = range(SEEDS_AMONG_REPLICAS if mode in SHARED else SEEDS)
        found = pool.submit(survey, seeds, (mode,)).result()
    assert found.findings == []
    assert [name for name in SOMETIMES[mode] if not found.counts[name]] == []


def test_a_seed_says_how_to_see_it_again() -> None:
    """A finding is of use only when it can be replayed."""
    assert Simulation(7, Mode.HEAVY).run().command == "make sim SEED=7 MODE=heavy"
