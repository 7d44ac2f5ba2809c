"""An experiment in synchronous rounds: which options of a world have a meaning there."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

from hustings.core.errors import BadInput
from hustings.sim.experiment import Experiment

MOST_EVENTS = 400_000_000

# Fields that describe other worlds, each with the option that changes it.
_ELSEWHERE = {
    "choice": "--choice",
    "attributes": "--attribute",
    "scenario": "--scenario, or an option of one,",
    "view_probability": "--view",
    "p_fail": "--set p_fail",
    "clocks": "--drift or --offset",
    "environment": "--environment",
    "pauses": "--pause",
    "detector": "--detection",
    "oracle": "--detection",
    "guard": "--guard",
    "voting": "--guard",
    "composition": "--composed",
    "stack": "--membership",
    "time_series": "--time-series",
    "consensus": "--consensus",
}


@dataclass(frozen=True)
class ByRounds(Experiment):
    """One election with Byzantine members; all begin at once, messages arrive in their rounds."""


def by_rounds(experiment: Experiment, *, limited: bool) -> ByRounds:
    """The same for an election in rounds; `limited` says that the user set its limit of events."""
    name = experiment.kind.about.name
    usual = Experiment(experiment.kind, 1, experiment.config)
    for field, option in _ELSEWHERE.items():
        if getattr(experiment, field) != getattr(usual, field):
            raise BadInput(
                f"{name} runs in synchronous rounds with an adversary of its own: {option} has no "
                "meaning there"
            )
    network = experiment.network
    if network.loss.p or network.multicasts.p or network.duplicate or network.reorder:
        raise BadInput(f"{name} needs a network that loses, repeats and holds back nothing")
    if network.delay.bound > experiment.config.delta:
        raise BadInput(
            f"{name} needs every message within delta = {experiment.config.delta:g}, and --delay "
            f"lets them take {network.delay.bound:g}"
        )
    if not limited:
        experiment = replace(experiment, max_events=MOST_EVENTS)
    given = {each.name: getattr(experiment, each.name) for each in fields(Experiment) if each.init}
    return ByRounds(**given)
