"""The engine: series of runs are played in blocks, in stages, until their goals are reached.

A series is one experiment, its player, and a goal. The runs of a stage are cut into blocks, the
blocks are played anywhere and in any order, and the results are added up in the order of the runs.
So sums are the same to the last bit wherever blocks were played. Only when all runs of a stage are
added up, the goal says how many runs are needed in total. Stored blocks are not played again, and a
result is stored before it counts.

A goal is a number of runs, or as many as a standard error needs. It depends only on the runs so
far. So a series needs the same number of runs without or with an interruption, on one core or on a
cluster. The goal looks only a few times at the results, at points that lie far apart. So it does
not stop at a moment that is precise by luck.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import msgspec

from hustings.core.errors import BadInput, UnknownName
from hustings.lab.runs.block import Column, Moments
from hustings.lab.runs.executors import Pool, Task

MAX_RUNS = 10_000_000
PILOT = 200  # runs before the first look
GROWTH = 8  # an early estimate may be far off, so a stage grows at most by this factor
MARGIN = 1.02  # a stage that falls just short costs one more
SHY = 0.92  # follow a relative error not quite as far: needless runs cost more
USUAL = ("strong", "tmax", "time")  # the default metric: the first of these that exists

W = TypeVar("W")  # sent to a worker, together with the numbers of runs
R = TypeVar("R")  # the result of a block of runs
R_contra = TypeVar("R_contra", contravariant=True)


# Goals: how many runs


class Goal(Protocol):
    """Decides how many runs are played."""

    @property
    def first(self) -> int:
        """Runs to begin with."""

    @property
    def guess(self) -> int:
        """The likely number of runs, chosen so that a progress bar seldom runs backwards."""

    def next(self, runs: int, metrics: Mapping[str, Column]) -> int:
        """The number of runs needed in total, after this many; the same if they are enough."""


class Runs(msgspec.Struct, frozen=True):
    """A fixed number of runs."""

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
    metric: str | None = None  # None: the first that exists of strong, tmax and time

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
        """An estimate of the runs needed, from those so far; infinite where they do not tell."""
        moments = metrics[self.aim(metrics)].moments
        off = self.error(metrics) / self.stderr
        if off <= 1.0:
            return runs
        if math.isinf(off):
            return math.inf
        return rounded_up(runs * (off if _undecided(moments) else off * off * MARGIN))

    def error(self, metrics: Mapping[str, Column]) -> float:
        """The standard error so far.

        While all runs give 0, or all give 1, the error is taken as 1 / runs. The metric may be a
        share whose other value has not been seen yet, and the usual formula would give 0.
        """
        moments = metrics[self.aim(metrics)].moments
        return 1.0 / moments.count if _undecided(moments) else moments.stderr

    def aim(self, names: Iterable[str]) -> str:
        """The metric to aim at, among those that exist."""
        known = list(names)
        if self.metric is not None:
            if self.metric not in known:
                raise UnknownName("metric", self.metric, known)
            return self.metric
        return next((name for name in USUAL if name in known), known[-1])

    def shortfall(self, runs: int, metrics: Mapping[str, Column]) -> str | None:
        """A sentence if the precision was not reached."""
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
    """Until the standard error of every metric aimed at is below a share of its mean.

    Runs come in whole blocks, so that other series can continue from them.
    """

    aims: tuple[str, ...]
    target: float  # share of the mean
    most: int
    usual: int  # runs that are often needed
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
    """Round up to two digits, so that the last bit of a sum does not change a number of runs.

    >>> rounded_up(1234.5), rounded_up(7.1)
    (1300, 8)
    """
    step = int(10 ** max(0, len(str(math.ceil(number))) - 2))
    return math.ceil(number / step) * step


# Series


class Total(Protocol[R_contra]):
    """The results of the blocks of one series, added up in the order of their runs."""

    def add(self, block: R_contra, /) -> None:
        """Add one more block; its runs follow those before."""

    @property
    def metrics(self) -> Mapping[str, Column]:
        """Each metric over all runs so far: what a goal looks at."""


@dataclass(frozen=True, slots=True)
class Series(Generic[W, R]):
    """Runs of one experiment, numbered from `first`, until the goal is reached."""

    work: W
    goal: Goal
    total: Total[R]
    piece: Callable[[int], int]  # the runs of a block, in a stage of this many
    first: int = 0
    name: str = ""  # the name of this series in a sentence
    weight: float = 1.0  # of one run, relative to the runs of other series


class Kept(Protocol[R]):
    """Blocks on disk, by the index of their series."""

    def known(self, place: int, /) -> Mapping[tuple[int, int], R]:
        """Stored blocks, by their first run and the first run after them."""

    def add(self, place: int, block: R, /) -> None:
        """Store a block that was played."""

    def finish(self, place: int, /) -> None:
        """All runs of a series are played."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How much of the work is done."""

    done: int  # finished series
    series: int
    runs: int  # known so far
    wanted: int  # as far as is known now
    played: int  # blocks that were not stored before
    share: float  # of the work: between 0 and 1, as far as is known now


Tell = Callable[[Progress], None]


def play_all(
    series: Sequence[Series[W, R]],
    pool: Pool[W, R],
    *,
    kept: Kept[R] | None = None,
    tell: Tell | None = None,
) -> list[int]:
    """Play all series; totals hold the results. Returns how many runs each series got."""
    states = [
        _State(each, {} if kept is None else kept.known(place)) for place, each in enumerate(series)
    ]
    meter = _Meter(states)
    ready = deque(place for place, state in enumerate(states) if state.waiting)
    while meter.done < len(states):
        if tell is not None:
            tell(meter.progress)
        while ready and pool.idle:
            state = states[ready[0]]
            first, last = state.waiting.popleft()
            pool.submit(Task(ready[0], first, last, state.series.name), state.series.work)
            if not state.waiting:
                ready.popleft()
        for task, block in pool.collect():
            if kept is not None:
                kept.add(task.place, block)
            state = states[task.place]
            if state.add(task, block):
                ready.appendleft(task.place)
            meter.note(task.place, state)
            if kept is not None and state.done:
                kept.finish(task.place)
    if tell is not None:
        tell(meter.progress)
    return [state.wanted for state in states]


class _State(Generic[W, R]):
    """The state of one series: all runs of a stage are known before the next stage begins."""

    def __init__(self, series: Series[W, R], known: Mapping[tuple[int, int], R]) -> None:
        self.series = series
        self.waiting: deque[tuple[int, int]] = deque()  # to be played, not submitted yet
        self.runs = 0  # known
        self.wanted = 0
        self.done = False
        self._known = known
        self._cuts: deque[tuple[int, int]] = deque()  # of this stage, and not yet added up
        self._blocks: dict[tuple[int, int], R] = {}  # known, and not yet added up
        self._missing = 0
        self._advance(series.goal.first)

    @property
    def expected(self) -> int:
        """The likely number of runs."""
        return self.wanted if self.done else max(self.wanted, self.series.goal.guess)

    def add(self, task: Task, block: R) -> bool:
        """Add a block that has come back; return whether there is more to play now."""
        self._blocks[task.runs] = block
        self.runs += task.last - task.first
        self._missing -= 1
        self._add_up()
        if self._missing:
            return False
        self._finish_stage()
        return bool(self.waiting)

    def _advance(self, wanted: int) -> None:
        """Plan a stage up to this many runs in total, in blocks that follow the last stage."""
        start, stop = self.series.first + self.wanted, self.series.first + wanted
        size = self.series.piece(wanted - self.wanted)
        self._cuts = deque((at, min(at + size, stop)) for at in range(start, stop, size))
        self.wanted = wanted
        for cut in self._cuts:
            if cut in self._known:
                self._blocks[cut] = self._known[cut]
                self.runs += cut[1] - cut[0]
            else:
                self.waiting.append(cut)
        self._missing = len(self.waiting)
        self._add_up()
        if not self._missing:
            self._finish_stage()

    def _add_up(self) -> None:
        """Add up blocks that follow without a gap, so that few blocks wait in memory."""
        while self._cuts and self._cuts[0] in self._blocks:
            self.series.total.add(self._blocks.pop(self._cuts.popleft()))

    def _finish_stage(self) -> None:
        wanted = self.series.goal.next(self.wanted, self.series.total.metrics)
        self.done = wanted <= self.wanted
        if not self.done:
            self._advance(wanted)


class _Meter:
    """The progress of all series together."""

    def __init__(self, states: Sequence[_State[W, R]]) -> None:
        self.done = sum(state.done for state in states)
        self._series = len(states)
        self._played = 0
        self._counts = [(state.runs, state.wanted, state.expected) for state in states]
        self._weights = [state.series.weight for state in states]
        self._runs = sum(state.runs for state in states)
        self._wanted = sum(state.wanted for state in states)
        self._work = sum(state.series.weight * state.runs for state in states)
        self._expected = sum(state.series.weight * state.expected for state in states)

    def note(self, place: int, state: _State[W, R]) -> None:
        """Note that a block of this series has come back."""
        runs, wanted, expected = self._counts[place]
        weight = self._weights[place]
        self._played += 1
        self.done += state.done
        self._runs += state.runs - runs
        self._wanted += state.wanted - wanted
        self._work += weight * (state.runs - runs)
        self._expected += weight * (state.expected - expected)
        self._counts[place] = state.runs, state.wanted, state.expected

    @property
    def progress(self) -> Progress:
        whole = self.done == self._series or not self._expected
        return Progress(
            done=self.done,
            series=self._series,
            runs=self._runs,
            wanted=self._wanted,
            played=self._played,
            share=1.0 if whole else min(1.0, self._work / self._expected),
        )
