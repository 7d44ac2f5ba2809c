"""How many runs are played: a number, or as many as a standard error takes.

The next number of runs depends on the runs so far alone. So a series comes to the same number in
one go or after an interruption, on one core or on a cluster. Few looks are taken and each is far
beyond the one before, so looking does not choose lucky moments to stop.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Protocol

import msgspec

from hustings.core.errors import BadInput, UnknownName
from hustings.lab.runs.block import Column, Moments
from hustings.sim.runs import MAX_RUNS

PILOT = 200  # runs before the first look
GROWTH = 8  # a look may be far off, so it is not followed further than this at once
MARGIN = 1.02  # a look that falls just short costs another one
SHY = 0.92  # a relative error is not followed quite as far: needless runs cost more than a look
USUAL = ("strong", "tmax", "time")  # the metric that is meant where none is named


class Goal(Protocol):
    """Decides how many runs are played."""

    @property
    def first(self) -> int:
        """Runs to begin with."""

    @property
    def guess(self) -> int:
        """Runs that it may come to, so that a progress bar seldom runs backwards."""

    def next(self, runs: int, metrics: Mapping[str, Column]) -> int:
        """Runs wanted in all after so many; as many where they are enough."""


class Runs(msgspec.Struct, frozen=True):
    """So many runs."""

    runs: int

    def __post_init__(self) -> None:
        if not 1 <= self.runs <= MAX_RUNS:
            raise BadInput(f"runs must lie between 1 and {MAX_RUNS:,}, not {self.runs:,}")

    @property
    def first(self) -> int:
        return self.runs

    @property
    def guess(self) -> int:
        return self.runs

    def next(self, runs: int, metrics: Mapping[str, Column]) -> int:
        return runs


class Precision(msgspec.Struct, frozen=True):
    """Until the standard error of one metric's mean is at most `stderr`, within `most` runs."""

    stderr: float
    most: int
    metric: str | None = None  # the first that there is of strong, tmax and time

    def __post_init__(self) -> None:
        if not 0.0 < self.stderr < math.inf:
            raise BadInput(f"stderr must be a number > 0, not {self.stderr:g}")
        if not 2 <= self.most <= MAX_RUNS:
            raise BadInput(
                f"a standard error takes between 2 and {MAX_RUNS:,} runs, not {self.most:,}"
            )

    @property
    def first(self) -> int:
        return min(PILOT, self.most)

    @property
    def guess(self) -> int:
        return self.first

    def next(self, runs: int, metrics: Mapping[str, Column]) -> int:
        needed = self.needed(runs, metrics)
        if needed <= runs or runs >= self.most:
            return runs
        return int(min(needed, GROWTH * runs, self.most))

    def needed(self, runs: int, metrics: Mapping[str, Column]) -> float:
        """Runs that would do, as far as so many can tell; infinite where they cannot."""
        moments = metrics[self.aim(metrics)].moments
        off = self.error(metrics) / self.stderr
        if off <= 1.0:
            return runs
        if math.isinf(off):
            return math.inf
        return rounded_up(runs * (off if _undecided(moments) else off * off * MARGIN))

    def error(self, metrics: Mapping[str, Column]) -> float:
        """The standard error so far.

        As long as all runs say 0, or all say 1, it is taken for 1 / runs: the metric may be a
        share whose other value is yet to be seen, and the usual formula would say 0.
        """
        moments = metrics[self.aim(metrics)].moments
        return 1.0 / moments.count if _undecided(moments) else moments.stderr

    def aim(self, names: Iterable[str]) -> str:
        """The metric that is meant among those that there are."""
        known = list(names)
        if self.metric is not None:
            if self.metric not in known:
                raise UnknownName("metric", self.metric, known)
            return self.metric
        return next((name for name in USUAL if name in known), known[-1])

    def shortfall(self, runs: int, metrics: Mapping[str, Column]) -> str | None:
        """A sentence about a precision that was not reached."""
        error, needed = self.error(metrics), self.needed(runs, metrics)
        if needed <= runs:
            return None
        name = self.aim(metrics)
        if math.isinf(error):
            return (
                f"{name} has fewer than two values in {runs:,} runs, so its standard error is not "
                f"known, and {self.stderr:g} was asked for"
            )
        told = f"{name} has a standard error of {error:.3g} after {runs:,} runs, the most allowed"
        if needed > MAX_RUNS:
            return (
                f"{told}: {self.stderr:g} would take about {needed:,.0f} runs, beyond the "
                f"{MAX_RUNS:,} that are ever played"
            )
        return f"{told}: {self.stderr:g} would take about {needed:,.0f}, raise runs"


class RelativePrecision(msgspec.Struct, frozen=True):
    """Until the standard error of every metric aimed at is below a part of its mean.

    Runs come in whole blocks, so that others can go on from them.
    """

    aims: tuple[str, ...]
    target: float  # part of the mean
    most: int
    usual: int  # runs that it often comes to
    block: int
    pilot: int = PILOT

    @property
    def first(self) -> int:
        return self._whole_blocks(min(self.pilot, self.most))

    @property
    def guess(self) -> int:
        return self._whole_blocks(min(self.usual, self.most))

    def next(self, runs: int, metrics: Mapping[str, Column]) -> int:
        off = max(_relative(metrics, aim) for aim in self.aims) / self.target
        if off <= 1.0 or runs >= self.most:
            return runs
        factor = min(off * off, GROWTH)
        if factor * SHY > 1.1:
            factor *= SHY
        wanted = max(runs + 1, math.ceil(runs * factor))
        return self._whole_blocks(min(wanted, self.most))

    def _whole_blocks(self, runs: int) -> int:
        return math.ceil(runs / self.block) * self.block


def _relative(metrics: Mapping[str, Column], aim: str) -> float:
    column = metrics.get(aim)
    return math.inf if column is None else column.relative


def _undecided(moments: Moments) -> bool:
    """Whether all values are 0, or all are 1."""
    return moments.count > 1 and moments.spread == 0.0 and moments.mean in (0.0, 1.0)


def rounded_up(number: float) -> int:
    """To two digits, so that the last bit of a sum cannot be seen in a number of runs.

    >>> rounded_up(1234.5), rounded_up(7.1)
    (1300, 8)
    """
    step = int(10 ** max(0, len(str(math.ceil(number))) - 2))
    return math.ceil(number / step) * step
