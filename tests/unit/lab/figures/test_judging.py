"""Verdicts come from numbers: each judge is shown numbers that hold, fail and cannot tell."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest

from hustings.lab.figures.figure import ClaimVerdict, Finding, MeasuredPoint
from hustings.lab.figures.judging import (
    above,
    agrees,
    apart,
    compared,
    constant,
    equal,
    gap,
    grows,
    limit,
    paired,
    same,
    shown,
    together,
    too_few,
)
from tests.unit.lab.figures.samples import bully

HOLDS, FAILS, OPEN = ClaimVerdict.HOLDS, ClaimVerdict.FAILS, ClaimVerdict.UNDECIDED
PARTLY = ClaimVerdict.PARTLY


def points(
    means: Sequence[float], stderr: float = 0.01, exact: float | None = None
) -> list[MeasuredPoint]:
    return [
        MeasuredPoint(bully(3 + place), 100, mean, stderr, exact)
        for place, mean in enumerate(means)
    ]


def test_the_limit_grows_with_the_number_of_comparisons() -> None:
    assert [limit(1), limit(10), limit(1000)] == sorted([limit(1), limit(10), limit(1000)])
    assert limit(0) == limit(1)


@pytest.mark.parametrize(
    "means, stderr, exact, verdict",
    [
        ([1.0, 1.02, 0.98], 0.01, 1.0, HOLDS),
        ([1.0, 1.05], 0.01, 1.0, FAILS),
        ([0.95, 1.0], 0.01, 1.0, FAILS),
        ([1.0, 1.05], 0.2, 1.0, OPEN),  # errors this wide prove no equality
        ([2.0], 0.2, 1.0, FAILS),  # but they do not hide everything
        ([1.0], 0.0, 1.0, HOLDS),  # a count, not an estimate
        ([1.0], 0.0, 1.5, FAILS),
        ([1.0], math.inf, 1.0, OPEN),  # a single run
        ([1.0, 1.0], 0.01, None, OPEN),  # nothing to compare with
    ],
)
def test_agreement(
    means: list[float], stderr: float, exact: float | None, verdict: ClaimVerdict
) -> None:
    found = agrees("x", points(means, stderr, exact))
    assert found.verdict is verdict
    assert not found.theirs
    if exact is not None:
        pairs = [(point, exact) for point in points(means, stderr)]
        assert compared("x", pairs).verdict is verdict


@pytest.mark.parametrize(
    "means, stderr, verdict",
    [
        ([1.0, 1.01, 0.99, 1.0], 0.01, HOLDS),
        ([1.0, 1.1, 1.2, 1.3], 0.01, FAILS),
        ([1.0, 1.1, 1.2, 1.3], 0.5, OPEN),
        ([0.5, 0.5], 0.0, HOLDS),
    ],
)
def test_constancy(means: list[float], stderr: float, verdict: ClaimVerdict) -> None:
    assert constant("x", points(means, stderr)).verdict is verdict


@pytest.mark.parametrize(
    "upper, lower, stderr, verdict",
    [
        ([2.0, 3.0], [1.0, 2.0], 0.01, HOLDS),
        ([2.0, 1.0], [1.0, 1.0], 0.01, HOLDS),  # not told apart in one place
        ([2.0, 1.0], [1.0, 2.0], 0.01, FAILS),
        ([2.0, 3.0], [1.0, 2.0], 2.0, OPEN),
        ([1.0, 1.0], [1.0, 1.0], 0.0, OPEN),
    ],
)
def test_order(
    upper: list[float], lower: list[float], stderr: float, verdict: ClaimVerdict
) -> None:
    found = above("x", points(upper, stderr), points(lower, stderr))
    assert found.verdict is verdict
    if upper == [2.0, 1.0] and verdict is HOLDS:
        assert "Not told apart at N = 4" in found.evidence
    if verdict is FAILS:
        assert "The other way round at N = 4" in found.evidence


def test_growth() -> None:
    assert grows("x", points([1.0, 2.0, 3.0])).verdict is HOLDS
    assert grows("x", points([1.0, 2.0, 1.5])).verdict is FAILS


@pytest.mark.parametrize(
    "upper, lower, stderr, verdict",
    [
        ([1.5, 2.5], [1.0, 2.0], 0.01, HOLDS),
        ([1.5, 2.6], [1.0, 2.0], 0.01, FAILS),
        ([1.5, 2.6], [1.0, 2.0], 0.2, OPEN),
    ],
)
def test_gap(upper: list[float], lower: list[float], stderr: float, verdict: ClaimVerdict) -> None:
    found = gap("x", points(upper, stderr), points(lower, stderr), lambda _: 0.5)
    assert found.verdict is verdict
    shifted = points([mean - 0.5 for mean in upper], stderr)
    assert equal("x", shifted, points(lower, stderr)).verdict is verdict


def test_apart_counts_in_errors_of_both() -> None:
    one, other = points([1.3], 0.03)[0], points([1.0], 0.04)[0]
    assert apart(one, other) == pytest.approx(6.0)
    assert apart(one, other, 0.3) == pytest.approx(0.0)
    exact = points([1.0], 0.0)[0]
    assert apart(exact, exact) == 0.0
    assert apart(points([2.0], 0.0)[0], exact) == math.inf


@pytest.mark.parametrize(
    "verdicts, verdict",
    [
        ([HOLDS, HOLDS], HOLDS),
        ([FAILS, FAILS], FAILS),
        ([HOLDS, FAILS], PARTLY),
        ([HOLDS, PARTLY], PARTLY),
        ([HOLDS, OPEN], OPEN),
        ([OPEN, FAILS, HOLDS], OPEN),
    ],
)
def test_several_legs(verdicts: list[ClaimVerdict], verdict: ClaimVerdict) -> None:
    found = together("all", [Finding("leg", each, "numbers.") for each in verdicts])
    assert found.verdict is verdict
    assert found.evidence.count("numbers.") == len(verdicts)


@pytest.mark.parametrize(
    "mean, stderr, text",
    [(7.41138, 0.0123, "7.411 ± 0.012"), (312.4, 2.9, "312.4 ± 2.9"), (5.0, 0.0, "5.000 ± 0.000")],
)
def test_numbers_are_shown_as_precisely_as_they_are_known(
    mean: float, stderr: float, text: str
) -> None:
    assert shown(MeasuredPoint(bully(4), 10, mean, stderr)) == text


def test_a_single_run_has_no_error_to_show() -> None:
    assert shown(MeasuredPoint(bully(4), 1, 2.5, math.inf)) == "2.5"


def test_points_without_an_error_decide_nothing_about_constancy() -> None:
    single = points([0.4, 0.6], math.inf)
    assert constant("flat", single).verdict is ClaimVerdict.UNDECIDED


def test_few_runs_decide_nothing() -> None:
    few = [MeasuredPoint(bully(3), 99, 2.0, 0.01, 1.0)]
    enough = [MeasuredPoint(bully(3), 100, 2.0, 0.01, 1.0)]
    assert agrees("x", few).verdict is OPEN
    assert agrees("x", enough).verdict is FAILS
    assert above("x", few, enough).verdict is OPEN
    assert gap("x", few, enough, lambda _: 1.0).verdict is OPEN
    assert too_few(few) == "99 runs decide nothing: it takes 100."
    assert too_few(enough) == too_few([]) == ""


def test_points_are_compared_where_both_sides_have_one() -> None:
    ones, others = points([1.0, 2.0, 3.0]), points([1.5, 2.5])
    assert paired(ones, others[1:]) == [(ones[1], others[1])]
    assert above("x", ones, others[1:]).verdict is FAILS
    assert equal("x", ones[2:], points([9.0, 9.0, 3.0])).verdict is HOLDS
    assert above("x", ones[:1], others[1:]).verdict is OPEN
    assert gap("x", ones[:1], others[1:], lambda _: 0.0).evidence == "Nothing to compare."


def test_two_points_of_different_groups() -> None:
    one, _, other = points([1.0, 5.0, 1.01])
    assert same("x", one, other).verdict is HOLDS
    assert same("x", one, other).evidence == "1.000 ± 0.010 and 1.010 ± 0.010."
    _, far = points([1.0, 1.2])
    assert same("x", one, far).verdict is FAILS
