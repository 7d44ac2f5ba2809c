"""How far an estimate may be off: intervals that are exact, or say by which rule they are not.

Law: no estimate without an interval, and no interval without its method. If nothing was counted,
the interval has an upper end all the same. If a sample is too small for a quantile, the interval
says by which rule it goes beyond the largest value.

Quantiles have intervals by order statistics, rates those of Garwood (1936), shares those of Clopper
and Pearson (1934). These hold whatever the law of the values is. Values of one run may depend on
each other: a sample in clusters counts as fewer values.

>>> rate = poisson_rate(0, 86_400.0)
>>> f"{rate.value:g} per day, at most {rate.high * 86_400.0:.2f} ({rate.method})"
'0 per day, at most 3.00 (counted: none)'
>>> quantile([1.0, 2.0, 4.0, 3.0, 5.0, 9.0], 0.99).method
'extrapolated from 6 values by an exponential tail'
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import fmean, stdev

from hustings.core.errors import BadInput
from hustings.core.streams import Stream, derive

CONFIDENCE = 0.95
ORDER = "order statistics"
MOST_STEPS = 500  # of a continued fraction, of a series and of a search
RESAMPLES = 1000  # of a bootstrap
FEWEST = 5  # values on which the tail of a law rests
_PARTS = (5, 20, 50)  # the tail is the largest fifth of the values, or a smaller part
_FEWEST_CLUSTERS = 8  # fewer say nothing about how values of one cluster resemble each other


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate, and the ends between which the true value lies with a probability."""

    value: float
    low: float
    high: float
    method: str
    confidence: float = CONFIDENCE

    def __contains__(self, value: float) -> bool:
        return self.low <= value <= self.high

    def times(self, factor: float) -> Interval:
        """The same in another unit."""
        ends = self.low * factor, self.high * factor
        return Interval(self.value * factor, *ends, self.method, self.confidence)


# Quantiles


def quantile(
    sample: Sequence[float],
    p: float,
    *,
    clusters: Sequence[int] | None = None,
    future: int | None = None,
    confidence: float = CONFIDENCE,
) -> Interval:
    """The p-th quantile of the law of a sample, by order statistics.

    `clusters` gives the cluster of each value, such as the seed of its run. With `future` the
    interval is one for the p-th quantile of so many values that are still to come.

    A small sample has no upper end by order statistics. Then its largest values are continued by an
    exponential tail, which is longer than that of any law with a bound, and `method` says so.
    """
    _check(p, confidence)
    values, count = sorted(sample), len(sample)
    if not count:
        raise BadInput("a quantile needs at least one value")
    if not all(map(math.isfinite, values)):
        return _with_infinite(values, p, confidence)
    effective = count / _resemblance(sample, clusters, p)
    best = values[rank(p, count) - 1]
    fewer = max(1, int(effective))
    lower, upper = _ranks(fewer, p, future, (1.0 - confidence) / 2.0)
    scale = (count + 1) / (fewer + 1)
    low = values[max(1, math.floor(lower * scale)) - 1] if lower else 0.0
    if upper is not None:
        high = values[min(count, math.ceil(upper * scale)) - 1]
        return Interval(best, min(low, best), max(high, best), ORDER, confidence)
    tail = _tail(values, fewer, p if future is None else _likely_most(p, future, confidence))
    method = f"extrapolated from {count} values by an exponential tail"
    if count < FEWEST:
        method = f"no upper end: {count} values are too few"
    return Interval(best, min(low, best), tail, method, confidence)


def rank(p: float, count: int) -> int:
    """Which of `count` sorted values, counted from 1, is their p-th quantile.

    >>> rank(0.5, 3), rank(0.99, 100), rank(0.99, 101)
    (2, 99, 100)
    """
    return min(count, max(1, math.ceil(p * count - 1e-9)))


def fewest_values(p: float, confidence: float = CONFIDENCE) -> int:
    """How many values a two-sided interval for the p-th quantile takes.

    >>> fewest_values(0.99), fewest_values(0.5)
    (368, 6)
    """
    _check(p, confidence)
    tail = (1.0 - confidence) / 2.0
    return max(math.ceil(math.log(tail) / math.log(max(p, 1.0 - p))), 1)


@lru_cache(maxsize=4096)
def _ranks(count: int, p: float, future: int | None, tail: float) -> tuple[int, int | None]:
    """The largest rank that is below the quantile, and the smallest above it; 0 and None: none."""

    def at_most(rank: int) -> float:
        """The probability that the value of this rank is not below the quantile."""
        if future is None:
            return binomial_at_least(rank, count, p)
        return _later_below(rank, count, future, p)

    # The value of rank r is at most the quantile unless fewer than r values lie below it.
    low = _last(lambda r: at_most(r) >= 1.0 - tail, count)
    high = _last(lambda r: at_most(r) > tail, count)
    return low, (high + 1 if high < count else None)


def _last(holds: Callable[[int], bool], most: int) -> int:
    """The last number up to `most` for which this holds; it holds up to some number. 0: none."""
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if holds(middle) else (low, middle - 1)
    return low


def _later_below(rank_now: int, count: int, future: int, p: float) -> float:
    """The probability that the p-th quantile of later values is above the value of this rank.

    Of all orders of both samples the later ones are equally likely: the number of later values
    below the value of rank r has a negative hypergeometric law.
    """
    wanted = rank(p, future)
    r, n, m = rank_now, count, future
    every = _choose(n + m, m)
    return min(
        1.0,
        sum(
            math.exp(_choose(r - 1 + k, k) + _choose(n - r + m - k, m - k) - every)
            for k in range(wanted)
        ),
    )


def _choose(n: int, k: int) -> float:
    """The logarithm of a binomial coefficient."""
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)


def _likely_most(p: float, future: int, confidence: float) -> float:
    """The quantile of the law that the p-th quantile of so many values rarely exceeds."""
    wanted = rank(p, future)
    surely = (1.0 + confidence) / 2.0
    return _root(lambda q: binomial_at_least(wanted, future, q) <= surely, 0.0, 1.0)


def _tail(values: Sequence[float], effective: int, p: float) -> float:
    """The upper end of a quantile beyond a sample: its largest values, continued exponentially.

    Were the excesses over a threshold exponential, their mean would have an exact upper end. Of
    several thresholds the one counts that gives the largest end: a law may have two modes, of which
    one is rare. What no value of the sample shows, no rule can know.
    """
    count = len(values)
    if count < FEWEST:
        return math.inf
    ends = [values[-1]]
    for part in _PARTS:
        above = max(FEWEST - 1, count // part)
        threshold = values[count - above - 1]
        mean = fmean(each - threshold for each in values[count - above :])
        independent = max(1.0, above * effective / count)
        least = gamma_quantile((1.0 - CONFIDENCE) / 2.0, independent)
        beyond = (1.0 - p) * count / above
        if 0.0 < beyond < 1.0:
            ends.append(threshold - independent * mean / least * math.log(beyond))
    return max(ends)


def _with_infinite(values: Sequence[float], p: float, confidence: float) -> Interval:
    """A quantile where some values are infinite: what never came to an end."""
    finite = sum(map(math.isfinite, values))
    best = values[rank(p, len(values)) - 1]
    lower, upper = _ranks(len(values), p, None, (1.0 - confidence) / 2.0)
    low = values[lower - 1] if lower else 0.0
    high = values[upper - 1] if upper is not None else math.inf
    method = f"{ORDER}; {len(values) - finite} of {len(values)} never ended"
    return Interval(best, low, high, method, confidence)


def _resemblance(sample: Sequence[float], clusters: Sequence[int] | None, p: float) -> float:
    """By how much fewer independent values a sample in clusters stands for; at least 1.

    This is the design effect of the share of large values: the variance of that share among
    clusters, over what it would be if the values were independent.
    """
    if clusters is None:
        return 1.0
    if len(clusters) != len(sample):
        raise BadInput("each value needs its cluster")
    number = len(dict.fromkeys(clusters))
    if number < _FEWEST_CLUSTERS or number == len(sample):
        return 1.0
    # The share must not be so small that hardly a cluster has one of them.
    share = min(p, 0.9) if p >= 0.5 else max(p, 0.1)
    threshold = sorted(sample)[rank(share, len(sample)) - 1]
    sums: dict[int, list[int]] = {}
    for value, cluster in zip(sample, clusters, strict=True):
        counted = sums.setdefault(cluster, [0, 0])
        counted[0] += 1
        counted[1] += value > threshold
    above = sum(hit for _, hit in sums.values()) / len(sample)
    if not 0.0 < above < 1.0:
        return 1.0
    found = sum((hit - size * above) ** 2 for size, hit in sums.values())
    return max(1.0, found / (len(sample) * above * (1.0 - above)))


# Rates and shares


def poisson_rate(events: int, exposure: float, confidence: float = CONFIDENCE) -> Interval:
    """Events per unit of exposure, with the interval of Garwood.

    If nothing was counted the upper end is one-sided: 3.0 / exposure for 95 %.
    """
    if events < 0 or not exposure > 0.0:
        raise BadInput("a rate needs a number of events, and a time that is more than 0")
    tail = (1.0 - confidence) / (2.0 if events else 1.0)
    low = gamma_quantile(tail, events) if events else 0.0
    high = gamma_quantile(1.0 - tail, events + 1)
    method = "counted" if events else "counted: none"
    return Interval(events / exposure, low / exposure, high / exposure, method, confidence)


def weighted_rate(
    weights: Sequence[float], exposure: float, confidence: float = CONFIDENCE
) -> Interval:
    """The sum of weights of independent events for each unit of exposure: Fay and Feuer (1997).

    With weights of 1 it is Garwood's. It rests on the largest weight that was seen: with few
    events, a larger one may exist.

    >>> weighted_rate([1.0] * 5, 2.0).high == poisson_rate(5, 2.0).high
    True
    """
    total, squares = sum(weights), sum(each * each for each in weights)
    if not total > 0.0 or not exposure > 0.0:
        raise BadInput("a weighted rate needs a weight and a time that are more than 0")
    tail, largest = (1.0 - confidence) / 2.0, max(weights)
    low = squares / total * gamma_quantile(tail, total * total / squares)
    more, wider = total + largest, squares + largest * largest
    high = wider / more * gamma_quantile(1.0 - tail, more * more / wider)
    ends = low / exposure, high / exposure
    return Interval(total / exposure, *ends, "weighted sum", confidence)


def proportion(events: int, trials: int, confidence: float = CONFIDENCE) -> Interval:
    """A share, with the interval of Clopper and Pearson; one-sided if none or all were counted."""
    if not 0 <= events <= trials or not trials:
        raise BadInput("a share needs a number of trials, and at most so many events")
    tail = (1.0 - confidence) / (2.0 if 0 < events < trials else 1.0)

    def end(holds: Callable[[float], bool]) -> float:
        return _root(holds, 0.0, 1.0)

    low = end(lambda q: binomial_at_least(events, trials, q) <= tail) if events else 0.0
    high = 1.0
    if events < trials:
        high = end(lambda q: 1.0 - binomial_at_least(events + 1, trials, q) > tail)
    return Interval(events / trials, low, high, "counted", confidence)


def mean_of(values: Sequence[float], confidence: float = CONFIDENCE) -> Interval:
    """The mean of independent values, with Student's interval; without an end for one value."""
    if not values:
        raise BadInput("a mean needs at least one value")
    mean = fmean(values)
    if len(values) < 2:
        return Interval(mean, -math.inf, math.inf, "no interval: one value", confidence)
    half = student_quantile(confidence, len(values) - 1) * stdev(values) / math.sqrt(len(values))
    return Interval(mean, mean - half, mean + half, "Student", confidence)


# Differences on equal random numbers


def paired(
    first: Sequence[float], second: Sequence[float], confidence: float = CONFIDENCE
) -> Interval:
    """By how much `second` exceeds `first` on average; values of one place had one seed.

    >>> paired([1.0, 5.0, 9.0], [2.0, 6.0, 10.0]).low
    1.0
    """
    if len(first) != len(second):
        raise BadInput("paired values need as many of one kind as of the other")
    found = mean_of([b - a for a, b in zip(first, second, strict=True)], confidence)
    return Interval(found.value, found.low, found.high, "paired by seed", confidence)


def paired_quantiles(
    first: Sequence[Sequence[float]],
    second: Sequence[Sequence[float]],
    p: float,
    confidence: float = CONFIDENCE,
) -> Interval:
    """By how much the p-th quantile of `second` exceeds that of `first`.

    Values come in one sequence for each seed, and seeds are resampled together (a bootstrap).
    """
    _check(p, confidence)
    if len(first) != len(second) or not first:
        raise BadInput("paired values need as many seeds of one kind as of the other")

    def at(seeds: Sequence[int], values: Sequence[Sequence[float]]) -> float:
        every = sorted(each for seed in seeds for each in values[seed])
        return every[rank(p, len(every)) - 1] if every else math.nan

    def difference(seeds: Sequence[int]) -> float:
        return at(seeds, second) - at(seeds, first)

    number = len(first)
    chance = Stream(derive(number, "paired quantiles"))
    drawn = [
        found
        for _ in range(RESAMPLES)
        if not math.isnan(found := difference([chance.below(number) for _ in range(number)]))
    ]
    value = difference(range(number))
    if not drawn:
        return Interval(value, -math.inf, math.inf, "no interval: no values", confidence)
    drawn.sort()
    tail = (1.0 - confidence) / 2.0
    low, high = (drawn[rank(each, len(drawn)) - 1] for each in (tail, 1.0 - tail))
    return Interval(value, low, high, "paired by seed, resampled", confidence)


# Laws


def binomial_at_least(events: int, trials: int, p: float) -> float:
    """The probability of at least so many events among independent trials.

    >>> round(binomial_at_least(2, 3, 0.5), 12)
    0.5
    """
    if events <= 0:
        return 1.0
    if events > trials:
        return 0.0
    return beta_below(p, float(events), float(trials - events + 1))


def beta_below(x: float, a: float, b: float) -> float:
    """The regularised incomplete beta function, by its continued fraction."""
    if x <= 0.0 or x >= 1.0:
        return float(x >= 1.0)
    if x > (a + 1.0) / (a + b + 2.0):  # there the fraction converges slowly
        return 1.0 - beta_below(1.0 - x, b, a)
    front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    front += a * math.log(x) + b * math.log1p(-x)
    c = 1.0
    result = d = _invert(1.0 - (a + b) * x / (a + 1.0))
    for m in range(1, MOST_STEPS):
        for part in (
            m * (b - m) * x / ((a + 2 * m - 1.0) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1.0)),
        ):
            d, c = _invert(1.0 + part * d), _kept(1.0 + part / c)
            result *= c * d
        if abs(c * d - 1.0) < 1e-15:
            break
    return min(1.0, math.exp(front) * result / a)


def gamma_below(x: float, shape: float) -> float:
    """The probability that a gamma variable of this shape, and of scale 1, is at most x."""
    if x <= 0.0:
        return 0.0
    front = math.exp(shape * math.log(x) - x - math.lgamma(shape + 1.0))
    if x < shape + 1.0:
        term = total = 1.0
        for k in range(1, MOST_STEPS + int(x)):
            term *= x / (shape + k)
            total += term
            if term < total * 1e-16:
                break
        return min(1.0, front * total)
    b = x + 1.0 - shape
    c = 1e300
    result = d = 1.0 / b
    for k in range(1, MOST_STEPS + int(math.sqrt(x)) * 10):
        part = -k * (k - shape)
        b += 2.0
        d, c = _invert(part * d + b), _kept(b + part / c)
        result *= c * d
        if abs(c * d - 1.0) < 1e-15:
            break
    return max(0.0, 1.0 - front * shape * result)


def gamma_quantile(q: float, shape: float) -> float:
    """What a gamma variable of this shape exceeds with probability 1 - q."""
    most = shape + 40.0 * math.sqrt(shape + 1.0) + 40.0
    return _root(lambda x: gamma_below(x, shape) <= q, 0.0, most)


def student_quantile(confidence: float, degrees: int) -> float:
    """Between minus and plus this a Student variable lies with this probability."""

    def within(t: float) -> float:
        return 1.0 - beta_below(degrees / (degrees + t * t), degrees / 2.0, 0.5)

    return _root(lambda t: within(t) <= confidence, 0.0, 1e6)


def _invert(value: float) -> float:
    return 1.0 / _kept(value)


def _kept(value: float) -> float:
    """Never exactly zero, which a continued fraction would divide by."""
    return value if abs(value) > 1e-300 else 1e-300


def _root(holds: Callable[[float], bool], low: float, high: float) -> float:
    """The largest number for which this holds: it holds from `low` up to some number."""
    for _ in range(MOST_STEPS):
        middle = (low + high) / 2.0
        if middle in (low, high):
            break
        low, high = (middle, high) if holds(middle) else (low, middle)
    return (low + high) / 2.0


def _check(p: float, confidence: float) -> None:
    if not 0.0 < p < 1.0:
        raise BadInput(f"a quantile lies between 0 and 1, not at {p:g}")
    if not 0.0 < confidence < 1.0:
        raise BadInput(f"a confidence lies between 0 and 1, not at {confidence:g}")
