"""Two leaders, rounds reached, and the K or N that give a wanted success."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest

from hustings.core.errors import BadInput
from hustings.lab.closed_forms.probabilistic import leaders, sizing
from hustings.lab.closed_forms.probabilistic.round import Round
from hustings.lab.closed_forms.probabilistic.success import printed_success, success


def lossy(loss: float, N: int = 2000) -> Round:
    return Round(7, 0.5, loss, loss, 0.001, N)


def exact_both(finals: tuple[int, ...], loss: float) -> float:
    """Two named leaders hold themselves at least, of outsiders that hear each final by chance."""
    m, chances = sum(finals), []
    for own in finals:
        chances.append(loss ** (m - own) * (1 - loss**own))
    total = 0.0
    for held in product((True, False), repeat=len(finals)):
        if sum(held) >= 2:
            weight = 1.0
            for chance, there in zip(chances, held, strict=True):
                weight *= chance if there else 1 - chance
            total += weight
    return total


def splits(m: int, most: int) -> list[tuple[int, ...]]:
    if m == 0:
        return [()]
    return [(k, *rest) for k in range(min(m, most), 0, -1) for rest in splits(m - k, k)]


@pytest.mark.parametrize("loss", [0.01, 0.2, 0.34, 0.5, 0.8, 0.95, 0.999])
@pytest.mark.parametrize("m", [2, 3, 4, 6, 9])
def test_no_split_of_the_finals_exceeds_the_bound(m: int, loss: float) -> None:
    worst = max(exact_both(finals, loss) for finals in splits(m, m) if len(finals) > 1)
    bound = leaders.both_lead(m, loss)
    assert worst * (1 - 1e-12) <= bound <= leaders.both_lead(m, loss, inside=1.0)
    if loss <= 1 / 3:
        assert bound < 1.5 * worst


@pytest.mark.parametrize(
    "loss, measured, within", [(0.1, 8e-5, 1.5), (0.3, 2.3e-3, 1.6), (0.5, 1.5e-2, 3.0)]
)
def test_the_measured_rate_lies_below(loss: float, measured: float, within: float) -> None:
    """Specification, section 4: two leaders at the end of some round, N = 2000."""
    bound = leaders.two_leaders_ever(lossy(loss), leaders.strategy(7, 2000))
    assert measured < bound < within * measured


def test_hardly_any_loss_hardly_any_risk() -> None:
    bound = leaders.two_leaders_ever(lossy(0.001), leaders.strategy(7, 2000))
    assert 0 < bound < 1e-8
    assert leaders.two_leaders_ever(lossy(0.0), leaders.strategy(7, 2000)) == 0.0


def test_rounds_are_reached_less_often_than_the_bound_says() -> None:
    """Means of the specification, section 3: N given, delay."""
    for loss, mean in ((0.0, 1.0146), (0.1, 1.154), (0.2, 1.436), (0.3, 1.811), (0.5, 2.369)):
        bound = sum(leaders.reached(lossy(loss), leaders.strategy(7, 2000)))
        assert mean - 0.01 < bound < 1.4 * mean
    huge = leaders.reached(lossy(0.4, N=10**9), leaders.strategy(7, 10**9))
    assert huge[-1] > 46 / 20000  # E11: and it does not vanish as the group grows


def test_the_last_round_of_all_is_quick_to_bound() -> None:
    one = replace(lossy(0.4), K=10**9, N=10**9)
    assert leaders.two_leaders(one) == 0.0
    few = replace(lossy(0.9999), K=3000, N=3000)
    assert 0 < leaders.two_leaders(few) <= 1


def test_strategies() -> None:
    assert leaders.strategy(7, 10**6, 3) == [7, 14, 10**6]
    assert leaders.strategy(7, 10**6, 1) == [7]
    assert leaders.strategy(7, 50, 5) == [7, 14, 28, 50, 50]
    with pytest.raises(BadInput, match="max_rounds must be at least 1"):
        leaders.strategy(7, 50, 0)
    with pytest.raises(BadInput, match="strategy must be paper or doubling"):
        leaders.strategy(7, 50, 3, "halving")


FIGURE_4 = Round(24, view_prob=0.4, p_mcastl=0.01, p_ucastl=0.01, p_fail=0.01, N=10000)


@pytest.mark.parametrize("wanted", [0.3, 0.6, 0.9, 0.98])
def test_the_smallest_k_is_the_smallest(wanted: float) -> None:
    K = sizing.smallest_k(FIGURE_4, wanted)
    assert success(replace(FIGURE_4, K=K)) >= wanted
    assert all(success(replace(FIGURE_4, K=less)) < wanted for less in range(1, K))


def test_where_no_k_is_enough_that_is_said() -> None:
    assert printed_success(replace(FIGURE_4, K=sizing.printed_smallest_k(FIGURE_4, 0.63))) >= 0.63
    with pytest.raises(BadInput, match=r"no K up to 200 gives 0.64: the most is 0.6391, at K = 24"):
        sizing.printed_smallest_k(FIGURE_4, 0.64)
    with pytest.raises(BadInput, match=r"success must be at most 1 - p_fail = 0.99, not 0.991"):
        sizing.smallest_k(FIGURE_4, 0.991)
    with pytest.raises(BadInput, match=r"success must lie in \[0, 1\), not 1"):
        sizing.smallest_k(replace(FIGURE_4, p_fail=0.0), 1.0)
    with pytest.raises(BadInput, match=r"no K up to 200 gives 0\.5"):
        sizing.smallest_k(replace(FIGURE_4, p_mcastl=0.97), 0.5)


def test_the_largest_group_is_the_largest() -> None:
    one = Round(7, 0.5, 0.2, 0.1, 0.001)
    for find, bound in (
        (sizing.largest_group, success),
        (sizing.printed_largest_group, printed_success),
    ):
        given = one if bound is success else FIGURE_4
        wanted = 0.6
        N = 10 ** find(given, wanted)
        assert bound(replace(given, N=int(N * 0.99))) >= wanted
        assert bound(replace(given, N=int(N * 1.01) + 1)) < wanted


def test_where_no_group_or_any_group_will_do() -> None:
    with pytest.raises(BadInput, match="any N up to"):
        sizing.largest_group(Round(24, 0.5), 0.9)
    with pytest.raises(BadInput, match=r"no N gives 0\.99"):
        sizing.largest_group(FIGURE_4, 0.99)
    with pytest.raises(BadInput, match=r"no N gives 0\.7"):
        sizing.printed_largest_group(FIGURE_4, 0.7)
