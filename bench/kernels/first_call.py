"""How long the first call takes in a process of its own, if kernels are kept on disk.

`python -m bench.kernels.first_call le-s|probabilistic|nothing` prints seconds as JSON: numba's
import, ours, the first call; wall and processor. `nothing` is a kernel that does nothing.
"""

from __future__ import annotations

import json
import sys
import time
from importlib import import_module
from itertools import pairwise

MARKS: list[tuple[float, float]] = []


def mark() -> None:
    MARKS.append((time.perf_counter(), time.process_time()))


def main(name: str) -> None:
    mark()
    numba = import_module("numba")  # imports are what this file times
    mark()
    if name == "nothing":
        kernel = import_module("bench.kernels.nothing")
        mark()
        kernel.nothing(numba.__name__ != "")
    elif name == "le-s":
        announce = import_module("hustings.lab.kernels.announce.play")
        parameters = import_module("hustings.lab.kernels.announce.parameters")
        mark()
        group = parameters.AnnounceParameters(
            protocol="le-s", members=500, loss_model="uncorrelated", loss=0.4
        )
        announce.play(group, 1, 0, 1)
    else:
        probabilistic = import_module("hustings.lab.kernels.probabilistic.play")
        parameters = import_module("hustings.lab.kernels.probabilistic.parameters")
        mark()
        probabilistic.play(parameters.ProbabilisticParameters(members=10**9), 1, 0, 1)
    mark()
    wall = [later[0] - earlier[0] for earlier, later in pairwise(MARKS)]
    cpu = [later[1] - earlier[1] for earlier, later in pairwise(MARKS)]
    print(json.dumps({"wall": wall, "cpu": cpu}))


if __name__ == "__main__":
    main(sys.argv[1])
