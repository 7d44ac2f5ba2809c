"""Undisturbed groups: how often do they still change their leader?"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from bench.measure import say
from bench.net import measures
from bench.net.contenders import Contender
from bench.net.group import ROOT, Group
from bench.net.stalls import witness
from bench.net.timeline import changes

STEP_S = 0.05


@dataclass(frozen=True, slots=True)
class Calm:
    """One group over `minutes`: changes of leader, members' changes of mind, and what excuses."""

    label: str
    n: int
    busy: bool
    minutes: float
    leaders: int
    words: int
    stalls: int  # stalls of the machine itself
    longest_ms: float


@contextmanager
def busy_cores(seconds: float) -> Iterator[None]:
    """Every core spins, at ordinary priority, until the block ends or `seconds` have passed."""
    words = [sys.executable, "-m", "bench.net.spin", str(os.getpid()), str(seconds)]
    spinners = [subprocess.Popen(words, cwd=ROOT) for _ in range(os.cpu_count() or 1)]
    try:
        yield
    finally:
        for spinner in spinners:
            spinner.kill()
            spinner.wait()


def watch(groups: Sequence[Group], seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        time.sleep(STEP_S)
        for group in groups:
            group.pump(0)


def calm(contender: Contender, sizes: Sequence[int], minutes: float, busy: bool) -> list[Calm]:
    """Groups of all sizes side by side, undisturbed but for one another and the busy cores."""
    with ExitStack() as stack:
        groups = [stack.enter_context(Group(contender, n)) for n in sizes]
        for group in groups:
            measures.elect(group)
        for group in groups:
            measures.settled(group)
        say(f"{contender.label}: {minutes:g} min {'with busy cores' if busy else 'at rest'}")
        if busy:
            stack.enter_context(busy_cores(minutes * 60 + 30))
        with witness(minutes * 60 + 30) as stalls:
            begin = time.monotonic_ns()
            watch(groups, minutes * 60)
            end = time.monotonic_ns()
        found = []
        for group in groups:
            seen = changes(group.timeline.records, begin, end)
            excuse = (len(stalls.ms), stalls.longest_ms)
            row = Calm(contender.label, group.n, busy, minutes, seen.leaders, seen.words, *excuse)
            found.append(row)
        return found
