"""The kernels beside the other witnesses: their runs of a cell, and two samples of one law.

Two samples are compared twice: their means, and their whole distributions by Kolmogorov and
Smirnov's largest distance. Both give a z, to be judged in one family (judging.py). Distances of
numbers that can be equal come out too small rather than too large, so the level is kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import exp, inf, isnan, sqrt
from statistics import NormalDist
from typing import Any

from hustings.lab.kernels.announce.parameters import AnnounceParameters
from hustings.lab.kernels.announce.play import play
from hustings.sim.play import play as play_events
from tests.agreement.announce.cells import NOTHING, Cell, experiment
from tests.agreement.announce.judging import normal, sample

Columns = dict[str, list[float | None]]


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
    return {
        name: [None if isnan(value) else value for value in column.tolist()]
        for name, column in found.metrics.items()
    }


def by_events(cell: Cell, runs: int, settings: Mapping[str, object] = NOTHING) -> Columns:
    """The same of the event simulator."""
    trial = experiment(cell, settings)
    results = [play_events(trial, run).metrics for run in range(runs)]
    return {name: [result[name] for result in results] for name in results[0]}


def distance(ones: Sequence[float], others: Sequence[float]) -> float:
    """The largest distance between two empirical distribution functions."""
    left, right = sorted(ones), sorted(others)
    most, i, j = 0.0, 0, 0
    while i < len(left) and j < len(right):
        value = min(left[i], right[j])
        while i < len(left) and left[i] == value:
            i += 1
        while j < len(right) and right[j] == value:
            j += 1
        most = max(most, abs(i / len(left) - j / len(right)))
    return most


def score_laws(ones: Sequence[float], others: Sequence[float]) -> float:
    """The z that is as unlikely as the distance of two samples of one law."""
    size = len(ones) * len(others) / (len(ones) + len(others))
    reach = (sqrt(size) + 0.12 + 0.11 / sqrt(size)) * distance(ones, others)
    tail = 2 * sum((-1) ** (k - 1) * exp(-2 * (k * reach) ** 2) for k in range(1, 101))
    if reach < 0.3 or tail >= 1.0:
        return 0.0
    return inf if tail <= 0.0 else -NormalDist().inv_cdf(tail / 2)


def score_shares(ones: Sequence[bool], others: Sequence[bool]) -> float:
    """z of two shares of one probability."""
    share = (sum(ones) + sum(others)) / (len(ones) + len(others))
    spread = sqrt(share * (1 - share) * (1 / len(ones) + 1 / len(others)))
    off = sum(ones) / len(ones) - sum(others) / len(others)
    return abs(off) / spread if spread else 0.0


def score_means(ones: Sequence[float], others: Sequence[float]) -> float:
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
    for name in sorted(set(ours) & set(theirs)):
        have, others_have = (
            [value is not None for value in columns[name]] for columns in (ours, theirs)
        )
        scores[name, "known"] = score_shares(have, others_have)
        one, other = (  # rounded: what is equal may have been added up in another order
            [round(value, 7) for value in columns[name] if value is not None]
            for columns in (ours, theirs)
        )
        if min(len(one), len(other)) > 1:
            scores[name, "mean"] = score_means(one, other)
            scores[name, "law"] = score_laws(one, other)
    return scores
