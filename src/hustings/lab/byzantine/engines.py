"""The engines of elections in rounds: message by message, or compiled for large groups."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

from hustings.core.election import Election
from hustings.core.errors import BadInput
from hustings.lab.byzantine import messages
from hustings.protocols.committee.election import Committee
from hustings.protocols.committee.extensions import CommonCoin, GroupAgreement
from hustings.protocols.committee.settings import CommitteeConfig
from hustings.sim.experiment import Experiment
from hustings.sim.queue import END_OF_TIME

if TYPE_CHECKING:
    from hustings.lab.kernels.results import Columns

RUNS_BY_MESSAGE = 20  # by default, the compiled engine plays more runs than this
LARGE = "hustings.lab.byzantine.large"  # imported when needed: it requires an extra
TASKS: dict[type[Election], str] = {  # elections on the compiled engine, and their names there
    Committee: "leader",
    GroupAgreement: "agreement",
    CommonCoin: "coin",
}


@dataclass(frozen=True, slots=True)
class LargePlayer:
    """Committees on the compiled engine."""

    config: CommitteeConfig
    members: int
    seed: int
    task: str = "leader"

    def columns(self, first: int, last: int) -> Columns:
        """Runs first .. last-1, as the engine gives them."""
        played: Columns = import_module(LARGE).play_large(
            self.config, self.members, self.seed, first, last, self.task
        )
        return played


def admit_messages(experiment: Experiment) -> None:
    """Refuse an experiment that cannot be played message by message."""
    messages.check(experiment)


def admit_large(experiment: Experiment) -> None:
    """Refuse an experiment that the compiled engine cannot play, or has no memory for."""
    if experiment.until != END_OF_TIME:
        raise BadInput("engine 'fast' plays elections to their end, whatever --until: drop it")
    import_module("hustings.lab.kernels.compiling")  # its sentence says which extra is missing
    config, task = committee_of(experiment)
    import_module(LARGE).check(config, experiment.members, task=task)


def large_player(experiment: Experiment) -> LargePlayer:
    """The player that plays it there."""
    config, task = committee_of(experiment)
    return LargePlayer(config, experiment.members, experiment.seed, task)


def committee_of(experiment: Experiment) -> tuple[CommitteeConfig, str]:
    """The settings of a committee election and its task; the compiled engine knows no others."""
    config = experiment.config
    if experiment.kind not in TASKS or not isinstance(config, CommitteeConfig):
        name = experiment.kind.about.name
        raise BadInput(f"engine 'fast' does not know {name}: take --engine events")
    return config, TASKS[experiment.kind]


def preferred(experiment: Experiment, runs: int) -> tuple[bool, str]:
    """Whether to use the compiled engine if the user did not choose, and why."""
    try:
        admit_messages(experiment)
    except BadInput as refusal:
        if experiment.kind not in TASKS:
            raise
        return True, str(refusal).split(": take")[0]
    if runs > RUNS_BY_MESSAGE:
        try:
            admit_large(experiment)
        except BadInput as refusal:
            return False, str(refusal).split(": take")[0]
        return True, f"{runs:,} runs would take long message by message"
    return False, "so much is soon played message by message, and judged, too"
