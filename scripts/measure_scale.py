"""The cost of a probabilistic election in groups of growing size: messages, memory, time.

    python scripts/measure_scale.py 1000 10000 50000 --runs 20

Views with probability 0.5, ideal multicast, and a crash in a round with probability 0.001. Memory
is what one run holds at its end, as `tracemalloc` counts it, per member.
"""

from __future__ import annotations

import argparse
import time
import tracemalloc

from hustings.lab.runs.engines import summarise
from hustings.protocols.probabilistic.election import Probabilistic
from hustings.protocols.probabilistic.settings import ProbabilisticConfig
from hustings.sim.experiment import Experiment
from hustings.sim.play import play, prepare

COLUMNS = ("members", "unicasts", "multicasts", "rounds", "bytes/member", "s/run")


def experiment_of(members: int, loss: float) -> Experiment:
    """Return one election in a group of this many."""
    settings: dict[str, object] = {
        "N": members,
        "p_ucastl": loss,
        "p_mcastl": loss,
        "p_fail": 0.001,
        "view_prob": 0.5,
    }
    return Experiment(Probabilistic, members, ProbabilisticConfig.parse(settings), seed=1)


def bytes_per_member(experiment: Experiment) -> float:
    """Measure what one run holds at its end."""
    tracemalloc.start()
    try:
        world = prepare(experiment, 0)
        world.run()
        return tracemalloc.get_traced_memory()[0] / experiment.members
    finally:
        tracemalloc.stop()


def row(members: int, loss: float, runs: int) -> list[str]:
    """Return one line of the table."""
    experiment = experiment_of(members, loss)
    began = time.process_time()
    found = [play(experiment, run).metrics for run in range(runs)]
    spent = (time.process_time() - began) / runs
    cells = [f"{members:,}"]
    for name in ("ucasts", "mcasts", "rounds"):
        summary = summarise(value for each in found if (value := each[name]) is not None)
        error = "" if summary.stderr is None else f" ± {summary.stderr:.2g}"
        cells.append(f"{summary.mean:.4g}{error}")
    return [*cells, f"{bytes_per_member(experiment):,.0f}", f"{spent:.3g}"]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sizes", type=int, nargs="+", help="members of each group")
    parser.add_argument("--loss", type=float, default=0.001, help="of every message")
    parser.add_argument("--runs", type=int, default=20, help="elections of each size")
    typed = parser.parse_args()
    print("  ".join(f"{name:>14}" for name in COLUMNS))
    for members in typed.sizes:
        print("  ".join(f"{cell:>14}" for cell in row(members, typed.loss, typed.runs)), flush=True)


if __name__ == "__main__":
    main()
