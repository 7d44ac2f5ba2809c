"""How many runs are enough."""

from __future__ import annotations

import math
import random

import pytest

from hustings.core.errors import BadInput, UnknownName
from hustings.lab.runs.block import Column
from hustings.lab.runs.playing import GROWTH, PILOT, Precision, Runs, rounded_up


def reached(values: list[float], goal: Precision) -> int:
    """Runs that it comes to, if run k has the k-th value."""
    runs = goal.first
    while (wanted := goal.next(runs, {"tmax": Column.of(values[:runs])})) > runs:
        assert wanted <= GROWTH * runs
        runs = wanted
    return runs


def test_a_number_of_runs_is_that_number() -> None:
    assert Runs(7).first == Runs(7).next(7, {}) == 7


def test_it_stops_where_the_error_is_small_enough_and_not_far_beyond() -> None:
    source = random.Random(1)
    values = [source.gauss(5.0, 1.0) for _ in range(100_000)]
    runs = reached(values, Precision(0.01, 100_000))
    assert Column.of(values[:runs]).moments.stderr <= 0.01
    assert 9_000 < runs < 12_000, "10,000 values of variance 1 are needed"


def test_the_bound_is_kept() -> None:
    source = random.Random(1)
    goal = Precision(0.001, 5_000)
    values = [source.gauss(5.0, 1.0) for _ in range(5_000)]
    assert reached(values, goal) == 5_000
    told = goal.shortfall(5_000, {"tmax": Column.of(values)})
    assert told is not None
    assert "0.014 after 5,000 runs, the most allowed: 0.001 would take about 1,100,000" in told
    assert "raise runs" in told


def test_a_share_that_has_shown_one_side_only_is_not_taken_for_certain() -> None:
    """Once in two thousand: 200 runs without a failure say little."""
    values = [1.0] * 100_000
    assert reached(values, Precision(0.001, 100_000)) == 1_000
    for place in range(777, 100_000, 2_000):
        values[place] = 0.0
    assert reached(values, Precision(0.0005, 100_000)) > 1_000
    assert reached([7.0] * 1_000, Precision(1e-9, 1_000)) == PILOT, "no share: nothing varies"


def test_a_metric_without_values_goes_to_the_bound_and_is_told() -> None:
    goal = Precision(0.1, 1_000, "leader")
    nothing = {"leader": Column()}
    assert goal.next(200, nothing) == 1_000
    told = goal.shortfall(1_000, nothing)
    assert told is not None
    assert "leader has fewer than two values in 1,000 runs" in told


def test_beyond_what_is_ever_played_no_more_runs_are_advised() -> None:
    goal = Precision(1e-9, 1_000, "tmax")
    told = goal.shortfall(1_000, {"tmax": Column.of([0.0, 3.0] * 500)})
    assert told is not None
    assert "beyond the 10,000,000 that are ever played" in told


def test_which_metric_is_meant() -> None:
    assert Precision(1.0, 9).aim(["time", "tmax", "strong"]) == "strong"
    assert Precision(1.0, 9).aim(["messages", "time"]) == "time"
    assert Precision(1.0, 9).aim(["a", "b"]) == "b"
    with pytest.raises(UnknownName, match="did you mean 'strong'"):
        Precision(1.0, 9, "strng").aim(["strong"])


@pytest.mark.parametrize("stderr", [0.0, -1.0, math.inf, math.nan])
def test_an_error_that_is_none_is_refused(stderr: float) -> None:
    with pytest.raises(BadInput, match="stderr must be a number > 0"):
        Precision(stderr, 1_000)


@pytest.mark.parametrize("number", [1, 9, 10, 99, 100, 101, 12_345, 9_999_999])
def test_rounding_goes_up_and_not_far(number: int) -> None:
    assert number <= rounded_up(number) <= 1.1 * number
