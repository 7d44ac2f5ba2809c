"""What an election costs does not grow with the group: neither messages nor memory per member."""

from __future__ import annotations

import math
import tracemalloc

import pytest

from hustings.sim.experiment import Experiment
from hustings.sim.play import play, prepare
from tests.agreement.probabilistic.test_reference import experiment_of

MOST_BYTES = 2_000  # per member, with all that a run leaves behind


def messages_of(members: int, runs: int) -> tuple[float, float]:
    """Mean and standard error of all messages of one round."""
    experiment = experiment_of(members, 0.1, strategy="7")
    found = [float(play(experiment, run).metrics["messages"] or 0.0) for run in range(runs)]
    mean = math.fsum(found) / runs
    variance = math.fsum((number - mean) ** 2 for number in found) / (runs - 1)
    return mean, math.sqrt(variance / runs)


def bytes_per_member(experiment: Experiment) -> float:
    """What a run holds at its end."""
    tracemalloc.start()
    try:
        world = prepare(experiment, 0)
        world.run()
        return tracemalloc.get_traced_memory()[0] / experiment.members
    finally:
        tracemalloc.stop()


def check_flat(small: tuple[int, int], large: tuple[int, int]) -> None:
    """Members and runs of two groups: messages differ by chance only, and there are some."""
    one, other = messages_of(*small), messages_of(*large)
    assert abs(one[0] - other[0]) < 4 * math.hypot(one[1], other[1])
    assert 30 < one[0] < 90


def test_messages_stay_flat() -> None:
    check_flat((400, 100), (4_000, 12))


@pytest.mark.soak
@pytest.mark.timeout(900)
def test_messages_stay_flat_up_to_fifty_thousand() -> None:
    check_flat((1_000, 400), (50_000, 60))


def test_a_member_takes_little_memory_whatever_the_size_of_the_group() -> None:
    small, large = (bytes_per_member(experiment_of(members, 0.1)) for members in (1_000, 8_000))
    assert small < MOST_BYTES
    assert large < MOST_BYTES


@pytest.mark.soak
@pytest.mark.timeout(900)
@pytest.mark.parametrize("estimate", ["exact", "view"])
def test_fifty_thousand_members_fit(estimate: str) -> None:
    """With views of 25,000 each, which as lists would be ten gigabytes."""
    assert bytes_per_member(experiment_of(50_000, 0.1, estimate=estimate)) < MOST_BYTES
