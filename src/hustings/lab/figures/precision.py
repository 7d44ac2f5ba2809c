"""How many runs a cell needs: a fixed number, or as many as its precision asks for.

The next number of runs depends only on the runs so far, so a cell comes to the same number of runs
in one go or after an interruption, on one process or on many.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

from hustings.lab.figures.block import Block
from hustings.lab.figures.cell import FAST, Cell

TARGET = 0.01  # of the mean, the standard error
FAST_TARGET = 0.001  # where the compiled kernels play
PILOT = 200  # runs before the first look
CAP = 30_000  # runs of one cell
FAST_CAP = 4_000_000
FAST_USUAL = 300_000  # what most cells come to
GROWTH = 8  # a first look may be far off, so it is not followed further than this at once,
SHY = 0.92  # nor quite as far as it points: a second look costs nothing, needless runs do


class Policy(Protocol):
    """Decides how many runs are played."""

    def first(self, cell: Cell) -> int:
        """Runs to begin with."""

    def guess(self, cell: Cell) -> int:
        """Runs that it may come to, for a progress bar that does not run backwards too often."""

    def next(self, cell: Cell, so_far: Block) -> int:
        """Runs wanted in all, given the runs so far; as many as there are when enough."""


@dataclass(frozen=True, slots=True)
class Fixed:
    """So many runs of every cell."""

    runs: int

    def first(self, cell: Cell) -> int:
        return self.runs

    def guess(self, cell: Cell) -> int:
        return self.runs

    def next(self, cell: Cell, so_far: Block) -> int:
        return so_far.runs


@dataclass(frozen=True, slots=True)
class Adaptive:
    """Until the standard error of every metric aimed at is below a part of its mean.

    A cell that says itself how many runs it has gets these.
    """

    target: float = TARGET
    fast_target: float = FAST_TARGET
    pilot: int = PILOT
    cap: int = CAP
    fast_cap: int = FAST_CAP

    def first(self, cell: Cell) -> int:
        if cell.runs is not None:
            return cell.runs
        return self._whole_blocks(cell, min(self.pilot, self._cap(cell)))

    def guess(self, cell: Cell) -> int:
        if cell.runs is not None:
            return cell.runs
        usual = FAST_USUAL if cell.engine == FAST else GROWTH * self.pilot
        return self._whole_blocks(cell, min(usual, self._cap(cell)))

    def next(self, cell: Cell, so_far: Block) -> int:
        if cell.runs is not None:
            return so_far.runs
        target = self.fast_target if cell.engine == FAST else self.target
        off = max(_relative(so_far, aim) for aim in cell.aims) / target
        cap = self._cap(cell)
        if off <= 1.0 or so_far.runs >= cap:
            return so_far.runs
        factor = min(off * off, GROWTH)
        if factor * SHY > 1.1:
            factor *= SHY
        wanted = max(so_far.runs + 1, math.ceil(so_far.runs * factor))
        return self._whole_blocks(cell, min(wanted, cap))

    def _cap(self, cell: Cell) -> int:
        return self.fast_cap if cell.engine == FAST else self.cap

    def _whole_blocks(self, cell: Cell, runs: int) -> int:
        return math.ceil(runs / cell.block) * cell.block


def _relative(so_far: Block, aim: str) -> float:
    moments = so_far.metrics.get(aim)
    return math.inf if moments is None else moments.relative
