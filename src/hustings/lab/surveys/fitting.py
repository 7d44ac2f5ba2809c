"""Laws that fit what a survey has collected: pure statistics, with an interval for each number.

Delay      A round trip is the sum of two ways of one law. The law is lognormal, of the median and
           the spread for which such a sum has the sample's median and its deciles. A stall of a
           process moves neither.
Loss       The share of lost datagrams. Losses in bursts carry less information than as many that
           are independent of each other: the interval is as wide as the bursts demand.
Bursts     Within a train, the share of losses right after a loss is 1 - 1/length, if a burst loses
           all it meets (Gilbert's model of `sim.loss.Burst`).
Pauses     Stalls below `LEAST_STALL` are not seen. So an exponential law is fitted to what exceeds
           that, and the rate is that of all pauses of the law. Where a lognormal law fits better,
           it is taken.
Clocks     The slope of a clock's offset, from the quickest comparison in each of some windows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist, fmean, median, pstdev

from hustings.core.durations import parse_duration
from hustings.core.streams import Stream, derive
from hustings.lab.plans.intervals import (
    CONFIDENCE,
    Interval,
    mean_of,
    poisson_rate,
    proportion,
    quantile,
    student_quantile,
)
from hustings.net.control_messages import WayCounts
from hustings.net.stall_detector import LEAST_STALL
from hustings.sim.delay import Delay, Exponential, Fixed, Lognormal
from hustings.sim.loss import Burst, Loss, NoLoss, Uncorrelated

_GRID = 48  # points of a law, when two of it are added
_SPREADS = 60  # spreads in the table of sums
_WIDEST = 3.0  # the largest spread
_RESAMPLES = 200
_SAMPLE = 2000  # round trips that a resample has at most
_LOW, _HIGH = 0.1, 0.9  # the quantiles that give the spread
FEWEST_TRIPS = 10
_FEWEST_LOSSES = 10  # followed losses that a burst length rests on
_WINDOWS = 20  # of the time, for the clocks
_FEWEST_WINDOWS = 4
_FEWEST_PAUSES = 3
_LARGE = 20_000  # trials from which on a proportion's interval is that of the normal law


# Delays


@dataclass(frozen=True, slots=True)
class DelayFit:
    """The law of one way, and the intervals of its numbers."""

    law: Delay
    samples: int
    median: Interval  # of one way
    sigma: Interval


def one_way(trips: Sequence[float]) -> DelayFit | None:
    """The law of one way, from round trips; None if there are too few."""
    values = sorted(each for each in trips if each > 0.0)
    if len(values) < FEWEST_TRIPS:
        return None
    middle, sigma = _lognormal(values)
    mid = quantile(values, 0.5).times(middle / median(values))
    chance = Stream(derive(len(values), "trips"))
    count = min(len(values), _SAMPLE)
    drawn = sorted(
        _lognormal(sorted(values[chance.below(len(values))] for _ in range(count)))[1]
        for _ in range(_RESAMPLES)
    )
    ends = drawn[_RESAMPLES // 40], drawn[-1 - _RESAMPLES // 40]
    spread = Interval(sigma, min(ends[0], sigma), max(ends[1], sigma), "resampled")
    law: Delay = Fixed(rounded_time(middle)) if sigma < 0.005 else _law(middle, sigma)
    return DelayFit(law, len(values), mid, spread)


def _law(middle: float, sigma: float) -> Lognormal:
    return Lognormal(rounded_time(middle), _rounded(sigma))


def _lognormal(values: Sequence[float]) -> tuple[float, float]:
    """Median and spread of one way, from sorted round trips."""
    low, mid, high = (_at(values, p) for p in (_LOW, 0.5, _HIGH))
    wanted = math.log(high / low)
    table = _sums()
    at = next((i for i, (_, _, ratio) in enumerate(table) if ratio >= wanted), len(table) - 1)
    if at == 0:
        return mid / 2.0, 0.0
    (s0, m0, r0), (s1, m1, r1) = table[at - 1], table[at]
    part = min(1.0, (wanted - r0) / (r1 - r0))
    return mid / (m0 + part * (m1 - m0)), s0 + part * (s1 - s0)


@lru_cache(maxsize=1)
def _sums() -> list[tuple[float, float, float]]:
    """For spreads of one way: the median of the sum of two, and the ratio of its deciles."""
    points = [NormalDist().inv_cdf((i + 0.5) / _GRID) for i in range(_GRID)]
    table = []
    for step in range(_SPREADS + 1):
        sigma = _WIDEST * (step / _SPREADS) ** 2
        ways = [math.exp(sigma * z) for z in points]
        sums = sorted(one + other for one in ways for other in ways)
        ratio = math.log(_at(sums, _HIGH) / _at(sums, _LOW))
        table.append((sigma, _at(sums, 0.5), ratio))
    return table


def _at(values: Sequence[float], p: float) -> float:
    """A quantile of sorted values, between two of them."""
    place = p * (len(values) - 1)
    below = int(place)
    above = min(below + 1, len(values) - 1)
    return values[below] + (place - below) * (values[above] - values[below])


# Losses


@dataclass(frozen=True, slots=True)
class LossFit:
    """The loss of one kind of way, and the intervals of its numbers."""

    law: Loss
    counts: WayCounts
    share: Interval
    again: Interval | None  # the share of losses right after a loss

    @property
    def length(self) -> Interval | None:
        """The mean length of a burst; None if losses show no bursts."""
        if self.again is None or not isinstance(self.law, Burst):
            return None
        low, high = (1.0 / max(1e-9, 1.0 - each) for each in (self.again.low, self.again.high))
        return Interval(self.law.length, low, high, self.again.method)


def loss(counts: WayCounts) -> LossFit | None:
    """The law of losses; None if nothing was sent."""
    if not counts.sent:
        return None
    p = counts.lost / counts.sent
    again = _share(counts.lost_again, counts.after_loss) if counts.after_loss else None
    # By how much the next loss depends on this one: it makes the sample worth less.
    tied = 0.0 if again is None else max(0.0, min(0.95, again.value - p))
    worth = (1.0 - tied) / (1.0 + tied)
    share = _share(round(counts.lost * worth), max(1, round(counts.sent * worth)))
    share = Interval(p, min(p, share.low), max(p, share.high), share.method)
    law: Loss = Uncorrelated(_rounded(p)) if p else NoLoss()
    if again is not None and counts.after_loss >= _FEWEST_LOSSES and again.low > share.high:
        length = _rounded(1.0 / max(1e-6, 1.0 - again.value))
        if p < length / (length + 1.0):
            law = Burst(_rounded(p), max(1.0, length))
    return LossFit(law, counts, share, again)


def _share(events: int, trials: int) -> Interval:
    if trials < _LARGE:
        return proportion(events, trials)
    return proportion_of_many(events, trials)


def proportion_of_many(events: int, trials: int) -> Interval:
    """A share with Wilson's interval, which is quick where trials are many."""
    z, p = NormalDist().inv_cdf(0.975), events / trials
    middle = (p + z * z / (2 * trials)) / (1 + z * z / trials)
    half = z / (1 + z * z / trials) * math.sqrt(p * (1 - p) / trials + (z / trials / 2) ** 2)
    return Interval(p, max(0.0, middle - half), middle + half, "Wilson")


# Pauses


@dataclass(frozen=True, slots=True)
class PauseFit:
    """The pauses of a member, and the intervals of their numbers."""

    law: Delay
    rate: Interval  # per second in which a member runs
    mean: Interval
    longest: float
    samples: int
    seconds: float  # of members, in which they ran


def pauses(lengths: Sequence[float], count: int, watched: float, longest: float) -> PauseFit | None:
    """The law of pauses, from those that were seen; None if there were too few."""
    if len(lengths) < _FEWEST_PAUSES or watched <= 0.0:
        return None
    ran = max(watched - fmean(lengths) * count, watched / 1000.0)
    seen = poisson_rate(count, ran)
    mean = mean_of(lengths)
    law, unseen = _pause_law(lengths)
    return PauseFit(law, seen.times(unseen), mean, max(longest, *lengths), len(lengths), ran)


def _pause_law(lengths: Sequence[float]) -> tuple[Delay, float]:
    """The law of one pause, and by how much there are more of them than can be seen."""
    logs = [math.log(each) for each in lengths]
    middle, sigma = fmean(logs), pstdev(logs)
    excess = max(1e-3, fmean(lengths) - LEAST_STALL)
    if sigma < 0.02:
        return Fixed(rounded_time(math.exp(middle))), 1.0
    # The likelihoods of the sample, without what both have in common.
    normal = -len(logs) * (math.log(sigma) + 0.5 * math.log(2 * math.pi) + 0.5) - sum(logs)
    exponential = -len(lengths) * (math.log(excess) + 1.0)
    if normal > exponential:
        return Lognormal(rounded_time(math.exp(middle)), _rounded(sigma)), 1.0
    return Exponential(rounded_time(excess)), math.exp(min(2.0, LEAST_STALL / excess))


# Clocks


def slope(
    samples: Sequence[tuple[float, float, float]], confidence: float = CONFIDENCE
) -> Interval | None:
    """By how much a clock is faster than the survey's; None if the comparisons are too few.

    Samples are (time, offset, round trip). The shorter the round trip, the better the comparison.
    """
    if len(samples) < 2 * _FEWEST_WINDOWS:
        return None
    begin, end = samples[0][0], samples[-1][0]
    width = (end - begin) / _WINDOWS
    best: dict[int, tuple[float, float, float]] = {}
    for sample in samples:
        window = min(_WINDOWS - 1, int((sample[0] - begin) / width)) if width > 0.0 else 0
        if window not in best or sample[2] < best[window][2]:
            best[window] = sample
    return _line([(time, offset) for time, offset, _ in best.values()], confidence)


def _line(points: Sequence[tuple[float, float]], confidence: float) -> Interval | None:
    """The slope of the straight line through some points, by least squares."""
    if len(points) < _FEWEST_WINDOWS:
        return None
    x0, y0 = fmean(x for x, _ in points), fmean(y for _, y in points)
    spread = sum((x - x0) ** 2 for x, _ in points)
    if spread <= 0.0:
        return None
    found = sum((x - x0) * (y - y0) for x, y in points) / spread
    rest = sum((y - y0 - found * (x - x0)) ** 2 for x, y in points)
    error = math.sqrt(rest / (len(points) - 2) / spread)
    half = student_quantile(confidence, len(points) - 2) * error
    return Interval(found, found - half, found + half, "least squares")


def rounded_time(seconds: float) -> float:
    """To three digits, and so that it can be written with its unit.

    >>> from hustings.core.quantities import write_duration
    >>> write_duration(rounded_time(0.0002391)), write_duration(rounded_time(0.01614))
    ('239us', '16.1ms')
    """
    if not 1e-7 < seconds < 1.0:
        return _rounded(seconds)
    unit, size = ("us", 1e6) if seconds < 1e-3 else ("ms", 1e3)
    return parse_duration(f"{float(f'{seconds * size:.3g}')}{unit}", "")


def _rounded(value: float) -> float:
    """To three digits: more are not known."""
    return float(f"{value:.3g}")
