"""The engine: series of runs are played in blocks, in stages, until their goals are reached.

A series is one experiment, who plays it, and a goal. The runs of a stage are cut into blocks, the
blocks are played anywhere and in any order, and what comes back is added up in the order of the
runs. So sums are the same to the last bit wherever blocks were played. Only when all runs of a
stage are added up, the goal says how many runs are wanted in all. What is known already is not
played again, and what comes back is kept before it counts.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from hustings.lab.runs.block import Column
from hustings.lab.runs.executors import Pool, Task
from hustings.lab.runs.goals import Goal

W = TypeVar("W")  # what is sent to a worker, together with the numbers of runs
R = TypeVar("R")  # what a block of runs comes to
R_contra = TypeVar("R_contra", contravariant=True)


class Total(Protocol[R_contra]):
    """What the blocks of one series come to, added up in the order of their runs."""

    def add(self, block: R_contra, /) -> None:
        """One more block; its runs follow those before."""

    @property
    def metrics(self) -> Mapping[str, Column]:
        """Each metric over all runs so far: what a goal looks at."""


@dataclass(frozen=True, slots=True)
class Series(Generic[W, R]):
    """Runs of one experiment, numbered from `first`, until the goal is reached."""

    work: W
    goal: Goal
    total: Total[R]
    piece: Callable[[int], int]  # the runs of a block, in a stage of so many runs
    first: int = 0
    name: str = ""  # of this series in a sentence
    weight: float = 1.0  # of one run, beside the runs of other series


class Kept(Protocol[R]):
    """Blocks on disk, by the place of their series."""

    def known(self, place: int, /) -> Mapping[tuple[int, int], R]:
        """Blocks that need not be played, by their first run and the first run after them."""

    def add(self, place: int, block: R, /) -> None:
        """A block that was played."""

    def finish(self, place: int, /) -> None:
        """A series has all its runs."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far the work has come."""

    done: int  # series
    series: int
    runs: int  # known so far
    wanted: int  # as far as one can tell
    played: int  # blocks that were not known before
    share: float  # of the work: between 0 and 1, as far as one can tell


Tell = Callable[[Progress], None]


def play_all(
    series: Sequence[Series[W, R]],
    pool: Pool[W, R],
    *,
    kept: Kept[R] | None = None,
    tell: Tell | None = None,
) -> list[int]:
    """Play all series; their totals hold what came of them. How many runs each got."""
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
    """One series on its way: all runs of a stage are known before the next stage begins."""

    def __init__(self, series: Series[W, R], known: Mapping[tuple[int, int], R]) -> None:
        self.series = series
        self.waiting: deque[tuple[int, int]] = deque()  # to be played, and given to nobody yet
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
        """Runs that it may come to."""
        return self.wanted if self.done else max(self.wanted, self.series.goal.guess)

    def add(self, task: Task, block: R) -> bool:
        """A block has come back; whether there is more to play now."""
        self._blocks[task.runs] = block
        self.runs += task.last - task.first
        self._missing -= 1
        self._add_up()
        if self._missing:
            return False
        self._finish_stage()
        return bool(self.waiting)

    def _advance(self, wanted: int) -> None:
        """Set out for so many runs in all, in blocks from where the last stage ended."""
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
        """Add what follows the runs before without a gap: so little waits in memory."""
        while self._cuts and self._cuts[0] in self._blocks:
            self.series.total.add(self._blocks.pop(self._cuts.popleft()))

    def _finish_stage(self) -> None:
        wanted = self.series.goal.next(self.wanted, self.series.total.metrics)
        self.done = wanted <= self.wanted
        if not self.done:
            self._advance(wanted)


class _Meter:
    """How far all series have come together."""

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
        """A block of this series has come back."""
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
