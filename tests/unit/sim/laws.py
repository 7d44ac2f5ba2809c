"""Exact tests of chance: how surprising is a count under a stated law?

All draws in these tests come from fixed seeds, so a test passes always or never. `LEVEL` bounds the
probability that a correct program would have been given a seed on which a single test fails.
"""

from __future__ import annotations

from math import exp, lgamma, log

LEVEL = 1e-6


def binomial(k: int, n: int, p: float) -> float:
    """The probability of k successes in n tries."""
    if p in (0.0, 1.0):
        return float(k == n * p)
    ways = lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)
    return exp(ways + k * log(p) + (n - k) * log(1.0 - p))


def surprise(k: int, n: int, p: float) -> float:
    """The two-sided exact binomial test: the probability of a count at least as unlikely as k."""
    mine = binomial(k, n, p) * (1.0 + 1e-9)
    return sum(each for i in range(n + 1) if (each := binomial(i, n, p)) <= mine)


def believable(k: int, n: int, p: float) -> bool:
    """Whether k of n is no reason to doubt p."""
    return surprise(k, n, p) > LEVEL
