"""The lightest bin: how large a share of those elected is bad, if the bad choose last.

A good member's bin is random; the adversary then sees all bins and places the bad members. It takes
a bin with few good members and fills it as long as it stays the lightest. Ties go to the first bin,
an empty bin is not chosen while another is filled, and no member is added afterwards.
"""

from __future__ import annotations

from functools import lru_cache
from math import ceil, erf, exp, lgamma, log, pi, sqrt

from hustings.lab.closed_forms.announce.numerics import integrate
from hustings.lab.closed_forms.committee.exponents import PAPER
from hustings.lab.closed_forms.committee.sums import binomial, convolve, tail
from hustings.lab.closed_forms.form import Sheet, require

SOURCE = f"{PAPER}: section 2, ELECT-SUBCOMMITTEE"
DUST = 1e-10  # of a law of states
SURE = 1e-13
LARGEST = 4096  # members whose halvings are solved in about a second
MOST_BINS = 64
HALF = 1 / sqrt(pi)  # E of the larger of two normals


def halved(k: int, bad: int, h: int) -> float:
    """E[bad share] after h two-bin elections in turn, each packed as far as it goes.

    Of k members with g good, a ~ Bin(g, 1/2) good ones sit in the first bin, which wins with up to
    floor(k/2) members; the second wins with up to floor((k-1)/2). The adversary fills the one that
    then has the larger bad share. The law of good and bad is carried from halving to halving.

    Parameters: k, members; bad, of them; h, halvings.

    Source: section 2, with two bins again and again. Verdict: exact for this adversary, up to
    1e-7; looking ahead gains it less than 0.001.

    >>> [round(halved(k, x, h), 3) for k, x, h in ((512, 51, 2), (1024, 102, 3), (2048, 614, 1))]
    [0.174, 0.196, 0.314]
    """
    return sum(chance * x / (g + x) for (g, x), chance in elected(k, bad, h).items())


def elected(k: int, bad: int, h: int) -> dict[tuple[int, int], float]:
    """The law of (good, bad) among those elected by h halvings: see `halved`.

    Parameters: k, members; bad, of them; h, halvings.

    Source: section 2, with two bins again and again. Verdict: as of `halved`.

    >>> elected(2, 1, 1)
    {(0, 1): 0.5, (1, 1): 0.5}
    """
    _check(k, bad)
    require(h >= 0, f"h must not be negative, not {h}")
    require(k <= LARGEST or h == 0, f"k must be at most {LARGEST} here, not {k}")
    return _elected(k, bad, h)


def halved_formula(k: int, b: float, h: int) -> float:
    """b + sum over i < h of sqrt((1-b)/(pi c 2^i)), c = k/2^h: the halvings by normal laws.

    Parameters: k, members; b, the bad share; h, halvings.

    Source: section 2, with two bins again and again. Verdict: an approximation, too high by up to
    a hundredth for c >= 64: ties and short supplies are left out.

    >>> round(halved_formula(512, 0.1, 2), 4)
    0.1808
    """
    c = k / 2**h
    return min(1.0, b + HALF * sqrt((1 - b) / c) * sum(2 ** (-i / 2) for i in range(h)))


def fewest_good(good: int, bins: int) -> float:
    """E[g_min]: the good members in the bin that has fewest of them.

    The sum over m of P(all bins have m or more), each from independent Poisson numbers given
    their sum.

    Parameters: good, members; bins (B).

    Source: section 2. Verdict: exact, up to 1e-9.

    >>> round(fewest_good(2, 2), 6), round(fewest_good(461, 4), 3)
    (0.5, 104.294)
    """
    require(good >= 0, f"the good must not be fewer than 0, not {good}")
    require(1 <= bins <= MOST_BINS, f"bins must be between 1 and {MOST_BINS}, not {bins}")
    return _fewest(good, bins)


def one_shot(k: int, bad: int, bins: int) -> float:
    """1 - E[g_min] B/k: the bad share after one election with B bins, packed to the average.

    Parameters: k, members; bad, of them; bins (B).

    Source: section 2, ELECT-SUBCOMMITTEE. Verdict: from above: as if the adversary never ran
    short and won all ties; at most about 1/c + 0.005 too high for c = k/B >= 64 and b >= 0.1.

    >>> round(one_shot(512, 51, 4), 3), round(one_shot(1024, 205, 8), 3)
    (0.185, 0.311)
    """
    _check(k, bad)
    return max(0.0, min(1.0, 1 - fewest_good(k - bad, bins) * bins / k))


def one_shot_formula(k: int, b: float, bins: int) -> float:
    """b + E[max of B normals] sqrt((1-b)/c), c = k/B.

    Parameters: k, members; b, the bad share; bins (B).

    Source: section 2, ELECT-SUBCOMMITTEE. Verdict: an approximation of `one_shot`, within 0.004
    for c >= 64.

    >>> round(one_shot_formula(512, 0.1, 4), 3)
    0.186
    """
    return min(1.0, b + largest_normal(bins) * sqrt((1 - b) * bins / k))


def unpacked(b: float) -> float:
    """b: the bad share if the bad choose at random, or before they see the good.

    Parameters: b, the bad share.

    Source: section 2. Verdict: exact in the mean: given how full the bins are, who sits in which
    is random.

    >>> unpacked(0.1)
    0.1
    """
    return b


@lru_cache(MOST_BINS)
def largest_normal(count: int) -> float:
    """E[max of B normals], by integration.

    Parameters: count (B).

    Source: order statistics. Verdict: exact to eight digits.

    >>> [round(largest_normal(count), 4) for count in (1, 2, 4, 16)]
    [0.0, 0.5642, 1.0294, 1.766]
    """

    def below(x: float) -> float:
        return ((1 + erf(x / sqrt(2))) / 2) ** count

    right = integrate(lambda x: 1 - below(x), (0.0, 2.0, 9.0))
    left = integrate(below, (-9.0, -2.0, 0.0))
    return right - left


def _check(k: int, bad: int) -> None:
    require(k >= 1, f"k must be at least 1, not {k}")
    require(0 <= bad <= k, f"the bad must be between 0 and k = {k}, not {bad}")


@lru_cache(64)
def _elected(k: int, bad: int, h: int) -> dict[tuple[int, int], float]:
    law = {(k - bad, bad): 1.0}
    for _ in range(h):
        after: dict[tuple[int, int], float] = {}
        for (good, x), weight in law.items():
            first, splits = binomial(good, 0.5)
            for a, chance in enumerate(splits, first):
                if weight * chance > DUST:
                    won = _packed(good, x, a)
                    after[won] = after.get(won, 0.0) + weight * chance
        whole = sum(after.values())
        law = {state: chance / whole for state, chance in after.items()}
    return law


def _packed(good: int, bad: int, a: int) -> tuple[int, int]:
    """Return which bin wins, with `a` good members in the first: the bin that can be made worse."""
    k = good + bad
    first, second = min(bad, k // 2 - a), min(bad, (k - 1) // 2 - (good - a))
    if (a == 0 and first == 0) or (a == good and second == 0):
        return good, bad  # one bin stays empty, so no member drops out
    if first < 0:
        return good - a, second
    if second < 0 or first * (good - a) >= second * a:
        return a, first
    return good - a, second


@lru_cache(256)
def _fewest(good: int, bins: int) -> float:
    if bins == 1:
        return float(good)
    mean = good / bins
    if mean == 0:
        return 0.0
    low = int(max(0.0, mean - 12 * sqrt(mean) - 6))
    while low + 1 <= mean and bins * (1 - tail(good, 1 / bins, low + 1)) < SURE:
        low += 1
    high = ceil(mean + 10 * sqrt(mean) + 10)
    cell = [exp(j * log(mean) - mean - lgamma(j + 1)) for j in range(low, high + 1)]
    whole = exp(good * log(good) - good - lgamma(good + 1))
    expected = float(low)
    for m in range(low + 1, good // bins + 1):
        chance = _all_reach(cell[m - low :], m, good, bins) / whole
        expected += chance
        if chance < SURE:
            break
    return expected


def _all_reach(cell: list[float], least: int, good: int, bins: int) -> float:
    """P(every one of B Poisson cells reaches `least`, and their sum is the number of good)."""
    spare = good - bins * least  # how far all cells together lie above the least
    some = _sum_of(cell, bins // 2, spare + 1)
    others = some if bins % 2 == 0 else _sum_of(cell, bins - bins // 2, spare + 1)
    low, high = max(0, spare - len(others) + 1), min(len(some), spare + 1)
    return sum(some[i] * others[spare - i] for i in range(low, high))


def _sum_of(cell: list[float], count: int, most: int) -> list[float]:
    if count == 1:
        return cell[:most]
    half = _sum_of(cell, count // 2, most)
    both = convolve(half, half, most)
    return convolve(both, cell, most) if count % 2 else both


def declare(sheet: Sheet, k: int, h: int, b: float) -> None:
    """Add the forms of this module to a sheet."""
    sheet.source = SOURCE
    bad, lead = round(b * k), f"k = {k}, h = {h}: "
    sheet.known("bad_after_halving", halved, lambda: halved(k, bad, h), lead)
    sheet.known("bad_after_halving_formula", halved_formula, lambda: halved_formula(k, b, h), lead)
    sheet.known("bad_after_one_shot", one_shot, lambda: one_shot(k, bad, 2**h), lead)
    sheet.known(
        "bad_after_one_shot_formula", one_shot_formula, lambda: one_shot_formula(k, b, 2**h), lead
    )
    sheet.add("bad_unpacked", unpacked, b)
