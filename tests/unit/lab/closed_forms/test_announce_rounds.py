"""Rounds and delay of announce-listen elections: the numbers of the specification, and identities.

E.. names an erratum of the specification.
"""

from __future__ import annotations

from fractions import Fraction
from math import comb, exp, fsum, log

import pytest

from hustings.core.errors import BadInput
from hustings.lab.closed_forms.announce import delay, numerics, rounds
from hustings.lab.closed_forms.announce.laws import Law

HALF = Law()


def alternating(n: int, loss: Fraction) -> Fraction:
    """The printed identity in rational arithmetic, where nothing cancels."""
    terms = ((-1) ** (i + 1) * comb(n, i) / (1 - loss**i) for i in range(1, n + 1))
    return sum(terms, Fraction(0))


@pytest.mark.parametrize("loss, value", [(0.1, 3.4406), (0.4, 7.9112), (0.7, 19.5393)])
def test_expected_rounds_of_499_receivers(loss: float, value: float) -> None:
    assert rounds.expected_rounds(499, loss) == pytest.approx(value, abs=5e-5)


@pytest.mark.parametrize("n", [1, 2, 7, 60, 200])
@pytest.mark.parametrize("loss", [Fraction(1, 10), Fraction(2, 5), Fraction(7, 10)])
def test_the_printed_identity_holds_in_rational_arithmetic(n: int, loss: Fraction) -> None:
    stable = rounds.expected_rounds(n, float(loss))
    assert stable == pytest.approx(float(alternating(n, loss)), rel=1e-13)


def test_e6_the_printed_sum_cancels_in_doubles() -> None:
    found = {n: rounds.printed_rounds(n, 0.4) for n in (40, 50, 60, 100, 500)}
    assert found[40] == pytest.approx(5.16936, abs=5e-6)
    assert found[50] == pytest.approx(5.396, abs=5e-4)
    assert found[60] == pytest.approx(-59.5, abs=0.05)
    assert found[100] == pytest.approx(-1.9e12, rel=0.03)
    assert found[500] == pytest.approx(2.5e133, rel=0.03)
    true = [rounds.expected_rounds(n, 0.4) for n in (40, 50, 60)]
    assert true == pytest.approx([5.16938, 5.410, 5.607], abs=5e-4)
    with pytest.raises(BadInput, match="at most 1000"):
        rounds.printed_rounds(1001, 0.4)


@pytest.mark.parametrize("n", [2, 3, 1000, 10**6])
def test_the_limit_of_heavy_loss_joins_the_sum(n: int) -> None:
    below, above = 1 - rounds.STEEP * 1.0001, 1 - rounds.STEEP * 0.9
    summed = rounds.expected_rounds(n, below)
    assert summed == pytest.approx(numerics.harmonic(n) / -log(below) + 0.5, rel=1e-12)
    direct = fsum(1 - (1 - above**r) ** n for r in range(60_000))
    assert rounds.expected_rounds(n, above) == pytest.approx(direct, rel=1e-11)


def test_the_edges_of_loss_and_size() -> None:
    assert rounds.expected_rounds(0, 0.4) == 0
    assert rounds.expected_rounds(10**6, 0.0) == 1
    assert rounds.expected_rounds(1, 0.4) == pytest.approx(1 / 0.6)
    assert rounds.expected_rounds(10**12, 0.4) == pytest.approx(
        rounds.large_group_rounds(10**12, 0.4), abs=1e-2
    )
    almost = rounds.expected_rounds(10**6, 1 - 1e-12)
    assert almost == pytest.approx(numerics.harmonic(10**6) * 1e12, rel=1e-4)
    for bad in (-0.1, 1.0, 1.5):
        with pytest.raises(BadInput, match=r"l must lie in \[0, 1\)"):
            rounds.expected_rounds(5, bad)


@pytest.mark.parametrize(
    "N, loss, printed, correct",
    # The specification gives 4.889 for N = 50; exactly it is 4.88846.
    [(2, 0.4, 2.643, 1.167), (50, 0.4, 5.910, 4.888), (500, 0.7, 20.045, 19.039)],
)
def test_e5_printed_and_correct_tmax(N: int, loss: float, printed: float, correct: float) -> None:
    args = (N, loss, "uncorrelated", HALF)
    assert delay.printed_tmax(*args) == pytest.approx(printed, abs=6e-4)
    assert delay.tmax(*args) == pytest.approx(correct, abs=6e-4)


def test_e5_the_printed_form_contradicts_itself() -> None:
    assert delay.printed_tmax(10, 0, "uncorrelated", HALF) == 1.5
    assert delay.tmax(10, 0, "uncorrelated", HALF) == 0.5
    apart = delay.printed_tmax(2, 0.4, "uncorrelated", HALF)
    assert apart > delay.printed_tmax(2, 0.4, "correlated", HALF) + 1
    together = delay.tmax(2, 0.4, "uncorrelated", HALF)
    assert together == pytest.approx(delay.tmax(2, 0.4, "correlated", HALF))


def test_claims_on_the_delay() -> None:
    for N in (2, 10, 50, 200, 500):
        assert delay.tmax(N, 0, "none", HALF) == 0.5
        assert delay.tmax(N, 0.4, "correlated", HALF) == pytest.approx(0.5 + 0.4 / 0.6)
        gap = delay.tmax(N, 0.4, "uncorrelated", HALF) - delay.tmax_baseline(N, 0.4, "uncorrelated")
        assert gap == pytest.approx(0.5)
        saved = delay.tmax(N, 0.4, "uncorrelated", HALF) - delay.tmax_first_waker(
            N, 0.4, "uncorrelated", HALF
        )
        assert saved == pytest.approx(1 / 2 - 1 / (N + 1))
    assert delay.tmax(500, 0.4, "uncorrelated", HALF) == pytest.approx(7.411, abs=5e-4)
    assert delay.tmax(10, 0.4, "uncorrelated", HALF) == pytest.approx(3.08, abs=0.02)
    assert delay.tmax_first_waker(100, 0, "none", HALF) == pytest.approx(1 / 101)


@pytest.mark.parametrize("N, al, le_s", [(70, 4.90, 5.26), (200, 6.41, 6.41), (500, 8.40, 7.41)])
def test_the_crossing_needs_adjusted_loss(N: int, al: float, le_s: float) -> None:
    heavier = delay.adjusted_loss(0.4, 2.35e-4, N)
    assert delay.tmax_baseline(N, heavier, "uncorrelated") == pytest.approx(al, abs=0.02)
    assert delay.tmax(N, 0.4, "uncorrelated", HALF) == pytest.approx(le_s, abs=0.01)
    if N == 200:
        assert heavier == pytest.approx(0.4274, abs=5e-5)


def test_one_alone_leads_when_it_first_speaks() -> None:
    for model, loss in (("none", 0.0), ("correlated", 0.4), ("uncorrelated", 0.4)):
        assert delay.tmax(1, loss, model, HALF) == HALF.mean
        assert delay.tmax_first_waker(1, loss, model, HALF) == HALF.mean
        assert delay.tmax_baseline(1, loss, model) == 0
        assert delay.everybody_rounds(1, loss, model) == 1
        assert rounds.rounds(0, loss, model) == 1


def test_everybody_holds_everything() -> None:
    assert delay.everybody_rounds(2, 0.4, "uncorrelated") == delay.everybody_rounds(
        2, 0.4, "correlated"
    )
    both = float(alternating(2, Fraction(2, 5)))
    assert delay.everybody_rounds(2, 0.4, "correlated") == pytest.approx(both)


@pytest.mark.parametrize("N, k", [(10, 8), (100, 11), (500, 12)])
def test_periods_for_agreement_of_99_percent(N: int, k: int) -> None:
    assert rounds.listen_periods(N, 0.4, 0.99) == k
    assert (1 - 0.4**k) ** (N - 1) >= 0.99 > (1 - 0.4 ** (k - 1)) ** (N - 1)


@pytest.mark.parametrize("lam, mean", [(0, 0.5), (5, 0.81), (10, 0.90)])
def test_mean_wake_up(lam: float, mean: float) -> None:
    law = Law(lam=lam)
    assert law.mean == pytest.approx(mean, abs=5e-3)
    steps = 20_000
    middles = [(i + 0.5) / steps for i in range(steps)]
    assert law.mean == pytest.approx(fsum(1 - law.cdf(t) for t in middles) / steps, abs=1e-7)
    least = fsum((1 - law.cdf(t)) ** 7 for t in middles) / steps
    assert law.earliest(7) == pytest.approx(least, abs=1e-6)
    most = fsum(1 - law.cdf(t) ** 7 for t in middles) / steps
    assert law.latest(7) == pytest.approx(most, abs=1e-6)


def test_a_flat_exponential_law_is_uniform() -> None:
    flat = Law(lam=1e-9)
    assert flat.mean == pytest.approx(0.5, abs=1e-9)
    assert flat.cdf(0.3) == pytest.approx(0.3, abs=1e-9)
    assert Law(lam=0.011).mean == pytest.approx(Law(lam=0.009).mean, abs=2e-4)
    for lam in (0.5, 5, 500):
        assert Law(lam=lam).growth(0.25) == pytest.approx(exp(lam / 4))


@pytest.mark.parametrize("law", [{"T_S": -1.0}, {"lam": -1.0}, {"lam": 501.0}])
def test_a_law_refuses(law: dict[str, float]) -> None:
    with pytest.raises(BadInput):
        Law(**law)
