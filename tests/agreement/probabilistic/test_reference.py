"""The election, member by member and message by message, against what others measured.

A mean is believed if it lies within four standard errors, its own and the reference's together, of
the reference. All runs have fixed seeds. A correct program fails a single comparison with a
probability of about 6e-5, so one of the 30 or so of the short tests with about 0.2 %.
"""

from __future__ import annotations

import math
from functools import cache

import pytest

from hustings.protocols.probabilistic.election import Probabilistic
from hustings.protocols.probabilistic.settings import ProbabilisticConfig
from hustings.sim.experiment import Experiment
from hustings.sim.play import play
from tests.agreement.probabilistic.reference import (
    BY_SIZE,
    BY_VIEW,
    DISAGREE,
    LOSSES,
    POLICIES,
    RUNS,
    Reference,
    of_table,
)

CLOSE = 4.0
METRICS = ("strong", "rounds", "ucasts", "mcasts", "relay_members", "reinitiations", "leaderless")


def experiment_of(members: int, loss: float, seed: int = 1, **settings: object) -> Experiment:
    given: dict[str, object] = {
        "N": members,
        "p_ucastl": loss,
        "p_mcastl": loss,
        "p_fail": 0.001,
        "view_prob": 0.5,
        **settings,
    }
    return Experiment(Probabilistic, members, ProbabilisticConfig.parse(given), seed=seed)


@cache
def sample(experiment: Experiment, runs: int) -> dict[str, list[float]]:
    """What the first runs of an experiment came to."""
    found: dict[str, list[float]] = {name: [] for name in METRICS}
    for run in range(runs):
        metrics = play(experiment, run).metrics
        for name in METRICS:
            value = metrics[name]
            assert value is not None
            found[name].append(value)
    return found


def check_cell(policy: tuple[str, str], loss: float, runs: int, spread: float = 0.0) -> None:
    """`spread`: the standard deviation of one run's unicasts, where few runs cannot tell it."""
    estimate, thinning = policy
    experiment = experiment_of(2000, loss, estimate=estimate, thinning=thinning)
    found = sample(experiment, runs)
    for name, reference in of_table(policy, loss).items():
        least = 0.0  # of a run's variance, where few runs may show none
        if name == "strong":
            least = reference.mean * (1 - reference.mean)
        elif name == "rounds":
            least = (reference.mean - 1) * max(0.1, 2 - reference.mean)
        else:
            least = spread**2
        off = reference.deviation(found[name], least)
        assert off < CLOSE, f"{name} is {math.fsum(found[name]) / runs:g}, not {reference.mean:g}"


# With the spread of a run's unicasts: a second round is rare and costs several times the first.
SHORT = [
    (("exact", "delay"), 0.1, 53.0),
    (("exact", "delay"), 0.3, 91.0),
    (("exact", "hash"), 0.3, 83.0),
    (("view", "delay"), 0.4, 228.0),
    (("view", "hash"), 0.4, 205.0),
]


@pytest.mark.parametrize("policy, loss, spread", SHORT)
def test_success_rounds_and_unicasts_are_those_of_the_table(
    policy: tuple[str, str], loss: float, spread: float
) -> None:
    check_cell(policy, loss, 18, spread)


@pytest.mark.soak
@pytest.mark.timeout(600)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("policy", POLICIES)
def test_the_whole_table(policy: tuple[str, str], loss: float) -> None:
    check_cell(policy, loss, 600)


# Without loss


def finals_disagree(members: int, view_prob: float, runs: int) -> list[float]:
    """Whether round 1 failed, in groups that lose nothing and where nobody crashes."""
    experiment = experiment_of(members, 0.0, p_fail=0.0, view_prob=view_prob, strategy="7")
    return [1.0 - strong for strong in sample(experiment, runs)["strong"]]


@pytest.mark.parametrize("view_prob", [0.2, 0.3])
def test_without_loss_round_1_fails_as_often_as_the_exact_law_says(
    view_prob: float,
) -> None:
    """The law is that of a large group; a small one is near enough for so few runs."""
    failed = finals_disagree(500, view_prob, 70)
    p = DISAGREE[view_prob]
    assert Reference(p, RUNS, 0.002).deviation(failed, p * (1 - p)) < CLOSE


@pytest.mark.soak
@pytest.mark.timeout(600)
@pytest.mark.parametrize("view_prob", list(DISAGREE))
def test_the_exact_law_with_many_runs(view_prob: float) -> None:
    failed = finals_disagree(2000, view_prob, 4000)
    p = DISAGREE[view_prob]
    assert Reference(p, 10**9, 0.0005).deviation(failed, p * (1 - p)) < CLOSE


# Relay members


@pytest.mark.parametrize("estimate, view_prob, expected", [("exact", 0.5, 7), ("view", 0.5, 14)])
def test_about_as_many_relay_members_as_the_size_they_believe_in_says(
    estimate: str, view_prob: float, expected: float
) -> None:
    experiment = experiment_of(500, 0.0, p_fail=0.0, view_prob=view_prob, estimate=estimate)
    check_relays(experiment, 60, expected)


@pytest.mark.soak
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "estimate, view_prob, expected", [("exact", 0.2, 7), ("view", 0.5, 14), ("view", 0.2, 35)]
)
def test_relay_members_with_many_runs(estimate: str, view_prob: float, expected: float) -> None:
    experiment = experiment_of(2000, 0.0, p_fail=0.0, view_prob=view_prob, estimate=estimate)
    check_relays(experiment, 500, expected)


def check_relays(experiment: Experiment, runs: int, expected: float) -> None:
    """Their number is binomial, or nearly so: the variance is nearly the mean."""
    relays = sample(experiment, runs)["relay_members"]
    assert Reference(expected, RUNS, 0.01 * expected).deviation(relays, 0.9 * expected) < CLOSE
    mean = math.fsum(relays) / runs
    variance = math.fsum((number - mean) ** 2 for number in relays) / (runs - 1)
    assert 0.5 * expected < variance < 1.6 * expected


# By size and by view


def check_means(experiment: Experiment, runs: int, expected: dict[str, Reference]) -> None:
    found = sample(experiment, runs)
    for name, reference in expected.items():
        off = reference.deviation(found[name], reference.mean - 1 if name == "rounds" else 0.0)
        assert off < CLOSE, f"{name} is {math.fsum(found[name]) / runs:g}, not {reference.mean:g}"


def by_size() -> dict[str, Reference]:
    return {
        name: Reference((low + high) / 2, RUNS, (high - low) / 2 + 0.05)
        for name, (low, high) in BY_SIZE.items()
    }


@pytest.mark.parametrize("members", [1000, 3000])
def test_what_it_costs_does_not_depend_on_the_size(members: int) -> None:
    check_means(experiment_of(members, 0.001), 27_000 // members, by_size())


@pytest.mark.soak
@pytest.mark.timeout(900)
@pytest.mark.parametrize("members", [1000, 2000, 3000, 4000, 5000, 6000])
def test_every_size_of_the_paper(members: int) -> None:
    check_means(experiment_of(members, 0.001), 600, by_size())


@pytest.mark.soak
@pytest.mark.timeout(900)
@pytest.mark.parametrize("estimate, view_prob", list(BY_VIEW))
def test_every_view_of_the_paper(estimate: str, view_prob: float) -> None:
    rounds, ucasts = BY_VIEW[estimate, view_prob]
    expected = {
        "rounds": Reference(rounds, RUNS, 0.001),
        "ucasts": Reference(ucasts, RUNS, 0.5),
    }
    experiment = experiment_of(5000, 0.001, view_prob=view_prob, estimate=estimate)
    check_means(experiment, 200, expected)
