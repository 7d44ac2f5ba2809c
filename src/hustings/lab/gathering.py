"""Who plays an experiment, and how what was played becomes a report.

Which engines there are, what they refuse and which one is taken stands in `sweep.engines`; here is
how the results of each are gathered. Another kind of experiment adds a row to both tables.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from hustings.core.election import Election
from hustings.core.errors import BadInput, UnknownName
from hustings.lab.byzantine import messages
from hustings.lab.byzantine.engines import TASKS, LargePlayer, large_player
from hustings.lab.byzantine.experiment import ByRounds, by_rounds
from hustings.lab.figures.kernels import CUT, at_once, ending_of, known, setting_of
from hustings.lab.options import Options, build
from hustings.lab.sweeps.block import Column
from hustings.lab.sweeps.crew import Crew, play_in_order
from hustings.lab.sweeps.engines import (
    AUTO,
    EVENTS,
    FAST,
    LARGE_PIECE,
    QUIESCENT,
    Chosen,
    FastPlayer,
    choose,
)
from hustings.lab.sweeps.executors import PROCESSES, THREADS, crew_on
from hustings.lab.sweeps.goal import Goal, Precision
from hustings.protocols.registry import Use, use_of
from hustings.sim.experiment import Experiment, RunResult, prepare
from hustings.sim.metrics import summarise
from hustings.sim.runs import Progress, Report, play_block, report

if TYPE_CHECKING:
    from hustings.lab.kernels.results import Played

ENGINES = (EVENTS, FAST, AUTO)
PIECE = 2_000_000  # members in all runs that are played between two looks at Ctrl-C
LARGEST = 256  # runs of the event simulator that travel together


def pick(
    kind: type[Election],
    typed: Options,
    name: str | None,
    runs: int,
    *,
    digest: bool = False,
    **judging: object,
) -> Chosen:
    """The experiment that was typed, and who plays it; by default as most would have it."""
    if name is None:
        name = AUTO if kind in TASKS else EVENTS
    if name not in ENGINES:
        raise UnknownName("engine", str(name), ENGINES)
    held = _held(typed.max_events, digest=digest, **judging)
    if name == FAST and held is not None:
        raise BadInput(held)

    def describe(counted: bool) -> Experiment:
        experiment = build(kind, typed, digest=digest, counted=counted)
        if use_of(kind) is Use.ROUNDS:
            return by_rounds(experiment, limited=typed.max_events is not None)
        return experiment

    return choose(describe, name, runs, held)


def _held(max_events: int | None, **judging: object) -> str | None:
    """Why what was asked for rules the kernels out."""
    for option, given in judging.items():
        if given:
            return (
                f"--{option} needs every message of a run, which engine 'fast' does not keep: "
                "take --engine events"
            )
    if max_events is not None:
        return "--max-events limits the event simulator: engine 'fast' has a limit of its own"
    return None


class Tally(Protocol):
    """Results of one experiment, gathered run by run."""

    def play(self, runs: range, tell: Progress | None) -> None:
        """Runs of these numbers, which follow those before."""

    @property
    def columns(self) -> Mapping[str, Column]:
        """Each metric over all runs so far, worked out when asked for."""

    def values(self) -> Mapping[str, list[float]]:
        """Each metric in the runs that have one."""

    def report(self) -> Report:
        """What came of all of them."""


class _Columns(Mapping[str, Column]):
    """Metrics by name; one at a time, since only one is aimed at."""

    def __init__(self, names: Iterable[str], values: Callable[[str], list[float]]) -> None:
        self._names = dict.fromkeys(names)
        self._values = values

    def __getitem__(self, name: str) -> Column:
        return Column.of(self._values(name))

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


class EventsTally:
    """Runs played message by message, on so many processes."""

    def __init__(
        self, experiment: Experiment, jobs: int, crew: Crew[Experiment, list[RunResult]]
    ) -> None:
        self._experiment = experiment
        self._jobs = jobs
        self._crew = crew
        self._first: int | None = None
        self._results: list[RunResult] = []

    def play(self, runs: range, tell: Progress | None) -> None:
        size = 1
        if self._jobs > 1:
            size = max(1, min(LARGEST, len(runs) // (4 * self._jobs)))
            if not isinstance(self._experiment, ByRounds):
                prepare(self._experiment, runs.start)  # what is wrong is told before they start
        if self._first is None:
            self._first = runs.start
        for each in play_in_order(self._crew, self._experiment, runs, size, tell):
            self._results += each

    @property
    def columns(self) -> Mapping[str, Column]:
        names = chain.from_iterable(result.metrics for result in self._results)
        return _Columns(names, self._values)

    def _values(self, name: str) -> list[float]:
        values = (result.metrics.get(name) for result in self._results)
        return [value for value in values if value is not None]

    def values(self) -> Mapping[str, list[float]]:
        names = chain.from_iterable(result.metrics for result in self._results)
        return {name: self._values(name) for name in dict.fromkeys(names)}

    def report(self) -> Report:
        return report(self._results, self._first or 0, self._experiment.course)


P = TypeVar("P", bound=FastPlayer | LargePlayer)


class FastTally(Generic[P]):
    """Runs played by a compiled engine, on so many threads, in pieces of so many."""

    def __init__(self, player: P, crew: Crew[P, Played], piece: int, ending: str) -> None:
        self._player = player
        self._crew = crew
        self._piece = piece
        self._ending = ending  # how runs end that were not given up
        self._found: list[Played] = []

    def play(self, runs: range, tell: Progress | None) -> None:
        self._found += play_in_order(self._crew, self._player, runs, self._piece, tell)

    @property
    def columns(self) -> Mapping[str, Column]:
        return _Columns(self._found[0].metrics, self._values)

    def _values(self, name: str) -> list[float]:
        return known(list(chain.from_iterable(each.metrics[name].tolist() for each in self._found)))

    def values(self) -> Mapping[str, list[float]]:
        return {name: self._values(name) for name in self._found[0].metrics}

    def report(self) -> Report:
        runs = sum(each.runs for each in self._found)
        cut = sum(int(each.cut.sum()) for each in self._found)
        endings = {self._ending: runs - cut, CUT: cut}
        values = ((name, self._values(name)) for name in self._found[0].metrics)
        return Report(
            runs=runs,
            metrics={name: summarise(column) if column else None for name, column in values},
            verdicts={},
            reasons={},
            endings={name: count for name, count in sorted(endings.items()) if count},
        )


@contextmanager
def _by_events(experiment: Experiment, jobs: int) -> Iterator[Tally]:
    with crew_on(PROCESSES, jobs, play_block) as crew:
        yield EventsTally(experiment, jobs, crew)


@contextmanager
def _by_kernels(experiment: Experiment, jobs: int) -> Iterator[Tally]:
    player = FastPlayer(setting_of(experiment), experiment.seed)
    with crew_on(THREADS, jobs, FastPlayer.columns) as crew:
        yield FastTally(player, crew, at_once(player.setting, PIECE), ending_of(player.setting))


@contextmanager
def _by_messages(experiment: Experiment, jobs: int) -> Iterator[Tally]:
    with crew_on(PROCESSES, jobs, _play_rounds) as crew:
        yield EventsTally(experiment, jobs, crew)


def _play_rounds(experiment: Experiment, first: int, last: int) -> list[RunResult]:
    return play_block(experiment, first, last, messages.play)


@contextmanager
def _by_outcomes(experiment: Experiment, jobs: int) -> Iterator[Tally]:
    piece = max(1, LARGE_PIECE // experiment.members)
    with crew_on(THREADS, jobs, LargePlayer.columns) as crew:
        yield FastTally(large_player(experiment), crew, piece, QUIESCENT)


# By what describes the election and by engine, as in `sweep.engines`.
TALLIES: Mapping[type, Mapping[str, Callable[[Experiment, int], AbstractContextManager[Tally]]]] = {
    Experiment: {EVENTS: _by_events, FAST: _by_kernels},
    ByRounds: {EVENTS: _by_messages, FAST: _by_outcomes},
}


# From what is played and how many runs to who is told how many are done.
Watch = Callable[[str, int], AbstractContextManager[Progress | None]]


def unwatched(what: str, runs: int) -> AbstractContextManager[None]:
    """Nobody is told."""
    return nullcontext()


@dataclass(frozen=True, slots=True)
class Gathered:
    """All runs of one experiment."""

    report: Report
    values: Mapping[str, list[float]]  # of each metric, in the runs that have one
    short: str | None = None  # a sentence where a precision was not reached


def gather(
    chosen: Chosen, goal: Goal, first: int = 0, jobs: int = 1, watch: Watch = unwatched
) -> Gathered:
    """Runs from `first` on until the goal says enough."""
    done, wanted = 0, goal.first
    with TALLIES[type(chosen.experiment)][chosen.engine.name](chosen.experiment, jobs) as tally:
        while done < wanted:
            with watch(chosen.experiment.kind.about.name, wanted - done) as tell:
                tally.play(range(first + done, first + wanted), tell)
            done, wanted = wanted, goal.next(wanted, tally.columns)
        short = goal.shortfall(done, tally.columns) if isinstance(goal, Precision) else None
        return Gathered(tally.report(), tally.values(), short)


def given_up(result: Report) -> list[str]:
    """A sentence about runs that a kernel did not play to their end."""
    if not (cut := result.endings.get(CUT, 0)):
        return []
    return [
        f"{cut} of {result.runs} runs were given up when a member had announced itself 10,000 "
        "times; they count in no metric, so that means are too low: give a smaller --loss or "
        "--collision"
    ]
