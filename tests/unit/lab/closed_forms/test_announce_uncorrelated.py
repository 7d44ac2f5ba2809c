"""First announcements under uncorrelated loss with D = 0: recurrence, closed form, integral."""

from __future__ import annotations

from fractions import Fraction
from math import comb, log

import pytest

from hustings.core.errors import BadInput
from hustings.lab.closed_forms.announce import suppression, survival, uncorrelated
from hustings.lab.closed_forms.announce.numerics import harmonic

LOSSES = (0.01, 0.1, 0.4, 0.7, 0.9, 0.99, 0.9999)


def recurrence(N: int, loss: Fraction) -> list[Fraction]:
    """M_n = 1 + M_(r+B), r uniform on 0..n-1, B binomial(n-1-r, l), as specified."""
    found = [Fraction(0)]
    for n in range(1, N + 1):
        mean = Fraction(0)
        for r in range(n):
            rest = n - 1 - r
            for b in range(rest + 1):
                chance = comb(rest, b) * loss**b * (1 - loss) ** (rest - b)
                mean += chance * found[r + b] / n
        found.append(1 + mean)
    return found


@pytest.mark.parametrize("loss", [Fraction(0), Fraction(1, 10), Fraction(2, 5), Fraction(7, 10)])
def test_the_closed_form_solves_the_recurrence_exactly(loss: Fraction) -> None:
    solved = recurrence(18, loss)
    for n in range(1, 19):
        assert uncorrelated.mean_exactly(n, loss) == solved[n]
    floats = uncorrelated.means(18, float(loss))
    assert floats == pytest.approx([float(mean) for mean in solved], rel=1e-13)


@pytest.mark.parametrize("loss, value", [(0, 6.793), (0.1, 8.389), (0.4, 13.927), (0.7, 26.819)])
def test_five_hundred_members(loss: float, value: float) -> None:
    assert uncorrelated.first_round(500, loss) == pytest.approx(value, abs=5e-4)


@pytest.mark.parametrize("loss", LOSSES)
def test_the_integral_meets_the_recurrence(loss: float) -> None:
    solved = uncorrelated.means(600, loss)
    for n in (uncorrelated.SMALL + 1, 333, 600):
        assert uncorrelated.first_round(n, loss) == pytest.approx(solved[n], rel=3e-11)


@pytest.mark.parametrize("loss", [Fraction(2, 5), Fraction(9, 10)])
def test_the_integral_meets_the_closed_form(loss: Fraction) -> None:
    exactly = float(uncorrelated.mean_exactly(210, loss))
    assert uncorrelated.first_round(210, float(loss)) == pytest.approx(exactly, rel=1e-11)


@pytest.mark.parametrize("loss", [0.0, 0.1, 0.4, 0.7])
def test_every_order_and_loss_enumerated(loss: float) -> None:
    for n in range(1, 6):
        law = survival.round_law(n, 1, loss)
        assert sum(law) == pytest.approx(1)
        mean = sum(i * p for i, p in enumerate(law))
        assert uncorrelated.first_round(n, loss) == pytest.approx(mean, rel=1e-12)


def test_the_edges_of_loss() -> None:
    assert uncorrelated.first_round(10**6, 0) == harmonic(10**6)
    assert uncorrelated.first_round(10**6, 1e-12) == pytest.approx(harmonic(10**6), rel=1e-9)
    assert uncorrelated.first_round(1, 0.4) == 1
    assert uncorrelated.first_round(2, 0.4) == pytest.approx(1.7)
    for n in (100, 1000):
        assert uncorrelated.first_round(n, 1 - 1e-12) == pytest.approx(n, rel=1e-8)
    for bad in (-0.1, 1.0):
        with pytest.raises(BadInput):
            uncorrelated.first_round(10, bad)


@pytest.mark.parametrize("loss", [0.1, 0.4, 0.7, 0.9])
def test_growth_with_the_logarithm(loss: float) -> None:
    grown = uncorrelated.first_round(10**6, loss) - uncorrelated.first_round(10**5, loss)
    assert grown == pytest.approx(uncorrelated.growth(loss) * log(10), rel=1e-4)
    assert uncorrelated.growth(0.0) == 1


def test_e19_the_printed_law() -> None:
    assert uncorrelated.printed_law(3, 0)[1:] == pytest.approx([1 / 4, 7 / 12, 1 / 6])
    assert survival.round_law(3, 1, 0.0)[1:] == pytest.approx([1 / 3, 1 / 2, 1 / 6])
    for loss, printed in ((0, 30.97), (0.4, 40.1), (0.7, 56.9)):
        found = uncorrelated.printed_first_round(500, loss)
        assert found == pytest.approx(printed, abs=0.05)
    for n in (1, 2):
        for loss in (0, 0.4):
            right = uncorrelated.first_round(n, loss)
            assert uncorrelated.printed_first_round(n, loss) == pytest.approx(right)
    assert sum(uncorrelated.printed_law(2000, 0.4)) == pytest.approx(1)
    assert uncorrelated.printed_first_round(5000, 0) == pytest.approx((2 * 5000) ** 0.5, rel=0.02)
    with pytest.raises(BadInput, match="at most 10000"):
        uncorrelated.printed_law(10_001, 0.4)


@pytest.mark.parametrize("loss", LOSSES)
def test_suppression_chain(loss: float) -> None:
    for n in (201, 500):
        law = suppression.message_law(n, loss)
        assert sum(law) == pytest.approx(1)
        mean = sum(m * p for m, p in enumerate(law))
        assert suppression.messages_uncorrelated(n, loss) == pytest.approx(mean, rel=3e-11)
    assert suppression.messages_uncorrelated(2, loss) == pytest.approx(1 + loss)
    assert suppression.messages_uncorrelated(3, loss) == pytest.approx(
        1 + loss + (1 - loss) * loss + loss * loss**2
    )


def test_the_suppression_chain_at_its_edges() -> None:
    assert suppression.messages_uncorrelated(10**6, 0) == 1
    assert suppression.messages_uncorrelated(1000, 1 - 1e-12) == pytest.approx(1000, rel=1e-8)
    # The mean of l^-m after n steps is 1 + n (1/l - 1): a martingale bounds the mean by its log.
    bound = log(1 + 10**6 * (1 / 0.4 - 1)) / log(1 / 0.4)
    assert bound - 2 < suppression.messages_uncorrelated(10**6, 0.4) < bound
