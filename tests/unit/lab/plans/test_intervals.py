"""Intervals, compared with sums by hand, with printed tables and with laws that are known."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import combinations
from math import comb, exp, factorial, inf, log
from random import Random
from statistics import fmean

import pytest

from hustings.core.errors import BadInput
from hustings.lab.plans.intervals import (
    _later_below,
    beta_below,
    binomial_at_least,
    fewest_values,
    gamma_below,
    mean_of,
    paired,
    paired_quantiles,
    poisson_rate,
    proportion,
    quantile,
    rank,
    student_quantile,
    weighted_rate,
)

# Exact laws


@pytest.mark.parametrize("trials", [1, 5, 40, 300])
@pytest.mark.parametrize("p", [0.01, 0.3, 0.5, 0.99])
def test_binomial_tails_are_sums(trials: int, p: float) -> None:
    for events in sorted({0, 1, trials // 2, trials, trials + 1}):
        exact = sum(
            comb(trials, k) * Fraction(p) ** k * (1 - Fraction(p)) ** (trials - k)
            for k in range(events, trials + 1)
        )
        assert binomial_at_least(events, trials, p) == pytest.approx(float(exact), abs=1e-12)


@pytest.mark.parametrize("mean", [0.2, 3.0, 30.0, 130.0])
def test_gamma_law_is_a_sum_of_poisson(mean: float) -> None:
    """P(gamma of shape k at most x) = P(at least k events, of which x are expected)."""
    for shape in (1, 2, 25, 120):
        below = sum(exp(-mean + k * log(mean)) / factorial(k) for k in range(shape))
        assert gamma_below(mean, shape) == pytest.approx(1.0 - below, abs=1e-12)


def test_beta_law_at_its_ends() -> None:
    assert beta_below(0.0, 2.0, 3.0) == 0.0
    assert beta_below(1.0, 2.0, 3.0) == 1.0
    assert beta_below(0.25, 1.0, 1.0) == pytest.approx(0.25)


@pytest.mark.parametrize(
    "events, low, high",
    # Garwood's table for 95 %, as printed in textbooks.
    [(1, 0.0253, 5.572), (5, 1.623, 11.668), (10, 4.795, 18.390), (100, 81.364, 121.627)],
)
def test_garwood(events: int, low: float, high: float) -> None:
    found = poisson_rate(events, 2.0)
    assert found.value == events / 2
    assert found.low == pytest.approx(low / 2, abs=5e-4)
    assert found.high == pytest.approx(high / 2, abs=5e-4)


def test_nothing_counted_has_an_upper_end() -> None:
    found = poisson_rate(0, 1000.0)
    assert (found.value, found.low) == (0.0, 0.0)
    assert exp(-found.high * 1000.0) == pytest.approx(0.05)
    assert proportion(0, 50).high == pytest.approx(1.0 - 0.05 ** (1 / 50))
    assert proportion(50, 50).low == pytest.approx(0.05 ** (1 / 50))


@pytest.mark.parametrize("mean", [8.0, 20.0])
def test_weighted_events(mean: float) -> None:
    """Events with weights that differ by a factor of ten; the interval is known to be careful."""
    rng, hit, times = Random(7), 0, 300
    true = mean * fmean([1.0, 0.1, 0.3])
    for _ in range(times):
        left, weights = -log(1.0 - rng.random()), list[float]()
        while left < mean:
            weights.append(rng.choice([1.0, 0.1, 0.3]))
            left -= log(1.0 - rng.random())
        hit += not weights or true / 5.0 in weighted_rate(weights, 5.0)
    assert hit / times >= 0.93
    alike = weighted_rate([0.25] * 8, 2.0)
    garwood = poisson_rate(8, 2.0).times(0.25)
    assert (alike.low, alike.high) == pytest.approx((garwood.low, garwood.high))


@pytest.mark.parametrize(
    "events, trials, low, high",
    # Clopper and Pearson for 95 %: 3 of 100 and 5 of 10, as printed in textbooks.
    [(3, 100, 0.0062, 0.0852), (5, 10, 0.1871, 0.8129)],
)
def test_shares(events: int, trials: int, low: float, high: float) -> None:
    found = proportion(events, trials)
    assert found.low == pytest.approx(low, abs=5e-5)
    assert found.high == pytest.approx(high, abs=5e-5)


@pytest.mark.parametrize("degrees, printed", [(1, 12.706), (4, 2.776), (10, 2.228), (120, 1.980)])
def test_student(degrees: int, printed: float) -> None:
    assert student_quantile(0.95, degrees) == pytest.approx(printed, abs=6e-4)


# Quantiles

SAMPLES = 300  # an interval of 95 % then covers at least 91 % of them, but once in a thousand tests
LEAST = 0.91
Law = Callable[[Random], float]
LAWS: dict[str, tuple[Law, Callable[[float], float]]] = {
    "uniform": (lambda rng: rng.random(), lambda p: p),
    "exponential": (lambda rng: rng.expovariate(1.0), lambda p: -log(1.0 - p)),
    # A failover that usually takes a time-out, and sometimes a second one.
    "two steps": (
        lambda rng: rng.random() + (2.0 if rng.random() < 0.05 else 0.0),
        lambda p: p / 0.95 if p <= 0.95 else 2.0 + (p - 0.95) / 0.05,
    ),
}


def covered(law: str, count: int, p: float, future: int | None = None) -> float:
    """The share of samples whose interval has the true quantile in it, or that of later values."""
    draw, true = LAWS[law]
    rng, times, hit = Random(count), SAMPLES, 0
    for _ in range(times):
        found = quantile([draw(rng) for _ in range(count)], p, future=future)
        wanted = true(p)
        if future is not None:
            later = sorted(draw(rng) for _ in range(future))
            wanted = later[rank(p, future) - 1]
        hit += wanted in found
    return hit / times


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("count, p", [(400, 0.99), (60, 0.5), (100, 0.9)])
def test_intervals_by_order_statistics_cover(law: str, count: int, p: float) -> None:
    assert covered(law, count, p) >= LEAST


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("count, future", [(400, 400), (400, 1000), (400, 150), (60, 60)])
def test_intervals_cover_later_quantiles(law: str, count: int, future: int) -> None:
    assert covered(law, count, 0.99, future=future) >= LEAST


def test_intervals_are_not_too_wide() -> None:
    """An interval for the true quantile is too narrow for that of a few later values."""
    draw, _ = LAWS["exponential"]
    rng, hit = Random(5), 0
    for _ in range(300):
        found = quantile([draw(rng) for _ in range(2000)], 0.5)
        hit += sorted(draw(rng) for _ in range(20))[9] in found
    assert hit / 300 < 0.5


def test_the_law_of_later_values_is_that_of_all_orders() -> None:
    """Three values now and two later: of ten orders, each as likely, count by hand."""
    for r in (1, 2, 3):
        above = 0
        for later in combinations(range(5), 2):  # places of the later values
            now = [place for place in range(5) if place not in later]
            above += now[r - 1] < later[1]  # the later value of rank 2, their 0.99th quantile
        assert _later_below(r, 3, 2, 0.99) == pytest.approx(above / 10)


@pytest.mark.parametrize(
    "law, count",
    # Of 30 values with two modes often none shows the rare one.
    [(law, count) for law in LAWS for count in (30, 120, 360) if (law, count) != ("two steps", 30)],
)
def test_a_small_sample_is_continued_and_covers(law: str, count: int) -> None:
    assert covered(law, count, 0.99) >= LEAST
    found = quantile([float(k) for k in range(count)], 0.99)
    assert found.method.startswith("extrapolated from")
    assert found.high >= count - 1


def test_a_sample_that_is_large_enough_is_not_continued() -> None:
    assert fewest_values(0.99) == 368
    assert quantile([float(k) for k in range(367)], 0.99).method != "order statistics"
    assert quantile([float(k) for k in range(368)], 0.99).method == "order statistics"


def test_values_that_resemble_each_other_count_as_fewer() -> None:
    rng = Random(3)
    clusters = [seed for seed in range(100) for _ in range(10)]
    alike = [float(seed) for seed in clusters]  # all values of a cluster are equal
    apart = [rng.random() for _ in clusters]
    wide, narrow = (quantile(alike, 0.9, clusters=each) for each in (clusters, None))
    assert wide.high - wide.low > 2 * (narrow.high - narrow.low)
    same, plain = (quantile(apart, 0.9, clusters=each) for each in (clusters, None))
    assert same.high - same.low < 1.5 * (plain.high - plain.low)


def test_what_never_ended_is_no_number() -> None:
    found = quantile([1.0] * 90 + [inf] * 10, 0.99)
    assert (found.value, found.high) == (inf, inf)
    assert found.method == "order statistics; 10 of 100 never ended"
    assert quantile([1.0] * 999 + [inf], 0.5).high == 1.0


def test_three_values_have_no_upper_end() -> None:
    found = quantile([1.0, 2.0, 3.0], 0.99)
    assert (found.value, found.high) == (3.0, inf)
    assert "too few" in found.method


def test_refusals() -> None:
    with pytest.raises(BadInput, match="at least one value"):
        quantile([], 0.5)
    with pytest.raises(BadInput, match="between 0 and 1"):
        quantile([1.0], 1.0)
    with pytest.raises(BadInput, match="cluster"):
        quantile([1.0], 0.5, clusters=[1, 2])
    with pytest.raises(BadInput, match="time that is more than 0"):
        poisson_rate(3, 0.0)
    with pytest.raises(BadInput, match="a weight and a time"):
        weighted_rate([0.0], 1.0)
    with pytest.raises(BadInput, match="trials"):
        proportion(3, 2)


# Differences


def test_paired_differences_lose_what_both_have() -> None:
    """Both depend on the seed much more than on the candidate."""
    rng = Random(2)
    both = [100.0 * rng.random() for _ in range(30)]
    first = [each + rng.random() for each in both]
    second = [each + 1.0 + rng.random() for each in both]
    found = paired(first, second)
    assert 1.0 in found
    assert 0.0 not in found
    alone = [mean_of(each) for each in (first, second)]
    assert alone[0].high > alone[1].low  # without pairs nothing could be said


def test_paired_quantiles() -> None:
    rng = Random(4)
    both = [[rng.random() for _ in range(10)] for _ in range(60)]
    later = [[each + 0.25 for each in values] for values in both]
    found = paired_quantiles(both, later, 0.9)
    assert found.value == pytest.approx(0.25)
    assert found.high - found.low < 1e-12
    assert paired_quantiles(both, later, 0.9) == found  # the bootstrap has a seed
    with pytest.raises(BadInput, match="as many seeds"):
        paired_quantiles(both, later[1:], 0.9)


def test_one_value_has_no_interval() -> None:
    assert mean_of([3.0]).high == inf
    assert "no interval" in mean_of([3.0]).method
