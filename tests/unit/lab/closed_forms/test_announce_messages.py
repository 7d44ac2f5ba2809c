"""Messages under no and correlated loss: the specification's numbers, and dumb twins.

The twins sum the coupling of the specification as it stands, with floors and expectations over a
grid of wake-up times; the module integrates another form of it.
"""

from __future__ import annotations

from collections.abc import Callable
from math import expm1, floor, fsum

import pytest

from hustings.core.errors import BadInput
from hustings.lab.closed_forms.announce import messages
from hustings.lab.closed_forms.announce.laws import Law
from hustings.lab.closed_forms.announce.numerics import harmonic

D = 0.1
UNIFORM = Law()


def quantiles(law: Law, steps: int) -> list[float]:
    """Wake-up times at the middles of equal probabilities, by bisection."""
    found = []
    for i in range(steps):
        low, high, goal = 0.0, law.T_S, (i + 0.5) / steps
        for _ in range(45):
            middle = (low + high) / 2
            low, high = (middle, high) if law.cdf(middle) < goal else (low, middle)
        found.append((low + high) / 2)
    return found


def twin(
    N: int, loss: float, law: Law, T_A: float, D: float, rounds: int, steps: int = 240
) -> float:
    """1/(1-l) + sum over m of E[sum of y^k], y = E[l^max(0, floor((t-u-D)/T_A) + m + 1)]."""
    times = quantiles(law, steps)
    total = 1 / (1 - loss)
    for m in range(rounds):
        for t in times:
            missed = [loss ** max(0, floor((t - u - D) / T_A) + m + 1) for u in times]
            y = fsum(missed) / steps
            total += fsum(y**k for k in range(1, N)) / steps
    return total


def first_waker_twin(
    N: int, loss: float, law: Law, T_A: float, D: float, rounds: int, steps: int = 240
) -> float:
    """The same for LE-M: only earlier wakers are better, and the leader is left out."""
    times = quantiles(law, steps)
    total = 1 / (1 - loss)
    for m in range(rounds):
        for i, t in enumerate(times):
            woken = (i + 0.5) / steps
            missed = [loss ** max(0, floor((t - u - D) / T_A) + m + 1) for u in times[:i]]
            here = 0.5 * loss ** max(0, floor(-D / T_A) + m + 1)
            y = 1 - woken + (fsum(missed) + here) / steps
            total += N / steps * (y ** (N - 1) - (1 - woken) ** (N - 1))
    return total


SETTINGS = [
    (5, 0.4, UNIFORM, 1.0, 0.1),
    (6, 0.5, UNIFORM, 0.3, 0.1),
    (4, 0.6, Law(T_S=2), 0.7, 0.25),
    (5, 0.3, Law(lam=5), 1.0, 0.2),
    (5, 0.0, UNIFORM, 0.4, 0.05),
    (3, 0.4, UNIFORM, 1.0, 0.0),
]


@pytest.mark.parametrize("N, loss, law, T_A, D", SETTINGS)
def test_total_against_its_twin(N: int, loss: float, law: Law, T_A: float, D: float) -> None:
    expected = twin(N, loss, law, T_A, D, rounds=14)
    assert messages.total(N, loss, law, T_A, D) == pytest.approx(expected, rel=3e-3)
    only_first = twin(N, loss, law, T_A, D, rounds=1) - 1 / (1 - loss) + 1
    assert messages.first_round(N, loss, law, T_A, D) == pytest.approx(only_first, rel=3e-3)


@pytest.mark.parametrize("N, loss, law, T_A, D", SETTINGS)
def test_first_waker_against_its_twin(N: int, loss: float, law: Law, T_A: float, D: float) -> None:
    expected = first_waker_twin(N, loss, law, T_A, D, rounds=14)
    found = messages.total_first_waker(N, loss, law, T_A, D)
    assert found == pytest.approx(expected, rel=5e-3)
    # Of the first round the leader's own message is one.
    only_first = first_waker_twin(N, loss, law, T_A, D, rounds=1) - 1 / (1 - loss) + 1
    found = messages.first_round_first_waker(N, loss, law, T_A, D)
    assert found == pytest.approx(only_first, rel=5e-3)


@pytest.mark.parametrize(
    "N, loss, printed, correct", [(500, 0.7, 172.2, 68.28), (2, 0.4, 1.268, 1.757)]
)
def test_e16(N: int, loss: float, printed: float, correct: float) -> None:
    assert messages.printed_first_round(N, loss, UNIFORM, D) == pytest.approx(printed, rel=5e-4)
    assert messages.first_round(N, loss, UNIFORM, 1.0, D) == pytest.approx(correct, rel=5e-4)
    without = messages.first_round(N, 0, UNIFORM, 1.0, D)
    assert messages.printed_first_round(N, 0, UNIFORM, D) == pytest.approx(without)


def test_e18_repeats_come_on_top() -> None:
    for N in (2, 50, 500):
        more = messages.total(N, 0, UNIFORM, 1, D) - messages.first_round(N, 0, UNIFORM, 1, D)
        assert more == pytest.approx(fsum(D**k / k for k in range(2, N + 1)), abs=1e-9)
    assert messages.first_round(50, 0.4, UNIFORM, 1, D) == pytest.approx(11.47, abs=5e-3)
    assert messages.total(50, 0.4, UNIFORM, 1, D) == pytest.approx(12.82, abs=5e-3)


def test_e27_short_periods() -> None:
    assert messages.first_round(50, 0, UNIFORM, 1, D) == pytest.approx(9.394, abs=5e-4)
    assert messages.total(50, 0, UNIFORM, 1, D) == pytest.approx(9.399, abs=5e-4)
    assert messages.total(50, 0, UNIFORM, 0.3, D) == pytest.approx(10.4, abs=0.05)


@pytest.mark.parametrize("N", [2, 3, 10, 500, 10**6])
def test_total_without_loss(N: int) -> None:
    found = messages.total(N, 0, UNIFORM, 1, D)
    assert found == pytest.approx(N * D + harmonic(N) - D, rel=1e-12)


@pytest.mark.parametrize("loss", [0, 0.1, 0.4, 0.7, 0.9, 0.999, 1 - 1e-9])
def test_total_of_two(loss: float) -> None:
    assert messages.total(2, loss, UNIFORM, 1, D) == pytest.approx(2 / (1 - loss) - 0.4, rel=1e-11)


@pytest.mark.parametrize("loss", [0, 0.1, 0.4, 0.7, 0.95, 0.999])
@pytest.mark.parametrize("N", [2, 7, 300])
def test_no_suppression_is_the_limit_of_short_suppression(N: int, loss: float) -> None:
    at_once = 1 / (1 - loss) + fsum(1 / (1 - loss**k) for k in range(1, N))
    assert messages.total_at_once(N, loss, 1, D) == pytest.approx(at_once, rel=1e-12)
    assert messages.total(N, loss, Law(T_S=0), 1, D) == pytest.approx(at_once, rel=1e-12)
    assert messages.total(N, loss, Law(T_S=1e-10), 1, D) == pytest.approx(at_once, rel=1e-7)
    assert messages.total_first_waker(N, loss, Law(T_S=1e-10), 1, D) == pytest.approx(
        at_once, rel=1e-7
    )
    late = messages.total(N, loss, Law(T_S=1e-10), 1, 2.5)
    assert messages.total_at_once(N, loss, 1, 2.5) == pytest.approx(late, rel=1e-7)


def slots(N: int, loss: float, delay: int, rounds: int, strict: bool) -> float:
    """LE-A with D = delay * T_A: sends at an instant precede its arrivals, over tiny groups.

    P(member k sends in round m and it counts), summed: the leader has had `led` chances to end it,
    every other better one `heard` chances to silence it.
    """
    total = 1 / (1 - loss) + (delay - 1 if strict else 0)
    for m in range(rounds):
        led = max(0, m - delay + 1) if strict else m
        heard = max(0, m - delay)
        total += fsum(loss**led * loss ** (heard * (k - 1)) for k in range(1, N))
    return total


@pytest.mark.parametrize("delay", [1, 2, 3])
def test_ties_of_delay_and_period(delay: int) -> None:
    for N, loss in ((2, 0.4), (5, 0.5)):
        counted = slots(N, loss, delay, 200, strict=True)
        assert messages.total_at_once(N, loss, 0.1, delay / 10) == pytest.approx(counted)
        by_tmax = slots(N, loss, delay, 200, strict=False)
        for more in (0, 0.05):  # what is under way for longer arrives no sooner for it
            found = messages.sent_by_tmax(N, loss, Law(T_S=0), 0.1, delay / 10 + more)
            assert found == pytest.approx(by_tmax)


def test_the_two_readings_of_num_msgs() -> None:
    assert messages.sent_by_tmax(500, 0, UNIFORM, 1, D) == pytest.approx(53.5, abs=0.05)
    assert messages.total(500, 0, UNIFORM, 1, D) == pytest.approx(56.7, abs=0.05)
    assert messages.sent_by_tmax(9, 0.4, UNIFORM, 1, 0) == pytest.approx(
        messages.total(9, 0.4, UNIFORM, 1, 0)
    )


@pytest.mark.parametrize(
    "N, uniform, five, ten",
    [(10, 3.82, 4.04, 5.25), (100, 15.1, 8.16, 11.4), (500, 56.7, 12.6, 15.8)],
)
def test_exponential_timers(N: int, uniform: float, five: float, ten: float) -> None:
    found = [messages.total(N, 0, Law(lam=lam), 1, D) for lam in (0, 5, 10)]
    assert found == pytest.approx([uniform, five, ten], rel=4e-3)


@pytest.mark.parametrize("law", [Law(), Law(lam=5), Law(lam=100), Law(T_S=3, lam=1)])
def test_without_delay_and_loss_the_law_does_not_matter(law: Law) -> None:
    for N in (2, 50, 10**5):
        assert messages.first_round(N, 0, law, 4, 0) == pytest.approx(harmonic(N))
        assert messages.total(N, 0, law, 4, 0) == pytest.approx(harmonic(N))
        assert messages.total_first_waker(N, 0, law, 4, 0) == pytest.approx(1)


@pytest.mark.parametrize("lam", [0.5, 5.0, 10.0])
@pytest.mark.parametrize("N", [1, 10, 500])
def test_exponential_suppression_as_specified(N: int, lam: float) -> None:
    grown = expm1(lam * D) + 1
    quiet = 1 - (expm1(-lam * D) / expm1(-lam)) ** N
    expected = N * expm1(lam * D) / expm1(lam) + grown * quiet
    found = messages.first_round_first_waker(N, 0, Law(lam=lam), 1, D)
    assert found == pytest.approx(expected)


@pytest.mark.parametrize("form", [messages.first_round, messages.first_round_first_waker])
def test_edges_of_the_first_round(
    form: Callable[[int, float, Law, float, float], float],
) -> None:
    for loss in (0.0, 0.4, 1 - 1e-12):
        assert form(1, loss, UNIFORM, 1, D) == pytest.approx(1)
        assert form(50, loss, UNIFORM, 1, 1.0) == 50  # nothing arrives before all have woken
        assert form(50, loss, Law(T_S=0), 1, 0) == 50
    assert form(10**6, 1 - 1e-12, UNIFORM, 1, D) == pytest.approx(1e6, rel=1e-5)
    with pytest.raises(BadInput, match="T_S must be at most 10 T_A"):
        form(50, 0.4, UNIFORM, 0.01, D)


@pytest.mark.parametrize(
    "form", [messages.total, messages.total_first_waker, messages.sent_by_tmax]
)
def test_edges_of_the_total(form: Callable[[int, float, Law, float, float], float]) -> None:
    assert form(1, 0.4, UNIFORM, 1, D) == 1
    many = form(10**6, 0.7, UNIFORM, 1, D)
    assert 0.98e5 < many < 1.01e5
    for loss in (0.9, 0.99, 1 - 1e-6):  # continuous in l where the way of summing changes
        near = form(20, loss * (1 - 1e-7), UNIFORM, 1, D), form(20, loss, UNIFORM, 1, D)
        assert near[0] == pytest.approx(near[1], rel=1e-5 + 2e-7 / (1 - loss))


def test_the_worst_of_both_variants() -> None:
    for N in (3, 20, 100):
        for loss in (0.0, 0.1, 0.4, 0.7):
            le_m = messages.total_first_waker(N, loss, UNIFORM, 1, D)
            assert le_m < messages.total(N, loss, UNIFORM, 1, D)


def test_baseline_messages() -> None:
    assert messages.total_baseline(10, 5 / 3, 1, D) == pytest.approx(50 / 3)
    assert messages.total_baseline(10, 1, 1, 2.5) == 30
    assert messages.total_baseline(1, 0, 1, D) == 1
