"""Sweeps: many experiments, played anywhere, kept as they go, with the same numbers everywhere.

`play_points` takes any `concurrent.futures.Executor`; `hustings sweep` is built upon it.
"""

from __future__ import annotations

from hustings.lab.runs.playing import Precision, Progress, Runs
from hustings.lab.sweeps.points import SweepPoint, SweepResult, play_points
from hustings.lab.sweeps.table import as_csv, as_parquet, rows_of

__all__ = [
    "Precision",
    "Progress",
    "Runs",
    "SweepPoint",
    "SweepResult",
    "as_csv",
    "as_parquet",
    "play_points",
    "rows_of",
]
