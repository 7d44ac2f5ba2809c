"""Small grids, and jobs that end their worker."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from hustings.lab.runs.engines import EVENTS, FAST
from hustings.lab.runs.playing import Goal, Precision, Runs
from hustings.lab.sweeps.points import SweepPoint
from hustings.protocols.registry import find
from hustings.sim.delay import Fixed
from hustings.sim.experiment import Experiment
from hustings.sim.loss import Uncorrelated
from hustings.sim.network import Network


def experiment(protocol: str = "le-s", members: int = 5, seed: int = 3) -> Experiment:
    kind = find(protocol)
    return Experiment(
        kind,
        members,
        kind.Settings.parse({"delta": 0.1}),
        network=Network(delay=Fixed(0.1), loss=Uncorrelated(0.2)),
        seed=seed,
    )


def point(
    members: int = 5, goal: Goal | None = None, engine: str = EVENTS, protocol: str = "le-s"
) -> SweepPoint:
    return SweepPoint(
        {"protocol": protocol, "members": members, "engine": engine},
        experiment(protocol, members),
        goal or Runs(450),  # two blocks and a half
        engine,
    )


def grid() -> list[SweepPoint]:
    """Both engines, and both ways to say how often."""
    return [
        point(4),
        point(5, Precision(0.055, 3_000, "tmax")),
        point(6, Precision(0.03, 3_000), FAST),
        point(9, Runs(15_000), FAST),
        point(7, Runs(30), protocol="bully"),
    ]


def fatal_once(mark: Path, first: int, last: int) -> list[int]:
    """The first to come here does not survive it."""
    try:
        os.close(os.open(mark, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return list(range(first, last))
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("nobody comes here")


def fatal(_: None, first: int, last: int) -> int:
    """Nobody survives it."""
    os.kill(os.getpid(), signal.SIGKILL)
    return first - last


def numbers(_: None, first: int, last: int) -> list[int]:
    """Runs by their numbers."""
    return list(range(first, last))
