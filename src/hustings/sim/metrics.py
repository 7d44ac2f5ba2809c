"""Numbers over runs: mean, standard error and quantiles of each metric."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass


@dataclass(frozen=True, slots=True)
class Summary:
    """One metric over many runs; `stderr` is that of the mean, None when one run cannot tell."""

    mean: float
    stderr: float | None
    min: float
    p50: float
    p99: float
    max: float

    def to_json(self) -> dict[str, float | None]:
        """As a JSON object."""
        return asdict(self)


def summarise(values: Iterable[float]) -> Summary:
    """The summary of at least one value.

    >>> summarise([1, 2, 3, 4]).mean
    2.5
    >>> summarise([7]).stderr is None
    True
    """
    ordered = sorted(values)
    if not ordered:
        raise ValueError("no values to summarise")
    count = len(ordered)
    mean = math.fsum(ordered) / count
    stderr = None
    if count > 1:
        variance = math.fsum((value - mean) ** 2 for value in ordered) / (count - 1)
        stderr = math.sqrt(variance / count)
    return Summary(
        mean=mean,
        stderr=stderr,
        min=ordered[0],
        p50=quantile(ordered, 0.5),
        p99=quantile(ordered, 0.99),
        max=ordered[-1],
    )


def quantile(ordered: list[float], q: float) -> float:
    """The q-quantile of a sorted list, linear between neighbours.

    >>> quantile([1.0, 2.0, 3.0], 0.5)
    2.0
    """
    place = q * (len(ordered) - 1)
    low = math.floor(place)
    if low + 1 >= len(ordered):
        return float(ordered[low])
    return ordered[low] + (place - low) * (ordered[low + 1] - ordered[low])


def summarise_runs(runs: Iterable[Mapping[str, float | None]]) -> dict[str, Summary | None]:
    """Each metric over all runs that have it; None for one that no run has."""
    columns: dict[str, list[float]] = {}
    for run in runs:
        for name, value in run.items():
            column = columns.setdefault(name, [])
            if value is not None:
                column.append(value)
    return {name: summarise(column) if column else None for name, column in columns.items()}
