"""The results of some runs: a column of numbers for each metric; and the kinds of array."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Flags = NDArray[np.uint8]
Words = NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class Columns:
    """One value per run and metric, NaN where a run has none; `cut` marks runs given up."""

    metrics: dict[str, Floats]
    cut: NDArray[np.bool_]

    @property
    def runs(self) -> int:
        """The number of runs."""
        return int(self.cut.size)
