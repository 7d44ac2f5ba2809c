"""Figures 5.12 and 5.13: LE-M, where the first member to wake leads, beside LE-S and SUP."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from hustings.lab.figures.announce import forms
from hustings.lab.figures.announce.against_sup import AGREE, FAMILY
from hustings.lab.figures.announce.measurements import LOSS, UNCORRELATED, starts
from hustings.lab.figures.figure import Curve, CurveFigure, Finding, MeasuredPoint, Panel
from hustings.lab.figures.judging import above, agrees, equal
from hustings.lab.figures.measurement import Measurement

Points = Mapping[str, Sequence[MeasuredPoint]]

FIRST = ("first_round_time",)


def first_rounds(cells: Sequence[Measurement]) -> tuple[Measurement, ...]:
    """The same starts, with enough runs for the first round."""
    return tuple(msgspec.structs.replace(cell, aims=FIRST) for cell in cells)


def _judge_first(points: Points) -> list[Finding]:
    le_m, le, sup = points["LE-M"], points["LE-S"], points["SUP"]
    return [
        equal("in the first round LE-M and SUP are the same", le_m, sup),
        above("the first round of LE-S lasts longer", le, le_m, theirs=False),
    ]


def _judge_all(points: Points) -> list[Finding]:
    le_m, le, sup = points["LE-M"], points["LE-S"], points["SUP"]
    return [
        above("LE-M converges sooner than LE-S", le, le_m),
        above("SUP is a lower bound for LE-M", le_m, sup),
        agrees(AGREE, [*le_m, *le]),
    ]


FIGURE_5_12 = CurveFigure(
    name="announce-5.12",
    family=FAMILY,
    title="LE-M, LE-S and SUP with l = 0.4: the first round",
    source="Announce-listen thesis, Figure 5.12 (5.4.3)",
    shows="If the first to wake leads (LE-M), the first round closely overlaps with that of SUP.",
    panels=(
        Panel(
            f"uncorrelated loss, l = {LOSS}",
            "E[last first announcement]",
            (
                Curve(
                    "LE-S",
                    "first_round_time",
                    first_rounds(starts("le-s", UNCORRELATED)),
                ),
                Curve(
                    "LE-M",
                    "first_round_time",
                    first_rounds(starts("le-m", UNCORRELATED)),
                    look="C4",
                    mark="D",
                ),
                Curve("SUP", "tmax", starts("sup", UNCORRELATED), look="C1", mark="s"),
            ),
        ),
    ),
    judge=_judge_first,
    notes=(
        "The thesis does not say for which loss model it is drawn; the two are the same in law in "
        "every model, since whatever a member hears before it wakes comes from an earlier waker.",
    ),
)

FIGURE_5_13 = CurveFigure(
    name="announce-5.13",
    family=FAMILY,
    title="LE-M, LE-S and SUP with l = 0.4: time until convergence",
    source="Announce-listen thesis, Figure 5.13 (5.4.3)",
    shows="LE-M converges sooner than LE-S; SUP, which ends after one round, is a lower bound.",
    panels=(
        Panel(
            f"uncorrelated loss, l = {LOSS}",
            "E[tmax]",
            (
                Curve("LE-S", "tmax", starts("le-s", UNCORRELATED), forms.le_tmax),
                Curve(
                    "LE-M",
                    "tmax",
                    starts("le-m", UNCORRELATED),
                    forms.le_m_tmax,
                    look="C4",
                    mark="D",
                ),
                Curve("SUP", "tmax", starts("sup", UNCORRELATED), look="C1", mark="s"),
            ),
        ),
    ),
    judge=_judge_all,
)

FIGURES = (FIGURE_5_12, FIGURE_5_13)
