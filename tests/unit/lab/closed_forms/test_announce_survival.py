"""Rounds after the first, uncorrelated loss: tables of E21 and E22, and what E20 and E23 say."""

from __future__ import annotations

import pytest

from hustings.core.errors import BadInput
from hustings.lab.closed_forms.announce import survival


@pytest.mark.parametrize("r, right, printed", [(1, 0.364, 0.064), (2, 0.0233, 0.0041)])
def test_e21_all_three_send(r: int, right: float, printed: float) -> None:
    assert survival.all_send(3, r, 0.4) == pytest.approx(right, abs=5e-5)
    assert survival.printed_all_send(3, r, 0.4) == pytest.approx(printed, abs=5e-5)


@pytest.mark.parametrize("loss", [0.1, 0.4, 0.7])
@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_all_send_is_the_last_of_the_enumerated_law(n: int, loss: float) -> None:
    for r in (1, 2, 3):
        law = survival.round_law(n, r, loss)
        assert law[n] == pytest.approx(survival.all_send(n, r, loss), rel=1e-12)
        assert sum(law) == pytest.approx(1)
        assert law[0] == 0


def test_all_survive_is_what_is_printed() -> None:
    for r in (1, 2):
        lost = survival.reach(2, r + 1, 0.4)
        assert lost == pytest.approx(survival.printed_all_send(2, r, 0.4))


@pytest.mark.parametrize("loss, ratio", [(0.1, 0.960), (0.4, 0.941), (0.7, 0.987)])
def test_e22_rounds_depend_on_one_another(loss: float, ratio: float) -> None:
    joint = survival.reach(3, 3, loss)
    # By hand: the second member's two rounds, woken after or before the best.
    keep, lost = 1 - loss, loss
    late = keep + lost * keep * lost + lost**2 * lost**2
    early = keep * lost + lost * lost**2
    assert joint == pytest.approx(lost**2 * (late + early) / 2)
    assert survival.marginal_reach(3, 3, loss) / joint == pytest.approx(ratio, abs=5e-4)


def test_e20_the_printed_law_is_none() -> None:
    first = survival.printed_round_law(3, 1, 0.4)
    assert sum(first) == pytest.approx(1)
    second = survival.printed_round_law(3, 2, 0.4)
    # 0.3 and 0.7 are the printed law of two members; the rest as printed.
    assert second == pytest.approx([0, 0.3 * 0.6 / 2, 0.3 * 0.7 + 0.7 * 0.36 / 3, 0.4**6])
    assert survival.printed_reach(1, 2, 0.4) == 0
    assert survival.reach(1, 2, 0.4) == 1


def test_e23_the_printed_total_has_no_value() -> None:
    grown = [survival.diverging_total(3, 0.4, rounds) for rounds in (10, 20, 40)]
    assert grown == pytest.approx([r * (r + 1) / 2 for r in (10, 20, 40)], abs=3)
    assert survival.round_law(3, 40, 0.4)[1] == pytest.approx(1)
    first = survival.printed_round_law(4, 1, 0.4)
    total = sum(i * first[i] for i in range(4))  # i = 4 is left out
    assert survival.printed_total(4, 0.4, 1) == pytest.approx(total)


@pytest.mark.parametrize("n, r", [(0, 1), (7, 1), (3, 0), (3, 201)])
def test_outside_the_enumeration(n: int, r: int) -> None:
    with pytest.raises(BadInput):
        survival.round_law(n, r, 0.4)
