"""A settled group: departures, false departures, joiners, shares of time, Byes, several leaders."""

from __future__ import annotations

from itertools import product
from math import ceil, expm1, fsum, inf, log1p

import pytest

from hustings.core.errors import BadInput
from hustings.lab.closed_forms.announce import consistency, departure, extensions, joiner
from hustings.lab.closed_forms.announce.laws import Law
from hustings.lab.closed_forms.announce.numerics import harmonic

D = 0.1
UNIFORM = Law()

# --- leader departure ----------------------------------------------------------------------------


def positive_part_twin(loss: float, T_S: float, T_A: float, T_L: float, delay: float) -> float:
    """E[X^+] by summing over G, H and a grid of phases and wake-ups."""
    steps = 40
    middles = [(i + 0.5) / steps for i in range(steps)]
    offsets = [T_S * t - T_A * phase for t in middles for phase in middles]
    total = 0.0
    for apart in range(-60, 61):  # H - G
        chance = (1 - loss) / (1 + loss) * loss ** abs(apart)
        base = T_L + 2 * delay + apart * T_A
        total += chance * fsum(max(0.0, base + offset) for offset in offsets) / len(offsets)
    return total


@pytest.mark.parametrize(
    "T_S, T_A, T_L", [(1, 1, 2), (1, 1, 3), (2, 1, 1.5), (0.5, 0.7, 2), (1, 2, 2)]
)
@pytest.mark.parametrize("loss", [0.0, 0.4, 0.7])
def test_correlated_departure(loss: float, T_S: float, T_A: float, T_L: float) -> None:
    found = departure.correlated(20, loss, Law(T_S=T_S), T_A, T_L, D)
    assert found == pytest.approx(positive_part_twin(loss, T_S, T_A, T_L, D), abs=2e-3)


@pytest.mark.parametrize(
    "k, simulated, within", [(2, 2.269, 0.015), (3, 3.226, 0.015), (5, 5.2, 0.01)]
)
def test_e8_departure_under_correlated_loss(k: int, simulated: float, within: float) -> None:
    found = departure.correlated(20, 0.4, UNIFORM, 1, k, D)
    assert found == pytest.approx(simulated, abs=within)
    printed = departure.printed(20, 0.4, "correlated", UNIFORM, 1, k, D)
    assert printed == pytest.approx(k + 0.2)
    assert found > printed


def test_e8_the_approximation_and_the_limit() -> None:
    rough = departure.correlated(20, 0.7, UNIFORM, 1, 3, D)
    assert rough == pytest.approx(3.70, abs=0.06)  # simulated; l^(2k) is 0.12 here
    far = departure.correlated(20, 0.4, UNIFORM, 1, 60, D)
    assert far == pytest.approx(departure.without_loss(20, UNIFORM, 1, 60, D), abs=1e-12)
    at_once = departure.correlated(20, 0.4, Law(T_S=0), 1, 2, D)
    brief = departure.correlated(20, 0.4, Law(T_S=1e-9), 1, 2, D)
    assert at_once == pytest.approx(brief, abs=1e-8)


def slowest_twin(others: int, loss: float, f: int, most: int = 40) -> float:
    """E[max of (G_1 - G_i - f)^+ + H_i] - E[G_1], laws summed term by term."""
    geometric = [(1 - loss) * loss**j for j in range(most)]
    total = 0.0
    for g, chance in enumerate(geometric):
        law = [0.0] * (2 * most)
        for i, p in enumerate(geometric):
            for h, q in enumerate(geometric):
                law[max(0, g - i - f) + h] += p * q
        below, mean = 0.0, 0.0
        for p in law:
            below += p
            mean += 1 - min(1.0, below) ** others
        total += chance * mean
    return total - loss / (1 - loss)


@pytest.mark.parametrize("loss", [0.1, 0.4])
@pytest.mark.parametrize("N", [3, 4, 9])
def test_uncorrelated_departure(N: int, loss: float) -> None:
    parts = 0.9 * slowest_twin(N - 2, loss, 0) + 0.1 * slowest_twin(N - 2, loss, 1)
    expected = departure.without_loss(N, UNIFORM, 1, 5, D) + parts
    assert departure.uncorrelated(N, loss, UNIFORM, 1, 5, D) == pytest.approx(expected, abs=1e-9)
    at_once = departure.without_loss(N, Law(T_S=0), 1, 5, 2.0) + slowest_twin(N - 2, loss, 2)
    found = departure.uncorrelated(N, loss, Law(T_S=0), 1, 5, 2.0)
    assert found == pytest.approx(at_once, abs=1e-9)


@pytest.mark.parametrize("loss, value", [(0.1, 6.221), (0.4, 8.353)])
def test_e9_departure_under_uncorrelated_loss(loss: float, value: float) -> None:
    assert departure.uncorrelated(20, loss, UNIFORM, 1, 5, D) == pytest.approx(value, abs=5e-4)
    assert departure.printed(20, loss, "uncorrelated", UNIFORM, 1, 5, D) == pytest.approx(5.2)


def test_departure_of_large_groups_and_heavy_loss() -> None:
    assert departure.uncorrelated(50, 0.4, UNIFORM, 1, 5, D) == pytest.approx(9.44, abs=0.06)
    assert 20 < departure.uncorrelated(10**6, 0.4, UNIFORM, 1, 5, D) < 25
    assert departure.uncorrelated(20, 0.0, UNIFORM, 1, 5, D) == pytest.approx(5.2)
    assert departure.uncorrelated(20, 0.97, UNIFORM, 1, 5, D) > 100
    with pytest.raises(BadInput, match=r"l must be at most 0\.98"):
        departure.uncorrelated(20, 0.99, UNIFORM, 1, 5, D)


def test_departure_of_the_first_waker() -> None:
    assert departure.first_waker(20, UNIFORM, 1, 5, D) == pytest.approx(4.7 + 1 / 20)
    steep = Law(lam=5)
    assert departure.first_waker(20, steep, 1, 5, D) == pytest.approx(4.7 + steep.earliest(19))


@pytest.mark.parametrize("N, T_L", [(2, 3.0), (20, 0.5), (20, inf)])
def test_departures_refused(N: int, T_L: float) -> None:
    with pytest.raises(BadInput):
        departure.without_loss(N, UNIFORM, 1, T_L, D)


# --- false departure -----------------------------------------------------------------------------


def runs(loss: float, k: int) -> tuple[float, float]:
    """P(right now), P(right now and in the next period), over all fates of k + 1 announcements."""
    now = both = 0.0
    for fates in product((True, False), repeat=k + 1):  # oldest first; True: received
        chance = 1.0
        for received in fates:
            chance *= 1 - loss if received else loss
        now += chance * any(fates[:-1])
        both += chance * (any(fates[:-1]) and any(fates[1:]))
    return now, both


@pytest.mark.parametrize("loss", [0.1, 0.4, 0.7])
@pytest.mark.parametrize("k", [1, 2, 3, 5])
@pytest.mark.parametrize("N", [2, 3, 20])
def test_system_of_listeners(N: int, k: int, loss: float) -> None:
    now, both = runs(loss, k)
    a, b = now ** (N - 1), both ** (N - 1)
    assert consistency.system_fraction(N, loss, 1, k) == pytest.approx(1 - a)
    assert consistency.system_duration(N, loss, 1, k) == pytest.approx((1 - a) / (a - b))
    # The share of time is the frequency of episodes times how long they last.
    assert consistency.fraction(loss, 1, k) == pytest.approx(loss**k)
    assert consistency.duration(loss, 1, k) == pytest.approx(1 / (1 - loss))


def test_one_listener_is_a_system() -> None:
    for k in (1, 3):
        one = consistency.system_duration(2, 0.4, 1, k)
        assert one == pytest.approx(consistency.duration(0.4, 1, k))


@pytest.mark.parametrize("T_L", [1.0, 1.25, 2.5, 3.0])
@pytest.mark.parametrize("N", [2, 20])
def test_share_of_time_by_phases(N: int, T_L: float) -> None:
    """Wrong at phase x after an arrival was due iff all announcements since T_L ago are lost."""
    steps, loss = 4000, 0.4
    phases = [(i + 0.5) / steps for i in range(steps)]
    lost = [loss ** ceil(T_L - x) for x in phases]
    anybody = fsum(1 - (1 - p) ** (N - 1) for p in lost) / steps
    assert consistency.system_fraction(N, loss, 1, T_L) == pytest.approx(anybody, rel=1e-9)
    assert consistency.fraction(loss, 1, T_L) == pytest.approx(fsum(lost) / steps, rel=1e-9)


def test_e10_to_e12() -> None:
    assert consistency.fraction(0.4, 1, 3) == pytest.approx(0.064)
    assert consistency.system_fraction(20, 0.4, 1, 3) == pytest.approx(0.715, abs=5e-4)
    assert consistency.printed_fraction(20, 0.4, "correlated", 1, 3) == pytest.approx(-0.8)
    assert consistency.printed_duration(20, 0.4, "correlated", 1, 3) < 0
    twice = consistency.printed_duration(20, 0.4, "uncorrelated", 1, 3)
    assert twice == pytest.approx(1 + 4.427 - 3, abs=5e-4)
    assert consistency.printed_duration(20, 0, "none", 1, 0.75) == consistency.duration(0, 1, 0.75)
    assert consistency.printed_fraction(20, 0, "none", 1, 0.75) == consistency.fraction(0, 1, 0.75)


def test_edges_of_false_departures() -> None:
    assert consistency.fraction(0.4, 1, inf) == consistency.system_fraction(9, 0.4, 1, inf) == 0
    assert consistency.fraction(0.0, 1, 1) == consistency.system_fraction(9, 0.0, 1, 1) == 0
    assert consistency.system_fraction(1, 0.4, 1, 3) == 0
    assert consistency.system_fraction(10**6, 0.4, 1, 3) == 1
    assert consistency.system_duration(10**6, 0.4, 1, 3) == inf
    assert consistency.system_duration(9, 0.4, 1, 10**6) == pytest.approx(1 / 0.6)
    heavy = consistency.system_duration(2, 1 - 1e-12, 1, 1)
    assert heavy == pytest.approx(1e12, rel=1e-3)
    assert consistency.fraction(0.4, 0.1, 0.3) == pytest.approx(0.4**3)  # no rounding of T_L/T_A
    for T_L in (0, inf):
        with pytest.raises(BadInput, match="T_L must be above 0 and finite"):
            consistency.duration(0.4, 1, T_L)
    with pytest.raises(BadInput, match="multiple of T_A"):
        consistency.system_duration(9, 0.4, 1, 2.5)


@pytest.mark.parametrize("T_L, measured", [(1, 0.500), (2, 0.334), (3, 0.250), (5, 0.167)])
def test_e1_the_literal_programs(T_L: float, measured: float) -> None:
    assert consistency.literal_disagreement(1, T_L) == pytest.approx(measured, abs=1e-3)


def test_e25_shares_of_time() -> None:
    assert consistency.by_departures(20, 5.2, 100) == pytest.approx(5.2 / 2000)
    assert consistency.printed_by_departures(5.2, 100) == pytest.approx(0.052)
    assert consistency.by_joiners(9, 0.6, 0.5, 100) == pytest.approx(0.0051)
    for bad in (0, -1):
        with pytest.raises(BadInput):
            consistency.by_departures(20, 5.2, bad)


# --- joiners -------------------------------------------------------------------------------------


def test_e13_to_e15() -> None:
    printed = joiner.printed_smaller(50, 0.4, "uncorrelated")
    assert (printed, joiner.smaller(0.4)) == pytest.approx((5.91, 1.167), abs=5e-3)
    assert joiner.printed_smaller(50, 0, "none", ceiling=False) == 0
    larger = joiner.larger(20, 0.4, "uncorrelated", UNIFORM, 1, D)
    printed = joiner.printed_larger(20, 0.4, "uncorrelated", UNIFORM, 1, D)
    assert (printed, larger) == pytest.approx((5.027, 4.027), abs=5e-4)
    for loss, model in ((0.0, "none"), (0.4, "correlated")):
        same = joiner.larger(20, loss, model, UNIFORM, 1, D)
        assert joiner.printed_larger(20, loss, model, UNIFORM, 1, D) == pytest.approx(same)
        assert joiner.printed_smaller(20, loss, model) == pytest.approx(joiner.smaller(loss))


@pytest.mark.parametrize("delay", [0.0, 0.1, 0.5, 0.8])
def test_a_query_saves_waiting(delay: float) -> None:
    phases = [(i + 0.5) / 1000 for i in range(1000)]
    waited = fsum(min(2 * delay, phase) for phase in phases) / 1000
    assert joiner.smaller_query(1, delay) == pytest.approx(waited, abs=1e-6)
    if 2 * delay <= 1:
        assert joiner.smaller_query(1, delay) == pytest.approx(2 * delay - 2 * delay**2)


# --- extensions ----------------------------------------------------------------------------------


@pytest.mark.parametrize("N", [2, 3, 50, 10**6])
@pytest.mark.parametrize("loss", [0.1, 0.4, 0.9, 0.999])
@pytest.mark.parametrize("eps", [0.5, 0.01, 1e-9])
def test_e29_as_many_byes_as_needed(N: int, loss: float, eps: float) -> None:
    repeats = extensions.bye_repeats(N, loss, "uncorrelated", eps)

    def missed(count: int) -> float:  # 1 - (1 - l^count)^(N-1), which would cancel
        return -expm1((N - 1) * log1p(-(loss**count)))

    assert missed(repeats) <= eps * (1 + 1e-9)
    assert repeats == 1 or missed(repeats - 1) > eps * (1 - 1e-9)
    alone = extensions.bye_repeats(N, loss, "correlated", eps)
    assert alone == extensions.bye_repeats(2, loss, "uncorrelated", eps)


def test_byes_at_the_edges() -> None:
    assert extensions.bye_repeats(50, 0, "none") == 1
    assert extensions.bye_mean(50, 0, "none") == 1
    assert extensions.printed_byes(0) == 0
    assert extensions.bye_repeats(1, 0.4, "uncorrelated") == 0
    assert extensions.bye_repeats(50, 0.1, "correlated", 0.001) == 3  # l^3 = eps: no fourth
    assert extensions.bye_repeats(50, 0.4, "uncorrelated", 1.0) == 1
    with pytest.raises(BadInput, match="eps must lie in"):
        extensions.bye_repeats(50, 0.4, "uncorrelated", 0)


def test_several_leaders() -> None:
    assert extensions.leaders_first_round(10, 2) == pytest.approx(4.858, abs=5e-4)
    assert extensions.leaders_first_round(10, 1) == pytest.approx(harmonic(10))
    for N, k in ((5, 2), (6, 3)):  # the j-th best sends unless k better ones wake before
        sends = fsum(min(1, k / j) for j in range(1, N + 1))
        assert extensions.leaders_first_round(N, k) == pytest.approx(sends)
    assert extensions.leaders_first_round(3, 3) == extensions.leaders_first_round(3, 9) == 3
    assert extensions.leaders_tmax(10, 3, UNIFORM) == pytest.approx(0.75)
    assert extensions.leaders_tmax(2, 9, UNIFORM) == pytest.approx(2 / 3)
