"""A witness of the machine's own stalls, in which no process on a core could be punctual.

One process for each core, pinned to it and before all others if permitted (SCHED_FIFO), sleeps a
millisecond again and again and writes down when it overslept. An ordinary process on that core has
been delayed at least as long. So the stalls show how much of a group's unrest comes from the
machine.

`python -m bench.net.stalls CORE PARENT SECONDS` is one of them.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from bench.net import spaces
from bench.net.group import ROOT

NAP_S = 0.001
WORTH_S = 0.010  # of oversleeping is a stall


@dataclass(slots=True)
class Stalls:
    """How long each stall lasted, in ms."""

    ms: list[float] = field(default_factory=list)

    @property
    def longest_ms(self) -> float:
        return max(self.ms, default=0.0)


@contextmanager
def witness(seconds: float) -> Iterator[Stalls]:
    """Collect stalls, at most `seconds` long; they are there when the block has ended."""
    found = Stalls()
    cores = sorted(os.sched_getaffinity(0))
    words = [sys.executable, "-m", "bench.net.stalls"]
    lookouts = [
        subprocess.Popen(
            [*words, str(core), str(os.getpid()), str(seconds)],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            text=True,
        )
        for core in cores
    ]
    try:
        yield found
    finally:
        for observed in lookouts:
            observed.kill()
            told, _ = observed.communicate()
            # The last line may have been cut off.
            found.ms += [float(line) for line in told.splitlines(keepends=True) if line[-1] == "\n"]


def main() -> None:
    core, parent, seconds = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
    spaces.die_with_parent(parent)
    os.sched_setaffinity(0, {core})
    with suppress(PermissionError):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    last = time.monotonic()
    end = last + seconds
    while last < end:
        time.sleep(NAP_S)
        now = time.monotonic()
        late = now - last - NAP_S
        if late >= WORTH_S:
            print(f"{late * 1e3:.1f}", flush=True)
        last = now


if __name__ == "__main__":
    main()
