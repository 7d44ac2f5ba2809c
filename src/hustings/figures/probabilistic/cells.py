"""The cells of Figure 5: elections at the paper's parameters, under each reading of it."""

from __future__ import annotations

from dataclasses import dataclass

from hustings.figures.cell import EVENTS, FAST, Cell

PAPER_RUNS = 1000  # of a point, message by message
KERNEL_RUNS = 20_000  # of the other readings, by the compiled kernel
P_FAIL = "0.001"
_PER_MEMBER = 0.016  # thousands of receptions in a run: an Init, seven finals, and as much again


@dataclass(frozen=True, slots=True)
class Reading:
    """How one may read the paper: what N_i is, and who asks for another round."""

    label: str
    estimate: str
    thinning: str
    engine: str
    look: str
    mark: str


CHOSEN = Reading("N_i = N, delay", "exact", "delay", EVENTS, "C0", "o")
READINGS = (
    CHOSEN,
    Reading("N_i = N, hash", "exact", "hash", FAST, "C3", "s"),
    Reading("N_i = |V_i|, delay", "view", "delay", FAST, "C2", "^"),
    Reading("N_i = |V_i|, hash", "view", "hash", FAST, "C1", "v"),
)


def election(reading: Reading, members: int, loss: float, view_prob: float) -> Cell:
    """One point."""
    return Cell(
        protocol="probabilistic",
        members=members,
        delay=1.0,
        settings=(
            ("N", str(members)),
            ("p_ucastl", repr(loss)),
            ("p_mcastl", repr(loss)),
            ("p_fail", P_FAIL),
            ("view_prob", repr(view_prob)),
            ("estimate", reading.estimate),
            ("thinning", reading.thinning),
        ),
        engine=reading.engine,
        runs=PAPER_RUNS if reading.engine == EVENTS else KERNEL_RUNS,
        aims=("strong", "rounds", "messages"),
        work=members * _PER_MEMBER,
    )


def setting(cell: Cell, name: str) -> float:
    """A number among the settings."""
    return float(dict(cell.settings)[name])
