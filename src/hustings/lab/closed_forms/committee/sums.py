"""The arithmetic behind the forms: laws without negligible ends, and sums of independent ones."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import exp, lgamma, log, log1p, sqrt
from operator import mul

Law = tuple[int, tuple[float, ...]]  # the first value, and the probabilities from there on

WIDTH = 9.0  # standard deviations to each side of the mean; beyond is less than 1e-15
EXACT = 64  # a law so short is not cut


@lru_cache(8192)
def binomial(n: int, p: float) -> Law:
    """The law of Bin(n, p).

    >>> first, law = binomial(2, 0.5)
    >>> first, [round(chance, 4) for chance in law]
    (0, [0.25, 0.5, 0.25])
    """
    if p in (0.0, 1.0):
        return (0, (1.0,)) if p == 0 else (n, (1.0,))
    low, high = _window(n * p, sqrt(n * p * (1 - p)), n)
    top = lgamma(n + 1)
    found = [
        exp(top - lgamma(j + 1) - lgamma(n - j + 1) + j * log(p) + (n - j) * log1p(-p))
        for j in range(low, high + 1)
    ]
    return low, _whole(found)


@lru_cache(256)
def hypergeometric(n: int, bad: int, k: int) -> Law:
    """The law of the bad ones among k of n.

    >>> first, law = hypergeometric(4, 2, 2)
    >>> first, [round(chance, 4) for chance in law]
    (0, [0.1667, 0.6667, 0.1667])
    """
    share = bad / n
    spread = sqrt(k * share * (1 - share))
    low, high = _window(k * share, spread, min(k, bad))
    low = max(low, k - (n - bad))
    all_ways = _choose(n, k)
    found = [
        exp(_choose(bad, j) + _choose(n - bad, k - j) - all_ways) for j in range(low, high + 1)
    ]
    return low, _whole(found)


def tail(n: int, p: float, least: int) -> float:
    """P(Bin(n, p) >= least).

    >>> round(tail(4, 0.5, 3), 4), tail(4, 0.5, 0), tail(4, 0.5, 5)
    (0.3125, 1.0, 0.0)
    """
    if least <= 0:
        return 1.0
    if least > n or p <= 0:
        return 0.0
    if p >= 1:
        return 1.0
    top = lgamma(n + 1)
    rest, far = 0.0, min(n, int(max(least, n * p) + 40 * sqrt(n)) + 40)
    for j in range(far, least - 1, -1):  # the smallest first
        rest += exp(top - lgamma(j + 1) - lgamma(n - j + 1) + j * log(p) + (n - j) * log1p(-p))
    return min(1.0, rest)


def convolve(one: Sequence[float], other: Sequence[float], most: int | None = None) -> list[float]:
    """The law of a sum of two independent numbers, or its first `most` values.

    >>> convolve([0.5, 0.5], [0.25, 0.75]), convolve([0.5, 0.5], [0.25, 0.75], 2)
    ([0.125, 0.5, 0.375], [0.125, 0.5])
    """
    a, b = len(one), len(other)
    back = other[::-1]
    length = a + b - 1 if most is None else min(most, a + b - 1)
    return [
        sum(map(mul, one[max(0, i - b + 1) : i + 1], back[max(0, b - 1 - i) :]))
        for i in range(length)
    ]


def _choose(n: int, k: int) -> float:
    return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)


def _window(mean: float, spread: float, most: int) -> tuple[int, int]:
    if most <= EXACT:
        return 0, most
    reach = WIDTH * spread + WIDTH
    return max(0, int(mean - reach)), min(most, int(mean + reach) + 1)


def _whole(found: list[float]) -> tuple[float, ...]:
    total = sum(found)
    return tuple(value / total for value in found)
