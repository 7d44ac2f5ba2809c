"""Figures 5.6 to 5.9: LE-S beside SUP, without loss and with l = 0.4."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hustings.lab.figures.announce import forms
from hustings.lab.figures.announce.measurements import (
    CORRELATED,
    FIRST_ROUND,
    LOSS,
    NONE,
    SLEEP,
    UNCORRELATED,
    starts,
)
from hustings.lab.figures.figure import Curve, CurveFigure, Finding, MeasuredPoint, Panel
from hustings.lab.figures.judging import above, agrees, compared, constant

FAMILY = "announce"
AGREE = "runs and closed forms agree"
INSTANT = 1e-6  # a delay too short to matter, for a formula without one

Points = Mapping[str, Sequence[MeasuredPoint]]


def _all(points: Points) -> list[MeasuredPoint]:
    return [point for each in points.values() for point in each]


# Without loss

HALT = "SUP, all have sent or heard"


def _judge_delay(points: Points) -> list[Finding]:
    le, sup, halt = points["LE-S"], points["SUP, last message"], points[HALT]
    return [
        constant("the delay of LE-S does not depend on N", le),
        compared("it is E[t_s] = 0.5", [(point, SLEEP) for point in le]),
        above("LE-S takes longer than SUP", le, sup),
        above(
            "SUP's last message leaves later than the instant, less Delta, at which all know, so "
            "that they are not the same as 5.4.1 has it",
            sup,
            halt,
            theirs=False,
        ),
        agrees(AGREE, _all(points)),
    ]


def _judge_messages(points: Points) -> list[Finding]:
    return [
        above("LE-S sends more messages than SUP", points["LE-S"], points["SUP"]),
        agrees(AGREE, _all(points)),
    ]


FIGURE_5_6 = CurveFigure(
    name="announce-5.6",
    family=FAMILY,
    title="LE-S and SUP without loss: time until convergence",
    source="Announce-listen thesis, Figure 5.6 (5.4.1)",
    shows="Without loss LE-S converges after E[t_s] = 0.5 whatever the size of the group; SUP "
    "is faster.",
    panels=(
        Panel(
            "l = 0, T_S = T_A = 1, Delta = 0.1",
            "E[tmax]",
            (
                Curve("LE-S", "tmax", starts("le-s"), forms.le_tmax),
                Curve(
                    "SUP, last message", "tmax", starts("sup"), forms.sup_tmax, look="C1", mark="s"
                ),
                Curve(
                    HALT,
                    "t_halt",
                    starts("sup"),
                    forms.sup_halt,
                    less=0.1,
                    look="C2",
                    mark="^",
                ),
            ),
        ),
    ),
    judge=_judge_delay,
    notes=("As in the thesis, times are those of sending: the last delay is left out.",),
)

FIGURE_5_7 = CurveFigure(
    name="announce-5.7",
    family=FAMILY,
    title="LE-S and SUP without loss: messages until convergence",
    source="Announce-listen thesis, Figure 5.7 (5.4.1)",
    shows="LE-S sends more messages than SUP, since only a larger address silences a member.",
    panels=(
        Panel(
            "l = 0, T_S = T_A = 1, Delta = 0.1",
            "E[num_msgs]",
            (
                Curve("LE-S", "num_msgs", starts("le-s"), forms.le_messages),
                Curve("SUP", "num_msgs", starts("sup"), forms.sup_messages, look="C1", mark="s"),
            ),
        ),
    ),
    judge=_judge_messages,
    notes=(
        "Both grow as N Delta/T_S: the members that wake within Delta of the first. What the "
        "addresses cost is the difference, about H_N.",
    ),
)

# With loss


def _judge_lossy_delay(points: Points) -> list[Finding]:
    corr, uncorr = points["LE-S, correlated"], points["LE-S, uncorrelated"]
    none = points["LE-S, no loss"]
    sup_corr, sup_uncorr = points["SUP, correlated"], points["SUP, uncorrelated"]
    printed = [(point, point.printed) for point in uncorr if point.printed is not None]
    return [
        above("loss delays LE-S, if correlated", corr, none),
        above("and more so if uncorrelated", uncorr, corr),
        constant("under correlated loss LE-S does not depend on N", corr),
        above("LE-S takes longer than SUP, if correlated", corr, sup_corr),
        above("LE-S takes longer than SUP, if uncorrelated", uncorr, sup_uncorr),
        compared("the formula of 5.3.1.3 gives the delay under uncorrelated loss", printed),
        agrees(AGREE, _all(points)),
    ]


def _judge_lossy_messages(points: Points) -> list[Finding]:
    corr, uncorr = points["LE-S, correlated"], points["LE-S, uncorrelated"]
    none = points["LE-S, no loss"]
    first, first_uncorr = points[FIRST_CORRELATED], points[FIRST_UNCORRELATED]
    return [
        above("loss costs LE-S messages, if correlated", corr, none),
        above("and more of them if uncorrelated", uncorr, corr),
        above("LE-S sends more than SUP, if correlated", corr, points["SUP, correlated"]),
        above("LE-S sends more than SUP, if uncorrelated", uncorr, points["SUP, uncorrelated"]),
        compared("the last line of 5.3.3.2 counts the first round, if correlated", _printed(first)),
        compared("Q(i, n) of 5.3.3.3 counts it, if uncorrelated", _printed(first_uncorr)),
        agrees(AGREE, _all(points)),
    ]


def _printed(points: Sequence[MeasuredPoint]) -> list[tuple[MeasuredPoint, float]]:
    return [(point, point.printed) for point in points if point.printed is not None]


FIRST_CORRELATED = "LE-S first round, correlated"
FIRST_UNCORRELATED = "LE-S first round, uncorrelated, Delta = 0"

FIGURE_5_8 = CurveFigure(
    name="announce-5.8",
    family=FAMILY,
    title="LE-S and SUP with l = 0.4: time until convergence",
    source="Announce-listen thesis, Figure 5.8 (5.4.1)",
    shows="Loss delays LE-S considerably, most of all if it is uncorrelated, and much more than "
    "SUP, which ends after one round.",
    panels=(
        Panel(
            f"l = {LOSS}, T_S = T_A = 1, Delta = 0.1",
            "E[tmax]",
            (
                Curve(
                    "LE-S, uncorrelated",
                    "tmax",
                    starts("le-s", UNCORRELATED),
                    forms.le_tmax,
                    forms.printed_le_tmax,
                ),
                Curve(
                    "LE-S, correlated",
                    "tmax",
                    starts("le-s", CORRELATED),
                    forms.le_tmax,
                    look="C2",
                    mark="D",
                ),
                Curve(
                    "LE-S, no loss",
                    "tmax",
                    starts("le-s", NONE),
                    forms.le_tmax,
                    look="C7",
                    mark=".",
                ),
                Curve(
                    "SUP, uncorrelated", "tmax", starts("sup", UNCORRELATED), look="C1", mark="s"
                ),
                Curve(
                    "SUP, correlated",
                    "tmax",
                    starts("sup", CORRELATED),
                    forms.sup_tmax,
                    look="C3",
                    mark="^",
                ),
            ),
        ),
    ),
    judge=_judge_lossy_delay,
    notes=(
        "The formula of 5.3.1.3 counts the first announcement as a whole period and N receivers "
        "for N - 1, so it lies a period too high.",
    ),
)

FIGURE_5_9 = CurveFigure(
    name="announce-5.9",
    family=FAMILY,
    title="LE-S and SUP with l = 0.4: messages until convergence, and in the first round",
    source="Announce-listen thesis, Figure 5.9 (5.4.1), and the formulas of 5.3.3",
    shows="Loss costs LE-S many messages, most of all if it is uncorrelated; SUP stays below.",
    panels=(
        Panel(
            f"until convergence, l = {LOSS}",
            "E[num_msgs]",
            (
                Curve("LE-S, uncorrelated", "num_msgs", starts("le-s", UNCORRELATED)),
                Curve(
                    "LE-S, correlated",
                    "num_msgs",
                    starts("le-s", CORRELATED),
                    forms.le_messages,
                    look="C2",
                    mark="D",
                ),
                Curve(
                    "LE-S, no loss",
                    "num_msgs",
                    starts("le-s", NONE),
                    forms.le_messages,
                    look="C7",
                    mark=".",
                ),
                Curve(
                    "SUP, uncorrelated",
                    "num_msgs",
                    starts("sup", UNCORRELATED),
                    look="C1",
                    mark="s",
                ),
                Curve(
                    "SUP, correlated",
                    "num_msgs",
                    starts("sup", CORRELATED),
                    forms.sup_messages,
                    look="C3",
                    mark="^",
                ),
            ),
        ),
        Panel(
            f"first announcements only, l = {LOSS}",
            "E[first_round]",
            (
                Curve(
                    FIRST_CORRELATED,
                    "first_round",
                    starts("le-s", CORRELATED),
                    forms.le_first_round,
                    forms.printed_le_first_round,
                    look="C2",
                    mark="D",
                ),
                Curve(
                    FIRST_UNCORRELATED,
                    "first_round",
                    starts("le-s", UNCORRELATED, delay=INSTANT, aims=FIRST_ROUND),
                    forms.le_first_round,
                    forms.printed_le_first_round,
                ),
            ),
        ),
    ),
    judge=_judge_lossy_messages,
    notes=(
        "The thesis's formulas count first announcements, its figure all messages; so the first "
        "round is drawn beside it. Its recurrence for uncorrelated loss is for Delta = 0; the runs "
        "take a delay of a millionth.",
    ),
)

FIGURES = (FIGURE_5_6, FIGURE_5_7, FIGURE_5_8, FIGURE_5_9)
