"""Moments add up to what all values together give, however they were cut."""

from __future__ import annotations

import math
from itertools import pairwise
from statistics import mean, stdev

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hustings.core.errors import ProtocolBug
from hustings.lab.runs.block import NOTHING, Block, Column, Moments, total
from tests.unit.lab.figures.samples import bully

VALUES = st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=40)


@given(VALUES, st.lists(st.integers(0, 40), max_size=4))
def test_moments_of_parts_are_those_of_the_whole(values: list[float], cuts: list[int]) -> None:
    edges = [0, *sorted(min(cut, len(values)) for cut in cuts), len(values)]
    whole = NOTHING
    for first, last in pairwise(edges):
        whole += Moments.of(values[first:last])
    assert whole.count == len(values)
    assert whole.mean == pytest.approx(mean(values), rel=1e-9, abs=1e-6)
    assert whole.stderr == pytest.approx(stdev(values) / math.sqrt(len(values)), rel=1e-6, abs=1e-3)


def test_too_few_values_tell_no_error() -> None:
    assert NOTHING.stderr == math.inf
    assert Moments.of([3.0]).relative == math.inf
    assert Moments.of([3.0, 3.0]).relative == 0.0
    assert Moments.of([-1.0, 1.0]).relative == math.inf  # of a mean of 0
    assert Moments.of([2.0, 4.0]).relative == pytest.approx(1 / 3)


def test_blocks_join_where_they_meet() -> None:
    cell = bully(5)
    one, other = cell.play(3, 0, 10), cell.play(3, 10, 25)
    whole = cell.play(3, 0, 25)
    both = total([one, other])
    assert (both.first, both.last, both.runs) == (0, 25, 25)
    assert both.endings == whole.endings
    assert both.violated == whole.violated
    for name, moments in whole.metrics.items():
        assert both.metrics[name].count == moments.count
        assert both.metrics[name].mean == pytest.approx(moments.mean)
        assert both.metrics[name].moments.spread == pytest.approx(moments.moments.spread)
    with pytest.raises(ProtocolBug, match="does not follow"):
        total([other])
    with pytest.raises(ProtocolBug, match="does not follow"):
        total([one, one])


def test_a_metric_that_some_runs_lack_counts_those_that_have_it() -> None:
    one = Block(0, 2, {"leader": Column(Moments(1, 5.0, 0.0), 5.0, 5.0)}, {"quiescent": 2}, 0)
    other = Block(2, 4, {"time": Column(Moments(2, 1.0, 0.0), 1.0, 1.0)}, {"until": 2}, 1)
    both = total([one, other])
    assert both.metrics["leader"].count == 1
    assert both.metrics["time"].count == 2
    assert both.endings == {"quiescent": 2, "until": 2}
    assert both.violated == 1
