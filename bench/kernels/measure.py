"""Interleaved rounds: in each, every contender runs once, and the order rotates."""

from __future__ import annotations

import json
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeVar

import numpy as np

from bench.kernels import plain_numpy, twin
from bench.kernels.work import BALLOTS, GROUP, SEED, by_events, elect, on_two_threads, ours, rows_of
from bench.measure import ROOT, say
from hustings.lab.kernels.announce import columns as col
from hustings.lab.kernels.announce import play as announce

OURS, TWIN, NUMPY, EVENTS = "hustings", "C twin", "NumPy", "event simulator"
ONE, TWO = "one thread", "two threads"
FIRST_CALLS = ("le-s", "probabilistic", "nothing")
SIZES = (10_000, 100_000, 1_000_000)
LARGE = (10**6, 10**9)
SHARED = (col.TMAX, col.COMPLETE, col.NUM_MSGS, col.MESSAGES, col.ROUNDS, col.HEARD)


T = TypeVar("T")


class WrongWork(Exception):
    """Two contenders did not play the same runs."""


@dataclass(frozen=True, slots=True)
class Effort:
    rounds: int
    runs: int  # of our kernel and its twin
    runs_numpy: int
    runs_events: int
    elections: int
    processes: int  # per kind of first call


FULL = Effort(21, 10_000, 100, 3, 10_000, 9)
BRIEF = Effort(5, 4_000, 40, 1, 5_000, 3)


@dataclass(frozen=True, slots=True)
class Sample:
    """Seconds per run."""

    cpu: float
    wall: float


@dataclass(slots=True)
class Results:
    effort: Effort
    speed: dict[str, list[Sample]] = field(default_factory=dict)
    elections: dict[tuple[int, float], list[Sample]] = field(default_factory=dict)
    threads: dict[str, list[Sample]] = field(default_factory=dict)
    first: dict[str, list[dict[str, list[float]]]] = field(default_factory=dict)
    bytes_per_member: dict[tuple[str, int], float] = field(default_factory=dict)
    bytes_in_all: dict[tuple[str, int], int] = field(default_factory=dict)
    compiler: str = ""


def timed(play: Callable[[int], object], runs: int) -> Sample:
    play(max(1, runs // 50))  # empty the caches of what ran before
    cpu, wall = time.process_time(), time.perf_counter()
    play(runs)
    return Sample((time.process_time() - cpu) / runs, (time.perf_counter() - wall) / runs)


def check(in_c: Callable[[int], object] | None) -> None:
    """Compare bit for bit with the C twin, and with the NumPy version in all that it returns."""
    expected = rows_of(300)
    if in_c is not None and not np.array_equal(expected, np.asarray(in_c(300))):
        raise WrongWork("the C twin's rows are not those of our kernel")
    few = plain_numpy.play(20)
    for column in SHARED:
        if not np.array_equal(expected[:20, column], few[:, column]):
            raise WrongWork(f"column {column} of the NumPy version is not that of our kernel")
    rounds = by_events(8)
    spread = expected[:, col.ROUNDS].std() * np.sqrt(1 / len(rounds) + 1 / len(expected))
    if abs(np.mean(rounds) - expected[:, col.ROUNDS].mean()) > 5 * spread:
        raise WrongWork(f"the event simulator takes {np.mean(rounds):.2f} rounds on average")


def speed(results: Results) -> None:
    """Time all contenders, round by round, each after its kernel's first call."""
    effort = results.effort
    in_c = twin.build()
    results.compiler = twin.version()
    if in_c is None:
        say("no C compiler is found here: the C twin is left out")
    check(in_c)
    contenders: dict[str, tuple[Callable[[int], object], int]] = {OURS: (rows_of, effort.runs)}
    if in_c is not None:
        contenders[TWIN] = (in_c, effort.runs)
    contenders[NUMPY] = (plain_numpy.play, effort.runs_numpy)
    contenders[EVENTS] = (by_events, effort.runs_events)
    threads = {ONE: ours, TWO: on_two_threads}
    for _, group in BALLOTS.items():
        elect(group, 10)
    for round_ in range(effort.rounds):
        say(f"round {round_ + 1} of {effort.rounds}")
        for label in turned(list(contenders), round_):
            play, runs = contenders[label]
            results.speed.setdefault(label, []).append(timed(play, runs))
        for label in turned(list(threads), round_):
            results.threads.setdefault(label, []).append(timed(threads[label], 2 * effort.runs))
        for place in turned(list(BALLOTS), round_):
            taken = timed(partial(elect, BALLOTS[place]), effort.elections)
            results.elections.setdefault(place, []).append(taken)


def turned(items: list[T], by: int) -> list[T]:
    start = by % len(items)
    return items[start:] + items[:start]


def memory(results: Results) -> None:
    """Measure the peak allocation of one run with this many members."""
    games: dict[tuple[str, int], Callable[[], object]] = {
        ("le-s", members): partial(announce.play, replace(GROUP, members=members), SEED, 0, 1)
        for members in SIZES
    }
    games |= {
        ("probabilistic", members): partial(elect, BALLOTS[members, 0.3], 1) for members in LARGE
    }
    for place, game in games.items():
        game()  # what is loaded or compiled at first is not counted
        tracemalloc.start()
        try:
            game()
            taken = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        results.bytes_in_all[place] = taken
        results.bytes_per_member[place] = taken / place[1]


def first_calls(results: Results) -> None:
    """Time new processes, one kind after the other; the kernels are on disk by now."""
    for turn in range(results.effort.processes + 1):
        for name in FIRST_CALLS:
            done = subprocess.run(
                [sys.executable, "-m", "bench.kernels.first_call", name],
                capture_output=True,
                text=True,
                check=True,
                cwd=ROOT,
            )
            if turn:  # the first of each only makes sure that all is on disk
                results.first.setdefault(name, []).append(json.loads(done.stdout))
