"""Blocks: runs that are played and kept together, as moments that can be added up.

Run number k of a cell is the same run whoever plays it. Blocks are cut at fixed run numbers and
added up in order, so the sums are the same to the last bit however the work was spread.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable

import msgspec

from hustings.core.errors import ProtocolBug
from hustings.lab.byzantine import messages
from hustings.lab.byzantine.engines import admit_large, large_player
from hustings.lab.figures.cell import FAST, Cell
from hustings.lab.runs.block import NOTHING, Moments
from hustings.lab.runs.kernels import CUT, ending_of, known, play_kernel
from hustings.sim.checkers import Verdict
from hustings.sim.experiment import play
from hustings.sim.world import Ended


class Block(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What came of runs first .. last-1."""

    first: int
    last: int
    metrics: dict[str, Moments]
    endings: dict[str, int]
    violated: int  # runs in which a property was violated

    def __add__(self, other: Block) -> Block:
        if other.first != self.last:
            raise ProtocolBug(f"block {other.first} does not follow {self.last}")
        names = sorted({*self.metrics, *other.metrics})
        return Block(
            first=self.first,
            last=other.last,
            metrics={
                name: self.metrics.get(name, NOTHING) + other.metrics.get(name, NOTHING)
                for name in names
            },
            endings=dict(sorted((Counter(self.endings) + Counter(other.endings)).items())),
            violated=self.violated + other.violated,
        )

    @property
    def runs(self) -> int:
        """How many."""
        return self.last - self.first


def play_block(cell: Cell, seed: int, first: int, last: int) -> Block:
    """Play runs first .. last-1 of a cell, in this process."""
    if cell.engine == FAST:
        return _play_fast(cell, seed, first, last)
    experiment = cell.experiment(seed)
    player = messages.play if cell.in_rounds else play
    values: dict[str, list[float]] = {}
    endings: Counter[str] = Counter()
    violated = 0
    for run in range(first, last):
        result = player(experiment, run)
        violated += any(verdict is Verdict.VIOLATED for verdict, _ in result.verdicts.values())
        endings[result.ended.value] += 1
        for name, value in result.metrics.items():
            column = values.setdefault(name, [])
            if value is not None:
                if not math.isfinite(value):
                    raise ProtocolBug(f"metric {name} of run {run} is {value}: {cell.text}")
                column.append(value)
    return Block(
        first=first,
        last=last,
        metrics={name: Moments.of(column) for name, column in sorted(values.items())},
        endings=dict(sorted(endings.items())),
        violated=violated,
    )


def _play_fast(cell: Cell, seed: int, first: int, last: int) -> Block:
    """The same by compiled engines, which judge no property."""
    if cell.in_rounds:
        experiment = cell.experiment(seed)
        admit_large(experiment)
        found = large_player(experiment).columns(first, last)
        ending = Ended.QUIESCENT.value
    else:
        setting = cell.setting()
        found = play_kernel(setting, cell.seed(seed), first, last)
        ending = ending_of(setting)
    cut = int(found.cut.sum())
    endings = {ending: found.runs - cut, CUT: cut}
    return Block(
        first=first,
        last=last,
        metrics={
            name: Moments.of(known(column.tolist()))
            for name, column in sorted(found.metrics.items())
        },
        endings={name: number for name, number in sorted(endings.items()) if number},
        violated=0,
    )


def total(blocks: Iterable[Block]) -> Block:
    """All blocks, which follow each other from run 0, as one."""
    whole = Block(0, 0, {}, {}, 0)
    for block in blocks:
        whole += block
    return whole
