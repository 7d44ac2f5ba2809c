"""Many runs of one experiment, on as many processes as asked, always with the same result.

Runs are numbered and seeded by their number; processes take them in blocks and results are put
back in order, so how the work was cut up cannot be seen in them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import blake2b

from hustings.sim.checkers import Verdict
from hustings.sim.experiment import Experiment
from hustings.sim.metrics import Summary, summarise_runs
from hustings.sim.play import RunResult, play
from hustings.sim.time_series import TimeSeries, summarise_series

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
    time_series: TimeSeries | None = None  # of the number of leaders, where it was kept
    unplayed: dict[str, int] = field(default_factory=dict)  # faults, and runs that ended before

    @property
    def violated(self) -> bool:
        """Whether any run violated any property."""
        return any(counts.get(Verdict.VIOLATED.value) for counts in self.verdicts.values())


def report(results: list[RunResult], first: int = 0, step: float | None = None) -> Report:
    """Summarise the results of runs numbered from `first`; `step` is that of their time series."""
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
        time_series=None if step is None else _time_series(results, step),
        unplayed=dict(Counter(fault for result in results for fault in result.unplayed)),
    )


def _time_series(results: list[RunResult], step: float) -> TimeSeries | None:
    kept = (result.time_series for result in results)
    return summarise_series([time_series for time_series in kept if time_series is not None], step)


def _digest(digests: list[str]) -> str | None:
    if len(digests) < 2:
        return digests[0] if digests else None
    return blake2b("\n".join(digests).encode(), digest_size=16).hexdigest()


def play_block(
    experiment: Experiment, first: int, last: int, player: Player = play
) -> list[RunResult]:
    """Runs first .. last-1, in one process."""
    return [player(experiment, run) for run in range(first, last)]
