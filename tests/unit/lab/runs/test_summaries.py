"""Summaries against the statistics module and the definitions."""

from __future__ import annotations

import math
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hustings.lab.runs.engines import Summary, quantile, summarise, summarise_runs

VALUES = st.lists(st.floats(-1e6, 1e6) | st.integers(-100, 100), min_size=1, max_size=60)


@given(VALUES)
def test_a_summary_is_what_the_statistics_module_says(values: list[float]) -> None:
    summary = summarise(values)
    assert summary.mean == pytest.approx(statistics.fmean(values), abs=1e-9)
    assert (summary.min, summary.max) == (min(values), max(values))
    assert summary.p50 == pytest.approx(statistics.median(values), abs=1e-9)
    if len(values) == 1:
        assert summary.stderr is None
    else:
        expected = statistics.stdev(values) / math.sqrt(len(values))
        assert summary.stderr == pytest.approx(expected, abs=1e-6, rel=1e-9)
        cuts = statistics.quantiles(values, n=100, method="inclusive")
        assert summary.p99 == pytest.approx(cuts[98], abs=1e-6, rel=1e-9)


@given(VALUES)
def test_the_order_of_the_values_does_not_matter(values: list[float]) -> None:
    assert summarise(values) == summarise(reversed(values)) == summarise(sorted(values))


@given(VALUES, st.floats(0.0, 1.0))
def test_a_quantile_lies_between_its_neighbours(values: list[float], q: float) -> None:
    ordered = sorted(values)
    place = q * (len(ordered) - 1)
    low, high = ordered[math.floor(place)], ordered[math.ceil(place)]
    assert min(low, high) - 1e-6 <= quantile(ordered, q) <= max(low, high) + 1e-6


def test_quantiles_by_hand() -> None:
    assert [quantile([10.0, 20.0, 40.0], q) for q in (0.0, 0.25, 0.5, 0.75, 1.0)] == [
        10.0,
        15.0,
        20.0,
        30.0,
        40.0,
    ]
    assert quantile([7.0], 0.99) == 7.0


def test_a_summary_by_hand() -> None:
    assert summarise(range(101)) == Summary(
        mean=50.0, stderr=8.5**0.5, min=0.0, p50=50.0, p99=99.0, max=100.0
    )


def test_nothing_cannot_be_summarised() -> None:
    with pytest.raises(ValueError, match="no values"):
        summarise([])


def test_runs_without_a_metric_do_not_count_for_it() -> None:
    runs: list[dict[str, float | None]] = [
        {"time": 1.0, "leader": None, "never": None},
        {"time": 3.0, "leader": 5.0, "never": None},
        {"time": 5.0, "leader": 7.0, "never": None},
    ]
    summaries = summarise_runs(runs)
    assert summaries["time"] == summarise([1.0, 3.0, 5.0])
    assert summaries["leader"] == summarise([5.0, 7.0])
    assert summaries["never"] is None


def test_as_json_it_has_every_number_by_name() -> None:
    assert summarise([2.0]).to_json() == {
        "mean": 2.0,
        "stderr": None,
        "min": 2.0,
        "p50": 2.0,
        "p99": 2.0,
        "max": 2.0,
    }
