"""Accrual: how unusual a silence is, as a number that grows, instead of one timeout for all.

Model      Any: gaps between heartbeats are taken to come from a distribution that changes slowly.
Idea       Keep the last gaps between heartbeats. phi is minus the decimal logarithm of the chance
           that a gap lasts as long as the present one has: 1 for one in ten, 8 for one in 10**8. A
           member is suspected when its phi passes the threshold.
Promise    In a synchronous world, with the default settings, complete and accurate like the plain
           heartbeat. Elsewhere it slows down with a slow network, where a fixed timer gives false
           alarms.
Cost       As the plain heartbeat, by the pattern; a window of gaps for each watched member.
Paper      Hayashibara, Defago, Yared and Katayama 2004, doi:10.1109/RELDIS.2004.1353004.

The tail "peak" is for real processes. Their gaps are neither normal nor exponential: nearly all are
alike, and now and then one is many deviations longer, because the process lost its processor. This
tail keeps no window. Patience is the mean gap and D, or `safety` times the worst lateness if that
is more. The worst lateness is remembered and fades, by half in `memory` gaps. A gap longer than the
longest patience is an outage, not lateness, and is not learned from. A member that begins to watch
another one, as after an election, expects of it the lateness that the watcher is used to: a busy
machine stays busy. Here phi is the part of the patience that is used up, times the threshold.

The other tails use the timer of the plain heartbeat until enough gaps are known. A lost heartbeat
counts as one long gap. It widens the distribution. This is how patience with a bad link is learned.

phi grows with time alone. So when a heartbeat arrives, the detector knows the instant at which phi
will pass the threshold. It sets a timer to that instant and need not poll.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Collection
from functools import lru_cache
from typing import Annotated, ClassVar, Literal

from msgspec import Meta

from hustings.core.choice import MemberId
from hustings.layers.detector.heartbeat import HeartbeatConfig, Monitor, Pace

_LN10 = math.log(10.0)
_SLOWLY = 32  # gaps in which the mean moves most of the way to a new value
_FAR = 37.0  # deviations from which a series replaces erfc, which is about to underflow


class AccrualConfig(HeartbeatConfig, frozen=True, kw_only=True):
    """Settings of the accrual detector."""

    name: ClassVar[str] = "accrual"

    threshold: Annotated[
        float, Meta(gt=0, le=300, description="the value of phi at which a member is suspected")
    ] = 8.0
    window: Annotated[
        int,
        Meta(
            ge=2,
            le=10_000,
            description="the number of gaps between heartbeats that are kept for each member",
        ),
    ] = 100
    min_samples: Annotated[
        int, Meta(ge=1, description="the number of gaps after which phi replaces the timer T + D")
    ] = 8
    tail: Annotated[
        Literal["normal", "exponential", "peak"],
        Meta(description="the assumed distribution of the gaps"),
    ] = "normal"
    min_deviation: (
        Annotated[
            float,
            Meta(
                gt=0,
                description="the smallest standard deviation that is assumed for the gaps; default "
                "D/4, at least T/100",
            ),
        ]
        | None
    ) = None

    safety: Annotated[
        float,
        Meta(
            ge=1,
            le=100,
            description="tail peak: the factor by which the largest recent lateness is multiplied",
        ),
    ] = 3.0
    memory: Annotated[
        float,
        Meta(
            ge=1, le=1e9, description="tail peak: the number of gaps after which a peak counts half"
        ),
    ] = 500.0
    ceiling: Annotated[
        float,
        Meta(ge=1, le=1e6, description="tail peak: the longest timeout, as a multiple of T + D"),
    ] = 6.0

    @property
    def least_deviation(self) -> float:
        # At the default threshold a quarter of D allows for 1.4 D beyond the mean gap: enough for a
        # heartbeat that is D late after a run of punctual ones.
        if self.min_deviation is None:
            return max(self.margin / 4, self.period / 100)
        return self.min_deviation

    @property
    def longest(self) -> float:
        return self.ceiling * self.timeout

    @classmethod
    def for_network(cls, delta: float, given: Collection[str] = ()) -> dict[str, object]:
        """Real gaps are short and even, with a stall now and then: the tail is "peak"."""
        return {"delta": delta, "tail": "peak"}

    def monitor(self) -> Monitor:
        return AccrualMonitor(self)

    def broken_rules(self) -> list[str]:
        found = super().broken_rules()
        if self.min_samples > self.window:
            found.append(
                f"min_samples = {self.min_samples} must not exceed window = {self.window}, "
                "or there are never enough gaps"
            )
        if self.least_deviation == math.inf:
            found.append("min_deviation must be finite, or no crash is ever noticed")
        return found

    def warnings(self) -> list[str]:
        found = super().warnings()
        if self.threshold < 1:
            found.append(
                f"threshold = {self.threshold:g} takes gaps for crashes that chance brings more "
                "often than once in ten heartbeats; set threshold >= 1"
            )
        if self.tail == "exponential" and self.threshold * _LN10 > 10:
            found.append(
                f"threshold = {self.threshold:g} with an exponential tail waits for "
                f"{self.threshold * _LN10:.1f} mean gaps; set a threshold of 1 to 4"
            )
        return found


def normal_phi(deviations: float) -> float:
    """phi of a silence that many standard deviations longer than the mean gap.

    >>> round(normal_phi(0.0), 3), round(normal_phi(5.612), 2)
    (0.301, 8.0)
    """
    if deviations < _FAR:
        return -math.log10(0.5 * math.erfc(deviations / math.sqrt(2.0)))
    square = deviations * deviations
    first_terms = 1.0 - 1.0 / square + 3.0 / square**2 - 15.0 / square**3
    scale = deviations * math.sqrt(2.0 * math.pi)
    return square / (2.0 * _LN10) + math.log10(scale) - math.log10(first_terms)


@lru_cache(maxsize=64)
def normal_deviations(phi: float) -> float:
    """The inverse of `normal_phi`, by halving.

    >>> round(normal_deviations(8.0), 3)
    5.612
    """
    low, high = -10.0, 40.0
    while (middle := (low + high) / 2) not in (low, high):
        if normal_phi(middle) < phi:
            low = middle
        else:
            high = middle
    return high


class Estimator(ABC):
    """What is known of one member's heartbeats."""

    __slots__ = ("config", "last", "mean", "pace")

    def __init__(self, config: AccrualConfig) -> None:
        self.config = config
        self.last: float | None = None
        self.pace = Pace(config.period, config.margin)
        self.mean = config.period

    def keep_to(self, pace: Pace) -> None:
        """Expect the next heartbeats at this pace. Gaps at another pace say nothing about them."""
        if pace != self.pace:
            self.pace = pace
            self.mean = pace.period
            self.last = None
            self.reset()

    def reset(self) -> None:
        """Forget the values that hold for one pace only."""

    @abstractmethod
    def heard(self, now: float) -> None:
        """A heartbeat arrived."""

    @abstractmethod
    def phi(self, now: float) -> float:
        """How suspicious the present silence is; 0 before the first heartbeat."""

    @abstractmethod
    def wait(self) -> float:
        """How long after the last heartbeat phi reaches the threshold."""


class PeakEstimator(Estimator):
    """The mean gap, and the worst recent lateness beyond it.

    >>> estimator = PeakEstimator(AccrualConfig(T=1.0, D=0.5, tail="peak"))
    >>> for instant in (0.0, 1.0, 2.0, 3.0):
    ...     estimator.heard(instant)
    >>> estimator.wait()
    1.5
    >>> estimator.heard(4.4)  # 0.4 late
    >>> round(estimator.wait(), 1)
    2.2
    """

    __slots__ = ("_fade", "peak")

    def __init__(self, config: AccrualConfig, peak: float = 0.0) -> None:
        super().__init__(config)
        self.peak = peak  # lateness
        self.reset()

    def reset(self) -> None:
        # The worst lateness belongs to the machine, at any pace, and so does the time for which it
        # counts.
        self._fade = 0.5 ** (self.pace.period / self.config.period / self.config.memory)

    def heard(self, now: float) -> None:
        if self.last is not None:
            gap = max(0.0, now - self.last)
            if gap <= self.config.longest:
                self.peak = max(self.peak * self._fade, gap - self.mean)
                self.mean += (gap - self.mean) / _SLOWLY
        self.last = now

    def phi(self, now: float) -> float:
        if self.last is None:
            return 0.0
        return self.config.threshold * max(0.0, now - self.last) / self.wait()

    def wait(self) -> float:
        config = self.config
        return min(self.mean + max(self.pace.margin, config.safety * self.peak), config.longest)


class PhiEstimator(Estimator):
    """What is known of one member's heartbeats, and how suspicious its silence is.

    >>> estimator = PhiEstimator(AccrualConfig(T=1.0, D=0.25, min_samples=2))
    >>> for instant in (0.0, 1.0, 2.1, 3.0):
    ...     estimator.heard(instant)
    >>> round(estimator.phi(3.5), 3), round(estimator.phi(4.2), 1)
    (0.0, 2.1)
    """

    __slots__ = ("gaps", "spread")

    def __init__(self, config: AccrualConfig) -> None:
        super().__init__(config)
        self.gaps: deque[float] = deque(maxlen=config.window)
        self.spread = config.least_deviation  # the standard deviation, but never less than this

    def reset(self) -> None:
        self.gaps.clear()

    @property
    def ready(self) -> bool:
        """Whether enough gaps are known."""
        return len(self.gaps) >= self.config.min_samples

    def heard(self, now: float) -> None:
        if self.last is not None:
            self.gaps.append(max(0.0, now - self.last))
            count = len(self.gaps)
            # Summed anew: running sums would lose the small differences that matter here.
            mean = sum(self.gaps) / count
            squares = sum([(gap - mean) ** 2 for gap in self.gaps])
            least = self.config.least_deviation
            self.mean = max(mean, least)
            self.spread = max(math.sqrt(squares / count), least)
        self.last = now

    def phi(self, now: float) -> float:
        if self.last is None:
            return 0.0
        silence = max(0.0, now - self.last)
        if not self.ready:
            return self.config.threshold * silence / self.pace.timeout
        if self.config.tail == "exponential":
            return silence / (self.mean * _LN10)
        return normal_phi((silence - self.mean) / self.spread)

    def wait(self) -> float:
        threshold = self.config.threshold
        if not self.ready:
            return self.pace.timeout
        if self.config.tail == "exponential":
            return threshold * self.mean * _LN10
        return max(0.0, self.mean + normal_deviations(threshold) * self.spread)


class AccrualMonitor(Monitor):
    """Patience that is learned for each member separately."""

    __slots__ = ("_peak", "config", "estimators")

    def __init__(self, config: AccrualConfig) -> None:
        super().__init__()
        self.config = config
        self._peak = 0.0  # of the member that it watched last
        self.estimators: dict[MemberId, Estimator] = {}

    def patience(self, member: MemberId, now: float, pace: Pace | None = None) -> float:
        estimator = self.estimators.get(member)
        if estimator is None:
            estimator = self.estimators[member] = self._fresh()
        if pace is not None:
            estimator.keep_to(pace)
        estimator.heard(now)
        return estimator.wait()

    def phi(self, member: MemberId, now: float) -> float:
        """How suspicious a member's silence is; 0 for a member that was never heard."""
        estimator = self.estimators.get(member)
        return 0.0 if estimator is None else estimator.phi(now)

    def pardon(self, member: MemberId) -> None:
        estimator = self.estimators.get(member)
        if estimator is not None:
            estimator.last = None

    def reborn(self, member: MemberId) -> None:
        estimator = self.estimators.pop(member, None)
        if isinstance(estimator, PeakEstimator):
            self._peak = estimator.peak

    def forget(self, member: MemberId) -> None:
        super().forget(member)
        self.reborn(member)

    def _fresh(self) -> Estimator:
        if self.config.tail == "peak":
            return PeakEstimator(self.config, self._peak)
        return PhiEstimator(self.config)
