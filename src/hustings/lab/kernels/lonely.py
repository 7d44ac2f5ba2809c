"""A group of one that announces: it wakes up, and that is all there is."""

from __future__ import annotations

import numpy as np

from hustings.lab.kernels import columns as col
from hustings.lab.kernels.common import Floats, Sleep, first_naps
from hustings.lab.kernels.compiling import compiled
from hustings.lab.kernels.counter import branch


@compiled
def lonely(seed: np.uint64, first: int, sleep: Sleep, D: int, rows: Floats) -> None:
    """Runs from number `first` on, one for each row."""
    slept, wakes = np.zeros(1), np.zeros(1, np.int64)
    for number in range(rows.shape[0]):
        first_naps(branch(seed, np.uint64(first + number)), sleep, slept, wakes)
        row = rows[number]
        row[col.TMAX] = row[col.FIRST_ROUND_TIME] = row[col.WATCHED] = wakes[0]
        row[col.COMPLETE] = wakes[0] + D
        row[col.NUM_MSGS] = row[col.SENT_BY_TMAX] = row[col.FIRST_ROUND] = row[col.MESSAGES] = 1.0
        row[col.ROUNDS] = row[col.HEARD] = 1.0
        row[col.LEADING_MOST] = row[col.LEADER] = 1.0
