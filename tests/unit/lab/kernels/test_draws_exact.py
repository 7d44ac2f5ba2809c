"""Single draws against exact probabilities: inversion by its steps, rejection by a plain twin.

The mixing function of the generator can be inverted, so a test can ask what a binomial makes of any
number of (0, 1] that it is given. A sample reaches no tail of 1e-12; these tests do.
"""

from __future__ import annotations

import math
from itertools import accumulate
from random import Random
from typing import Any

import numba
import numpy as np
import pytest
from numpy.typing import NDArray

from hustings.lab.kernels.counter import FIRST, SECOND, STEP, root
from hustings.lab.kernels.draws import Stream, _tail, binomial, uniform
from tests.unit.sim.laws import LEVEL

WORDS = 1 << 64
NEAR = 1e-13  # a number this far from a step must fall on its own side of it
FINEST = 1e-12  # tails are followed down to here; numbers are 1.1e-16 apart

SMALL = [(1, 0.5), (3, 0.5), (9, 0.1), (12, 0.75), (40, 0.2), (40, 0.24), (900, 0.01), (99, 0.95)]
LARGE = [(20, 0.5), (40, 0.26), (60, 0.5), (200, 0.06), (300, 0.8), (1000, 0.3), (10**6, 0.001)]


def unshifted(x: int, by: int) -> int:
    """What `x ^ (x >> by)` was made of."""
    found = x
    for _ in range(64 // by + 1):
        found = x ^ (found >> by)
    return found


def stream_of(number: float, low: int = 0) -> Stream:
    """A stream whose next number is this one; `low` are the bits of its word that nobody sees."""
    x = ((round(number * 2.0**53) - 1) << 11) | low
    x = unshifted(x, 31) * pow(int(SECOND), -1, WORDS) % WORDS
    x = unshifted(x, 27) * pow(int(FIRST), -1, WORDS) % WORDS
    x = unshifted(x, 30)
    return np.array([(x - 2 * int(STEP)) % WORDS, 0], dtype=np.uint64)


def steps(n: int, p: float) -> tuple[list[float], list[float]]:
    """The probabilities of at most k and of more than k for every k, exact but for one rounding."""
    one, whole = p.as_integer_ratio()  # in whole numbers: a sum of fractions would take minutes
    ways = (math.comb(n, k) * one**k * (whole - one) ** (n - k) for k in range(n + 1))
    sums = list(accumulate(ways))
    return [each / sums[-1] for each in sums], [(sums[-1] - each) / sums[-1] for each in sums]


def test_a_stream_gives_the_number_it_was_made_for() -> None:
    rng = Random(1)
    for number in (2.0**-53, 0.5, 1.0 - 2.0**-53, 1.0, *(rng.random() for _ in range(20))):
        for low in (0, 1, 2047):
            assert uniform(stream_of(number, low)) == round(number * 2.0**53) * 2.0**-53


@pytest.mark.parametrize("n, p", SMALL)
def test_inversion_steps_where_the_law_does(n: int, p: float) -> None:
    """Just before the end of each value's share it is that value, and just after it the next."""
    share = p if p <= 0.5 else 1.0 - p
    reached = 0
    for k, step in enumerate(steps(n, share)[0]):
        before, after = step - NEAR, step + NEAR
        if before > 0.0:
            found = binomial(stream_of(before), n, p)
            assert found == (k if p <= 0.5 else n - k), (k, before)
        if after >= 1.0 - FINEST:
            break
        if after > FINEST:
            found = binomial(stream_of(after), n, p)
            assert found == (k + 1 if p <= 0.5 else n - k - 1), (k, after)
        reached = k
    assert n < 12 or reached > 6 + n * share  # the tail was looked at, not only the middle


@pytest.mark.parametrize("n, p", SMALL)
def test_the_last_number_is_a_value_too(n: int, p: float) -> None:
    """Sums of rounded chances may end below 1: what lies beyond is drawn anew, and ends."""
    for number in (1.0, 1.0 - 2.0**-53, 2.0**-53):
        assert 0 <= binomial(stream_of(number), n, p) <= n


def log_chance(n: int, p: float, k: float) -> float:
    chosen = math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
    return chosen + k * math.log(p) + (n - k) * math.log1p(-p)


def twin(stream: Stream, n: int, p: float) -> int:
    """Hoermann's BTRD as the paper states it: no squeeze, and chances in full."""
    if p > 0.5:
        return n - twin(stream, n, 1.0 - p)
    spread = math.sqrt(n * p * (1 - p))
    b = 1.15 + 2.53 * spread
    a = -0.0873 + 0.0248 * b + 0.01 * p
    alpha = (2.83 + 5.1 / b) * spread
    top = log_chance(n, p, math.floor((n + 1) * p))
    while True:
        u, v = uniform(stream) - 0.5, uniform(stream)
        us = 0.5 - abs(u)
        if us <= 0.0:
            continue
        k = math.floor((2 * a / us + b) * u + n * p + 0.5)
        if 0 <= k <= n and v * alpha / (a / us**2 + b) <= math.exp(log_chance(n, p, k) - top):
            return k


@pytest.mark.parametrize("n, p", LARGE)
def test_rejection_takes_what_the_law_takes(n: int, p: float) -> None:
    """First numbers of all sizes, most of them next to the ends: that is where the tails are."""
    rng = Random(n)
    tails = [2.0**-power * (1.0 + rng.random()) for power in range(2, 30) for _ in range(12)]
    firsts = [*(rng.random() for _ in range(300)), *tails, *(1.0 - each for each in tails)]
    found = set()
    for first in firsts:
        low = rng.randrange(2048)
        drawn = binomial(stream_of(first, low), n, p)
        assert drawn == twin(stream_of(first, low), n, p), (first, low)
        found.add(drawn)
    assert len(found) > min(n / 2, 4 * math.sqrt(n * p * (1 - p)))


def count(stream: Stream, n: int, p: float, draws: int, counts: NDArray[np.int64]) -> None:
    for _ in range(draws):
        counts[binomial(stream, n, p)] += 1


count_quickly: Any = numba.njit(count)


def poisson_tails(found: int, mean: float) -> float:
    """How surprising a count of rare things is: the probability of one at least as far off."""
    chances = [math.exp(k * math.log(mean) - mean - math.lgamma(k + 1)) for k in range(found + 1)]
    return 2 * min(sum(chances), max(0.0, 1.0 - sum(chances[:-1])))


@pytest.mark.parametrize("n, p", [each for each in LARGE if each[0] <= 1000])
def test_tails_of_four_million_draws(n: int, p: float) -> None:
    """Both tails, from one in a hundred down to one in a million, each at the level of `laws`."""
    draws = 4_000_000
    counts = np.zeros(n + 1, np.int64)
    count_quickly(np.array([root(n), np.uint64(0)], np.uint64), n, p, draws, counts)
    at_most = np.cumsum(counts)
    looked_at = 0
    for laws, found in zip(steps(n, p), (at_most, draws - at_most), strict=True):
        for k, chance in enumerate(laws):
            if 1e-6 <= chance <= 1e-2:
                looked_at += 1
                surprise = poisson_tails(int(found[k]), draws * chance)
                assert surprise > LEVEL, (k, found[k], draws * chance)
    assert looked_at >= 8


def test_the_rest_of_stirlings_formula() -> None:
    """Exact for small numbers, and a series of which no term can be missed for others."""
    for k in (*range(60), 1000, 10**6):
        stirling = 0.5 * math.log(2 * math.pi) + (k + 0.5) * math.log(k + 1) - (k + 1)
        if k <= 1000:
            assert _tail(float(k)) == pytest.approx(math.lgamma(k + 1) - stirling, abs=1e-10)
        else:
            assert _tail(float(k)) == pytest.approx(1 / 12 / (k + 1), rel=1e-9)


def test_rejection_reaches_both_ends() -> None:
    """None and all of twenty, as rare as they are: where the first number points at them."""
    n, p = 20, 0.5
    rng, found = Random(1), set()
    for _ in range(8_000):
        first = rng.uniform(0.011, 0.014)
        for each in (first, 1.0 - first):
            low = rng.randrange(2048)
            drawn = binomial(stream_of(each, low), n, p)
            if drawn in (0, n):
                assert drawn == twin(stream_of(each, low), n, p)
                found.add(drawn)
    assert found == {0, n}
