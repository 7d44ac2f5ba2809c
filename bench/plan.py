"""What is measured: implementations, workloads, how often, and the targets set for hustings."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass

HUSTINGS = "hustings"
TRACED = "hustings, traced"
PLAIN = "plain loop"
SIMPY = "SimPy callbacks"
PROCESSES = "SimPy processes"
DSSIM = "DSSim callbacks"


@dataclass(frozen=True, slots=True)
class Implementation:
    """A module, and the suffix of a workload's name that gives its function there."""

    label: str
    module: str
    needs: str | None = None  # the package it measures
    suffix: str = ""
    slow: bool = False


@dataclass(frozen=True, slots=True)
class Workload:
    """One table row: a function of every implementation at one size.

    `repeat` runs are summed into one sample, so that a sample is not shorter than a few hundredths
    of a second. `slow_rounds` bounds the rounds of slow implementations: their ratios are so large
    that a rough value decides.
    """

    code: str
    name: str
    n: int
    repeat: int
    slow_rounds: int = 7
    traced: bool = True

    @property
    def title(self) -> str:
        return f"{self.code} {self.name}, N = {self.n:,}"

    def repeats(self, implementation: Implementation) -> int:
        return max(1, self.repeat // 10) if implementation.slow else self.repeat


@dataclass(frozen=True, slots=True)
class SpeedTarget:
    """hustings must run a workload at least `factor` times as fast as the peer."""

    peer: str
    code: str
    factor: float
    n: int | None = None


IMPLEMENTATIONS = (
    Implementation(HUSTINGS, "bench.workloads_hustings"),
    Implementation(TRACED, "bench.workloads_hustings", suffix="_traced"),
    Implementation(PLAIN, "bench.peer_plain"),
    Implementation(DSSIM, "bench.peer_dssim_callbacks", needs="dssim"),
    Implementation(SIMPY, "bench.peer_simpy_callbacks", needs="simpy"),
    Implementation(PROCESSES, "bench.peer_simpy_processes", needs="simpy", slow=True),
)

WORKLOADS = (
    Workload("W1", "ring", 1_000, repeat=20),
    Workload("W1", "ring", 10_000, repeat=3),
    Workload("W2", "bully", 200, repeat=3),
    Workload("W3", "suppression", 100, repeat=20),
    Workload("W3", "suppression", 1_000, repeat=3),
    # One such run takes SimPy processes about a minute, and a trace of it fills the memory.
    Workload("W3", "suppression", 5_000, repeat=1, slow_rounds=1, traced=False),
)

SPEED_TARGETS = (
    SpeedTarget(DSSIM, "W1", 1.5),
    SpeedTarget(DSSIM, "W2", 1.5),
    SpeedTarget(DSSIM, "W3", 1.5),
    SpeedTarget(SIMPY, "W1", 1.7),
    SpeedTarget(SIMPY, "W2", 2.5),
    SpeedTarget(SIMPY, "W3", 2.5),
    SpeedTarget(PROCESSES, "W1", 15.0),
    SpeedTarget(PROCESSES, "W2", 15.0),
    SpeedTarget(PROCESSES, "W3", 15.0),
    SpeedTarget(PROCESSES, "W3", 90.0, n=1_000),
)
TRACING_TARGET = 2.5
STARTED_BYTES_TARGET = 600
PEAK_BYTES_TARGET = 1_200
BIG_RING = 100_000
BIG_RING_TARGET_MB = 1_000


def speed_target(peer: str, workload: Workload) -> float | None:
    """The target for this peer and workload; one that names the size outranks one that does not."""
    fitting = [
        target
        for target in SPEED_TARGETS
        if target.peer == peer and target.code == workload.code and target.n in (None, workload.n)
    ]
    fitting.sort(key=lambda target: target.n is not None)
    return fitting[-1].factor if fitting else None


def missing_packages() -> list[str]:
    """The peers' packages that cannot be imported here."""
    needs = dict.fromkeys(item.needs for item in IMPLEMENTATIONS if item.needs is not None)
    return [name for name in needs if importlib.util.find_spec(name) is None]
