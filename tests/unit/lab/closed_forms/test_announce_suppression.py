"""SUP: the last send and the halt, against the law of the last send written down directly."""

from __future__ import annotations

from math import fsum

import pytest

from hustings.lab.closed_forms.announce import suppression
from hustings.lab.closed_forms.announce.laws import Law


def last_send_twin(N: int, loss: float, law: Law, D: float, steps: int = 300) -> float:
    """The integral of 1 - P(tmax <= x), by midpoints.

    tmax <= x if tau <= x - D, or tau <= x and nobody wakes in (x, tau + D], or all are lost and
    have woken by x.
    """
    h = law.T_S / steps
    grid = [(i + 0.5) * h for i in range(steps)]
    total = 0.0
    for x in grid:
        within = 1 - (1 - (1 - loss) * law.cdf(x - D)) ** N + (loss * law.cdf(x)) ** N
        low = max(0.0, x - D)
        fine = (x - low) / 60
        for j in range(60):
            tau = low + (j + 0.5) * fine
            share = 1 - (1 - loss) * law.cdf(tau) - law.cdf(tau + D) + law.cdf(x)
            within += fine * N * (1 - loss) * law.density(tau) * share ** (N - 1)
        total += (1 - within) * h
    return total


@pytest.mark.parametrize("law", [Law(), Law(lam=5), Law(T_S=2, lam=2)])
@pytest.mark.parametrize("N, loss, D", [(2, 0.4, 0.1), (5, 0.0, 0.2), (8, 0.7, 0.1), (3, 0.4, 2.5)])
def test_the_last_send(N: int, loss: float, D: float, law: Law) -> None:
    twin = last_send_twin(N, loss, law, D)
    assert suppression.tmax(N, loss, law, D) == pytest.approx(twin, abs=2e-3)


def test_e28_the_last_send_is_not_the_halt() -> None:
    assert suppression.halt(100, 0, Law(), 0.1) - 0.1 == pytest.approx(0.0099, abs=5e-5)
    assert suppression.tmax(100, 0, Law(), 0.1) == pytest.approx(0.1001, abs=2e-4)


@pytest.mark.parametrize("law", [Law(), Law(lam=5)])
def test_edges(law: Law) -> None:
    for loss in (0.0, 0.4, 1 - 1e-12):
        assert suppression.tmax(1, loss, law, 0.1) == pytest.approx(law.mean)
        assert suppression.halt(1, loss, law, 0.1) == pytest.approx(law.mean)
        assert suppression.messages(1, loss, law, 0.1) == pytest.approx(1)
        assert suppression.tmax(7, loss, law, 1.0) == pytest.approx(law.latest(7))
        assert suppression.halt(7, loss, law, 1.0) == pytest.approx(law.latest(7))
    assert suppression.tmax(50, 0, law, 0) == pytest.approx(law.earliest(50))
    assert suppression.halt(50, 0, law, 0) == pytest.approx(law.earliest(50))
    assert suppression.tmax(5, 0.4, Law(T_S=0), 0.1) == 0
    assert suppression.halt(5, 0.4, Law(T_S=0), 0.1) == 0
    assert suppression.messages(5, 0.4, Law(T_S=0), 0) == 5


def test_a_million_members() -> None:
    assert suppression.tmax(10**6, 0.7, Law(), 0.1) == pytest.approx(0.1 + 7 / 3 * 1e-6, rel=1e-7)
    assert suppression.halt(10**6, 0, Law(), 0.1) == pytest.approx(0.1 + 1e-6, rel=1e-9)


def test_heavy_loss_makes_all_send() -> None:
    assert suppression.messages(20, 1 - 1e-9, Law(), 0.1) == pytest.approx(20, rel=1e-6)
    assert suppression.tmax(20, 1 - 1e-9, Law(), 0.1) == pytest.approx(20 / 21, rel=1e-6)


def test_halt_by_midpoints() -> None:
    law, N, loss, D = Law(lam=3), 6, 0.5, 0.2
    grid = [(i + 0.5) / 5000 for i in range(5000)]
    heard = [(1 - loss) * law.cdf(x - D) for x in grid]
    pairs = zip(grid, heard, strict=True)
    running = fsum((1 - h) ** N - (law.cdf(x) - h) ** N for x, h in pairs) / 5000
    assert suppression.halt(N, loss, law, D) == pytest.approx(running, abs=1e-6)
