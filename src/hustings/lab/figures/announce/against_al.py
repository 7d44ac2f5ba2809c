"""Figure 5.11: LE-S beside AL, with and without adjusted loss."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hustings.lab.figures.announce import forms
from hustings.lab.figures.announce.against_sup import AGREE, FAMILY
from hustings.lab.figures.announce.measurements import COLLISION, LOSS, SLEEP, UNCORRELATED, starts
from hustings.lab.figures.figure import (
    ClaimVerdict,
    Curve,
    CurveFigure,
    Finding,
    MeasuredPoint,
    Panel,
)
from hustings.lab.figures.judging import agrees, apart, gap, limit, paired, shown, too_few
from hustings.lab.figures.measurement import Measurement

CROSSING = 200  # where the thesis sees LE-S overtake AL
SIZES = (2, 5, 10, 20, 50, 70, 100, 200, 300, 400, 500)
PLAIN, ADJUSTED = "", ", adjusted loss"

Points = Mapping[str, Sequence[MeasuredPoint]]


def crossing(
    claim: str, le: Sequence[MeasuredPoint], al: Sequence[MeasuredPoint], *, theirs: bool
) -> Finding:
    """LE-S is worse than AL in groups below the crossing and better above it."""
    pairs = paired(le, al)
    if doubt := too_few([*le, *al]):
        return Finding(claim, ClaimVerdict.UNDECIDED, doubt, theirs)
    most = limit(len(pairs))
    below = [apart(one, other) for one, other in pairs if one.members < CROSSING]
    beyond = [(one, other) for one, other in pairs if one.members > CROSSING]
    ahead = [apart(one, other) for one, other in beyond]
    if any(z > most for z in ahead):
        verdict = ClaimVerdict.FAILS
    elif all(z < -most for z in ahead) and all(z > -most for z in below):
        verdict = ClaimVerdict.HOLDS
    else:
        verdict = ClaimVerdict.UNDECIDED
    one, other = beyond[-1]
    told = f"N = {one.members}: LE-S {shown(one)}, AL {shown(other)}."
    return Finding(claim, verdict, told, theirs)


def small(points: Sequence[MeasuredPoint]) -> list[MeasuredPoint]:
    """Groups in which the thesis sees no effect of traffic."""
    return [point for point in points if point.members < 70]


def _judge(points: Points) -> list[Finding]:
    le, al = points["LE-S"], points["AL"]
    le_adjusted, al_adjusted = points[f"LE-S{ADJUSTED}"], points[f"AL{ADJUSTED}"]
    return [
        gap("for small N, LE-S is behind AL by E[t_s]", small(le), small(al), lambda _: SLEEP),
        crossing(f"LE-S is ahead of AL beyond N = {CROSSING}", le, al, theirs=True),
        gap(
            "without adjusted loss the gap is E[t_s] at every N, so that the curves never cross",
            le,
            al,
            lambda _: SLEEP,
            theirs=False,
        ),
        crossing(
            f"with adjusted loss (c = {COLLISION:g}) LE-S is ahead of AL beyond N = {CROSSING}",
            le_adjusted,
            al_adjusted,
            theirs=True,
        ),
        agrees(AGREE, [point for each in points.values() for point in each]),
    ]


def pair(collision: float) -> tuple[tuple[Measurement, ...], tuple[Measurement, ...]]:
    """LE-S and AL in groups of the same sizes."""
    le, al = (
        starts(name, UNCORRELATED, sizes=SIZES, collision=collision) for name in ("le-s", "al")
    )
    return le, al


def _panel(title: str, collision: float, ending: str) -> Panel:
    le, al = pair(collision)
    return Panel(
        title,
        "E[tmax]",
        (
            Curve(f"LE-S{ending}", "tmax", le, forms.le_tmax),
            Curve(f"AL{ending}", "tmax", al, forms.al_tmax, look="C3", mark="s"),
        ),
    )


FIGURE_5_11 = CurveFigure(
    name="announce-5.11",
    family=FAMILY,
    title="LE-S and AL with l = 0.4: time until convergence",
    source="Announce-listen thesis, Figure 5.11 (5.4.2)",
    shows="For small N, LE-S is behind AL by E[t_s]; AL degrades from N = 70 on, and beyond "
    "N = 200 LE-S is ahead, for which the thesis gives an adjusted loss as the reason.",
    panels=(
        _panel(f"uncorrelated loss, l = {LOSS}", 0.0, PLAIN),
        _panel(
            f"adjusted loss, l = 1 - (1 - {LOSS})(1 - c)^(s-1), c = {COLLISION:g}",
            COLLISION,
            ADJUSTED,
        ),
    ),
    judge=_judge,
    notes=(
        f"c = {COLLISION:g} is fitted to the one point that the thesis quotes, the crossing; s is "
        "the number of messages that share the network while one is under way.",
    ),
)

FIGURES = (FIGURE_5_11,)
