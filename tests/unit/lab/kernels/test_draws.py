"""Sequential draws: binomials against their law, in both ways of drawing them."""

from __future__ import annotations

import math

import numpy as np
import pytest

from hustings.lab.kernels.counter import root
from hustings.lab.kernels.draws import Stream, below, binomial, coin, uniform

DRAWS = 20_000


def stream(seed: int) -> Stream:
    return np.array([root(seed), np.uint64(0)], dtype=np.uint64)


def log_pmf(n: int, p: float, k: int) -> float:
    chosen = math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
    return chosen + k * math.log(p) + (n - k) * math.log1p(-p)


@pytest.mark.parametrize(
    "n, p",
    [(1, 0.5), (5, 0.2), (9, 0.9), (40, 0.2), (40, 0.26), (200, 0.06), (1000, 0.3), (300, 0.8)],
)
def test_a_binomial_follows_its_law(n: int, p: float) -> None:
    """Chi-square over the likely values, the rest in one cell, at a level of 1e-4 each."""
    source = stream(n)
    drawn = [binomial(source, n, p) for _ in range(DRAWS)]
    assert min(drawn) >= 0
    assert max(drawn) <= n
    likely = [k for k in range(n + 1) if DRAWS * math.exp(log_pmf(n, p, k)) >= 8.0]
    statistic, rest, seen = 0.0, 1.0, 0
    for k in likely:
        chance = math.exp(log_pmf(n, p, k))
        found = drawn.count(k)
        statistic += (found - DRAWS * chance) ** 2 / (DRAWS * chance)
        rest -= chance
        seen += found
    cells = len(likely) - 1
    if DRAWS * rest >= 1.0:
        statistic += (DRAWS - seen - DRAWS * rest) ** 2 / (DRAWS * rest)
        cells += 1
    # Wilson and Hilferty's cube root makes a normal of it.
    z = ((statistic / cells) ** (1 / 3) - (1 - 2 / (9 * cells))) / math.sqrt(2 / (9 * cells))
    assert z < 3.72


@pytest.mark.parametrize(
    "n, p", [(10**9, 1e-8), (10**9, 1e-6), (10**12, 0.3), (10**12, 1 - 1e-9), (10**9, 1e-300)]
)
def test_a_binomial_of_a_billion(n: int, p: float) -> None:
    """Mean and variance, each within five standard errors."""
    source = stream(7)
    drawn = np.array([float(binomial(source, n, p)) for _ in range(DRAWS)])
    variance = n * p * (1 - p)
    assert abs(drawn.mean() - n * p) <= 5 * math.sqrt(variance / DRAWS) + 1e-9
    fourth = 3 * variance**2 + variance
    assert abs(drawn.var() - variance) <= 5 * math.sqrt(fourth / DRAWS) + 1e-9


def test_what_is_certain_takes_no_draw() -> None:
    source = stream(1)
    assert binomial(source, 0, 0.5) == binomial(source, -3, 0.5) == 0
    assert binomial(source, 9, 0.0) == 0
    assert binomial(source, 9, 1.0) == 9
    assert not coin(source, 0.0)
    assert coin(source, 1.0)
    assert int(source[1]) == 0


def test_numbers_and_places_stay_in_their_range() -> None:
    source = stream(2)
    numbers = [uniform(source) for _ in range(5000)]
    assert min(numbers) > 0.0
    assert max(numbers) <= 1.0
    places = [below(source, 7) for _ in range(5000)]
    assert sorted(set(places)) == list(range(7))
    heads = sum(coin(source, 0.3) for _ in range(5000))
    assert abs(heads - 1500) < 5 * math.sqrt(5000 * 0.21)


@pytest.mark.parametrize("n, p", [(3, 0.5), (7, 0.1), (12, 0.75)])
def test_a_small_binomial_takes_every_value(n: int, p: float) -> None:
    """The rarest of them, all or none, as often as they should."""
    draws = 200_000
    source = stream(5)
    drawn = np.array([binomial(source, n, p) for _ in range(draws)])
    for k in (0, 1, n - 1, n):
        expected = draws * math.exp(log_pmf(n, p, k))
        assert abs(int((drawn == k).sum()) - expected) <= 5 * math.sqrt(expected) + 1
