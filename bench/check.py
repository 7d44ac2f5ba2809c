"""Checks that every implementation did the same work. Otherwise nothing is reported."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean

from bench.measure import Samples
from bench.plan import HUSTINGS, PLAIN, TRACED, Workload
from bench.run import Tally

# How far two means may be apart, in standard errors, and the tolerance beyond that.
ERRORS_ALLOWED = 4.0
SHARE_ALLOWED = 0.02


def expected(workload: Workload) -> Tally | None:
    """Return the exact outcome, if chance has no part in it."""
    n = workload.n
    if workload.name == "ring":
        return Tally(sends=3 * n - 1, events=3 * n - 1, leader=n)
    if workload.name == "bully":
        # All messages but the n-1 to the dead leader arrive, and one timer fires: (n-1)^2 events.
        return Tally(sends=n * n - n - 1, events=(n - 1) ** 2, leader=n - 1)
    return None


def all_tallies(samples: Samples, label: str) -> list[Tally]:
    return [tally for sample in samples[label].values() for tally in sample.tallies]


def complaints(workload: Workload, samples: Samples) -> list[str]:
    """One sentence for every implementation whose work differs from what it should be."""
    found = []
    exact = expected(workload)
    for label in samples:
        tallies = all_tallies(samples, label)
        if exact is not None:
            wrong = [tally for tally in tallies if tally != exact]
            if wrong:
                found.append(f"{label}, {workload.title}: {wrong[0]} instead of {exact}")
        elif any(tally.leader != workload.n for tally in tallies):
            found.append(f"{label}, {workload.title}: a leader other than {workload.n}")
        elif label in (HUSTINGS, TRACED):
            found += alike(label, workload, tallies, all_tallies(samples, PLAIN))
        else:
            found += identical(label, workload, samples)
    return found


def identical(label: str, workload: Workload, samples: Samples) -> list[str]:
    """The peers draw the same numbers in the same order, so their counts agree seed by seed."""
    for round_, sample in samples[label].items():
        yardstick = samples[PLAIN][round_].tallies[: len(sample.tallies)]
        if sample.tallies != yardstick:
            return [f"{label}, {workload.title}: {sample.tallies} instead of {yardstick}"]
    return []


def alike(
    label: str, workload: Workload, ours: Sequence[Tally], plain: Sequence[Tally]
) -> list[str]:
    """hustings draws other numbers, so its mean counts must agree within chance.

    The sends that chance decides are about Poisson, and the leader's are certain: the variance of
    the number of sends is at most its mean. Events are sends times nine tenths of the group.
    """
    if not ours:
        return []
    mean = fmean(tally.sends for tally in plain)
    share = math.sqrt((1 / len(ours) + 1 / len(plain)) / mean)
    allowed = ERRORS_ALLOWED * share + SHARE_ALLOWED
    found = []
    for what in ("sends", "events"):
        here = fmean(getattr(tally, what) for tally in ours)
        there = fmean(getattr(tally, what) for tally in plain)
        if abs(here / there - 1) > allowed:
            found.append(
                f"{label}, {workload.title}: {here:.1f} {what} on average, the plain loop "
                f"{there:.1f}; more than {allowed:.0%} apart"
            )
    return found
