"""The swarm, as `hustings swarm` runs it: 1,000 seeds on every change, 100,000 in `make soak`."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hustings.lab.swarming import ENTRIES, SwarmTotal, play_worlds, replay, votes, with_quorum
from hustings.sim.swarm import MEMORY, QUORUM, Swarm

SWARM = Swarm(tuple(ENTRIES.values()), (MEMORY, QUORUM), with_quorum=with_quorum, votes=votes)
SEEDS = 1_000
BLOCK = 250
MANY_SEEDS = 100_000
MANY = 2_000  # of them at a time
# Two led at one time, because an answer on its way took up what was given back (the first three);
# nobody was elected, because a call ruled everybody out.
FOUND = (17_000, 22_261, 91_035, 61_606, 86_773)
BEYOND_SEEDS = 250  # enough to see leaders overlap where clocks break their bound


def check(swarm: Swarm, first: int, seeds: int) -> SwarmTotal:
    tally = play_worlds(swarm, first, seeds)
    told = [
        f"{replay(seed, swarm.guards, (), swarm.beyond)}\n  {wrong}"
        for seed, wrong in tally.failures
    ]
    assert not tally.failed, f"{tally.failed} of {seeds} seeds fail:\n" + "\n".join(told)
    return tally


@pytest.mark.parametrize("first", range(0, SEEDS, BLOCK))
def test_never_two(first: int) -> None:
    tally = check(SWARM, first, BLOCK)
    # A swarm in which nothing happens proves nothing.
    counts = tally.counts
    assert counts["grants"] > BLOCK
    assert counts["starts"] > 5 * BLOCK
    assert counts["disks"] > BLOCK / 5
    assert counts["writes"] > 5 * BLOCK
    assert counts["stale"] > 0
    assert min(sum(each.values()) for each in tally.worlds.values()) > BLOCK / 4
    assert len(tally.worlds) == 2


@pytest.mark.parametrize("seed", FOUND)
def test_what_was_found_once_is_not_found_again(seed: int) -> None:
    check(SWARM, seed, 1)


@pytest.mark.soak
@pytest.mark.timeout(900)
@pytest.mark.parametrize("first", range(0, MANY_SEEDS, MANY))
def test_never_two_for_very_many_seeds(first: int) -> None:
    check(SWARM, first, MANY)


@pytest.mark.parametrize("guard", [MEMORY, QUORUM])
def test_beyond_the_bound_leaders_overlap_and_the_fence_holds(guard: str) -> None:
    """So that we know that the swarm can see what it says never happens."""
    tally = check(replace(SWARM, guards=(guard,), beyond=True), 0, BEYOND_SEEDS)
    assert tally.overlaps > 0
    assert tally.verdicts["register"]["violated"] == 0
    assert tally.verdicts["holders"]["violated"] == 0
