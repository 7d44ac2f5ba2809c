"""What one implementation reports about one workload."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar, overload

World = TypeVar("World")


@dataclass(frozen=True, slots=True)
class Tally:
    """What happened in a run.

    A send is one message handed to the network, a multicast counting once. An event is one delivery
    to one live receiver, or one timer firing. The leader is the one most members follow at the end.
    """

    sends: int
    events: int
    leader: int


@dataclass(frozen=True, slots=True)
class Run:
    """A tally and its times: seconds to build the group, seconds to play it to its end."""

    tally: Tally
    build_cpu: float
    build_wall: float
    play_cpu: float
    play_wall: float


@overload
def timed(build: Callable[[], World], play: Callable[[World], Tally]) -> Run: ...


@overload
def timed(
    build: Callable[[], World],
    play: Callable[[World], object],
    count: Callable[[World], Tally],
) -> Run: ...


def timed(
    build: Callable[[], World],
    play: Callable[[World], object],
    count: Callable[[World], Tally] | None = None,
) -> Run:
    """Build a world and play it, each under its own stop-watch.

    The tally is what `play` returns, or, where counting would cost time, what `count` finds after
    the watch has stopped.
    """
    wall, cpu = time.perf_counter(), time.process_time()
    world = build()
    built_wall, built_cpu = time.perf_counter(), time.process_time()
    result = play(world)
    done_wall, done_cpu = time.perf_counter(), time.process_time()
    tally = result if count is None else count(world)
    if not isinstance(tally, Tally):
        raise TypeError(f"a run must end in a Tally, not {tally!r}")
    return Run(
        tally=tally,
        build_cpu=built_cpu - cpu,
        build_wall=built_wall - wall,
        play_cpu=done_cpu - built_cpu,
        play_wall=done_wall - built_wall,
    )
