"""Figure 5.10: LE-S under correlated loss of several probabilities."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hustings.lab.figures.announce import forms
from hustings.lab.figures.announce.against_sup import AGREE, FAMILY
from hustings.lab.figures.announce.measurements import CORRELATED, NONE, starts
from hustings.lab.figures.figure import Curve, CurveFigure, Finding, MeasuredPoint, Panel
from hustings.lab.figures.judging import agrees, constant

LOSSES = (0.7, 0.4, 0.1, 0.0)
MARKS = ("v", "D", "^", "o")


def _label(loss: float) -> str:
    return f"l = {loss:g}"


def _judge(points: Mapping[str, Sequence[MeasuredPoint]]) -> list[Finding]:
    found = [
        constant(f"with {label} the delay does not depend on N", points[label])
        for label in map(_label, LOSSES)
    ]
    everything = [point for each in points.values() for point in each]
    said = agrees("it is E[t_s] + T_A l/(1-l), as 5.3.1.2 says", everything, theirs=True)
    return [*found, said, agrees(AGREE, everything)]


FIGURE_5_10 = CurveFigure(
    name="announce-5.10",
    family=FAMILY,
    title="LE-S under correlated loss: time until convergence",
    source="Announce-listen thesis, Figure 5.10 (5.4.1)",
    shows="Under correlated loss, whatever its probability, the delay does not depend on the size "
    "of the group, and simulation and analysis agree.",
    panels=(
        Panel(
            "correlated loss, T_S = T_A = 1, Delta = 0.1",
            "E[tmax]",
            tuple(
                Curve(
                    _label(loss),
                    "tmax",
                    starts("le-s", CORRELATED if loss else NONE, loss),
                    forms.le_tmax,
                    look=f"C{place}",
                    mark=MARKS[place],
                )
                for place, loss in enumerate(LOSSES)
            ),
        ),
    ),
    judge=_judge,
)

FIGURES = (FIGURE_5_10,)
