"""Many runs of one experiment, on as many processes as asked, always with the same result.

Runs are numbered and seeded by their number; processes take them in blocks and results are put
back in order, so how the work was cut up cannot be seen in them.
"""

from __future__ import annotations

import signal
import time
from collections import Counter
from collections.abc import Callable, Collection, Generator, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from hashlib import blake2b
from multiprocessing import active_children, get_context

from hustings.core.errors import BadInput
from hustings.sim.checkers import Verdict
from hustings.sim.course import Course, summarise_courses
from hustings.sim.experiment import Experiment, RunResult, play
from hustings.sim.metrics import Summary, summarise_runs

MAX_RUNS = 10_000_000
MAX_JOBS = 256
Progress = Callable[[int], None]  # told how many runs are done
Player = Callable[[Experiment, int], RunResult]  # plays one run; other processes import it


@dataclass(frozen=True, slots=True)
class Report:
    """What came of all runs."""

    runs: int
    metrics: dict[str, Summary | None]
    verdicts: dict[str, dict[str, int]]
    reasons: dict[str, str]  # one example of each property that did not hold
    endings: dict[str, int]
    digest: str | None = None  # of all runs' digests, in order
    failure: int | None = None  # the first run that violated a property
    course: Course | None = None  # of the number of leaders, where it was kept
    unplayed: dict[str, int] = field(default_factory=dict)  # faults, and runs that ended before

    @property
    def violated(self) -> bool:
        """Whether any run violated any property."""
        return any(counts.get(Verdict.VIOLATED.value) for counts in self.verdicts.values())


def run_all(
    experiment: Experiment,
    runs: int,
    jobs: int = 1,
    progress: Progress | None = None,
    *,
    first: int = 0,
    player: Player = play,
) -> Report:
    """Play `runs` runs, numbered from `first`, and summarise them."""
    if not 1 <= runs <= MAX_RUNS:
        raise BadInput(f"runs must lie between 1 and {MAX_RUNS:,}, not {runs:,}")
    if not 1 <= jobs <= MAX_JOBS:
        raise BadInput(f"jobs must lie between 1 and {MAX_JOBS}, not {jobs}")
    results: list[RunResult] = []
    numbers = range(first, first + runs)
    source = (
        _alone(experiment, numbers, player)
        if jobs == 1
        else _shared(experiment, numbers, jobs, player)
    )
    with closing(source):  # else the workers live on as long as somebody holds the traceback
        for block in source:
            results.extend(block)
            if progress is not None:
                progress(len(results))
    return report(results, first, experiment.course)


def report(results: list[RunResult], first: int = 0, step: float | None = None) -> Report:
    """Summarise the results of runs numbered from `first`; `step` is that of their courses."""
    verdicts: dict[str, dict[str, int]] = {}
    reasons: dict[str, str] = {}
    failures: list[int] = []
    for number, result in enumerate(results, first):
        for name, (verdict, reason) in result.verdicts.items():
            counts = verdicts.setdefault(name, {each.value: 0 for each in Verdict})
            counts[verdict.value] += 1
            if verdict is not Verdict.HOLDS:
                reasons.setdefault(name, f"{verdict.value} in run {number}: {reason}")
            if verdict is Verdict.VIOLATED:
                failures.append(number)
    return Report(
        runs=len(results),
        metrics=summarise_runs(result.metrics for result in results),
        verdicts=verdicts,
        reasons=reasons,
        endings=dict(sorted(Counter(result.ended.value for result in results).items())),
        digest=_digest([result.digest for result in results if result.digest is not None]),
        failure=min(failures, default=None),
        course=None if step is None else _course(results, step),
        unplayed=dict(Counter(fault for result in results for fault in result.unplayed)),
    )


def _course(results: list[RunResult], step: float) -> Course | None:
    kept = (result.course for result in results)
    return summarise_courses([course for course in kept if course is not None], step)


def _digest(digests: list[str]) -> str | None:
    if len(digests) < 2:
        return digests[0] if digests else None
    return blake2b("\n".join(digests).encode(), digest_size=16).hexdigest()


def _alone(
    experiment: Experiment, numbers: range, player: Player
) -> Generator[list[RunResult], None, None]:
    for run in numbers:
        yield [player(experiment, run)]


def _shared(
    experiment: Experiment, numbers: range, jobs: int, player: Player
) -> Generator[list[RunResult], None, None]:
    """Blocks in order; at most a few blocks are under way, so memory stays bounded."""
    size = max(1, min(256, len(numbers) // (jobs * 4)))
    starts = range(numbers.start, numbers.stop, size)
    blocks = [(start, min(start + size, numbers.stop)) for start in starts]
    done: dict[int, list[RunResult]] = {}
    others = {child.pid for child in active_children()}  # the caller's, not ours to end
    # "spawn" starts clean processes: no lock or thread of the parent comes along.
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        waiting: dict[Future[list[RunResult]], int] = {}
        submitted = delivered = 0
        try:
            while delivered < len(blocks):
                while submitted < len(blocks) and submitted - delivered < jobs * 3:
                    first, last = blocks[submitted]
                    with no_interrupts():  # a worker that is started here inherits it
                        future = pool.submit(play_block, experiment, first, last, player)
                    waiting[future] = submitted
                    submitted += 1
                finished, _ = wait(waiting, return_when=FIRST_COMPLETED)
                for future in finished:
                    done[waiting.pop(future)] = future.result()
                while delivered in done:
                    yield done.pop(delivered)
                    delivered += 1
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            end_workers(others)  # nobody waits for the blocks under way
            raise


def end_workers(others: Collection[int | None]) -> None:
    """End all processes of this one except `others`, within a few seconds."""
    # Again and again: the pool's own thread waits for them too, and who of the two comes second
    # is told that a process has ended only when the first has had its turn. So this one sleeps.
    for _ in range(500):
        left = [worker for worker in active_children() if worker.pid not in others]
        if not left:
            return
        for worker in left:
            worker.terminate()
        time.sleep(0.01)


@contextmanager
def no_interrupts() -> Iterator[None]:
    """Ctrl-C is for the parent alone: workers would answer it with tracebacks."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def play_block(
    experiment: Experiment, first: int, last: int, player: Player = play
) -> list[RunResult]:
    """Runs first .. last-1, in one process."""
    return [player(experiment, run) for run in range(first, last)]
