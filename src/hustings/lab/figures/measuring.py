"""Measuring cells: stored results are used, the rest is played, and everything is stored.

The cells with most work go first, so that none runs alone at the end. An interruption loses no
finished block, and the next call continues from there.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor

from hustings.lab.figures.measurement import Measurement
from hustings.lab.figures.store import Store
from hustings.lab.runs.block import Block
from hustings.lab.runs.engines import BlockTotal, play_block
from hustings.lab.runs.executors import PROCESSES, open_pool
from hustings.lab.runs.playing import Goal, Tell, play_all

SAVE_EVERY = 10.0  # seconds between two saves of a slow cell

Results = Mapping[Measurement, Block]


def measure(
    cells: Iterable[Measurement],
    seed: int,
    goal: Callable[[Measurement], Goal],
    store: Store,
    *,
    jobs: int = 1,
    on: str | Executor = PROCESSES,
    tell: Tell | None = None,
) -> Results:
    """Every cell with as many runs as its goal asks for, stored or played."""
    wanted = list(dict.fromkeys(cells))
    by_work = sorted(wanted, key=lambda cell: (-cell.work, cell.text))
    totals = {cell: BlockTotal() for cell in by_work}
    series = [cell.series(seed, total, goal(cell)) for cell, total in totals.items()]
    kept = _Kept([_Stored(cell, store) for cell in by_work])
    try:
        with open_pool(on, jobs, play_block) as pool:
            play_all(series, pool, kept=kept, tell=tell)
    finally:
        kept.save()
    return {cell: totals[cell].whole for cell in wanted}


class _Kept:
    """The blocks of all cells, for the engine."""

    def __init__(self, cells: Sequence[_Stored]) -> None:
        self._cells = cells

    def known(self, place: int) -> Mapping[tuple[int, int], Block]:
        return {(each.first, each.last): each for each in self._cells[place].blocks.values()}

    def add(self, place: int, block: Block) -> None:
        self._cells[place].add(block)

    def finish(self, place: int) -> None:
        self._cells[place].save()

    def save(self) -> None:
        """Save all cells with unsaved blocks."""
        for each in self._cells:
            each.save()


class _Stored:
    """One cell's blocks, here and on disk."""

    def __init__(self, cell: Measurement, store: Store) -> None:
        self._cell = cell
        self._store = store
        self.blocks = {block.first: block for block in store.load(cell)}
        self._stored = max((block.last for block in self.blocks.values()), default=0)
        self._saved_at = time.monotonic()

    def add(self, block: Block) -> None:
        """A block has come back."""
        self.blocks[block.first] = block
        if time.monotonic() - self._saved_at > SAVE_EVERY:
            self.save()

    def save(self) -> None:
        """Store the blocks that follow run 0 without a gap, unless as many are stored already."""
        blocks = []
        end = 0
        while (block := self.blocks.get(end)) is not None:
            blocks.append(block)
            end = block.last
            if block.runs < self._cell.block:
                break  # the last block, cut short by a fixed number of runs
        if end > self._stored:
            self._store.save(self._cell, blocks)
            self._stored = end
        self._saved_at = time.monotonic()
