"""Cells of the grid: a group under a loss model, its closed forms, and samples of its simulation.

T_A = T_S = 1, T_L infinite, and the thesis's delay of 0.1 unless another is named.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from types import MappingProxyType

from hustings.lab.closed_forms.announce import delay, messages, rounds, suppression, uncorrelated
from hustings.lab.closed_forms.announce.laws import Law
from hustings.protocols.registry import find
from hustings.sim.delay import Fixed
from hustings.sim.experiment import Experiment
from hustings.sim.loss import parse_loss
from hustings.sim.network import Network
from hustings.sim.play import play
from hustings.sim.scenarios import Scenario
from tests.agreement.announce.judging import Sample, sample

DELTA = 0.1
UNIFORM = Law()
NOTHING: Mapping[str, object] = MappingProxyType({})
GRID = (
    ("none", 0.0),
    *(("correlated", loss) for loss in (0.1, 0.4, 0.7)),
    *(("uncorrelated", loss) for loss in (0.1, 0.4, 0.7)),
)


@dataclass(frozen=True)
class Cell:
    """One group under one loss model."""

    algorithm: str
    members: int
    model: str = "none"
    loss: float = 0.0
    delta: float = DELTA
    collision: float = 0.0

    @property
    def as_one(self) -> bool:
        """Whether the fate of a message is the same for all who could hear it."""
        return self.model != "uncorrelated" or self.members == 2


# Closed forms


def forms(cell: Cell) -> dict[str, float]:
    """Every metric of a simultaneous start that has a closed form in this cell."""
    if cell.algorithm == "sup":
        return _sup_forms(cell)
    n, loss, model = cell.members, cell.loss, cell.model
    found = {
        "rounds": rounds.rounds(n - 1, loss, model),
        "avg_rounds": rounds.average_rounds(n - 1, loss),
    }
    match cell.algorithm:
        case "le-s":
            found["tmax"] = delay.tmax(n, loss, model, UNIFORM)
            found |= _le_s_counts(cell)
        case "le-m":
            found["tmax"] = delay.tmax_first_waker(n, loss, model, UNIFORM)
            if cell.as_one:
                first = messages.first_round_first_waker(n, loss, UNIFORM, D=cell.delta)
                found["first_round"] = first
                found["num_msgs"] = messages.total_first_waker(n, loss, UNIFORM, D=cell.delta)
            elif cell.delta == 0:
                found["first_round"] = suppression.messages_uncorrelated(n, loss)
        case "le-a":
            found["tmax"] = delay.tmax_baseline(n, loss, model)
            found["first_round"] = float(n)
            if cell.as_one:
                found["num_msgs"] = messages.total_at_once(n, loss, D=cell.delta)
        case "al":
            found["tmax"] = delay.tmax_baseline(n, loss, model)
            found["first_round"] = float(n)
            found["num_msgs"] = messages.total_baseline(n, found["rounds"], D=cell.delta)
    found["leadership_delay"] = delay.leadership_delay(found["tmax"], cell.delta)
    return found


def waits(cell: Cell, name: str, mean: float) -> float | None:
    """The mean number of announcements until one got through, if the metric tells just that."""
    if not cell.as_one or not cell.loss:
        return None
    if name in ("rounds", "avg_rounds"):
        return mean
    if cell.algorithm in ("le-a", "al") and name == "tmax":
        return mean + 1
    if cell.algorithm in ("le-a", "al") and name == "leadership_delay":
        return mean + 1 - cell.delta
    if cell.algorithm == "al" and name == "num_msgs":
        return mean / cell.members
    return None


def _le_s_counts(cell: Cell) -> dict[str, float]:
    n, loss, D = cell.members, cell.loss, cell.delta
    if cell.as_one:
        return {
            "first_round": messages.first_round(n, loss, UNIFORM, D=D),
            "num_msgs": messages.total(n, loss, UNIFORM, D=D),
            "sent_by_tmax": messages.sent_by_tmax(n, loss, UNIFORM, D=D),
        }
    return {"first_round": uncorrelated.first_round(n, loss)} if D == 0 else {}


def _sup_forms(cell: Cell) -> dict[str, float]:
    n, loss, D = cell.members, cell.loss, cell.delta
    if cell.as_one:
        return {
            "num_msgs": suppression.messages(n, loss, UNIFORM, D=D),
            "tmax": suppression.tmax(n, loss, UNIFORM, D=D),
            "t_halt": suppression.halt(n, loss, UNIFORM, D=D),
        }
    return {"num_msgs": suppression.messages_uncorrelated(n, loss)} if D == 0 else {}


# Simulation


def experiment(
    cell: Cell,
    settings: Mapping[str, object] = NOTHING,
    *,
    scenario: str = "start",
    until: float = 1e5,
) -> Experiment:
    """One cell in the simulator, with settings of the election on top."""
    kind = find(cell.algorithm)
    usual: dict[str, object] = {"delta": cell.delta} if cell.delta else {}
    if cell.algorithm != "sup":
        usual["T_L"] = inf
    return Experiment(
        kind,
        cell.members,
        kind.Settings.parse(usual | dict(settings)),
        network=Network(Fixed(cell.delta), parse_loss(cell.model, cell.loss, cell.collision)),
        scenario=Scenario(scenario),
        until=until,
    )


def vigil(cell: Cell, T_L: float, until: float) -> Experiment:
    """A settled group that is left to lose messages."""
    return experiment(cell, {"T_L": T_L}, scenario="false-departure", until=until)


def samples(trial: Experiment, runs: int) -> dict[str, Sample]:
    """Every metric that all runs have."""
    results = [play(trial, run).metrics for run in range(runs)]
    found: dict[str, Sample] = {}
    for name in results[0]:
        values = [value for result in results if (value := result[name]) is not None]
        if len(values) == runs:
            found[name] = sample(values)
    return found
