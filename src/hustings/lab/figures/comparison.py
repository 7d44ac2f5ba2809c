"""Protocols side by side on equal terms: what each run counted, and what its formula gives."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from hustings.core.choice import HighestId
from hustings.core.errors import BadInput
from hustings.lab.closed_forms.registry import evaluate, names, parameters
from hustings.sim.checkers import Verdict
from hustings.sim.delay import Fixed
from hustings.sim.experiment import Experiment
from hustings.sim.member import Clocks
from hustings.sim.play import RunResult, play
from hustings.sim.queue import on_grid

MESSAGES = ("election_messages", "answer_messages", "coordinator_messages", "other_messages")
METRICS = (*MESSAGES, "messages", "time", "leader")


@dataclass(frozen=True, slots=True)
class ComparisonRow:
    """One protocol's run."""

    protocol: str
    counted: dict[str, float | None]
    formula: dict[str, float]  # by metric, where a closed form exists
    expressions: dict[str, str]  # the formulas as text
    ended: str
    verdicts: dict[str, str]

    @property
    def by_role(self) -> list[float | None]:
        """Messages of each role, in the order of MESSAGES."""
        return [self.counted[metric] for metric in MESSAGES]

    @property
    def agrees(self) -> bool | None:
        """Whether counts and formulas agree; None without a formula."""
        if not self.formula:
            return None
        return all(self.counted[metric] == value for metric, value in self.formula.items())

    @property
    def sound(self) -> bool:
        """Whether no property was violated."""
        return Verdict.VIOLATED.value not in self.verdicts.values()

    def to_json(self) -> dict[str, object]:
        """Plain values only."""
        return {
            "protocol": self.protocol,
            "counted": self.counted,
            "formula": self.formula,
            "expressions": self.expressions,
            "agrees": self.agrees,
            "ended": self.ended,
            "verdicts": self.verdicts,
        }


def compare(experiments: Iterable[Experiment]) -> list[ComparisonRow]:
    """Play each experiment once and compare its counts with the closed forms."""
    return [_row(experiment, play(experiment, 0)) for experiment in experiments]


def _row(experiment: Experiment, result: RunResult) -> ComparisonRow:
    values, expressions = _formula(experiment)
    return ComparisonRow(
        protocol=experiment.kind.about.name,
        counted={metric: result.metrics[metric] for metric in METRICS},
        formula=values,
        expressions=expressions,
        ended=result.ended.value,
        verdicts={name: verdict.value for name, (verdict, _) in result.verdicts.items()},
    )


def _formula(experiment: Experiment) -> tuple[dict[str, float], dict[str, str]]:
    """The closed forms at an experiment's parameters; empty where they do not apply."""
    name = experiment.kind.about.name
    if name not in names() or not _covered(experiment):
        return {}, {}
    try:
        result = evaluate(name, _parameters(experiment, name))
    except BadInput:  # for example a timer for which the forms make no statement
        return {}, {}
    values = {metric: float(value) for metric, value in result.corrected.items()}
    if "time" in values:
        values["time"] = on_grid(values["time"] * experiment.network.delay.bound)
    expressions = {}
    if experiment.scenario.name == "leader-crash":  # the scenario of the formulas
        expressions = {form.name: form.formula for form in result.forms if form.name in values}
    return values, expressions


def _covered(experiment: Experiment) -> bool:
    """Whether closed forms apply: highest id, a fixed known delay, no loss, scripted detectors."""
    network = experiment.network
    return (
        experiment.choice == HighestId()
        and isinstance(network.delay, Fixed)
        and network.delay.bound == experiment.config.delta
        and network.plain
        and not network.loss.p
        and experiment.scripted
        and not experiment.scenario.extra
        and experiment.view_probability == 1.0
        and experiment.clocks == Clocks()
        and experiment.environment is None
        and _all_notice(experiment)
    )


def _all_notice(experiment: Experiment) -> bool:
    """Whether no member objects, where a leader is replaced only if all agree."""
    scenario = experiment.scenario
    told = {*scenario.detectors, *scenario.initiators}
    if not experiment.config.unanimous or not told or scenario.name == "start":
        return True
    return len(told) == experiment.members - len({*scenario.crashed, experiment.members})


def _parameters(experiment: Experiment, name: str) -> dict[str, str]:
    scenario = experiment.scenario
    given = {"n": str(experiment.members), "scenario": scenario.name}
    openers = (*scenario.detectors, *scenario.initiators)
    old_leader = [experiment.members] if scenario.name == "leader-crash" else []
    if openers:
        given["d"] = ",".join(str(member) for member in openers)
    further = [member for member in scenario.crashed if member not in old_leader]
    if further:
        given["crashed"] = ",".join(str(member) for member in further)
    for parameter in parameters(name):
        value = getattr(experiment.config, parameter.key, None)
        if isinstance(value, bool):
            given[parameter.key] = str(value).lower()
        elif isinstance(value, int):
            given[parameter.key] = str(value)
        elif isinstance(value, float):  # for example a timer: the forms count in delays
            given[parameter.key] = repr(value / experiment.network.delay.bound)
    return given
