"""The workloads: le-s to convergence, and probabilistic elections."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from math import inf

import numpy as np
from numpy.typing import NDArray

from hustings.lab.kernels.announce import play as announce
from hustings.lab.kernels.announce.columns import COLUMNS
from hustings.lab.kernels.announce.parameters import AnnounceParameters
from hustings.lab.kernels.probabilistic import play as probabilistic
from hustings.lab.kernels.probabilistic.parameters import ProbabilisticParameters
from hustings.protocols.registry import find
from hustings.sim.delay import Fixed
from hustings.sim.experiment import Experiment
from hustings.sim.loss import parse_loss
from hustings.sim.network import Network
from hustings.sim.play import play
from hustings.sim.scenarios import Scenario

Rows = NDArray[np.float64]

SEED = 1
GROUP = AnnounceParameters(protocol="le-s", members=500, loss_model="uncorrelated", loss=0.4)
RUNS = 10_000  # reported times are per this many


def ballot(members: int, loss: float) -> ProbabilisticParameters:
    """Half of the others known, one in a thousand crashes per round."""
    return ProbabilisticParameters(
        members=members, view_prob=0.5, p_ucastl=loss, p_mcastl=loss, p_fail=0.001
    )


BALLOTS = {
    (members, loss): ballot(members, loss)
    for loss in (0.001, 0.3)
    for members in (2_000, 10**6, 10**9)
}


def rows_of(runs: int) -> Rows:
    """Return the raw output of our kernel."""
    rows = np.zeros((runs, COLUMNS))
    announce.play_race(GROUP, SEED, 0, rows)
    return rows


def ours(runs: int) -> None:
    announce.play(GROUP, SEED, 0, runs)


def on_two_threads(runs: int) -> None:
    half = runs // 2
    with ThreadPoolExecutor(2) as pool:
        parts = [
            pool.submit(announce.play, GROUP, SEED, *ends) for ends in ((0, half), (half, runs))
        ]
        for part in parts:
            part.result()


def elect(group: ProbabilisticParameters, runs: int) -> None:
    probabilistic.play(group, SEED, 0, runs)


def by_events(runs: int) -> list[float]:
    """Play the real protocol, message by message; return how many rounds each run took."""
    kind = find(GROUP.protocol)
    settings = kind.Settings.parse({"delta": GROUP.delay, "T_L": inf})
    loss = parse_loss(GROUP.loss_model, GROUP.loss)
    trial = Experiment(
        kind,
        GROUP.members,
        settings,
        network=Network(Fixed(GROUP.delay), loss),
        scenario=Scenario("start"),
        until=1e5,
    )
    return [float(play(trial, run).metrics["rounds"] or 0.0) for run in range(runs)]
