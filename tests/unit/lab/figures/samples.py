"""A small figure over a protocol that has been there for long: a bully that loses messages."""

from __future__ import annotations

from collections.abc import Callable

from hustings.lab.figures.figure import Curve, CurveFigure, Finding, Panel, Rendered
from hustings.lab.figures.judging import agrees, grows
from hustings.lab.figures.measurement import Measurement
from hustings.lab.runs.playing import Goal, Runs


def bully(members: int, loss: float = 0.2) -> Measurement:
    return Measurement(
        protocol="bully",
        members=members,
        scenario="leader-crash",
        loss_model="uncorrelated" if loss else "none",
        loss=loss,
        delay=1.0,
        aims=("messages",),
        work=200.0,  # blocks of 10 runs
    )


def fixed(runs: int) -> Callable[[Measurement], Goal]:
    """So many runs of every cell."""
    return lambda cell: Runs(runs)


def lossless(cell: Measurement) -> float:
    """What a bully costs when its worst live member detects."""
    n = cell.members
    return float(n * n - n - 1)


def printed(cell: Measurement) -> float | None:
    return float(cell.members**2) if cell.members > 3 else None


SIZES = (3, 5, 8)

FIGURE = CurveFigure(
    name="sample-1",
    family="sample",
    title="Bullies",
    source="Nowhere, Figure 1",
    shows="Bullies cost more in larger groups.",
    panels=(
        Panel(
            "with and without loss",
            "messages",
            (
                Curve(
                    "lossless", "messages", tuple(bully(n, 0.0) for n in SIZES), lossless, printed
                ),
                Curve("lossy", "messages", tuple(bully(n) for n in SIZES), look="C1", mark="s"),
            ),
        ),
    ),
    judge=lambda points: [
        grows("larger groups cost more", points["lossless"]),
        agrees("runs and closed form agree", points["lossless"]),
    ],
)


def finding(shown: Rendered, words: str) -> Finding:
    """The only finding whose claim has these words."""
    (found,) = (each for each in shown.findings if words in each.claim)
    return found
