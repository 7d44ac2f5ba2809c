"""Laws fitted to samples of known laws: the numbers come back, and their intervals cover them."""

from __future__ import annotations

import math
import random

import pytest

from hustings.lab.plans.intervals import proportion
from hustings.lab.surveys.fitting import (
    loss,
    one_way,
    pauses,
    proportion_of_many,
    slope,
)
from hustings.net.control_messages import WayCounts
from hustings.net.stall_detector import LEAST_STALL
from hustings.net.survey import counted
from hustings.sim.delay import Exponential, Fixed, Lognormal
from hustings.sim.loss import Burst, NoLoss, Uncorrelated

SEEDS = range(40)


def trips(rng: random.Random, median: float, sigma: float, count: int) -> list[float]:
    def way() -> float:
        return median * math.exp(rng.gauss(0.0, sigma))

    return [way() + way() for _ in range(count)]


@pytest.mark.parametrize("sigma", [0.05, 0.4, 1.0])
def test_intervals_of_delays_cover_the_law(sigma: float) -> None:
    hits = {"median": 0, "sigma": 0}
    for seed in SEEDS:
        fit = one_way(trips(random.Random(seed), 0.012, sigma, 400))
        assert fit is not None
        hits["median"] += fit.median.high >= 0.012 * 0.999 and fit.median.low <= 0.012 * 1.001
        hits["sigma"] += sigma in fit.sigma
    assert min(hits.values()) >= 0.85 * len(SEEDS), hits


def test_a_stall_now_and_then_moves_no_delay() -> None:
    rng = random.Random(3)
    sample = trips(rng, 0.01, 0.2, 970) + [0.8 + rng.random() for _ in range(30)]
    fit = one_way(sample)
    assert fit is not None
    assert isinstance(fit.law, Lognormal)
    assert fit.law.median == pytest.approx(0.01, rel=0.03)
    assert fit.law.sigma == pytest.approx(0.2, abs=0.03)


def test_equal_delays_are_fixed_and_few_are_none() -> None:
    fit = one_way([0.08] * 50)
    assert fit is not None
    assert fit.law == Fixed(0.04)
    assert one_way([0.08] * 9) is None


def trains(model: Burst | Uncorrelated, seed: int, count: int, between: int) -> WayCounts:
    """Trains of four; other messages on the way between two trains are not seen."""
    fate, found = model.fate(random.Random(seed)), WayCounts()
    for _ in range(count):
        found = counted(found, [fate(0.0, 1, 2) for _ in range(4)])
        for _ in range(between):
            fate(0.0, 1, 2)
    return found


@pytest.mark.parametrize("share, length", [(0.02, 5.0), (0.1, 3.0), (0.05, 12.0)])
def test_intervals_of_bursts_cover_the_law(share: float, length: float) -> None:
    hits = [0, 0]
    lengths = []
    for seed in SEEDS:
        fit = loss(trains(Burst(share, length), seed, 1500, 5))
        assert fit is not None
        assert isinstance(fit.law, Burst)
        assert fit.length is not None
        lengths.append(fit.law.length)
        hits[0] += share in fit.share
        hits[1] += length in fit.length
    assert min(hits) >= 0.85 * len(SEEDS), hits
    assert math.fsum(lengths) / len(lengths) == pytest.approx(length, rel=0.1)


def test_losses_without_memory_are_no_bursts() -> None:
    kinds, hits = [], 0
    for seed in SEEDS:
        fit = loss(trains(Uncorrelated(0.03), seed, 800, 0))
        assert fit is not None
        kinds.append(type(fit.law))
        hits += 0.03 in fit.share
    assert kinds.count(Burst) <= 2
    assert hits >= 0.85 * len(SEEDS)


def test_nothing_lost_has_an_upper_end() -> None:
    fit = loss(WayCounts(1000, 0, 0, 0))
    assert fit is not None
    assert isinstance(fit.law, NoLoss)
    assert 0.0025 < fit.share.high < 0.0035  # three in a thousand
    assert loss(WayCounts()) is None


def test_many_trials_have_nearly_the_exact_interval() -> None:
    exact, quick = proportion(150, 15_000), proportion_of_many(150, 15_000)
    assert quick.low == pytest.approx(exact.low, rel=0.02)
    assert quick.high == pytest.approx(exact.high, rel=0.02)


def seen(lengths: list[float]) -> list[float]:
    return [each for each in lengths if each > LEAST_STALL]


def test_pauses_below_what_is_seen_are_made_up_for() -> None:
    rates, means = [], []
    for seed in SEEDS:
        rng = random.Random(seed)
        lengths = seen([rng.expovariate(1 / 0.1) for _ in range(60)])  # in 600 s of running
        fit = pauses(lengths, len(lengths), 600.0 + sum(lengths), 0.0)
        assert fit is not None
        rates.append(fit.rate.value)
        if isinstance(fit.law, Exponential):
            means.append(fit.law.mean)
    assert math.fsum(rates) / len(rates) == pytest.approx(0.1, rel=0.15)
    assert len(means) > 20
    assert math.fsum(means) / len(means) == pytest.approx(0.1, rel=0.15)


def test_pauses_of_one_length_and_of_a_narrow_law() -> None:
    fit = pauses([0.3] * 20, 20, 1000.0, 0.4)
    assert fit is not None
    assert (fit.law, fit.longest) == (Fixed(0.3), 0.4)
    rng = random.Random(1)
    narrow = pauses([0.5 * math.exp(rng.gauss(0.0, 0.1)) for _ in range(60)], 60, 900.0, 0.0)
    assert narrow is not None
    assert isinstance(narrow.law, Lognormal)
    assert narrow.law.median == pytest.approx(0.5, rel=0.05)
    assert pauses([0.3, 0.4], 2, 1000.0, 0.4) is None


@pytest.mark.parametrize("drift", [0.0, 1e-4, -5e-4])
def test_intervals_of_slopes_cover_the_drift(drift: float) -> None:
    hits = 0
    for seed in SEEDS:
        rng = random.Random(seed)
        samples = []
        for step in range(300):
            out, back = (0.001 * math.exp(rng.gauss(0, 0.5)) for _ in range(2))
            samples.append((step * 0.5, 7.0 + drift * step * 0.5 + (out - back) / 2, out + back))
        found = slope(samples)
        assert found is not None
        hits += drift in found
    assert hits >= 0.85 * len(SEEDS)
    assert slope(samples[:5]) is None


def test_a_clock_without_noise_is_exact() -> None:
    found = slope([(t * 1.0, 3.0 + 2e-4 * t, 0.001) for t in range(100)])
    assert found is not None
    assert found.value == pytest.approx(2e-4)
    assert found.high - found.low < 1e-9
