"""Who plays the blocks: this process, or several others."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import active_children, get_context
from typing import Protocol

from hustings.core.errors import BadInput
from hustings.lab.figures.block import Block, play_block
from hustings.lab.figures.cell import Cell
from hustings.lab.runs.executors import end_workers, no_interrupts

_BREATH = 0.5  # seconds


@dataclass(frozen=True, slots=True)
class Task:
    """One block to play."""

    cell: Cell
    seed: int
    first: int
    last: int


class Workers(Protocol):
    """Take tasks and give blocks back, in any order."""

    @property
    def idle(self) -> bool:
        """Whether one more task would be begun soon."""

    def submit(self, task: Task) -> None:
        """One more block to play."""

    def collect(self) -> list[tuple[Task, Block]]:
        """What has been played since; waits for it, but not so long that progress is not told."""


@contextmanager
def workers(jobs: int) -> Iterator[Workers]:
    """Workers for a while; none is left afterwards, whatever happens."""
    if jobs == 1:
        yield _Alone()
        return
    others = {child.pid for child in active_children()}  # the caller's, not ours to end
    # "spawn" starts clean processes: no lock or thread of the parent comes along.
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        try:
            yield _Shared(pool, jobs)
        except BaseException as error:
            pool.shutdown(wait=False, cancel_futures=True)
            end_workers(others)  # nobody waits for the blocks under way
            if isinstance(error, BrokenProcessPool):
                raise BadInput(
                    "a worker process was ended from outside, perhaps for want of memory: what was "
                    "measured is kept, try again with fewer --jobs"
                ) from None
            raise


class _Alone:
    """Plays in this process, when asked for the result."""

    def __init__(self) -> None:
        self._waiting: deque[Task] = deque()

    @property
    def idle(self) -> bool:
        return not self._waiting

    def submit(self, task: Task) -> None:
        self._waiting.append(task)

    def collect(self) -> list[tuple[Task, Block]]:
        task = self._waiting.popleft()
        return [(task, play_block(task.cell, task.seed, task.first, task.last))]


class _Shared:
    """Plays in other processes; a few tasks lie ready for each, so that none waits for us."""

    def __init__(self, pool: ProcessPoolExecutor, jobs: int) -> None:
        self._pool = pool
        self._jobs = jobs
        self._waiting: dict[Future[Block], Task] = {}

    @property
    def idle(self) -> bool:
        return len(self._waiting) < self._jobs + 1

    def submit(self, task: Task) -> None:
        with no_interrupts():  # a worker that is started here inherits it
            future = self._pool.submit(play_block, task.cell, task.seed, task.first, task.last)
        self._waiting[future] = task

    def collect(self) -> list[tuple[Task, Block]]:
        finished, _ = wait(self._waiting, timeout=_BREATH, return_when=FIRST_COMPLETED)
        return [(self._waiting.pop(future), future.result()) for future in finished]
