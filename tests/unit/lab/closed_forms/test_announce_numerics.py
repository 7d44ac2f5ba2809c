"""Integrals and sums behind the forms, against values known otherwise."""

from __future__ import annotations

import cmath
from math import comb, exp, expm1, fsum, log, pi, sqrt

import pytest

from hustings.core.errors import BadInput
from hustings.lab.closed_forms.announce import numerics


@pytest.mark.parametrize("count", [1, 2, 10, 16, 32])
def test_gauss_is_exact_for_polynomials(count: int) -> None:
    rule = numerics.gauss(count)
    for degree in range(2 * count):
        exactly = (1 + (-1) ** degree) / (degree + 1)
        assert fsum(w * x**degree for x, w in rule) == pytest.approx(exactly, abs=1e-13)


@pytest.mark.parametrize("N", [10, 10**3, 10**6])
def test_spikes_at_either_end(N: int) -> None:
    left = numerics.integrate(lambda x: N * (1 - x) ** (N - 1), [0.0, 1.0], spike=1 / N)
    right = numerics.integrate(lambda x: N * x ** (N - 1), [0.0, 0.3, 1.0])
    assert (left, right) == pytest.approx((1, 1), rel=1e-11)


def test_kinks_are_points() -> None:
    assert numerics.integrate(lambda x: abs(x - 0.3), [0, 0.3, 1]) == pytest.approx(0.29, rel=1e-14)
    assert numerics.integrate(sqrt, [0.0, 1.0]) == pytest.approx(2 / 3, rel=1e-12)
    assert numerics.integrate(lambda x: 1.0, [2.0]) == 0


@pytest.mark.parametrize("rate", [3.0, 0.7, 0.5, 0.01, 1e-6])
def test_decaying_sums(rate: float) -> None:
    geometric = numerics.decaying_sum(lambda m: exp(-rate * m), rate)
    assert geometric == pytest.approx(-1 / expm1(-rate), rel=1e-12)
    squares = numerics.decaying_sum(lambda m: exp(-rate * m) / (m + 1), rate)
    assert squares == pytest.approx(-log(-expm1(-rate)) * exp(rate), rel=1e-11)


@pytest.mark.parametrize("n", [200, 1000, 10**6])
def test_alternating_sums(n: int) -> None:
    # The sum of (-1)^(j-1) C(n, j) 2/(j (j+1)): twice H_n - n/(n+1).
    found = numerics.alternating_sum(n, lambda x: cmath.log((x + 1) / (x - 1)))
    assert found == pytest.approx(2 * (numerics.harmonic(n) - n / (n + 1)), rel=1e-11)


def test_the_example_of_the_alternating_sum_by_hand() -> None:
    n = 12
    summed = sum((-1) ** (j - 1) * comb(n, j) * 2 / (j * (j + 1)) for j in range(1, n + 1))
    assert summed == pytest.approx(2 * (numerics.harmonic(n) - n / (n + 1)))


def test_harmonic_numbers_join() -> None:
    direct = fsum(1 / j for j in range(1, 1001))
    assert numerics.harmonic(1000) == pytest.approx(direct, rel=1e-15)
    assert numerics.harmonic(100) - numerics.harmonic(99) == pytest.approx(0.01, rel=1e-12)
    assert numerics.harmonic(0) == 0


def test_complex_functions() -> None:
    for w in (0.3 + 0.4j, -0.2 + 3j, 1e-9 - 1e-9j):
        assert cmath.exp(numerics.log1p_complex(w)) == pytest.approx(1 + w)
        assert numerics.expm1_complex(w) == pytest.approx(cmath.exp(w) - 1, abs=1e-15)
    assert numerics.expm1_complex(2j * pi) == pytest.approx(0, abs=1e-15)


def test_power_sums() -> None:
    for z in (0.0, 1e-12, 0.3, 1.0):
        direct = fsum((1 - z) ** k for k in range(1, 51))
        assert numerics.power_sum(z, 50) == pytest.approx(direct, rel=1e-12)
    assert numerics.power_sum(0.3, 0) == 0


def test_periods_do_not_round() -> None:
    assert [numerics.whole_periods(k / 10, 0.1) for k in range(1, 30)] == list(range(1, 30))
    assert [numerics.started_periods(k / 10, 0.1) for k in range(1, 30)] == list(range(1, 30))
    assert numerics.started_periods(0, 1) == 0


def test_times_are_checked() -> None:
    with pytest.raises(BadInput, match="D must not be negative"):
        numerics.check_times(D=-1)
    with pytest.raises(BadInput, match="T_A must be above 0"):
        numerics.check_times(T_A=0)
