"""The cells of the figures: elections at the paper's parameters, under each reading of the paper.

The compiled kernel plays all of them: it knows every reading.
"""

from __future__ import annotations

from dataclasses import dataclass

from hustings.lab.figures.measurement import Measurement
from hustings.lab.runs.engines import FAST

RUNS = 100_000  # for each point
P_FAIL = 0.001


@dataclass(frozen=True, slots=True)
class Reading:
    """One way to read the paper: what N_i is, and which members ask for another round."""

    label: str
    estimate: str
    thinning: str
    look: str
    mark: str


CHOSEN = Reading("N_i = N, delay", "exact", "delay", "C0", "o")
HASH = Reading("N_i = N, hash", "exact", "hash", "C3", "s")
READINGS = (
    CHOSEN,
    HASH,
    Reading("N_i = |V_i|, delay", "view", "delay", "C2", "^"),
    Reading("N_i = |V_i|, hash", "view", "hash", "C1", "v"),
)


def election(
    reading: Reading,
    members: int,
    loss: float,
    view_prob: float = 0.5,
    *,
    runs: int = RUNS,
    p_fail: float = P_FAIL,
    more: tuple[tuple[str, str], ...] = (),
) -> Measurement:
    """One point."""
    return Measurement(
        protocol="probabilistic",
        members=members,
        delay=1.0,
        settings=(
            ("N", str(members)),
            ("p_ucastl", repr(loss)),
            ("p_mcastl", repr(loss)),
            ("p_fail", repr(p_fail)),
            ("view_prob", repr(view_prob)),
            ("estimate", reading.estimate),
            ("thinning", reading.thinning),
            *more,
        ),
        engine=FAST,
        runs=runs,
        aims=("strong", "rounds", "messages"),
        work=runs * (1 + loss) / RUNS,  # independent of the members
    )


def setting(cell: Measurement, name: str) -> float:
    """A number among the settings."""
    return float(dict(cell.settings)[name])
