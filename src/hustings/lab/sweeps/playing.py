"""Playing a sweep: what is known is taken, the rest is played, and all of it is kept at once."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path

from hustings.lab.figures.cell import code_digest
from hustings.lab.sweeps.block import EMPTY, Block
from hustings.lab.sweeps.checkpoint import Checkpoint
from hustings.lab.sweeps.crew import Alone, Crew, Hands, Task
from hustings.lab.sweeps.engines import Player
from hustings.lab.sweeps.point import Point, Result, check_points, digest_of, play_block

WORKERS = 64  # blocks under way on an executor that does not tell how many it plays at once


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a sweep has come."""

    done: int  # points
    points: int
    runs: int  # known so far
    wanted: int  # as far as one can tell
    played: int  # blocks that were not known before


Tell = Callable[[Progress], None]


def play_points(
    points: Sequence[Point],
    executor: Executor | None = None,
    *,
    checkpoint: Path | None = None,
    tell: Tell | None = None,
) -> list[Result]:
    """Play all points, on any executor or in this process, and keep blocks in a file if named.

    Results are the same to the last bit whoever plays them. A point that falls short of its
    precision is told by its result and is no error.
    """
    crew: Crew[Player, Block] = Alone(play_block)
    if executor is not None:
        crew = Hands(play_block, executor, lambda: WORKERS)
    return play_with(points, crew, checkpoint=checkpoint, tell=tell)


def play_with(
    points: Sequence[Point],
    crew: Crew[Player, Block],
    *,
    checkpoint: Path | None = None,
    tell: Tell | None = None,
) -> list[Result]:
    """The same by a crew."""
    check_points(points)
    if checkpoint is None:
        return _play(points, crew, None, tell)
    grid = digest_of(points)
    with Checkpoint(checkpoint, code=code_digest(), grid=grid, points=len(points)) as kept:
        return _play(points, crew, kept, tell)


def _play(
    points: Sequence[Point], crew: Crew[Player, Block], kept: Checkpoint | None, tell: Tell | None
) -> list[Result]:
    known = {} if kept is None else kept.known
    courses = [_Course(point, known.get(place, [])) for place, point in enumerate(points)]
    ready = deque(place for place, course in enumerate(courses) if course.waiting)
    reached = Progress(
        done=sum(course.done for course in courses),
        points=len(courses),
        runs=sum(course.runs for course in courses),
        wanted=sum(course.wanted for course in courses),
        played=0,
    )
    while reached.done < len(courses):
        if tell is not None:
            tell(reached)
        while ready and crew.idle:
            course = courses[ready[0]]
            crew.submit(Task(ready[0], *course.waiting.popleft()), course.player)
            if not course.waiting:
                ready.popleft()
        for task, block in crew.collect():
            place = task.point or 0
            if kept is not None:
                kept.add(place, block)
            course = courses[place]
            before = course.wanted
            if course.add(block):
                ready.appendleft(place)
            reached = Progress(
                done=reached.done + course.done,
                points=reached.points,
                runs=reached.runs + block.runs,
                wanted=reached.wanted + course.wanted - before,
                played=reached.played + 1,
            )
    if tell is not None:
        tell(reached)
    return [Result(course.point, course.whole) for course in courses]


class _Course:
    """One point on its way to enough runs, in stages: all runs of one are known before the next."""

    def __init__(self, point: Point, known: Sequence[Block]) -> None:
        self.point = point
        self.player = point.player
        self.whole = EMPTY  # all stages that are known, added up in order
        self.waiting: deque[tuple[int, int]] = deque()  # to be played, and given to nobody yet
        self.runs = 0
        self.wanted = 0
        self._cuts: list[tuple[int, int]] = []
        self._missing = 0
        self._piece = point.piece
        self._blocks = {(block.first, block.last): block for block in known}
        self._advance(point.goal.first)

    @property
    def done(self) -> bool:
        """Whether it has all its runs."""
        return self.whole.runs == self.wanted

    def add(self, block: Block) -> bool:
        """A block has come back; whether there is more to play now."""
        self._blocks[block.first, block.last] = block
        self.runs += block.runs
        self._missing -= 1
        if self._missing:
            return False
        self._finish_stage()
        return bool(self.waiting)

    def _advance(self, wanted: int) -> None:
        """Set out for so many runs in all, in blocks from where the last stage ended."""
        start, size = self.wanted, self._piece
        self._cuts = [(at, min(at + size, wanted)) for at in range(start, wanted, size)]
        self.wanted = wanted
        self.waiting = deque(cut for cut in self._cuts if cut not in self._blocks)
        self._missing = len(self.waiting)
        self.runs += sum(
            last - first for first, last in self._cuts if (first, last) in self._blocks
        )
        if not self._missing:
            self._finish_stage()

    def _finish_stage(self) -> None:
        for cut in self._cuts:
            self.whole += self._blocks[cut]
        wanted = self.point.goal.next(self.whole.runs, self.whole.metrics)
        if wanted > self.wanted:
            self._advance(wanted)
