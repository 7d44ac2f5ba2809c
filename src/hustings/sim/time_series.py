"""A number that changes with time: in one run, and over many.

A run is examined on a grid of instants, counted from its `origin`. Runs end at different times. A
run that has ended counts as it ended, so that every instant has a mean over all runs. Beside the
mean stands the number of runs that had not ended.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable
from dataclasses import dataclass

from hustings.core.errors import BadInput
from hustings.sim.queue import TICKS

MAX_STEPS = 2000  # of the grid; what a run does later is not recorded


def check_step(step: float, horizon: float | None) -> None:
    """Refuse a grid that is none, or one that would not reach a known end of the run."""
    if not 1.0 / TICKS <= step < math.inf:
        raise BadInput(f"time series must be a time step of at least {1.0 / TICKS:g}, not {step:g}")
    if horizon is not None and horizon / step > MAX_STEPS:
        raise BadInput(
            f"a time series until {horizon:g} in steps of {step:g} has more than {MAX_STEPS:,} of "
            "them: choose a longer step or a shorter run"
        )


@dataclass(frozen=True, slots=True)
class SampledSeries:
    """One run: the number at each instant of the grid up to its end, and at the end itself."""

    counts: array[int]
    last: int
    cut: bool = False  # whether the run went on after the last instant of the grid


@dataclass(frozen=True, slots=True)
class TimeSeries:
    """Many runs, instant by instant; `stderr` is that of the mean, None for one run."""

    time: list[float]
    mean: list[float]
    stderr: list[float | None]
    max: list[int]
    under_way: list[int]  # runs that had not ended before
    cut: bool  # whether a run went on after the last instant

    def to_json(self) -> dict[str, object]:
        """As a JSON object of lists of one length."""
        return {
            "time": self.time,
            "mean": self.mean,
            "stderr": self.stderr,
            "max": self.max,
            "under_way": self.under_way,
        }


def summarise_series(runs: Iterable[SampledSeries], step: float) -> TimeSeries | None:
    """The time series over all runs, as far as the longest goes; None if there are none.

    >>> one, other = SampledSeries(array("I", [4, 2]), 1), SampledSeries(array("I", [2]), 0)
    >>> found = summarise_series([one, other], 0.5)
    >>> found.time, found.mean, found.under_way
    ([0.0, 0.5], [3.0, 1.0], [2, 1])
    """
    sampled = list(runs)
    if not sampled:
        return None
    number = len(sampled)
    mean: list[float] = []
    stderr: list[float | None] = []
    most: list[int] = []
    under_way: list[int] = []
    for place in range(max(len(run.counts) for run in sampled)):
        column = [run.counts[place] if place < len(run.counts) else run.last for run in sampled]
        total = sum(column)
        mean.append(total / number)
        # In whole numbers, so that nothing cancels: n times the sum of squared deviations.
        spread = number * sum(value * value for value in column) - total * total
        stderr.append(math.sqrt(spread / (number - 1)) / number if number > 1 else None)
        most.append(max(column))
        under_way.append(sum(place < len(run.counts) for run in sampled))
    return TimeSeries(
        time=[round(place * step, 8) for place in range(len(mean))],
        mean=mean,
        stderr=stderr,
        max=most,
        under_way=under_way,
        cut=any(run.cut for run in sampled),
    )
