"""Measuring cells: what is stored is taken, the rest is played, and all of it is kept.

The cells with most work go first, so that none is left to run alone at the end. An interruption
keeps every block that has come back, and the next call goes on from there.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from hustings.lab.figures.block import Block, total
from hustings.lab.figures.cell import Cell
from hustings.lab.figures.precision import Policy
from hustings.lab.figures.store import Store
from hustings.lab.figures.workers import Task, Workers, workers

SAVE_EVERY = 10.0  # seconds between two saves of a cell that takes long


@dataclass(frozen=True, slots=True)
class Progress:
    """How far the measuring has come; `share` lies between 0 and 1 and counts work, not cells."""

    done: int
    cells: int
    share: float
    runs: int


Tell = Callable[[Progress], None]
Results = Mapping[Cell, Block]


def measure(
    cells: Iterable[Cell],
    seed: int,
    policy: Policy,
    store: Store,
    *,
    jobs: int = 1,
    tell: Tell | None = None,
) -> Results:
    """Every cell measured as the policy asks, from the store or by playing."""
    unique = list(dict.fromkeys(cells))
    states = [_Measured(cell, seed, policy, store) for cell in unique]
    by_work = sorted(states, key=lambda state: (-state.cell.work, state.cell.text))
    if any(not state.done for state in states):
        try:
            with workers(jobs) as crew:
                _play(by_work, crew, tell)
        finally:
            for state in states:
                state.save()
    if tell is not None:
        tell(_progress(states))
    return {state.cell: state.result for state in states}


def _play(states: list[_Measured], crew: Workers, tell: Tell | None) -> None:
    by_cell = {state.cell: state for state in states}
    while not all(state.done for state in states):
        for state in states:
            while crew.idle and (task := state.next_task()) is not None:
                crew.submit(task)
        for task, block in crew.collect():
            by_cell[task.cell].add(block)
        if tell is not None:
            tell(_progress(states))


def _progress(states: list[_Measured]) -> Progress:
    whole = sum(state.cell.work * state.expected for state in states)
    done = sum(state.cell.work * state.played for state in states)
    return Progress(
        done=sum(state.done for state in states),
        cells=len(states),
        share=done / whole if whole else 1.0,
        runs=sum(state.played for state in states),
    )


class _Measured:
    """One cell on its way to enough runs."""

    def __init__(self, cell: Cell, seed: int, policy: Policy, store: Store) -> None:
        self.cell = cell
        self._seed = seed
        self._policy = policy
        self._store = store
        self._blocks = {block.first: block for block in store.load(cell)}
        self._stored = max((block.last for block in self._blocks.values()), default=0)
        self._saved_at = time.monotonic()
        self._waiting: deque[Task] = deque()  # to be played, and not yet given to anybody
        self._missing = 0  # blocks that are not known yet
        self.wanted = 0
        self.played = 0  # of the runs wanted, those that are known
        self.done = False
        self._want(policy.first(cell))

    @property
    def expected(self) -> int:
        """Runs that it will come to, as far as one can tell."""
        return self.wanted if self.done else max(self.wanted, self._policy.guess(self.cell))

    @property
    def result(self) -> Block:
        """The runs wanted, added up."""
        return total(self._blocks[first] for first, _ in self._cuts())

    def next_task(self) -> Task | None:
        """A block that nobody plays yet."""
        return self._waiting.popleft() if self._waiting else None

    def add(self, block: Block) -> None:
        """A block has come back."""
        self._blocks[block.first] = block
        self.played += block.runs
        self._missing -= 1
        if not self._missing:
            self._look()
        if self.done or time.monotonic() - self._saved_at > SAVE_EVERY:
            self.save()

    def save(self) -> None:
        """Keep what follows without a gap from run 0, unless as much is stored already."""
        blocks = []
        end = 0
        while (block := self._blocks.get(end)) is not None:
            blocks.append(block)
            end = block.last
            if block.runs < self.cell.block:
                break  # an end that a fixed number of runs cut short
        if end > self._stored:
            self._store.save(self.cell, blocks)
            self._stored = end
        self._saved_at = time.monotonic()

    def _want(self, runs: int) -> None:
        """Set out for so many runs."""
        self.wanted = runs
        self.played = 0
        for first, last in self._cuts():
            block = self._blocks.get(first)
            if block is not None and block.last == last:
                self.played += block.runs
            else:
                self._waiting.append(Task(self.cell, self._seed, first, last))
        self._missing = len(self._waiting)
        if not self._missing:
            self._look()

    def _look(self) -> None:
        """All runs wanted are known: are they enough?"""
        wanted = self._policy.next(self.cell, self.result)
        self.done = wanted <= self.wanted
        if not self.done:
            self._want(wanted)

    def _cuts(self) -> list[tuple[int, int]]:
        size = self.cell.block
        return [(at, min(at + size, self.wanted)) for at in range(0, self.wanted, size)]
