"""What fits into this machine: estimates that err on the low side, so that few are refused."""

from __future__ import annotations

import os
from collections.abc import Sequence

from hustings.core.errors import BadInput
from hustings.lab.kernels.setting import MAX_MEMBERS as MOST_PLAYED
from hustings.lab.sweeps.engines import EVENTS
from hustings.lab.sweeps.point import Point

# Bytes, measured and rounded down.
OF_A_MEMBER = 1_000  # while a run is played message by message
OF_A_MEMBER_COMPILED = 30  # while a kernel plays it, on each thread
OF_A_CANDIDATE = 90  # in a description
OF_A_RUN = {EVENTS: 1_300, "fast": 160}  # of its results, where they are kept one by one
GIB = 1 << 30


def check_memory(needed: float, what: str) -> None:
    """Refuse what is larger than this machine's memory, where that is known."""
    memory = memory_here()
    if memory is not None and needed > memory:
        raise BadInput(
            f"{what} would take about {needed / GIB:,.3g} GiB of memory, and this machine has "
            f"{memory / GIB:,.3g} GiB"
        )


def memory_here() -> int | None:
    """Bytes of memory of this machine."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):  # not on every system
        return None


def check_runs(engine: str, members: int, runs: int, jobs: int) -> None:
    """Refuse runs of one group that do not fit when their results are kept one by one."""
    needed = runs * OF_A_RUN.get(engine, 0)
    if engine == EVENTS:
        needed += members * OF_A_MEMBER * min(jobs, runs)
    elif members <= MOST_PLAYED:  # larger groups are only counted, in the same room
        needed += members * OF_A_MEMBER_COMPILED * min(jobs, runs)
    workers = "processes" if engine == EVENTS else "threads"
    jobs_told = f" on {jobs} {workers}" if jobs > 1 else ""
    runs_told = f"{runs:,} run{'s' if runs > 1 else ''} of {members:,} members{jobs_told}"
    check_memory(needed, runs_told)


def check_sweep(points: Sequence[Point], jobs: int) -> None:
    """Refuse a grid whose groups do not fit, all described and some being played."""
    groups = [point.experiment.members for point in points if point.engine == EVENTS]
    largest = sorted(groups, reverse=True)[:jobs]
    check_memory(
        sum(groups) * OF_A_CANDIDATE + sum(largest) * OF_A_MEMBER,
        f"{len(points):,} points with {sum(groups):,} members, played {jobs} at a time,",
    )
