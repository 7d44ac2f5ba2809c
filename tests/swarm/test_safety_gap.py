"""How often the probabilistic election has two leaders by itself, and that a guard leaves none.

The reference is the table of the safety gap: groups of 2000, views of half the group, crashes with
probability 0.001 a round, from 2e5 to 1e6 runs a cell. The rates depend on the group's size only
through the filter's K/N, so smaller groups have them as well; a test of 2000 stands beside.
Each count must lie where a Poisson variable of the reference's mean lies but for a probability of
0.001 on each side.
"""

from __future__ import annotations

from math import exp

import pytest

from hustings.core.config import Surroundings
from hustings.layers.lease import LeaseConfig
from hustings.protocols.registry import find
from hustings.sim.checkers import Verdict
from hustings.sim.experiment import Experiment
from hustings.sim.loss import Uncorrelated
from hustings.sim.network import Network
from hustings.sim.play import RunResult, play

UNLIKELY = 0.001

# Loss, thinning, metric: the probability that a run has two leaders
REFERENCE = {
    (0.3, "hash", "two_leaders_ever"): 2.3e-3,
    (0.3, "delay", "two_leaders_ever"): 2.2e-3,
    (0.5, "hash", "two_leaders_ever"): 1.5e-2,
    (0.5, "delay", "two_leaders_ever"): 1.3e-2,
    (0.5, "hash", "two_leaders"): 8e-4,
}


def experiment(members: int, loss: float, thinning: str, *, guarded: bool = False) -> Experiment:
    kind = find("probabilistic")
    around = Surroundings(p_ucastl=loss, p_mcastl=loss, p_fail=0.001, view_prob=0.5)
    given = {**kind.Settings.for_group(members, around), "p_fail": 0.001, "thinning": thinning}
    return Experiment(
        kind=kind,
        members=members,
        config=kind.Settings.parse(given),
        network=Network(loss=Uncorrelated(loss)),
        view_probability=0.5,
        seed=4,
        guard=LeaseConfig() if guarded else None,
        calm=60.0 if guarded else None,
        until=2_000.0,
    )


def poisson_bounds(mean: float) -> tuple[int, int]:
    """The least and the most that are not unlikely.

    The chance of fewer than the first, and of more than the second, is at most `UNLIKELY`.
    """
    low, count, chance = 0, 0, exp(-mean)
    below = chance
    while below < 1.0 - UNLIKELY:
        if below <= UNLIKELY:
            low = count + 1
        count += 1
        chance *= mean / count
        below += chance
    return low, count


def two_leaders(one: Experiment, runs: int, metric: str) -> list[int]:
    """The numbers of the runs that have two."""
    return [run for run in range(runs) if play(one, run).metrics[metric]]


def check(members: int, loss: float, thinning: str, metric: str, runs: int) -> None:
    low, high = poisson_bounds(runs * REFERENCE[loss, thinning, metric])
    found = two_leaders(experiment(members, loss, thinning), runs, metric)
    assert low <= len(found) <= high


def test_bounds_of_a_poisson_count() -> None:
    assert poisson_bounds(9.0) == (1, 20)
    assert poisson_bounds(0.4) == (0, 3)


def test_without_a_guard_two_lead_as_often_as_foretold_and_with_one_never() -> None:
    """The very runs in which two led are played again, with a guard."""
    runs, loss, thinning, metric = 480, 0.5, "hash", "two_leaders_ever"
    low, high = poisson_bounds(runs * REFERENCE[loss, thinning, metric])
    found = two_leaders(experiment(200, loss, thinning), runs, metric)
    assert low == 1
    assert low <= len(found) <= high
    guarded = experiment(200, loss, thinning, guarded=True)
    for run in found:
        assert_safe(play(guarded, run))


def test_with_a_guard_a_lossy_group_gets_its_leader() -> None:
    guarded = experiment(100, 0.5, "delay", guarded=True)
    results = [play(guarded, run) for run in range(10)]
    for result in results:
        assert_safe(result)
    # Not all have heard of it after every run: with half of all messages lost that takes renewals,
    # and a leader that misses three in a row needs another token.
    assert sum(result.metrics["strong"] or 0.0 for result in results) >= 8


def assert_safe(result: RunResult) -> None:
    for name in ("holders", "tokens", "grants", "windows", "uniqueness"):
        assert result.verdicts[name][0] is Verdict.HOLDS, result.verdicts[name]
    # Who has not heard of the leader's next term yet is behind, and no more.
    assert result.verdicts["terms"][0] is not Verdict.VIOLATED, result.verdicts["terms"]
    assert result.metrics["two_leaders"] == 0
    assert result.metrics["two_leaders_ever"] == 0


@pytest.mark.soak
@pytest.mark.timeout(900)
@pytest.mark.parametrize("loss, thinning, metric", REFERENCE)
def test_the_rate_of_two_leaders_in_many_runs(loss: float, thinning: str, metric: str) -> None:
    check(300, loss, thinning, metric, 3_000)


@pytest.mark.soak
@pytest.mark.timeout(900)
@pytest.mark.parametrize("thinning", ["hash", "delay"])
def test_the_rate_of_two_leaders_in_groups_of_2000(thinning: str) -> None:
    check(2_000, 0.5, thinning, "two_leaders_ever", 400)


@pytest.mark.soak
@pytest.mark.timeout(900)
@pytest.mark.parametrize("loss", [0.3, 0.5])
def test_with_a_guard_never_two_in_many_runs(loss: float) -> None:
    guarded = experiment(300, loss, "hash", guarded=True)
    for run in range(400):
        assert_safe(play(guarded, run))
