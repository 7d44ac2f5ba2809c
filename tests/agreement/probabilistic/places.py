"""One election of a group, played by events and by the kernel."""

from __future__ import annotations

from typing import NamedTuple

from hustings.lab.kernels.probabilistic.parameters import ProbabilisticParameters
from hustings.lab.kernels.probabilistic.play import play
from hustings.protocols.probabilistic.election import Probabilistic
from hustings.protocols.probabilistic.settings import ProbabilisticConfig
from hustings.sim.experiment import Experiment
from hustings.sim.play import play as play_events
from tests.agreement.announce.fastness import Columns, columns


class Place(NamedTuple):
    """A group, what happens to it, and settings on top."""

    members: int
    p_ucastl: float
    p_mcastl: float
    view_prob: float
    p_fail: float
    settings: dict[str, object]


def config_of(place: Place) -> ProbabilisticConfig:
    around = {"N": place.members, "p_ucastl": place.p_ucastl, "p_mcastl": place.p_mcastl}
    return ProbabilisticConfig.parse(
        {**around, "p_fail": place.p_fail, "view_prob": place.view_prob, **place.settings}
    )


def ballot_of(place: Place) -> ProbabilisticParameters:
    config = config_of(place)
    return ProbabilisticParameters(
        members=place.members,
        sizes=config.plan.sizes,
        view_prob=place.view_prob,
        p_ucastl=place.p_ucastl,
        p_mcastl=place.p_mcastl,
        p_fail=place.p_fail,
        estimate=config.counts,
        thinning=config.thinning,
        join_on_contact=config.join_on_contact,
        T_2=config.T_2,
        W=config.window,
        hash_skew=config.hash_skew,
    )


def by_events(place: Place, runs: int) -> Columns:
    """Every metric of so many runs."""
    experiment = Experiment(Probabilistic, place.members, config_of(place), seed=4)
    return columns([play_events(experiment, run).metrics for run in range(runs)])


def by_kernel(place: Place, runs: int) -> Columns:
    """The same of the kernel."""
    return play(ballot_of(place), 9, 0, runs).metrics
