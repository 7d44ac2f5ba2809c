"""The lightest bin against every throw of a few members, and the values that were measured."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import product
from math import comb, factorial, prod

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hustings.core.errors import BadInput
from hustings.lab.closed_forms.committee import bins
from hustings.lab.closed_forms.committee.sums import binomial, convolve, hypergeometric, tail


def loads(count: int, places: int) -> Iterator[tuple[int, ...]]:
    """All ways to put so many into bins that have names."""
    if places == 1:
        yield (count,)
        return
    for here in range(count + 1):
        for rest in loads(count - here, places - 1):
            yield (here, *rest)


def chance(split: tuple[int, ...]) -> float:
    good = sum(split)
    ways = factorial(good) / prod(factorial(part) for part in split)
    return ways / float(len(split)) ** good


def winners(split: tuple[int, ...], bad: int) -> set[tuple[int, int]]:
    """All (good, bad) that the adversary can have elected: every placing is tried."""
    found = set()
    for extra in loads(bad, len(split)):
        sizes = [(g + x, place) for place, (g, x) in enumerate(zip(split, extra, strict=True))]
        _, place = min(size for size in sizes if size[0])
        found.add((split[place], extra[place]))
    return found


@cache
def best(good: int, bad: int, h: int) -> float:
    """The bad share after h halvings, against an adversary that looks ahead to the end."""
    if h == 0:
        return bad / (good + bad)
    return sum(
        chance(split) * max(best(g, x, h - 1) for g, x in winners(split, bad))
        for split in loads(good, 2)
    )


@pytest.mark.parametrize("k", range(1, 13))
@pytest.mark.parametrize("h", [0, 1, 2])
def test_halving_is_that_of_every_throw(k: int, h: int) -> None:
    for bad in range(k + 1):
        exact = best(k - bad, bad, h)
        found = bins.halved(k, bad, h)
        if h <= 1:
            assert found == pytest.approx(exact, abs=1e-9)
        else:
            assert exact - 0.05 <= found <= exact + 1e-9  # few members: looking ahead may gain


def ahead(good: int, bad: int, h: int, known: dict[tuple[int, int, int], float]) -> float:
    """Solved backwards, with full bins: the adversary that looks ahead, in larger groups."""
    if not good or not bad or not h:
        return bad / (good + bad)
    key = (good, bad, h)
    if key not in known:
        total = 0.0
        for a in range(good + 1):
            options = [
                ahead(here, min(bad, room - here), h - 1, known)
                for here, room in ((a, (good + bad) // 2), (good - a, (good + bad - 1) // 2))
                if here <= room and here + min(bad, room - here) > 0
            ]
            total += comb(good, a) / 2**good * max(options)
        known[key] = total
    return known[key]


@pytest.mark.parametrize("k, bad, h", [(64, 6, 2), (64, 13, 2), (128, 13, 3), (200, 40, 2)])
def test_looking_ahead_gains_little(k: int, bad: int, h: int) -> None:
    exact = ahead(k - bad, bad, h, {})
    assert exact - 0.001 <= bins.halved(k, bad, h) <= exact + 1e-7


@pytest.mark.parametrize("good, count", [(0, 2), (1, 2), (5, 2), (6, 3), (7, 4), (8, 5)])
def test_fewest_good_in_every_throw(good: int, count: int) -> None:
    exact = sum(chance(split) * min(split) for split in loads(good, count))
    assert bins.fewest_good(good, count) == pytest.approx(exact, abs=1e-9)


@pytest.mark.parametrize("k, bad, count", [(8, 2, 2), (9, 3, 3), (10, 3, 2), (8, 4, 4)])
def test_one_shot_is_a_bound_from_above(k: int, bad: int, count: int) -> None:
    exact = sum(
        chance(split) * max(x / (g + x) for g, x in winners(split, bad))
        for split in loads(k - bad, count)
    )
    assert bins.one_shot(k, bad, count) >= exact - 1e-12
    assert exact >= bad / k


MEASURED = [  # k, B, b, halving, one shot: by some thousand samples
    (512, 4, 0.1, 0.174, 0.178),
    (1024, 8, 0.1, 0.196, 0.208),
    (1024, 8, 0.2, 0.292, 0.305),
    (2048, 16, 0.1, 0.211, 0.234),
]


@pytest.mark.parametrize("k, count, b, halving, one_shot", MEASURED)
def test_measured_shares(k: int, count: int, b: float, halving: float, one_shot: float) -> None:
    h, bad = count.bit_length() - 1, round(b * k)
    assert bins.halved(k, bad, h) == pytest.approx(halving, abs=0.002)
    above = bins.one_shot(k, bad, count)
    assert one_shot < above < one_shot + count / k + 0.005
    assert bins.halved(k, bad, h) < above
    assert 0 < bins.halved_formula(k, b, h) - bins.halved(k, bad, h) < 0.01
    assert bins.one_shot_formula(k, b, count) == pytest.approx(above, abs=0.004)


def test_two_bins_at_three_tenths() -> None:
    assert bins.halved(2048, 614, 1) == pytest.approx(0.315, abs=0.001)


def test_the_unpacked_share_is_b() -> None:
    """All throws of 3 good and 2 bad members at random: the mean share of the bad is theirs."""
    total = 0.0
    for throw in product((0, 1), repeat=5):
        counts = [(throw.count(place), place) for place in (0, 1) if place in throw]
        _, place = min(counts)
        won = [member for member, bin_ in enumerate(throw) if bin_ == place]
        total += sum(member >= 3 for member in won) / len(won) / 2**5
    assert total == pytest.approx(bins.unpacked(2 / 5))


def test_normal_maxima() -> None:
    assert bins.largest_normal(2) == pytest.approx(0.564, abs=5e-4)
    assert bins.largest_normal(3) == pytest.approx(0.8463, abs=5e-5)


@settings(max_examples=24, deadline=None)
@given(st.integers(2, 120), st.data())
def test_more_bad_members_or_halvings_are_worse(k: int, data: st.DataObject) -> None:
    bad = data.draw(st.integers(0, k - 1))
    here = bins.halved(k, bad, 1)
    assert here >= bad / k - 1e-12
    assert bins.halved(k, bad + 1, 1) >= here - 1e-9
    assert bins.one_shot(k, bad + 1, 2) >= bins.one_shot(k, bad, 2) - 1e-9


def test_domains() -> None:
    with pytest.raises(BadInput, match="between 0 and k = 5"):
        bins.halved(5, 6, 1)
    with pytest.raises(BadInput, match="negative"):
        bins.halved(5, 1, -1)
    with pytest.raises(BadInput, match="at most 4096"):
        bins.halved(10_000, 1, 1)
    with pytest.raises(BadInput, match="bins"):
        bins.fewest_good(5, 0)


@pytest.mark.parametrize("n, p", [(1, 0.5), (7, 0.3), (70, 0.1), (400, 0.5), (5, 0.0), (5, 1.0)])
def test_laws_and_tails(n: int, p: float) -> None:
    first, law = binomial(n, p)
    assert sum(law) == pytest.approx(1)
    for j, value in enumerate(law, first):
        assert value == pytest.approx(comb(n, j) * p**j * (1 - p) ** (n - j), rel=1e-9, abs=1e-15)
    for least in range(n + 2):
        exact = sum(comb(n, j) * p**j * (1 - p) ** (n - j) for j in range(least, n + 1))
        assert tail(n, p, least) == pytest.approx(exact, rel=1e-9, abs=1e-18)


def test_sums_and_draws() -> None:
    assert convolve([1.0, 2.0, 3.0], [4.0, 5.0]) == [4.0, 13.0, 22.0, 15.0]
    first, law = hypergeometric(20, 6, 5)
    exact = [comb(6, j) * comb(14, 5 - j) / comb(20, 5) for j in range(6)]
    assert first == 0
    assert law == pytest.approx(exact)
