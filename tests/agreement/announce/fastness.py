"""The kernels beside the other witnesses: their runs of a cell, and two samples of one law.

Two samples are compared twice: their means, and their whole distributions by Kolmogorov and
Smirnov's largest distance. Both give a z, to be judged in one family (judging.py). Distances of
numbers that can be equal come out too small rather than too large, so the level is kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf, nan, sqrt
from statistics import NormalDist
from typing import Any

import numpy as np

from hustings.lab.kernels.announce.parameters import AnnounceParameters
from hustings.lab.kernels.announce.play import play
from hustings.sim.play import play as play_events
from tests.agreement.announce.cells import NOTHING, Cell, experiment
from tests.agreement.announce.judging import Values, normal, sample

Columns = Mapping[str, Values]  # of each metric, run by run; a run may have no value: nan


def setting(cell: Cell, settings: Mapping[str, object] = NOTHING) -> AnnounceParameters:
    """A cell as the kernels take it, with settings of the election on top."""
    known: dict[str, Any] = {
        "protocol": cell.algorithm,
        "members": cell.members,
        "delay": cell.delta,
        "loss_model": cell.model,
        "loss": cell.loss,
        "collision": cell.collision,
    }
    return AnnounceParameters(**known | dict(settings))


def by_kernel(
    cell: Cell, runs: int, settings: Mapping[str, object] = NOTHING, seed: int = 1
) -> Columns:
    """Every metric of so many runs."""
    found = play(setting(cell, settings), seed, 0, runs)
    assert not found.cut.any()
    return found.metrics


def by_events(cell: Cell, runs: int, settings: Mapping[str, object] = NOTHING) -> Columns:
    """The same of the event simulator."""
    trial = experiment(cell, settings)
    return columns([play_events(trial, run).metrics for run in range(runs)])


def columns(results: Sequence[Mapping[str, float | None]]) -> Columns:
    """The metrics of several runs."""
    return {
        name: np.array([nan if (v := each[name]) is None else v for each in results], float)
        for name in results[0]
    }


def known(column: Values) -> Values:
    """The values of the runs that have one."""
    return column[~np.isnan(column)]


def distance(ones: Values, others: Values) -> float:
    """The largest distance between two empirical distribution functions."""
    left, right = np.sort(ones), np.sort(others)
    places = np.concatenate([left, right])
    below = [np.searchsorted(each, places, "right") / len(each) for each in (left, right)]
    return float(np.abs(below[0] - below[1]).max())


TERMS = np.arange(1, 101)


def score_laws(ones: Values, others: Values) -> float:
    """The z that is as unlikely as the distance of two samples of one law."""
    size = len(ones) * len(others) / (len(ones) + len(others))
    reach = (sqrt(size) + 0.12 + 0.11 / sqrt(size)) * distance(ones, others)
    tail = -2 * float(((-1.0) ** TERMS * np.exp(-2 * (TERMS * reach) ** 2)).sum())
    if reach < 0.3 or tail >= 1.0:
        return 0.0
    return inf if tail <= 0.0 else -NormalDist().inv_cdf(tail / 2)


def score_shares(ones: int, of_ones: int, others: int, of_others: int) -> float:
    """z of two shares of one probability."""
    share = (ones + others) / (of_ones + of_others)
    spread = sqrt(share * (1 - share) * (1 / of_ones + 1 / of_others))
    return abs(ones / of_ones - others / of_others) / spread if spread else 0.0


def score_means(ones: Values, others: Values) -> float:
    """z of two means of one law; the smaller sample of something rare may show no spread."""
    one, other = sample(ones), sample(others)
    off = abs(one.mean - other.mean)
    if off <= 1e-7 * max(1.0, abs(other.mean)):  # times are rounded to ticks of 1e-8
        return 0.0
    spread = max(one.stderr * sqrt(one.count), other.stderr * sqrt(other.count))
    if not spread:
        return inf
    error = spread * sqrt(1 / one.count + 1 / other.count)
    return normal(off / error, min(one.count, other.count) - 1)


def compare(ours: Columns, theirs: Columns) -> dict[object, float]:
    """Every metric of two samples: means and distributions, and how often it has a value."""
    assert set(ours) == set(theirs)
    scores: dict[object, float] = {}
    for name in sorted(ours):
        # Rounded: what is equal may have been added up in another order.
        one, other = (np.round(known(each[name]), 7) for each in (ours, theirs))
        counts = len(one), len(ours[name]), len(other), len(theirs[name])
        scores[name, "known"] = score_shares(*counts)
        if min(len(one), len(other)) > 1:
            scores[name, "mean"] = score_means(one, other)
            scores[name, "law"] = score_laws(one, other)
    return scores
