"""Where the paper's exponents bite, and its counts: the decided numbers, computed anew."""

from __future__ import annotations

from math import e, exp, log

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hustings.core.errors import BadInput
from hustings.lab.closed_forms.committee import claims, exponents


@pytest.mark.parametrize(
    "power, ln_n, n",
    [(5, 12.71, 3.3e5), (8, 26.09, 2.1e11), (10, 35.77, 3.4e15), (11, 40.79, 5.2e17)],
)
def test_powers_of_the_logarithm(power: int, ln_n: float, n: float) -> None:
    found = exponents.power_fits(power)
    assert found == pytest.approx(ln_n, abs=0.005)
    assert exp(found) == pytest.approx(n, rel=0.03)
    for x in (found * 1.001, found * 3):
        assert x > power * log(x)
    assert found * 0.999 < power * log(found * 0.999)


@pytest.mark.parametrize("share, ln_n, n", [(3, 49.7, 3.9e21), (2, 84.7, 6e36), (1, 202.5, 8.8e87)])
def test_bits_of_the_first_layer(share: int, ln_n: float, n: float) -> None:
    found = exponents.first_layer_bits(share)
    assert found == pytest.approx(ln_n, abs=0.05)
    assert exp(found) == pytest.approx(n, rel=0.02)


def test_learning_needs_ten_to_the_seventy_thousand() -> None:
    real = exponents.learning_majority()
    assert real == pytest.approx(1.6e5, rel=0.02)
    assert round(real / log(10)) == 70119
    whole = exponents.surely_learning_majority()
    assert whole > real

    def holds(x: float) -> bool:
        return 6 * (exponents.layers(x) + 1) / x < 0.5

    assert not holds(whole - 0.01)
    steps = [whole + 0.01 + 0.5 * step for step in range(4000)]
    assert all(holds(x) for x in steps)
    assert any(holds(x) for x in (real + 0.5 * step for step in range(200)))  # by turns before


def test_lemma_5_1() -> None:
    found = exponents.silent_lemma()
    assert found == pytest.approx(3.4e6, rel=0.02)
    assert found / log(10) == pytest.approx(1.46e6, rel=0.005)

    def p_k(x: float) -> float:
        return (16 * e / (9 * x)) ** 9

    def alpha(x: float) -> float:
        return 16 / (9 * x**4)

    for x, holds in ((found * 1.001, True), (found * 0.999, False)):
        assert (e / alpha(x) <= p_k(x) ** -0.5) is holds
    printed = exponents.printed_silent_lemma()
    for x, holds in ((printed * 1.001, True), (printed * 0.999, False)):
        assert (p_k(x) ** 0.5 <= alpha(x)) is holds


@pytest.mark.parametrize("b, ln_n", [(0, 4.3e15), (0.1, 2.2e22), (0.2, 1.2e39), (0.3, 2.2e156)])
def test_good_nodes(b: float, ln_n: float) -> None:
    found = exponents.good_nodes(b)
    assert found == pytest.approx(ln_n, rel=0.03)
    for factor, good in ((1.01, True), (0.99, False)):
        x = found * factor
        assert (b + 12 * (x / log(x) - 10) / x < 1 / 3) is good


def test_there_are_no_layers_below_three_quadrillion() -> None:
    sizes = [4, 5, 10, 100, 10**6, 10**9, 10**12, 10**15, 3 * 10**15]
    assert {exponents.layers(log(n)) for n in sizes} == {0}
    assert exponents.layers(log(3.5e15)) == 1
    with pytest.raises(BadInput, match="at least 3"):
        exponents.layers(log(2))


@given(st.floats(1.05, 1e9))
def test_layers_by_their_definition(x: float) -> None:
    level = exponents.layers(x)
    slack = 1e-9 * x
    assert x - level * log(x) <= 10 * log(x) + slack
    if level:
        assert x - (level - 1) * log(x) > 10 * log(x) - slack


@given(st.floats(0, 0.316), st.floats(0, 0.316))
def test_more_bad_members_need_a_larger_group(one: float, other: float) -> None:
    low, high = sorted((one, other))
    assert exponents.good_nodes(low) <= exponents.good_nodes(high)
    assert exponents.printed_good_nodes(low) < exponents.good_nodes(low)


def test_too_near_to_a_third() -> None:
    with pytest.raises(BadInput, match="b must be at most"):
        exponents.good_nodes(0.33)
    with pytest.raises(BadInput, match="1/3"):
        exponents.printed_good_nodes(0.34)


@pytest.mark.parametrize(
    "ln_n, text",
    [(log(3.4e15), "3.4e15"), (70119 * log(10), "10^70119"), (3.36e6, "10^1.46e6")],
)
def test_numbers_are_told_as_powers_of_ten(ln_n: float, text: str) -> None:
    assert exponents.shown(ln_n) == text


@given(st.floats(3, 1e6))
def test_printed_counts_are_too_small_on_the_first_layer(x: float) -> None:
    assert claims.first_elections(x) > claims.printed_first_elections(x)
    assert claims.monitored(x) > claims.printed_monitored(x)
    assert claims.last_participants(x) > claims.printed_last_participants(x)
    assert claims.first_nodes(x) < claims.printed_first_nodes(x)
    assert claims.first_memberships(x) < claims.printed_first_memberships(x)


def test_the_share_at_the_top_grows_with_every_layer() -> None:
    x = exponents.power_fits(11) + 1  # two layers
    assert claims.top_bad(x, 0.1) - 0.1 == pytest.approx(2 * (claims.printed_top_bad(x, 0.1) - 0.1))
