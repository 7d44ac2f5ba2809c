"""Who plays blocks: this process, an executor, or several of them one after the other.

An executor that breaks because a worker was killed is replaced, where that is possible, and what
was under way is played again, a bounded number of times. Since a block's numbers depend on its runs
alone, nobody can tell from a result that it was lost before.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    CancelledError,
    Executor,
    Future,
    wait,
)
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from hustings.core.errors import BadInput
from hustings.lab.figures.cell import code_digest
from hustings.sim.runs import no_interrupts

MOST_LOSSES = 5  # times that one block may be lost with its worker
KEPT = "what is finished is kept"
LOOK = 2.0  # seconds between two looks whether anybody still works


@dataclass(frozen=True, slots=True)
class Task:
    """Runs first .. last-1 to play, of a point where there are several."""

    point: int | None
    first: int
    last: int

    @property
    def runs(self) -> tuple[int, int]:
        """Its first run, and the first that is none of its."""
        return self.first, self.last


W = TypeVar("W")  # what is played
R = TypeVar("R")  # what comes of some of its runs
W_contra = TypeVar("W_contra", contravariant=True)
Job = Callable[[W, int, int], R]  # plays runs first .. last-1


class Crew(Protocol[W_contra, R]):
    """Takes tasks and gives results back, in any order."""

    @property
    def idle(self) -> bool:
        """Whether one more task would be begun soon."""

    def submit(self, task: Task, work: W_contra) -> None:
        """One more block to play."""

    def collect(self) -> list[tuple[Task, R]]:
        """What has been played; waits until there is something, which was submitted before."""


class Alone(Generic[W, R]):
    """Plays in this process, when asked for the result."""

    def __init__(self, job: Job[W, R]) -> None:
        self._job = job
        self._waiting: list[tuple[Task, W]] = []

    @property
    def idle(self) -> bool:
        return not self._waiting

    def submit(self, task: Task, work: W) -> None:
        self._waiting.append((task, work))

    def collect(self) -> list[tuple[Task, R]]:
        task, work = self._waiting.pop()
        try:
            return [(task, self._job(work, *task.runs))]
        except BadInput as error:
            raise _told(task, error) from None


class Hands(Generic[W, R]):
    """Plays on an executor; a few tasks lie ready for each worker, so that none waits for us."""

    def __init__(
        self,
        job: Job[W, R],
        executor: Executor,
        workers: Callable[[], int],
        *,
        renew: Callable[[], Executor] | None = None,
        look: Callable[[], None] = lambda: None,
    ) -> None:
        self._job = job
        self._executor = executor
        self._workers = workers
        self._renew = renew
        self._look = look  # raises when nobody is left to wait for
        self._waiting: dict[Future[tuple[str, R]], tuple[Task, W]] = {}
        self._losses: dict[Task, int] = {}

    @property
    def idle(self) -> bool:
        return len(self._waiting) < self._workers() + 1

    def submit(self, task: Task, work: W) -> None:
        try:
            with no_interrupts():  # a worker that is started here inherits it
                future = self._executor.submit(_signed, self._job, work, task.first, task.last)
        except BrokenExecutor:
            self._replace([(task, work)])
        else:
            self._waiting[future] = (task, work)

    def collect(self) -> list[tuple[Task, R]]:
        while True:
            finished, _ = wait(self._waiting, timeout=LOOK, return_when=FIRST_COMPLETED)
            found: list[tuple[Task, R]] = []
            lost: list[tuple[Task, W]] = []
            for future in finished:
                task, work = self._waiting.pop(future)
                try:
                    found.append((task, _judged(*future.result())))
                except BrokenExecutor:
                    lost.append((task, work))
                except CancelledError:
                    self._look()  # which may know better
                    raise BadInput(f"whoever was to play gave up: {KEPT}") from None
                except BadInput as error:
                    raise _told(task, error) from None
                except ModuleNotFoundError as error:
                    raise BadInput(
                        f"a worker lacks {error.name}: install the same hustings there; {KEPT}"
                    ) from None
            if lost:
                self._replace(lost)
            if found:
                return found
            self._look()

    def _replace(self, lost: list[tuple[Task, W]]) -> None:
        """A new executor for what was lost; all others that were under way are lost, too."""
        for future in list(self._waiting):
            if not future.done() or isinstance(future.exception(), BrokenExecutor):
                lost.append(self._waiting.pop(future))
        for task, _ in lost:
            self._losses[task] = self._losses.get(task, 0) + 1
        if self._renew is None or max(self._losses[task] for task, _ in lost) > MOST_LOSSES:
            raise BadInput(
                "workers were ended from outside again and again, perhaps for want of memory: "
                f"{KEPT}, try fewer jobs"
            )
        self._executor = self._renew()
        for task, work in lost:
            self.submit(task, work)


def _told(task: Task, error: BadInput) -> BadInput:
    return error if task.point is None else BadInput(f"point {task.point + 1}: {error}")


def _signed(job: Job[W, R], work: W, first: int, last: int) -> tuple[str, R]:
    """What a worker calls: it says by which code its runs were played."""
    return code_digest(), job(work, first, last)


def _judged(code: str, result: R) -> R:
    """Numbers of other code are none of ours."""
    if code != code_digest():
        raise BadInput(f"a worker runs another version of hustings or Python: {KEPT}")
    return result


def play_in_order(
    crew: Crew[W, R], work: W, runs: range, size: int, tell: Callable[[int], None] | None
) -> list[R]:
    """Runs of one work, so many at a time; what came of them in the order of their numbers."""
    starts = iter(range(runs.start, runs.stop, size))
    found: dict[int, R] = {}
    done = 0
    while done < len(runs):
        while crew.idle and (start := next(starts, None)) is not None:
            crew.submit(Task(None, start, min(start + size, runs.stop)), work)
        for task, result in crew.collect():
            found[task.first] = result
            done += task.last - task.first
        if tell is not None:
            tell(done)
    return [found[start] for start in sorted(found)]
