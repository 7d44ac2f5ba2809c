"""Engines: the ways to play an experiment, and which one to use by default.

A kind of experiment has a table of engines. An engine refuses, with a sentence, what it cannot
play. It makes a player, which plays runs in any process, and says how many runs make a block. A
player gives runs as sums that can be stored (sweeps, figures), or in full, one by one
(simulations). Runs in full end in a report, which does not depend on how the work was cut up.
"""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from hashlib import blake2b
from importlib import import_module
from itertools import chain
from typing import TYPE_CHECKING, Any, Protocol

from hustings.core.errors import BadInput, UnknownName
from hustings.lab.byzantine import messages
from hustings.lab.byzantine.engines import (
    LargePlayer,
    admit_large,
    admit_messages,
    large_player,
    preferred,
)
from hustings.lab.byzantine.experiment import ByRounds
from hustings.lab.kernels.announce.parameters import MAX_MEMBERS as MOST_PLAYED
from hustings.lab.kernels.announce.parameters import AnnounceParameters
from hustings.lab.kernels.probabilistic.parameters import ProbabilisticParameters
from hustings.lab.runs.block import EMPTY, Block, Column, RunValues
from hustings.lab.runs.executors import PROCESSES, THREADS
from hustings.lab.runs.kernels import CUT, at_once, ending_of, known, play_kernel, setting_of
from hustings.lab.runs.playing import MAX_RUNS
from hustings.sim.checkers import Verdict
from hustings.sim.experiment import Experiment
from hustings.sim.play import RunResult, play
from hustings.sim.time_series import TimeSeries, summarise_series
from hustings.sim.world import Ended

if TYPE_CHECKING:
    from hustings.lab.kernels.results import Columns

EVENTS, FAST, AUTO = "events", "fast", "auto"
LIGHT = 50_000  # members in all runs that the event simulator plays while kernels are loaded
EVENTS_PIECE, MOST_EVENT_RUNS = 20_000, 200  # members in all runs of a piece, and runs of a piece
FAST_PIECE, MOST_FAST_RUNS = 2_000_000, 20_000
LARGE_PIECE = 200_000
PIECE = 2_000_000  # members in all runs that are played between two checks for Ctrl-C
LARGEST = 256  # runs of the event simulator that travel together
QUIESCENT = Ended.QUIESCENT.value
_ADVICE = ": take --engine events"


class Player(Protocol):
    """Plays runs of one experiment; run number k is the same run wherever it is played."""

    def play(self, first: int, last: int) -> RunValues:
        """The metric values of runs first .. last-1."""

    def in_full(self, first: int, last: int) -> Any:
        """The same runs with everything that is known of each."""


def play_block(player: Player, first: int, last: int) -> Block:
    """Runs first .. last-1 as sums, in this process."""
    return Block.of(first, last, player.play(first, last))


def play_in_full(player: Player, first: int, last: int) -> Any:
    """The same runs in full."""
    return player.in_full(first, last)


@dataclass(frozen=True, slots=True)
class EventsPlayer:
    """Plays message by message."""

    experiment: Experiment

    def in_full(self, first: int, last: int) -> list[RunResult]:
        player = messages.play if isinstance(self.experiment, ByRounds) else play
        return [player(self.experiment, run) for run in range(first, last)]

    def play(self, first: int, last: int) -> RunValues:
        values: dict[str, list[float]] = {}
        endings: Counter[str] = Counter()
        violated = 0
        for result in self.in_full(first, last):
            endings[result.ended.value] += 1
            violated += any(verdict is Verdict.VIOLATED for verdict, _ in result.verdicts.values())
            for name, value in result.metrics.items():
                column = values.setdefault(name, [])
                if value is not None:
                    column.append(value)
        return RunValues(values, dict(endings), violated)


@dataclass(frozen=True, slots=True)
class FastPlayer:
    """Plays on the compiled kernels, which judge no property."""

    setting: AnnounceParameters | ProbabilisticParameters
    seed: int

    def columns(self, first: int, last: int) -> Columns:
        """Runs first .. last-1 as columns of the kernels."""
        return play_kernel(self.setting, self.seed, first, last)

    def in_full(self, first: int, last: int) -> Columns:
        return self.columns(first, last)

    def play(self, first: int, last: int) -> RunValues:
        found = self.columns(first, last)
        cut = int(found.cut.sum())
        endings = {ending_of(self.setting): found.runs - cut, CUT: cut}
        return RunValues(
            {name: known(column.tolist()) for name, column in found.metrics.items()},
            {name: number for name, number in endings.items() if number},
        )


@dataclass(frozen=True, slots=True)
class LargeElections:
    """Plays committee elections on their compiled engine: every run comes to its end."""

    large: LargePlayer

    def columns(self, first: int, last: int) -> Columns:
        """Runs first .. last-1 as columns of the engine."""
        return self.large.columns(first, last)

    def in_full(self, first: int, last: int) -> Columns:
        return self.columns(first, last)

    def play(self, first: int, last: int) -> RunValues:
        found = self.columns(first, last)
        values = {name: known(column.tolist()) for name, column in found.metrics.items()}
        return RunValues(values, {QUIESCENT: found.runs})


# The results of runs: a summary of each metric, and a report of all


@dataclass(frozen=True, slots=True)
class Summary:
    """One metric over many runs; `stderr` is that of the mean, None for a single run."""

    mean: float
    stderr: float | None
    min: float
    p50: float
    p99: float
    max: float

    def to_json(self) -> dict[str, float | None]:
        """As a JSON object."""
        return asdict(self)


def summarise(values: Iterable[float]) -> Summary:
    """The summary of at least one value.

    >>> summarise([1, 2, 3, 4]).mean
    2.5
    >>> summarise([7]).stderr is None
    True
    """
    ordered = sorted(values)
    if not ordered:
        raise ValueError("no values to summarise")
    count = len(ordered)
    mean = math.fsum(ordered) / count
    stderr = None
    if count > 1:
        variance = math.fsum((value - mean) ** 2 for value in ordered) / (count - 1)
        stderr = math.sqrt(variance / count)
    return Summary(
        mean=mean,
        stderr=stderr,
        min=ordered[0],
        p50=quantile(ordered, 0.5),
        p99=quantile(ordered, 0.99),
        max=ordered[-1],
    )


def quantile(ordered: list[float], q: float) -> float:
    """The q-quantile of a sorted list, linear between neighbours.

    >>> quantile([1.0, 2.0, 3.0], 0.5)
    2.0
    """
    place = q * (len(ordered) - 1)
    low = math.floor(place)
    if low + 1 >= len(ordered):
        return float(ordered[low])
    return ordered[low] + (place - low) * (ordered[low + 1] - ordered[low])


def summarise_runs(runs: Iterable[Mapping[str, float | None]]) -> dict[str, Summary | None]:
    """Each metric over all runs that have it; None for one that no run has."""
    columns: dict[str, list[float]] = {}
    for run in runs:
        for name, value in run.items():
            column = columns.setdefault(name, [])
            if value is not None:
                column.append(value)
    return {name: summarise(column) if column else None for name, column in columns.items()}


@dataclass(frozen=True, slots=True)
class Report:
    """The results of all runs."""

    runs: int
    metrics: dict[str, Summary | None]
    verdicts: dict[str, dict[str, int]]
    reasons: dict[str, str]  # one example of each property that did not hold
    endings: dict[str, int]
    digest: str | None = None  # over all runs' digests, in order
    failure: int | None = None  # the first run that violated a property
    time_series: TimeSeries | None = None  # of the number of leaders, if it was recorded
    unplayed: dict[str, int] = field(default_factory=dict)  # faults that runs ended before

    @property
    def violated(self) -> bool:
        """Whether any run violated any property."""
        return any(counts.get(Verdict.VIOLATED.value) for counts in self.verdicts.values())


def report(results: list[RunResult], first: int = 0, step: float | None = None) -> Report:
    """Summarise the results of runs numbered from `first`; `step` is that of their time series."""
    verdicts: dict[str, dict[str, int]] = {}
    reasons: dict[str, str] = {}
    failures: list[int] = []
    for number, result in enumerate(results, first):
        for name, (verdict, reason) in result.verdicts.items():
            counts = verdicts.setdefault(name, {each.value: 0 for each in Verdict})
            counts[verdict.value] += 1
            if verdict is not Verdict.HOLDS:
                reasons.setdefault(name, f"{verdict.value} in run {number}: {reason}")
            if verdict is Verdict.VIOLATED:
                failures.append(number)
    return Report(
        runs=len(results),
        metrics=summarise_runs(result.metrics for result in results),
        verdicts=verdicts,
        reasons=reasons,
        endings=dict(sorted(Counter(result.ended.value for result in results).items())),
        digest=_digest([result.digest for result in results if result.digest is not None]),
        failure=min(failures, default=None),
        time_series=None if step is None else _time_series(results, step),
        unplayed=dict(Counter(fault for result in results for fault in result.unplayed)),
    )


def _time_series(results: list[RunResult], step: float) -> TimeSeries | None:
    kept = (result.time_series for result in results)
    return summarise_series([time_series for time_series in kept if time_series is not None], step)


def _digest(digests: list[str]) -> str | None:
    if len(digests) < 2:
        return digests[0] if digests else None
    return blake2b("\n".join(digests).encode(), digest_size=16).hexdigest()


# Collecting runs while they are played


class BlockTotal:
    """The sums of all blocks."""

    def __init__(self) -> None:
        self.whole = EMPTY

    def add(self, block: Block) -> None:
        self.whole += block

    @property
    def metrics(self) -> Mapping[str, Column]:
        return self.whole.metrics


class StudyTotal(Protocol):
    """Runs in full, in order."""

    def add(self, block: Any, /) -> None:
        """Add the runs that follow those before."""

    @property
    def metrics(self) -> Mapping[str, Column]:
        """Each metric over all runs so far, computed when asked for."""

    def piece(self, runs: int, workers: int) -> int:
        """The runs of a block, for a number of runs and of workers."""

    def values(self) -> Mapping[str, list[float]]:
        """The values of each metric, from the runs that have one."""

    def report(self, first: int) -> Report:
        """The report of all runs; they are numbered from `first`."""


class _Columns(Mapping[str, Column]):
    """Metrics by name, computed one at a time, since a goal looks at one only."""

    def __init__(self, names: Iterable[str], values: Callable[[str], list[float]]) -> None:
        self._names = dict.fromkeys(names)
        self._values = values

    def __getitem__(self, name: str) -> Column:
        return Column.of(self._values(name))

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


class ResultsTotal:
    """Runs that were played message by message."""

    def __init__(self, experiment: Experiment) -> None:
        self._experiment = experiment
        self._results: list[RunResult] = []

    def add(self, block: list[RunResult]) -> None:
        self._results += block

    def piece(self, runs: int, workers: int) -> int:
        # With one worker, progress is reported and Ctrl-C is noticed after every run.
        return 1 if workers == 1 else max(1, min(LARGEST, runs // (4 * workers)))

    @property
    def metrics(self) -> Mapping[str, Column]:
        return _Columns(self._names(), self._values)

    def _names(self) -> Iterable[str]:
        return chain.from_iterable(result.metrics for result in self._results)

    def _values(self, name: str) -> list[float]:
        values = (result.metrics.get(name) for result in self._results)
        return [value for value in values if value is not None]

    def values(self) -> Mapping[str, list[float]]:
        return {name: self._values(name) for name in dict.fromkeys(self._names())}

    def report(self, first: int) -> Report:
        return report(self._results, first, self._experiment.time_series)


class ColumnsTotal:
    """Runs that a compiled engine played."""

    def __init__(self, piece: int, ending: str) -> None:
        self._piece = piece
        self._ending = ending  # how runs end that the engine did not give up
        self._found: list[Columns] = []

    def add(self, block: Columns) -> None:
        self._found.append(block)

    def piece(self, runs: int, workers: int) -> int:
        return self._piece

    @property
    def metrics(self) -> Mapping[str, Column]:
        return _Columns(self._found[0].metrics, self._values)

    def _values(self, name: str) -> list[float]:
        return known(list(chain.from_iterable(each.metrics[name].tolist() for each in self._found)))

    def values(self) -> Mapping[str, list[float]]:
        return {name: self._values(name) for name in self._found[0].metrics}

    def report(self, first: int) -> Report:
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


def _kernel_columns(experiment: Experiment) -> StudyTotal:
    setting = setting_of(experiment)
    return ColumnsTotal(at_once(setting, PIECE), ending_of(setting))


def _large_columns(experiment: Experiment) -> StudyTotal:
    return ColumnsTotal(max(1, LARGE_PIECE // experiment.members), QUIESCENT)


# Engines


@dataclass(frozen=True, slots=True)
class Engine:
    """One way to play an experiment."""

    name: str
    admit: Callable[[Experiment], None]  # raises BadInput for an experiment that it cannot play
    player: Callable[[Experiment], Player]
    piece: Callable[[Experiment], int]  # runs that make a piece of work, about a second
    most: int  # runs for a standard error, if no other bound is given
    study: Callable[[Experiment], StudyTotal]  # collects runs in full
    threaded: bool = False  # whether threads can play it in parallel

    @property
    def place(self) -> str:
        """The default place to play its runs."""
        return THREADS if self.threaded else PROCESSES


def _admit_events(experiment: Experiment) -> None:
    """Admit every experiment, unless its group is too large to play message by message."""
    experiment.check_playable()


def _admit_fast(experiment: Experiment) -> None:
    """Refuse what the kernels cannot play, and say which extra is missing."""
    setting_of(experiment)
    import_module("hustings.lab.kernels.compiling")  # its sentence says which extra is missing


def _fast_player(experiment: Experiment) -> Player:
    return FastPlayer(setting_of(experiment), experiment.seed)


def _events_piece(experiment: Experiment) -> int:
    return max(1, min(MOST_EVENT_RUNS, EVENTS_PIECE // experiment.members))


def _fast_piece(experiment: Experiment) -> int:
    return min(MOST_FAST_RUNS, at_once(setting_of(experiment), FAST_PIECE))


def _one(_: Experiment) -> int:
    return 1


def _large_player(experiment: Experiment) -> Player:
    return LargeElections(large_player(experiment))


def _large_piece(experiment: Experiment) -> int:
    return max(1, min(1_000, LARGE_PIECE // experiment.members))


# By the type of the experiment; another type brings engines of its own.
ENGINES: Mapping[type, Mapping[str, Engine]] = {
    Experiment: {
        EVENTS: Engine(EVENTS, _admit_events, EventsPlayer, _events_piece, 100_000, ResultsTotal),
        FAST: Engine(
            FAST, _admit_fast, _fast_player, _fast_piece, 1_000_000, _kernel_columns, threaded=True
        ),
    },
    ByRounds: {
        EVENTS: Engine(EVENTS, admit_messages, EventsPlayer, _one, 1_000, ResultsTotal),
        FAST: Engine(
            FAST, admit_large, _large_player, _large_piece, 100_000, _large_columns, threaded=True
        ),
    },
}


def engine_of(experiment: Experiment, name: str) -> Engine:
    """The engine with this name for such an experiment."""
    engines = ENGINES[type(experiment)]
    if name not in engines:
        raise UnknownName("engine", name, engines)
    return engines[name]


@dataclass(frozen=True, slots=True)
class EngineChoice:
    """An experiment with the engine that plays it, and a reason if the user did not choose."""

    experiment: Experiment
    engine: Engine
    reason: str | None = None


def choose(experiment: Experiment, name: str, runs: int, held: str | None = None) -> EngineChoice:
    """An experiment with its engine: the named one, or the better one for this number of runs.

    `held` says why kernels are ruled out.
    """
    if name != AUTO:
        engine = engine_of(experiment, name)
        engine.admit(experiment)
        return EngineChoice(experiment, engine)
    if isinstance(experiment, ByRounds):
        fast, reason = (False, held) if held is not None else preferred(experiment, runs)
        if runs >= MAX_RUNS:  # this is the maximum, and not what the user asked for
            reason = reason.replace(f"{runs:,} runs", _so_many(runs))
        engine = engine_of(experiment, FAST if fast else EVENTS)
        engine.admit(experiment)
        return EngineChoice(experiment, engine, reason.removesuffix(_ADVICE))
    why = held
    if why is None:
        try:
            engine = engine_of(experiment, FAST)
            engine.admit(experiment)
        except BadInput as refusal:
            why = str(refusal).removesuffix(_ADVICE)
        else:
            work = runs * experiment.members
            if work > LIGHT:
                return EngineChoice(experiment, engine, _much(experiment, runs))
            why = "so little is soon played message by message, and judged, too"
    engine = engine_of(experiment, EVENTS)
    engine.admit(experiment)
    return EngineChoice(experiment, engine, why)


def _much(experiment: Experiment, runs: int) -> str:
    return (
        f"its kernels know this election, and {_so_many(runs)} of {experiment.members:,} members "
        "would take long message by message"
    )


def _so_many(runs: int) -> str:
    if runs >= MAX_RUNS:
        return "as many runs as a standard error may take"
    return f"up to {runs:,} runs" if runs > 1 else "a run"


# What fits into this machine: the estimates are low, so that few experiments are refused

# Bytes, measured and rounded down.
OF_A_MEMBER = 1_000  # while a run is played message by message
OF_A_MEMBER_COMPILED = 30  # while a kernel plays it, on each thread
OF_A_RUN = {EVENTS: 1_300, FAST: 160}  # for its results, if they are stored one by one
GIB = 1 << 30


def check_memory(needed: float, what: str) -> None:
    """Refuse what is larger than this machine's memory, if that is known."""
    memory = memory_here()
    if memory is not None and needed > memory:
        raise BadInput(
            f"{what} would take about {needed / GIB:,.3g} GiB of memory, and this machine has "
            f"{memory / GIB:,.3g} GiB"
        )


def memory_here() -> int | None:
    """This machine's memory in bytes."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):  # not on every system
        return None


def check_runs(engine: str, members: int, runs: int, jobs: int) -> None:
    """Refuse runs of one group whose results do not fit when stored one by one."""
    needed = runs * OF_A_RUN.get(engine, 0)
    if engine == EVENTS:
        needed += members * OF_A_MEMBER * min(jobs, runs)
    elif members <= MOST_PLAYED:  # larger groups are only counted, in the same memory
        needed += members * OF_A_MEMBER_COMPILED * min(jobs, runs)
    workers = "processes" if engine == EVENTS else "threads"
    jobs_told = f" on {jobs} {workers}" if jobs > 1 else ""
    runs_told = f"{runs:,} run{'s' if runs > 1 else ''} of {members:,} members{jobs_told}"
    check_memory(needed, runs_told)
