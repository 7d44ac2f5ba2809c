"""Many runs of one experiment, on as many processes as asked, always with the same result.

Runs are numbered and seeded by their number; processes take them in blocks and results are put
back in order, so how the work was cut up cannot be seen in them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass
from hashlib import blake2b
from multiprocessing import get_context

from hustings.core.errors import BadInput
from hustings.sim.checkers import Verdict
from hustings.sim.experiment import Experiment, RunResult, play
from hustings.sim.metrics import Summary, summarise_runs

MAX_RUNS = 10_000_000
MAX_JOBS = 256
Progress = Callable[[int], None]  # told how many runs are done


@dataclass(frozen=True, slots=True)
class Report:
    """What came of all runs."""

    runs: int
    metrics: dict[str, Summary | None]
    verdicts: dict[str, dict[str, int]]
    reasons: dict[str, str]  # one example of each property that did not hold
    endings: dict[str, int]
    digest: str | None = None  # of all runs' digests, in order

    @property
    def violated(self) -> bool:
        """Whether any run violated any property."""
        return any(counts.get(Verdict.VIOLATED.value) for counts in self.verdicts.values())


def run_all(
    experiment: Experiment, runs: int, jobs: int = 1, progress: Progress | None = None
) -> Report:
    """Play runs 0 .. runs-1 and summarise them."""
    if not 1 <= runs <= MAX_RUNS:
        raise BadInput(f"runs must lie between 1 and {MAX_RUNS:,}, not {runs:,}")
    if not 1 <= jobs <= MAX_JOBS:
        raise BadInput(f"jobs must lie between 1 and {MAX_JOBS}, not {jobs}")
    results: list[RunResult] = []
    source = _alone(experiment, runs) if jobs == 1 else _shared(experiment, runs, jobs)
    for block in source:
        results.extend(block)
        if progress is not None:
            progress(len(results))
    return report(results)


def report(results: list[RunResult]) -> Report:
    """Summarise results."""
    verdicts: dict[str, dict[str, int]] = {}
    reasons: dict[str, str] = {}
    for number, result in enumerate(results):
        for name, (verdict, reason) in result.verdicts.items():
            counts = verdicts.setdefault(name, {each.value: 0 for each in Verdict})
            counts[verdict.value] += 1
            if verdict is not Verdict.HOLDS:
                reasons.setdefault(name, f"{verdict.value} in run {number}: {reason}")
    return Report(
        runs=len(results),
        metrics=summarise_runs(result.metrics for result in results),
        verdicts=verdicts,
        reasons=reasons,
        endings=dict(sorted(Counter(result.ended.value for result in results).items())),
        digest=_digest([result.digest for result in results if result.digest is not None]),
    )


def _digest(digests: list[str]) -> str | None:
    if len(digests) < 2:
        return digests[0] if digests else None
    return blake2b("\n".join(digests).encode(), digest_size=16).hexdigest()


def _alone(experiment: Experiment, runs: int) -> Iterator[list[RunResult]]:
    for run in range(runs):
        yield [play(experiment, run)]


def _shared(experiment: Experiment, runs: int, jobs: int) -> Iterator[list[RunResult]]:
    """Blocks in order; at most a few blocks are under way, so memory stays bounded."""
    size = max(1, min(256, runs // (jobs * 4) or 1))
    blocks = [(first, min(first + size, runs)) for first in range(0, runs, size)]
    done: dict[int, list[RunResult]] = {}
    # "spawn" starts clean processes: no lock or thread of the parent comes along.
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        waiting: dict[Future[list[RunResult]], int] = {}
        submitted = delivered = 0
        try:
            while delivered < len(blocks):
                while submitted < len(blocks) and submitted - delivered < jobs * 3:
                    first, last = blocks[submitted]
                    waiting[pool.submit(play_block, experiment, first, last)] = submitted
                    submitted += 1
                finished, _ = wait(waiting, return_when=FIRST_COMPLETED)
                for future in finished:
                    done[waiting.pop(future)] = future.result()
                while delivered in done:
                    yield done.pop(delivered)
                    delivered += 1
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def play_block(experiment: Experiment, first: int, last: int) -> list[RunResult]:
    """Runs first .. last-1, in one process."""
    return [play(experiment, run) for run in range(first, last)]
