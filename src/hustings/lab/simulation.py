"""`simulate`: one protocol in the deterministic world, for a number of runs, and the results.

`Options` say what is simulated, `Goals` how often. `prepare` makes a `Simulation` of them and
reports errors. The engine of all runs plays it, and a `Study` holds the results.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, field
from functools import partial
from html import escape
from pathlib import Path
from typing import Any, Unpack

import msgspec

from hustings.core.config import plain
from hustings.core.election import Election
from hustings.core.errors import BadInput, UnknownName
from hustings.lab.byzantine import messages
from hustings.lab.byzantine.adversaries import load
from hustings.lab.byzantine.engines import TASKS
from hustings.lab.byzantine.experiment import ByRounds, by_rounds
from hustings.lab.options import Options, World, build, named
from hustings.lab.runs.engines import (
    AUTO,
    EVENTS,
    FAST,
    EngineChoice,
    Player,
    Report,
    Summary,
    check_runs,
    choose,
    engine_of,
    play_in_full,
    report,
)
from hustings.lab.runs.executors import MAX_JOBS, check_place, open_pool
from hustings.lab.runs.kernels import CUT
from hustings.lab.runs.playing import MAX_RUNS, Goal, Precision, Runs, Series, Tell, play_all
from hustings.lab.tables import Table, as_html, as_notes, plotted
from hustings.lab.warnings import (
    warnings_on,
    warnings_on_faults,
    warnings_on_outcome,
    warnings_on_time_series,
)
from hustings.protocols.registry import Protocol, Use, find, use_of
from hustings.sim.announcing import warm_up
from hustings.sim.experiment import Experiment
from hustings.sim.files import TraceFile
from hustings.sim.play import play
from hustings.sim.play import prepare as prepare_run
from hustings.sim.time_series import TimeSeries
from hustings.sim.trace import Tracer

ENGINES = (EVENTS, FAST, AUTO)


def simulate(
    protocol: Protocol,
    *,
    runs: int | None = None,
    stderr: float | None = None,
    metric: str | None = None,
    engine: str | None = None,
    jobs: int = 1,
    first: int = 0,
    digest: bool = False,
    trace: str | Path | None = None,
    on: str | Executor | None = None,
    tell: Tell | None = None,
    **options: Unpack[World],
) -> Study:
    """Run a protocol in the deterministic world: as `hustings sim`, with the same numbers.

    `protocol` is a name, `module:Class`, `file.py:Class` or a class. With `stderr` runs are played
    until the standard error of a metric's mean is at most that; if `runs` do not suffice,
    `Study.short` says so. Run numbers begin with `first`. `trace` is a file for the first run.
    `jobs` runs are played at once, and `on` says where: threads, processes, local-cluster,
    dask://host:8786, or any `concurrent.futures.Executor`. The numbers are the same everywhere.

    >>> study = simulate("bully", members=8, scenario="leader-crash", detectors=[1])
    >>> study["messages"].mean, study["leader"].mean, study.violated
    (55.0, 7.0, False)
    >>> study.command
    'hustings sim bully --members=8 --scenario=leader-crash --detector=1'
    """
    simulation = prepare(
        protocol,
        Options.of(**options),
        Goals(runs, stderr, metric),
        engine=engine,
        digest=digest,
        trace=trace,
    )
    return simulation.play(first=first, jobs=jobs, on=on, trace=trace, tell=tell)


def check_whole(name: str, value: object, least: int, most: int) -> None:
    """Refuse a value that is not a whole number within bounds."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise BadInput(f"{name} is to be a whole number, not {value!r}")
    if not least <= value <= most:
        raise BadInput(f"{name} must lie between {least} and {most:,}, not {value:,}")


def check_jobs(jobs: object, on: str | Executor | None) -> None:
    """Refuse a wrong number of workers, or an unknown place, before anything starts."""
    check_whole("jobs", jobs, 1, MAX_JOBS)
    if isinstance(on, str):
        check_place(on)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


@dataclass(frozen=True, slots=True)
class Goals:
    """How many runs, in plain words."""

    runs: int | None = None
    stderr: float | None = None
    metric: str | None = None

    def __post_init__(self) -> None:
        if self.runs is not None:
            check_whole("runs", self.runs, 1, MAX_RUNS)
        if self.stderr is not None and not _is_number(self.stderr):
            raise BadInput(f"stderr is to be a number, not {self.stderr!r}")

    @property
    def expected(self) -> int:
        """The likely number of runs, before the engine is known: a standard error means many."""
        return self._runs(MAX_RUNS)

    def most(self, chosen: EngineChoice) -> int:
        """The maximum number of runs for this engine."""
        return self._runs(chosen.engine.most)

    def _runs(self, most: int) -> int:
        if self.runs is not None:
            return self.runs
        return 1 if self.stderr is None else most

    def goal(self, chosen: EngineChoice) -> Goal:
        """The goal for an engine."""
        if self.stderr is None:
            return Runs(self.most(chosen))
        return Precision(self.stderr, self.most(chosen), self.metric)

    def words(self) -> list[str]:
        """The options as a user would type them."""
        named = [("runs", self.runs), ("stderr", self.stderr), ("metric", self.metric)]
        return [f"--{name}={value}" for name, value in named if value is not None]


@dataclass(frozen=True, slots=True)
class Gathered:
    """All runs of one experiment."""

    report: Report
    values: Mapping[str, list[float]]  # of each metric, in the runs that have one
    short: str | None = None  # a sentence if a precision was not reached


def gather(
    chosen: EngineChoice,
    goal: Goal,
    first: int = 0,
    jobs: int = 1,
    on: str | Executor | None = None,
    tell: Tell | None = None,
) -> Gathered:
    """Play runs from `first` on until the goal is reached."""
    experiment, engine = chosen.experiment, chosen.engine
    player, total = engine.player(experiment), engine.study(experiment)
    if not engine.threaded and jobs > 1 and not isinstance(experiment, ByRounds):
        prepare_run(experiment, first)  # reports errors before workers start
    with open_pool(engine.place if on is None else on, jobs, play_in_full) as pool:
        piece = partial(total.piece, workers=pool.workers)
        series: Series[Player, Any] = Series(player, goal, total, piece, first)
        (runs,) = play_all([series], pool, tell=tell)
    short = goal.shortfall(runs, total.metrics) if isinstance(goal, Precision) else None
    return Gathered(total.report(first), total.values(), short)


def run_all(
    experiment: Experiment,
    runs: int,
    jobs: int = 1,
    *,
    first: int = 0,
    on: str | Executor | None = None,
    tell: Tell | None = None,
) -> Report:
    """Play runs of an experiment message by message, and report the results."""
    check_jobs(jobs, on)
    chosen = EngineChoice(experiment, engine_of(experiment, EVENTS))
    return gather(chosen, Runs(runs), first, jobs, on, tell).report


@dataclass(frozen=True, slots=True)
class Simulation:
    """An experiment that is ready to be played: its engine, its number of runs, its warnings."""

    chosen: EngineChoice
    goal: Goal
    most: int  # runs
    warnings: tuple[str, ...]
    words: tuple[str, ...]  # of a command line that gives the same, if there is one
    order: str | None = None  # of ids round a ring

    def check_memory(self, jobs: int = 1) -> None:
        """Refuse runs that do not fit into this machine's memory."""
        chosen = self.chosen
        check_runs(chosen.engine.name, chosen.experiment.members, self.most, jobs)

    def play(
        self,
        *,
        first: int = 0,
        jobs: int = 1,
        on: str | Executor | None = None,
        trace: str | Path | None = None,
        tell: Tell | None = None,
    ) -> Study:
        """Play it. A trace file appears when all runs have succeeded, or not at all."""
        check_jobs(jobs, on)
        check_whole("first", first, 0, MAX_RUNS)
        self.check_memory(jobs)
        experiment = self.chosen.experiment
        found = self._played(first, jobs, on, trace, tell)
        after = [
            *(_shortfall(found.report) if experiment.scenario.mobility is None else []),
            *given_up(found.report),
            *warnings_on_time_series(found.report.time_series),
            *warnings_on_outcome(experiment, found.report),
            *warnings_on_faults(experiment, found.report),
        ]
        words = [*self.words, *([f"--run={first}"] if first else [])]
        command = shlex.join(["hustings", "sim", *words]) if self.words else ""
        return Study(
            experiment=experiment,
            report=found.report,
            engine=self.chosen.engine.name,
            command=command,
            warnings=(*self.warnings, *after),
            values=found.values,
            short=found.short,
            choices=self._choices(found),
        )

    def _played(
        self,
        first: int,
        jobs: int,
        on: str | Executor | None,
        trace: str | Path | None,
        tell: Tell | None,
    ) -> Gathered:
        if trace is None:
            return gather(self.chosen, self.goal, first, jobs, on, tell)
        experiment = self.chosen.experiment
        with TraceFile(Path(trace)) as out:
            player = messages.play if isinstance(experiment, ByRounds) else play
            played = player(experiment, first, Tracer(experiment.header(first), out))
            if self.goal == Runs(1):
                values = {
                    name: [value] for name, value in played.metrics.items() if value is not None
                }
                return Gathered(report([played], first, experiment.time_series), values)
            return gather(self.chosen, self.goal, first, jobs, on, tell)

    def _choices(self, found: Gathered) -> dict[str, object]:
        """What we chose for the user, as data for scripts."""
        shown: dict[str, object] = {}
        if self.order is not None:
            shown["order"] = self.order
        if self.chosen.reason is not None:
            shown["engine_reason"] = self.chosen.reason
        if isinstance(self.goal, Precision):
            metric = self.goal.aim(found.report.metrics)
            summary = found.report.metrics[metric]
            shown["precision"] = {
                "metric": metric,
                "target": self.goal.stderr,
                "stderr": None if summary is None else summary.stderr,
                "most_runs": self.most,
                "reached": found.short is None,
            }
        return shown


def prepare(
    protocol: Protocol,
    options: Options,
    goals: Goals | None = None,
    *,
    engine: str | None = None,
    digest: bool = False,
    **judging: object,
) -> Simulation:
    """Everything about a simulation before it is played; errors are reported here.

    `judging` names what needs every message, for example a trace: kernels cannot give it.
    """
    goals = Goals() if goals is None else goals
    if goals.metric is not None and goals.stderr is None:
        raise BadInput("--metric goes with --stderr, the standard error that it shall have")
    kind = find(protocol)
    if use_of(kind) is Use.ROUNDS:
        load()
    chosen = pick(kind, options, engine, goals.expected, digest=digest, **judging)
    warnings = warnings_on(chosen.experiment, options)
    if chosen.reason is not None:
        warnings.append(f"engine {chosen.engine.name}, for {chosen.reason}")
    name = named(protocol, kind)
    words = [*options.words(), *goals.words()]
    words += [] if engine is None else [f"--engine={engine}"]
    words += ["--digest"] if digest else []
    return Simulation(
        chosen=chosen,
        goal=goals.goal(chosen),
        most=goals.most(chosen),
        warnings=tuple(warnings),
        words=() if name is None else (name, *words),
        order=options.order,
    )


def pick(
    kind: type[Election],
    typed: Options,
    name: str | None,
    runs: int,
    *,
    digest: bool = False,
    **judging: object,
) -> EngineChoice:
    """The experiment and its engine; without a choice, the engine that suits it best."""
    if name is None:
        name = AUTO if kind in TASKS else EVENTS
    if name not in ENGINES:
        raise UnknownName("engine", str(name), ENGINES)
    held = _held(typed.max_events, digest=digest, **judging)
    if name == FAST and held is not None:
        raise BadInput(held)

    experiment = build(kind, typed, digest=digest)
    if use_of(kind) is Use.ROUNDS:
        experiment = by_rounds(experiment, limited=typed.max_events is not None)
    return choose(experiment, name, runs, held)


def _held(max_events: int | None, **judging: object) -> str | None:
    """Why the options rule the kernels out."""
    for option, given in judging.items():
        if given:
            return (
                f"--{option} needs every message of a run, which engine 'fast' does not keep: "
                "take --engine events"
            )
    if max_events is not None:
        return "--max-events limits the event simulator: engine 'fast' has a limit of its own"
    return None


def _shortfall(result: Report) -> list[str]:
    """Why metrics have no value, if a limit is the reason."""
    lacking = [name for name, summary in result.metrics.items() if summary is None]
    limits = [name for name in ("until", "max-events") if name in result.endings]
    if not limits or all(name == "leader" for name in lacking):
        return []
    raised = " or ".join(f"--{name}" for name in limits)
    return [
        f"{lacking[0]} has no value: every run ended before what it measures came about; "
        f"raise {raised}"
    ]


def given_up(result: Report) -> list[str]:
    """A sentence about runs that a kernel gave up."""
    if not (cut := result.endings.get(CUT, 0)):
        return []
    return [
        f"{cut} of {result.runs} runs were given up when a member had announced itself 10,000 "
        "times; they count in no metric, so that means are too low: give a smaller --loss or "
        "--collision"
    ]


# Results

COLUMNS = ("mean", "stderr", "min", "p50", "p99", "max")


@dataclass(frozen=True, slots=True)
class Study(Table):
    """All runs of one experiment. `study["time"].mean` is a number, `study.command` a command line.

    In a notebook it shows itself as a table.
    """

    experiment: Experiment
    report: Report
    engine: str
    command: str  # the same as a command line; "" for a class that it cannot name
    warnings: tuple[str, ...] = ()
    values: Mapping[str, list[float]] = field(default_factory=dict, repr=False)
    short: str | None = None  # a sentence if a precision was not reached
    choices: Mapping[str, object] = field(default_factory=dict)  # what we chose for the user

    @property
    def protocol(self) -> str:
        """The name of the protocol."""
        return self.experiment.kind.about.name

    @property
    def runs(self) -> int:
        """How many runs were played."""
        return self.report.runs

    @property
    def metrics(self) -> Mapping[str, Summary | None]:
        """Each metric over all runs; None if no run has one."""
        return self.report.metrics

    @property
    def verdicts(self) -> Mapping[str, Mapping[str, int]]:
        """How often each property held, was violated, or stayed undecided."""
        return self.report.verdicts

    @property
    def endings(self) -> Mapping[str, int]:
        """How runs ended, and how many did so."""
        return self.report.endings

    @property
    def violated(self) -> bool:
        """Whether any run violated any property."""
        return self.report.violated

    @property
    def digest(self) -> str | None:
        """A digest of everything that happened, if it was requested."""
        return self.report.digest

    @property
    def time_series(self) -> TimeSeries | None:
        """How many members led at which time, if it was requested."""
        return self.report.time_series

    def __getitem__(self, metric: str) -> Summary:
        if metric not in self.metrics:
            raise UnknownName("metric", metric, self.metrics)
        found = self.metrics[metric]
        if found is None:
            raise BadInput(f"{metric} has no value in any of {self.runs:,} runs")
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self.metrics)

    def rows(self) -> list[dict[str, object]]:
        """One row for each metric."""
        return [
            {
                "metric": name,
                "runs": self.runs,
                "count": len(self.values.get(name, ())),
                **(dict.fromkeys(COLUMNS) if summary is None else summary.to_json()),
            }
            for name, summary in self.metrics.items()
        ]

    def to_json(self) -> dict[str, object]:
        """As `hustings sim --json` prints it."""
        experiment, report = self.experiment, self.report
        scenario = experiment.scenario
        shown: dict[str, object] = {
            "protocol": self.protocol,
            "members": experiment.members,
            "runs": report.runs,
            "seed": experiment.seed,
            "engine": self.engine,
            "scenario": {
                "name": scenario.name,
                "crashed": scenario.crashed,
                "detectors": scenario.detectors,
                "initiators": scenario.initiators,
                "faults": len(scenario.extra),
                **_particulars(experiment),
            },
            "params": {"choice": experiment.choice.name, **msgspec.to_builtins(experiment.config)},
            "metrics": {
                name: dict.fromkeys(COLUMNS) if summary is None else summary.to_json()
                for name, summary in report.metrics.items()
            },
            "verdicts": report.verdicts,
            "reasons": report.reasons,
            "endings": report.endings,
            "failure": report.failure,
            "warnings": list(self.warnings),
            "command": self.command,
        }
        if experiment.environment is not None:
            shown["environment"] = experiment.environment.to_toml()
            shown["time_unit"] = "s"
        if experiment.guard is not None:
            shown["guard"] = msgspec.to_builtins(experiment.guard)
        if report.time_series is not None:
            shown["time_series"] = {"simultaneous_leaders": report.time_series.to_json()}
        if report.digest is not None:
            shown["digest"] = report.digest
        return {name: plain(value) for name, value in {**shown, **self.choices}.items()}

    def plot(self, metric: str | None = None) -> dict[str, bytes]:
        """How often each value of a metric occurred, or the time series, as PNG and SVG."""
        return plotted("study", lambda axes: self.draw(axes, metric))

    def draw(self, axes: Any, metric: str | None = None) -> None:
        """The same picture on axes of matplotlib."""
        if metric is None and self.time_series is not None:
            axes.plot(self.time_series.time, self.time_series.mean)
            axes.set_xlabel("time")
            axes.set_ylabel("simultaneous leaders, mean")
        else:
            name = next(iter(self.values)) if metric is None else metric
            axes.hist(self._values(name), bins="auto")
            axes.set_xlabel(name)
            axes.set_ylabel("runs")
        axes.set_title(self.title, fontsize=9)

    def _values(self, metric: str) -> list[float]:
        self[metric]
        return self.values[metric]

    @property
    def title(self) -> str:
        """The title: one line."""
        runs = f"{self.runs} run{'s' if self.runs > 1 else ''}"
        return (
            f"{self.protocol}, {self.experiment.members} members, "
            f"scenario {self.experiment.scenario.name}, {runs}, seed {self.experiment.seed}"
            f"{', times in seconds' if self.experiment.environment is not None else ''}"
        )

    def __str__(self) -> str:
        parts = [f"{name}={summary.mean:g}" for name, summary in self.metrics.items() if summary]
        return f"{self.title}: {', '.join(parts)}"

    def _repr_html_(self) -> str:
        judged = "".join(
            f"<tr><th>{escape(name)}</th><td>{escape(_counts(counts))}</td></tr>"
            for name, counts in {**self.verdicts, "ended": self.endings}.items()
        )
        return (
            f"<p><b>{escape(self.title)}</b></p>{as_html(self.rows())}"
            f"<table><tbody>{judged}</tbody></table>"
            f"{as_notes(self.warnings)}<pre>{escape(self.command)}</pre>"
        )


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{number} {what}" for what, number in counts.items() if number)


def _particulars(experiment: Experiment) -> dict[str, object]:
    """Values that only some scenarios have."""
    scenario, rates = experiment.scenario, experiment.scenario.rates
    found: dict[str, object] = {}
    if experiment.announces and scenario.name != "start":
        found["warm_up_periods"] = warm_up(experiment.network.multicasts, experiment.members)
    if scenario.name == "churn":
        found |= {
            "arrivals": rates.arrivals,
            "departures": rates.departures,
            "orderly": rates.orderly,
        }
    if scenario.mobility is not None:
        found["mobility"] = scenario.mobility.to_json()
    if scenario.linger:
        found["linger"] = scenario.linger
    if experiment.endless:
        found["until"] = experiment.horizon
    if experiment.stack is not None:
        found |= {"membership": "gossip", "settled_at": experiment.origin}
    return found
