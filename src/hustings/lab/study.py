"""What came of a simulation: numbers to ask for, a table, a picture, and how to get it again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING, Any

import msgspec

from hustings.core.errors import BadInput, UnknownName
from hustings.core.numbers import plain
from hustings.lab.tables import Table, as_html, needed
from hustings.sim.course import Course
from hustings.sim.experiment import Experiment
from hustings.sim.metrics import Summary
from hustings.sim.runs import Report
from hustings.sim.steady import warm_up

if TYPE_CHECKING:
    from collections.abc import Sequence

COLUMNS = ("mean", "stderr", "min", "p50", "p99", "max")


@dataclass(frozen=True, slots=True)
class Study(Table):
    """All runs of one experiment. `study["time"].mean` is a number, `study.command` a command line.

    In a notebook it shows itself as a table.
    """

    experiment: Experiment
    report: Report
    engine: str
    command: str  # the command line that gives the same; "" for a class that it cannot name
    remarks: tuple[str, ...] = ()
    values: Mapping[str, list[float]] = field(default_factory=dict, repr=False)
    short: str | None = None  # a sentence where a precision was not reached
    choices: Mapping[str, object] = field(default_factory=dict)  # what was left to us

    @property
    def protocol(self) -> str:
        """Its name."""
        return self.experiment.kind.about.name

    @property
    def runs(self) -> int:
        """How many were played."""
        return self.report.runs

    @property
    def metrics(self) -> Mapping[str, Summary | None]:
        """Each metric over all runs; None where no run has one."""
        return self.report.metrics

    @property
    def verdicts(self) -> Mapping[str, Mapping[str, int]]:
        """How often each property held, was violated, or could not be judged."""
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
        """Of everything that happened, where it was asked for."""
        return self.report.digest

    @property
    def course(self) -> Course | None:
        """How many led at which time, where it was asked for."""
        return self.report.course

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
        """A row for each metric."""
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
            "remarks": list(self.remarks),
            "command": self.command,
        }
        if experiment.guard is not None:
            shown["guard"] = msgspec.to_builtins(experiment.guard)
        if report.course is not None:
            shown["courses"] = {"simultaneous_leaders": report.course.to_json()}
        if report.digest is not None:
            shown["digest"] = report.digest
        return {name: plain(value) for name, value in {**shown, **self.choices}.items()}

    def plot(self, metric: str | None = None, axes: Any = None) -> Any:
        """How often each value of a metric came about, or the course if there is one; the axes."""
        axes = needed("matplotlib.pyplot", "figures").figure().subplots() if axes is None else axes
        if metric is None and self.course is not None:
            axes.plot(self.course.time, self.course.mean)
            axes.set_xlabel("time")
            axes.set_ylabel("simultaneous leaders, mean")
        else:
            name = next(iter(self.values)) if metric is None else metric
            axes.hist(self._values(name), bins="auto")
            axes.set_xlabel(name)
            axes.set_ylabel("runs")
        axes.set_title(self.title)
        return axes

    def _values(self, metric: str) -> Sequence[float]:
        self[metric]
        return self.values[metric]

    @property
    def title(self) -> str:
        """One line about it."""
        runs = f"{self.runs} run{'s' if self.runs > 1 else ''}"
        return (
            f"{self.protocol}, {self.experiment.members} members, "
            f"scenario {self.experiment.scenario.name}, {runs}, seed {self.experiment.seed}"
        )

    def __str__(self) -> str:
        parts = [f"{name}={summary.mean:g}" for name, summary in self.metrics.items() if summary]
        return f"{self.title}: {', '.join(parts)}"

    def _repr_html_(self) -> str:
        judged = "".join(
            f"<tr><th>{escape(name)}</th><td>{escape(_counts(counts))}</td></tr>"
            for name, counts in {**self.verdicts, "ended": self.endings}.items()
        )
        remarks = "".join(f"<li>{escape(each)}</li>" for each in self.remarks)
        return (
            f"<p><b>{escape(self.title)}</b></p>{as_html(self.rows())}"
            f"<table><tbody>{judged}</tbody></table>"
            f"<ul>{remarks}</ul><pre>{escape(self.command)}</pre>"
        )


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{number} {what}" for what, number in counts.items() if number)


def _particulars(experiment: Experiment) -> dict[str, object]:
    """What only some scenarios have."""
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
