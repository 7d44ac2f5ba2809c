"""How long the first call takes in a process of its own, kernels being kept on disk.

`python -m bench.kernels.first_call le-s|probabilistic|nothing` prints seconds as JSON: numba's
import, ours, the first call; wall and processor. `nothing` is a kernel that does nothing.
"""

from __future__ import annotations

import json
import sys
import time
from itertools import pairwise

MARKS: list[tuple[float, float]] = []


def mark() -> None:
    MARKS.append((time.perf_counter(), time.process_time()))


def main(name: str) -> None:
    mark()
    import numba  # noqa: PLC0415  # its import is what is timed

    mark()
    if name == "nothing":
        from bench.kernels.nothing import nothing  # noqa: PLC0415  # timed, too

        mark()
        nothing(numba.__name__ != "")
    elif name == "le-s":
        from hustings.fast import announce  # noqa: PLC0415  # timed, too
        from hustings.fast.setting import Setting  # noqa: PLC0415  # timed, too

        mark()
        group = Setting(protocol="le-s", members=500, loss_model="uncorrelated", loss=0.4)
        announce.play(group, 1, 0, 1)
    else:
        from hustings.fast import probabilistic  # noqa: PLC0415  # timed, too
        from hustings.fast.ballot import Ballot  # noqa: PLC0415  # timed, too

        mark()
        probabilistic.play(Ballot(members=10**9), 1, 0, 1)
    mark()
    wall = [later[0] - earlier[0] for earlier, later in pairwise(MARKS)]
    cpu = [later[1] - earlier[1] for earlier, later in pairwise(MARKS)]
    print(json.dumps({"wall": wall, "cpu": cpu}))


if __name__ == "__main__":
    main(sys.argv[1])
