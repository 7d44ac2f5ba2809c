"""`probabilistic-p-fail`: the effect of crashes compared with the effect of loss.

Section 5 leaves these graphs out: "the graphs for varying p_fail are very similar" to those of
Figures 5(a) to 5(c), in which the loss varies. Here one of the two varies while the other keeps the
paper's 0.001, so both curves begin in one point.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from hustings.lab.figures.figure import (
    Axis,
    ClaimVerdict,
    Curve,
    Drawn,
    DrawnPanel,
    Finding,
    MeasuredPoint,
    Panel,
    Rendered,
    Value,
    point,
)
from hustings.lab.figures.judging import limit, shown, too_few
from hustings.lab.figures.measurement import Measurement
from hustings.lab.figures.measuring import Results
from hustings.lab.figures.probabilistic.analysis import FAMILY
from hustings.lab.figures.probabilistic.measurements import (
    CHOSEN,
    HASH,
    P_FAIL,
    Reading,
    election,
    setting,
)
from hustings.lab.figures.probabilistic.simulated import MEASURES, METRICS, TOLERANCE, settled

MEMBERS, VIEW = 2000, 0.5
PLACES = (P_FAIL, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5)
RUNS = 20_000
LOSS, CRASHES = "loss", "p_fail"
AXIS = Axis(
    "p_fail, or p_ucastl = p_mcastl",
    lambda cell: max(setting(cell, "p_fail"), setting(cell, "p_mcastl")),
)
COLUMNS = ("series", "varied", "metric", "place", "runs", "mean", "stderr", "command")
LOOKS = {
    (CHOSEN.label, LOSS): ("C0", "o"),
    (CHOSEN.label, CRASHES): ("C1", "s"),
    (HASH.label, LOSS): ("C2", "^"),
    (HASH.label, CRASHES): ("C3", "v"),
}

Points = Mapping[
    tuple[str, str, str], Sequence[MeasuredPoint]
]  # by reading, varying parameter, and metric


def _cell(reading: Reading, varied: str, place: float) -> Measurement:
    if varied == LOSS:
        return election(reading, MEMBERS, place, VIEW, runs=RUNS)
    return election(reading, MEMBERS, P_FAIL, VIEW, runs=RUNS, p_fail=place)


@dataclass(frozen=True, slots=True)
class CrashesBesideLoss:
    """Success, rounds and messages; it implements `Figure`."""

    name: str = "probabilistic-p-fail"
    title: str = "crashes beside loss: success, rounds and messages"
    family: str = FAMILY
    pictured: bool = True

    def cells(self) -> list[Measurement]:
        """Both curves of both readings; they share their first point."""
        found = (
            _cell(reading, varied, place)
            for reading, varied, place in product((CHOSEN, HASH), (LOSS, CRASHES), PLACES)
        )
        return list(dict.fromkeys(found))

    def make(self, results: Results, seed: int) -> Rendered:
        """The panels from the measured cells."""
        drawn = {
            measure: [_drawn(results, *series) for series in _series(measure)]
            for measure in MEASURES
        }
        points: Points = {
            (reading.label, varied, metric): each.points
            for measure in MEASURES
            for (reading, varied, metric), each in zip(
                _series(measure), drawn[measure], strict=True
            )
        }
        given = f"N = {MEMBERS}, view_prob = {VIEW:g}, the other at {P_FAIL:g}"
        return Rendered(
            name=self.name,
            family=self.family,
            title=self.title,
            source="Probabilistic election 2000, section 5, on Figures 5(a) to 5(c)",
            shows="Graphs for varying p_fail are very similar to those for varying loss.",
            columns=list(COLUMNS),
            rows=[row for key, each in points.items() for row in _rows(key, each, seed)],
            findings=[*_similar(points), *_ours(points)],
            panels=[
                DrawnPanel(
                    Panel(
                        given, MEASURES[measure], tuple(each.curve for each in curves), axis=AXIS
                    ),
                    curves,
                )
                for measure, curves in drawn.items()
            ],
            notes=[
                "Played by the compiled kernel. `weak` counts members that hold a leader which has "
                "crashed since; `strong` does not."
            ],
        )


def _series(measure: str) -> list[tuple[Reading, str, str]]:
    return [
        (reading, varied, metric)
        for metric, reading, varied in product(METRICS[measure], (CHOSEN, HASH), (LOSS, CRASHES))
        if metric != "weak" or reading is CHOSEN
    ]


def _drawn(results: Results, reading: Reading, varied: str, metric: str) -> Drawn:
    look, mark = LOOKS[reading.label, varied]
    weak = metric == "weak"
    curve = Curve(
        f"{'weak, ' if weak else ''}{varied} varies, {reading.label}",
        metric,
        tuple(_cell(reading, varied, place) for place in PLACES),
        look=("0.35" if varied == LOSS else "0.65") if weak else look,
        mark="x" if weak else mark,
    )
    return Drawn(curve, [point(curve, cell, results[cell]) for cell in curve.cells], [])


def _rows(
    key: tuple[str, str, str], points: Sequence[MeasuredPoint], seed: int
) -> list[list[Value]]:
    label, varied, metric = key
    return [
        [
            *(label, varied, metric, AXIS.place(each.cell), each.runs, each.mean, each.stderr),
            each.cell.command(seed, each.runs),
        ]
        for each in points
    ]


def _similar(points: Points) -> list[Finding]:
    """The claim for each metric: shares by their difference, numbers by their ratio."""
    return [
        alike(
            f"{metric}: the same to {TOLERANCE:g}, whichever varies ({reading.label})",
            points[reading.label, LOSS, metric],
            points[reading.label, CRASHES, metric],
            share=measure == "success",
        )
        for measure in MEASURES
        for metric in METRICS[measure]
        for reading in (CHOSEN, HASH)
        if metric != "weak" or reading is CHOSEN
    ]


def alike(
    claim: str, ones: Sequence[MeasuredPoint], others: Sequence[MeasuredPoint], *, share: bool
) -> Finding:
    """Two curves lie within a tolerance of each other at every place, allowing for chance."""
    if doubt := too_few([*ones, *others]):
        return Finding(claim, ClaimVerdict.UNDECIDED, doubt)
    most = limit(len(ones))
    verdict, worst = ClaimVerdict.HOLDS, (-1.0, ones[0], others[0])
    for one, other in zip(ones, others, strict=True):
        unit = 1.0 if share else one.mean
        off = abs(one.mean - other.mean) / unit
        error = most * (one.stderr**2 + other.stderr**2) ** 0.5 / unit
        worst = max(worst, (off, one, other), key=lambda each: each[0])
        if off - error > TOLERANCE:
            verdict = ClaimVerdict.FAILS
        elif off > TOLERANCE and verdict is ClaimVerdict.HOLDS:
            verdict = ClaimVerdict.UNDECIDED
    _, one, other = worst
    told = f"Farthest at {AXIS.place(one.cell):g}: {shown(one)} by loss, {shown(other)} by crashes."
    return Finding(claim, verdict, told)


def _ours(points: Points) -> list[Finding]:
    """The reason: nothing in a round notices that the leader has crashed in it."""
    crashing = points[CHOSEN.label, CRASHES, "strong"]
    excess = [_excess(each) for each in crashing]
    return [
        settled(
            "strong success is 1 - p_fail, as no member notices the leader's crash (to 0.02)",
            excess,
            -0.02,
            0.02,
            theirs=False,
            at=lambda each: f" beside 1 - p_fail at p_fail = {setting(each.cell, 'p_fail'):g}",
        )
    ]


def _excess(one: MeasuredPoint) -> MeasuredPoint:
    lives = 1.0 - setting(one.cell, "p_fail")
    return MeasuredPoint(one.cell, one.runs, one.mean - lives, one.stderr, less=lives)


FIGURES = (CrashesBesideLoss(),)
