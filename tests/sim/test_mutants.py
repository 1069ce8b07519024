"""The mutants are still mutants of this source; `make mutants` hunts them."""

import pytest

from tests.sim.mutants import Mutant
from tests.sim.mutating import ROOT, mutated
from tests.sim.replica_mutants import MUTANTS


@pytest.mark.parametrize("mutant", [pytest.param(mutant, id=mutant.name) for mutant in MUTANTS])
def test_each_replacement_matches_exactly_once_and_leaves_a_program(mutant: Mutant) -> None:
    for path, text in mutated(mutant, ROOT).items():
        compile(text, str(path), "exec")
        assert text != path.read_text(encoding="utf-8")


def test_each_mutant_has_a_name_of_its_own() -> None:
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS)
