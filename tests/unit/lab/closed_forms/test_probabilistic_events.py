"""The five events, success, detection: what is printed, what is true, and the errata's numbers."""

from __future__ import annotations

from dataclasses import replace
from math import comb, exp

import pytest

from hustings.core.errors import BadInput
from hustings.lab.closed_forms.probabilistic import detection, events
from hustings.lab.closed_forms.probabilistic.round import Round, binomial, poisson
from hustings.lab.closed_forms.probabilistic.success import (
    leader_relays,
    printed_success,
    product_success,
    success,
    torn,
    unsettled,
)

FIGURE_4 = Round(K=40, view_prob=0.4, p_mcastl=0.01, p_ucastl=0.01, p_fail=0.01, N=10000)


def at(K: float) -> Round:
    return replace(FIGURE_4, K=K)


def exact_enough(one: Round) -> float:
    """E1 by sums over all numbers of members."""
    chance = (1 - one.p_mcastl) * one.K / one.N
    total = 0.0
    for r in range(one.N + 1):
        if not one.k1 / 2 <= r <= 1.5 * one.k1:
            continue
        weight = comb(one.N, r) * chance**r * (1 - chance) ** (one.N - r)
        total += weight * sum(
            comb(r, m) * (1 - one.p_fail) ** m * one.p_fail ** (r - m)
            for m in range(r + 1)
            if one.k2 / 2 <= m <= 1.5 * one.k2
        )
    return total


@pytest.mark.parametrize("K", [1, 3, 7, 24, 40, 65])
def test_enough_is_the_plain_sum(K: int) -> None:
    assert events.enough(at(K)) == pytest.approx(exact_enough(at(K)), rel=1e-10)


def test_the_printed_enough_is_a_bound_up_to_67() -> None:
    """E7: it exceeds the exact value from K = 68 on, and is negative up to 3."""
    above = [K for K in range(1, 101) if events.printed_enough(at(K)) > events.enough(at(K))]
    assert above[0] == 68
    assert all(events.printed_enough(at(K)) < 0 for K in (1, 2, 3))
    assert events.printed_enough(at(4)) > 0


def test_a_large_group_has_a_poisson_number_of_relay_members() -> None:
    for N in (10**9, 10**18, 10**200):
        first, law = binomial(N, 7 / N)
        limit_first, limit = poisson(7.0)
        assert first == limit_first == 0
        assert law[:30] == pytest.approx(limit[:30], rel=1e-7)
        assert sum(law) == pytest.approx(1.0, abs=1e-12)
    first, law = binomial(2000, 0.5)
    assert sum(law) == pytest.approx(1.0, abs=1e-10)
    assert binomial(5, 1.0) == (5, (1.0,))
    assert binomial(5, 0.0) == (0, (1.0,))
    assert events.enough(replace(at(40), N=10**9)) == pytest.approx(events.enough(at(40)), abs=1e-4)


def test_the_peak_of_figure_4() -> None:
    """E15: 0.6 in the text; 0.6391, at K = 24."""
    value, K = max((printed_success(at(K)), K) for K in range(1, 66))
    assert (round(value, 4), K) == (0.6391, 24)


def test_the_group_that_e4_allows() -> None:
    """E5: 10^107 in the text follows from neither exponent."""
    assert events.printed_room(FIGURE_4) == pytest.approx(117.6, abs=0.05)
    assert events.room(FIGURE_4) == pytest.approx(39.2, abs=0.05)
    for digits in (36, 42):  # on both sides of what is allowed
        heard = events.printed_heard(replace(FIGURE_4, N=10**digits))
        assert (heard > 0.99) == (digits < events.room(FIGURE_4))
    with pytest.raises(BadInput, match="p_mcastl must be above 0"):
        events.room(replace(FIGURE_4, p_mcastl=0.0))


def test_hearing_is_stable_in_huge_groups() -> None:
    one = replace(FIGURE_4, N=10**18, K=18.0)
    z = 0.99 * 0.01 ** events.least_finals(one)
    assert events.heard(one) == pytest.approx(exp(-(10**18) * z), rel=1e-6)
    assert events.heard(replace(one, p_mcastl=0.0)) == 1.0


@pytest.mark.parametrize("K", [2, 7, 15, 24, 40, 65, 90])
def test_corrected_terms_lie_in_order(K: int) -> None:
    one = at(K)
    for term in (events.enough, events.joined, events.same, events.heard, events.leader_lives):
        assert 0 <= term(one) <= 1
    assert printed_success(one) <= product_success(one) < success(one) < 1 - one.p_fail + 1e-12


def test_more_loss_means_less_success() -> None:
    one = Round(K=7, view_prob=0.5, p_mcastl=0.05, p_ucastl=0.05, p_fail=0.01, N=2000)
    worse = (
        replace(one, p_mcastl=0.1),
        replace(one, p_ucastl=0.3),
        replace(one, p_fail=0.05),
        replace(one, view_prob=0.3),
        replace(one, N=20000),
    )
    assert all(success(each) < success(one) for each in worse)
    assert all(unsettled(each) > unsettled(one) for each in worse if each.p_fail == one.p_fail)


def test_the_law_without_loss() -> None:
    """The exact check of the specification, K = 7."""
    values = {0.2: 0.35947, 0.3: 0.12124, 0.4: 0.04110, 0.5: 0.014624}
    for view_prob, value in values.items():
        digits = 6 if view_prob == 0.5 else 5
        assert round(torn(7, view_prob), digits) == value
        assert torn(7, view_prob, N=10**7) == pytest.approx(torn(7, view_prob), rel=1e-4)
        lossless = Round(K=7, view_prob=view_prob, N=10**7)
        assert unsettled(lossless) == pytest.approx(torn(7, view_prob, N=10**7), rel=1e-9)
        assert success(lossless) == pytest.approx(1 - torn(7, view_prob), abs=2e-5)


def test_theorem_2() -> None:
    """E3: .94 to .9999 where no failed round is ever noticed; printed, it falls to 0."""
    values = [detection.printed_e1_detection(at(K)) for K in (20, 40, 65)]
    assert [round(value, 4) for value in values] == [0.9387, 0.9963, 0.9999]
    lossy = Round(K=20, view_prob=0.5, p_mcastl=0.4, p_ucastl=0.4, p_fail=0.001, N=1000)
    sizes = [10**3, 10**9, 10**18]
    printed = [detection.printed_detection(replace(lossy, N=N)) for N in sizes]
    assert printed[0] > printed[1] > printed[2] == 0
    true = [detection.detection(replace(lossy, N=N)) for N in sizes]
    assert true[0] < 0.1
    assert true[1:] == pytest.approx([events.enough(replace(lossy, N=10**18))] * 2, abs=1e-6)


def test_theorem_2_with_hash_thinning_has_another_limit() -> None:
    one = Round(K=7, view_prob=0.5, p_mcastl=0.2, p_ucastl=0.2, p_fail=0.001, N=10**12)
    seen = (1 - one.p_fail) * (1 - one.p_mcastl) ** (1.5 * one.k2)
    limit = events.enough(one) * (1 - exp(-one.K * seen))
    assert detection.thinned_detection(one) == pytest.approx(limit, rel=1e-9)
    assert detection.detection(one) == pytest.approx(events.enough(one))
    assert limit < 0.7 * events.enough(one)


def test_theorem_2_is_no_bound_for_a_failed_round() -> None:
    """Specification, E3: of failed rounds .24 are followed by another with hash thinning."""
    one = Round(K=7, view_prob=0.5, p_mcastl=0.2, p_ucastl=0.2, p_fail=0.001, N=2000)
    assert detection.thinned_detection(one) > 2 * 0.24
    assert detection.detection(one) < 0.956  # with a delay it holds


def test_the_leader_is_a_relay_member_now_and_then() -> None:
    one = Round(K=7, view_prob=0.5, N=10)
    assert leader_relays(10, one) == pytest.approx(1.0)
    assert leader_relays(0, one) == 0.0
    first = 0.3 / 1  # candidate by candidate: a relay member, or one that somebody knows
    hidden = 0.7 * 0.125
    second = hidden * 3 / 9
    third = hidden * (6 / 9) * 0.125 * 3 / 8
    assert leader_relays(3, one) == pytest.approx(first + second + third, abs=1e-3)


def test_what_is_no_round_is_refused() -> None:
    with pytest.raises(BadInput, match="K must be above 0, not 0"):
        replace(FIGURE_4, K=0.0)
    with pytest.raises(BadInput, match=r"view_prob must lie in \(0, 1\], not 0"):
        replace(FIGURE_4, view_prob=0.0)
    with pytest.raises(BadInput, match=r"p_fail must lie in \[0, 1\], not 1\.5"):
        replace(FIGURE_4, p_fail=1.5)
    with pytest.raises(BadInput, match="N must be at least 1, not 0"):
        replace(FIGURE_4, N=0)
    with pytest.raises(BadInput, match="K must be at most 2000"):
        success(Round(K=3000, N=10**6))


def test_nobody_relays_where_everything_is_lost() -> None:
    deaf = replace(FIGURE_4, p_mcastl=1.0)
    assert success(deaf) == 0.0
    assert unsettled(deaf) == pytest.approx(1.0)
    for term in (events.enough, events.joined, events.same, events.heard, events.leader_lives):
        with pytest.raises(BadInput, match="no member relays"):
            term(deaf)
