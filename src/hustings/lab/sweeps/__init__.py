"""Sweeps: many experiments, played anywhere, kept as they go, with the same numbers everywhere.

`play_points` takes any `concurrent.futures.Executor`; `hustings sweep` is built upon it.
"""

from __future__ import annotations

from hustings.lab.sweeps.goal import Precision, Runs
from hustings.lab.sweeps.playing import Progress, play_points
from hustings.lab.sweeps.point import Point, Result
from hustings.lab.sweeps.table import as_csv, as_parquet, rows_of

__all__ = [
    "Point",
    "Precision",
    "Progress",
    "Result",
    "Runs",
    "as_csv",
    "as_parquet",
    "play_points",
    "rows_of",
]
