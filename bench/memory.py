"""Bytes per member, and the size of one big ring, each in a process of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bench.check import expected
from bench.measure import Worker, read_run, say
from bench.plan import BIG_RING, HUSTINGS, Implementation, Workload


class WrongWork(Exception):
    """An implementation did not do the work of the workload."""


@dataclass(frozen=True, slots=True)
class Footprint:
    """Bytes per member.

    Idle: of a ring whose members have started and wait. Started: of the suppression group, where
    each has also drawn and armed a timer. Peak: the most that its run needs.
    """

    label: str
    n: int
    idle: float | None
    started: float | None
    peak: float


@dataclass(frozen=True, slots=True)
class BigRing:
    """The resident peak of a process that plays one ring election, and how long that took."""

    label: str
    megabytes: float
    seconds: float


def footprints(implementations: Sequence[Implementation], sizes: Sequence[int]) -> list[Footprint]:
    """Watching allocations slows a run several times, so only hustings is measured at all sizes."""
    found = []
    for item in implementations:
        for n in sizes if item.label == HUSTINGS else sizes[:1]:
            say(f"memory: {item.label}, N = {n:,}")
            with Worker(item) as worker:
                worker.ask("warm", name="suppression")
                held = {
                    name: worker.ask("held", n=n, name=name)
                    if worker.ask("has", name=name)
                    else None
                    for name in ("idle", "started")
                }
                found.append(Footprint(item.label, n, **held, peak=worker.ask("peak", n=n)))
    return found


def big_rings(implementations: Sequence[Implementation], n: int = BIG_RING) -> list[BigRing]:
    found = []
    for item in implementations:
        say(f"memory: {item.label}, ring of {n:,}")
        with Worker(item) as worker:
            reply = worker.ask("big", n=n)
        run = read_run(reply["run"])
        if run.tally != expected(Workload("W1", "ring", n, repeat=1)):
            raise WrongWork(f"{item.label}: a ring of {n:,} gave {run.tally}")
        seconds = run.build_wall + run.play_wall
        found.append(BigRing(item.label, reply["resident"] / 1e6, seconds))
    return found
