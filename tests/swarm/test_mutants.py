"""Each part of the quorum is needed: switch it off, and the swarm says what is missing.

The table in `mutants.MUTANTS` names the first seed that kills each, from where its search begins.
"""

from __future__ import annotations

import pytest

from hustings.sim.swarm import play
from tests.swarm.mutants import MUTANTS, RIGHT, Mutant

BUDGET = 2_000  # seeds in `make test`


@pytest.mark.parametrize("mutant", MUTANTS, ids=[each.part for each in MUTANTS])
def test_a_part_that_is_switched_off_is_missed(mutant: Mutant) -> None:
    """If the quorum draws other lots than it used to, the seeds are others: set them here anew."""
    for seed in range(mutant.begin, mutant.begin + BUDGET):
        wrong = play(mutant.swarm, seed).wrong
        if wrong:
            assert (seed, next(iter(wrong))) == (mutant.first, mutant.missed), wrong
            return
    pytest.fail(f"nobody misses the {mutant.part} in {BUDGET:,} seeds")


def test_nothing_is_missed_where_nothing_is_switched_off() -> None:
    """The same seeds, the real quorum: what killed the mutants was what they lacked."""
    for seed in sorted({mutant.first for mutant in MUTANTS}):
        assert not play(RIGHT, seed).wrong, seed
