"""Many seeds of a swarm, on as many processes as asked, always with the same result."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import closing
from dataclasses import dataclass, field
from multiprocessing import active_children, get_context

from hustings.core.errors import BadInput
from hustings.sim.checkers import Verdict
from hustings.sim.runs import MAX_JOBS, Progress, end_workers, no_interrupts
from hustings.sim.swarm import Played, Swarm, play

MAX_SEEDS = 100_000_000
SHOWN = 10  # violations told; the others are counted

Counts = dict[str, dict[str, int]]


@dataclass(slots=True)
class Tally:
    """What came of all seeds so far."""

    seeds: int = 0
    verdicts: Counts = field(default_factory=dict)  # by property
    worlds: Counts = field(default_factory=dict)  # by guard, and in it by protocol
    counts: Counter[str] = field(default_factory=Counter)
    failed: int = 0  # seeds that violate what is promised
    failures: list[tuple[int, dict[str, str]]] = field(default_factory=list)  # the first of them
    overlaps: int = 0  # seeds in which two led at one time
    first_overlap: int | None = None
    slowest: float = 0.0  # time to a confirmed leader after the calm, ...
    used: float = 0.0  # ... and the largest part of its limit that any world needed

    def add(self, played: Played) -> None:
        """Count one more seed; they come in order."""
        self.seeds += 1
        for name, (verdict, _) in played.verdicts.items():
            counts = self.verdicts.setdefault(name, {each.value: 0 for each in Verdict})
            counts[verdict.value] += 1
        protocols = self.worlds.setdefault(played.guard, {})
        protocols[played.protocol] = protocols.get(played.protocol, 0) + 1
        self.counts.update(played.counts)
        if played.verdicts.get("windows", (Verdict.HOLDS, ""))[0] is Verdict.VIOLATED:
            self.overlaps += 1
            if self.first_overlap is None:
                self.first_overlap = played.seed
        if played.wrong:
            self.failed += 1
            if len(self.failures) < SHOWN:
                self.failures.append((played.seed, played.wrong))
        if played.settled is not None and not played.excused:
            self.slowest = max(self.slowest, played.settled)
            self.used = max(self.used, played.settled / played.patience)


def play_all(
    swarm: Swarm, first: int, seeds: int, jobs: int = 1, progress: Progress | None = None
) -> Tally:
    """Play seeds `first`, `first` + 1, ... and count what came of them."""
    if not 1 <= seeds <= MAX_SEEDS:
        raise BadInput(f"seeds must lie between 1 and {MAX_SEEDS:,}, not {seeds:,}")
    if not 1 <= jobs <= MAX_JOBS:
        raise BadInput(f"jobs must lie between 1 and {MAX_JOBS}, not {jobs}")
    numbers = range(first, first + seeds)
    tally = Tally()
    source = _alone(swarm, numbers) if jobs == 1 else _shared(swarm, numbers, jobs)
    with closing(source):  # else the workers live on as long as somebody holds the traceback
        for block in source:
            for played in block:
                tally.add(played)
            if progress is not None:
                progress(tally.seeds)
    return tally


def play_block(swarm: Swarm, first: int, last: int) -> list[Played]:
    """Seeds first .. last-1, in one process."""
    return [play(swarm, seed) for seed in range(first, last)]


def _alone(swarm: Swarm, numbers: Iterable[int]) -> Generator[list[Played], None, None]:
    for seed in numbers:
        yield [play(swarm, seed)]


def _shared(swarm: Swarm, numbers: range, jobs: int) -> Generator[list[Played], None, None]:
    """Blocks in order; at most a few blocks are under way, so memory stays bounded."""
    size = max(1, min(64, len(numbers) // (jobs * 4)))
    starts = iter(range(numbers.start, numbers.stop, size))
    others = {child.pid for child in active_children()}  # the caller's, not ours to end
    waiting: list[Future[list[Played]]] = []
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        try:
            while True:
                while len(waiting) < jobs * 3 and (start := next(starts, None)) is not None:
                    with no_interrupts():  # a worker that is started here inherits it
                        last = min(start + size, numbers.stop)
                        waiting.append(pool.submit(play_block, swarm, start, last))
                if not waiting:
                    return
                wait(waiting[:1], return_when=FIRST_COMPLETED)
                yield waiting.pop(0).result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            end_workers(others)  # nobody waits for the blocks under way
            raise
