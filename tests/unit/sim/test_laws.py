"""The witness of the chance tests is itself tried on cases known by hand."""

from math import comb

import pytest

from tests.unit.sim.laws import believable, binomial, surprise


@pytest.mark.parametrize("n, p", [(1, 0.3), (7, 0.5), (40, 0.05), (5, 0.0), (5, 1.0)])
def test_the_binomial_law_is_the_textbook_one(n: int, p: float) -> None:
    for k in range(n + 1):
        assert binomial(k, n, p) == pytest.approx(comb(n, k) * p**k * (1 - p) ** (n - k))


def test_the_two_sided_test_adds_both_tails() -> None:
    assert surprise(0, 4, 0.5) == pytest.approx(2 / 16)
    assert surprise(2, 4, 0.5) == pytest.approx(1.0)
    assert surprise(3, 3, 0.5) == pytest.approx(2 / 8)


def test_a_wrong_law_is_not_believed() -> None:
    assert believable(500, 1000, 0.5)
    assert not believable(600, 1000, 0.5)
    assert not believable(1, 1000, 0.0)
