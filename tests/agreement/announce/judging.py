"""When a sample agrees with a number: one rule, written once for every test of chance here.

A family is a set of cells that are judged together. If every cell is right, the chance that any of
them is called wrong is `LEVEL` (Sidak's bound on |z|). Seeds are fixed, so a test that has passed
goes on passing; a wrong value moves z by more than the bound as soon as the runs suffice.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import log1p, sqrt
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

LEVEL = 1e-3

Values = NDArray[np.float64]


@dataclass(frozen=True)
class Sample:
    """A mean with its standard error, both of so many values."""

    mean: float
    stderr: float
    count: int


def sample(values: Iterable[float] | Values) -> Sample:
    """Of at least two values."""
    found = np.fromiter(values, float) if not isinstance(values, np.ndarray) else values
    return Sample(float(found.mean()), sqrt(found.var(ddof=1) / len(found)), len(found))


def bound(cells: int) -> float:
    """The largest |z| that a family of so many cells allows."""
    single = 1 - (1 - LEVEL) ** (1 / cells)
    return NormalDist().inv_cdf(1 - single / 2)


def score(found: Sample, value: float, slack: float = 0.0, stderr: float = 0.0) -> float:
    """z of a sample against a value that is exact up to `slack`, or has a `stderr` of its own."""
    off = max(0.0, abs(found.mean - value) - slack)
    if off <= 1e-7 * max(1.0, abs(value)):  # times are rounded to ticks of 1e-8
        return 0.0
    spread = sqrt(found.stderr**2 + stderr**2)
    return normal(off / spread, found.count - 1) if spread else float("inf")


def normal(t: float, degrees: int) -> float:
    """The z that is as unlikely as Student's t, by Wallace's approximation.

    A few dozen runs know their own spread only roughly, so a large t means less than a large z.
    """
    return (8 * degrees + 1) / (8 * degrees + 3) * sqrt(degrees * log1p(t * t / degrees))


def score_waits(mean: float, count: int, loss: float) -> float:
    """z of a mean of so many waits for the first message that is not lost.

    For few runs with rare losses, of which there may be none at all: by the exact law of the number
    lost in all runs, not by their spread.
    """
    extra = round((mean - 1) * count)
    weight, below = (1 - loss) ** count, 0.0
    for lost in range(extra):
        below += weight
        weight *= loss * (count + lost) / (lost + 1)
    tail = min(below + weight, 1 - below)
    return max(0.0, NormalDist().inv_cdf(1 - tail)) if 0 < tail < 0.5 else 0.0 if tail else 9.0


def judge(scores: Mapping[object, float], family: int | None = None) -> None:
    """Every cell within the bound of its family, which may be larger than what is judged here."""
    assert scores, "a family without cells says nothing"
    cells = len(scores) if family is None else family
    assert len(scores) <= cells
    limit = bound(cells)
    wrong = {cell: round(z, 2) for cell, z in scores.items() if not z <= limit}
    assert not wrong, f"|z| above {limit:.2f}: {wrong}"
