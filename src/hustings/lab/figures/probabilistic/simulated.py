"""Figure 5: success, rounds and messages against loss, group size and view probability."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf

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
from hustings.lab.figures.judging import ENOUGH, limit, shown, too_few
from hustings.lab.figures.measurement import Measurement
from hustings.lab.figures.measuring import Results
from hustings.lab.figures.probabilistic.analysis import FAMILY
from hustings.lab.figures.probabilistic.measurements import (
    CHOSEN,
    READINGS,
    Reading,
    election,
    setting,
)

LOSSES = (0.0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5)
GROUPS = (1000, 2000, 3000, 4000, 5000, 6000)
VIEWS = (0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5)
HIGH = 0.9  # what "very high" is taken to mean
SIDE_BY_SIDE = "Points of one place stand side by side, so that none covers another."
TOLERANCE = 0.05  # of "1 expected round", and of values that do not vary

BY_LOSS = Axis("p_ucastl = p_mcastl", lambda cell: setting(cell, "p_mcastl"))
BY_SIZE = Axis("members N", lambda cell: cell.members)
BY_VIEW = Axis("view_prob", lambda cell: setting(cell, "view_prob"))

Points = Mapping[
    tuple[str, str], Sequence[MeasuredPoint]
]  # by the label of a reading and the metric
Judge = Callable[[Points], list[Finding]]


@dataclass(frozen=True, slots=True)
class Row:
    """The common part of the three panels of a row."""

    axis: Axis
    given: str
    cells: Callable[[Reading], tuple[Measurement, ...]]


ROWS = {
    "loss": Row(
        BY_LOSS,
        "N = 2000, p_fail = 0.001, view_prob = 0.5",
        lambda reading: tuple(election(reading, 2000, loss, 0.5) for loss in LOSSES),
    ),
    "size": Row(
        BY_SIZE,
        "p_ucastl = p_mcastl = p_fail = 0.001, view_prob = 0.5",
        lambda reading: tuple(election(reading, members, 0.001, 0.5) for members in GROUPS),
    ),
    "view": Row(
        BY_VIEW,
        "N = 5000, p_ucastl = p_mcastl = p_fail = 0.001",
        lambda reading: tuple(election(reading, 5000, 0.001, view) for view in VIEWS),
    ),
}

MEASURES = {"success": "P(success)", "rounds": "rounds", "messages": "messages"}
METRICS = {"success": ("strong", "weak"), "rounds": ("rounds",), "messages": ("messages",)}
COLUMNS = ("series", "metric", "place", "runs", "mean", "stderr", "command")


@dataclass(frozen=True, slots=True)
class Simulated:
    """One panel of Figure 5; it implements `Figure`."""

    letter: str
    row: str
    measure: str
    shows: str
    judge: Judge
    rare: bool = False  # success is so near 1 that only the failures are visible
    pictured: bool = True

    @property
    def name(self) -> str:
        """The name that a user types."""
        return f"probabilistic-5{self.letter}"

    @property
    def family(self) -> str:
        """The family: the same for all figures of the paper."""
        return FAMILY

    @property
    def title(self) -> str:
        """The title: the metric and the axis."""
        return f"{self.drawn} over {ROWS[self.row].axis.label}"

    @property
    def drawn(self) -> str:
        """The metric of the vertical axis."""
        return f"1 - {MEASURES[self.measure]}" if self.rare else MEASURES[self.measure]

    def cells(self) -> list[Measurement]:
        """Every reading at every place."""
        return [cell for reading in READINGS for cell in ROWS[self.row].cells(reading)]

    def make(self, results: Results, seed: int) -> Rendered:
        """The panel from its measured cells."""
        row = ROWS[self.row]
        curves = [
            Curve(
                reading.label if metric != "weak" else f"weak, {reading.label}",
                metric,
                row.cells(reading),
                look=reading.look if metric != "weak" else "0.55",
                mark=reading.mark if metric != "weak" else "x",
            )
            for metric in METRICS[self.measure]
            for reading in READINGS
            if metric != "weak" or reading is CHOSEN
        ]
        drawn = [
            Drawn(curve, [point(curve, cell, results[cell]) for cell in curve.cells], [])
            for curve in curves
        ]
        panel = Panel(
            row.given,
            self.drawn,
            tuple(curves),
            logarithmic=self.rare,
            axis=row.axis,
            apart=self.rare,
        )
        points = {
            (each.curve.label.removeprefix("weak, "), each.curve.metric): each.points
            for each in drawn
        }
        return Rendered(
            name=self.name,
            family=self.family,
            title=self.title,
            source=f"Probabilistic election 2000, Figure 5({self.letter}) (section 5)",
            shows=self.shows,
            columns=list(COLUMNS),
            rows=[line for each in drawn for line in _rows(each, row.axis, seed)],
            findings=self.judge(points),
            panels=[DrawnPanel(panel, [_failures(each) for each in drawn] if self.rare else drawn)],
            notes=[
                "Played by the compiled kernel, which counts the unicasts of a round with K = N by "
                "their mean. Hash thinning is Figure 3's; with it one member that alone has "
                "noticed a failure asks for another round with probability K/N only.",
                *([SIDE_BY_SIDE] if self.rare else []),
            ],
        )


def _failures(drawn: Drawn) -> Drawn:
    """The same curve, as its difference from 1."""
    points = [replace(each, mean=1.0 - each.mean) for each in drawn.points]
    return replace(drawn, points=points)


def _rows(drawn: Drawn, axis: Axis, seed: int) -> list[list[Value]]:
    return [
        [
            drawn.curve.label,
            drawn.curve.metric,
            axis.place(each.cell),
            each.runs,
            each.mean,
            each.stderr,
            each.cell.command(seed, each.runs),
        ]
        for each in drawn.points
    ]


def settled(
    claim: str,
    points: Sequence[MeasuredPoint],
    low: float,
    high: float,
    *,
    theirs: bool = True,
    at: Callable[[MeasuredPoint], str] = lambda _: "",
) -> Finding:
    """All points lie within a range, allowing for chance; `at` says where a point stands."""
    if doubt := too_few(points):
        return Finding(claim, ClaimVerdict.UNDECIDED, doubt, theirs)
    most = limit(len(points))
    beyond = [
        each
        for each in points
        if each.mean - most * each.stderr > high or each.mean + most * each.stderr < low
    ]
    inside = all(low <= each.mean <= high for each in points)
    worst = max(points, key=lambda each: max(low - each.mean, each.mean - high))
    verdict = (
        ClaimVerdict.FAILS if beyond else ClaimVerdict.HOLDS if inside else ClaimVerdict.UNDECIDED
    )
    return Finding(claim, verdict, f"Nearest or beyond: {shown(worst)}{at(worst)}.", theirs)


def _by_reading(
    claim: str, points: Points, metric: str, low: float, high: float, *, theirs: bool = True
) -> list[Finding]:
    """The claim under each reading of the paper."""
    return [
        settled(
            f"{claim} ({reading.label})", points[reading.label, metric], low, high, theirs=theirs
        )
        for reading in READINGS
    ]


def _up_to(points: Points, axis: Axis, low: float, high: float) -> Points:
    return {
        key: [each for each in column if low <= axis.place(each.cell) <= high]
        for key, column in points.items()
    }


def _steady(claim: str, points: Points, metric: str) -> list[Finding]:
    """A metric does not vary along the axis: its means differ by a few hundredths at most."""
    found = []
    for reading in READINGS:
        column = points[reading.label, metric]
        mean = sum(each.mean for each in column) / len(column)
        low, high = mean * (1 - TOLERANCE), mean * (1 + TOLERANCE)
        found.append(settled(f"{claim} ({reading.label})", column, low, high))
    return found


def _weak_above(points: Points) -> Finding:
    """The weak success is not below the strong one; this holds in each run."""
    pairs = list(zip(points[CHOSEN.label, "weak"], points[CHOSEN.label, "strong"], strict=True))
    below = [weak for weak, strong in pairs if weak.mean < strong.mean]
    if min(weak.runs for weak, _ in pairs) < ENOUGH:
        return Finding("weak success lies above strong", ClaimVerdict.UNDECIDED, "Too few runs.")
    weak, strong = min(pairs, key=lambda pair: pair[1].mean)
    return Finding(
        "weak success lies above strong, and is close to 1",
        ClaimVerdict.HOLDS if not below and weak.mean > HIGH else ClaimVerdict.FAILS,
        f"Where strong is lowest, {shown(strong)}, weak is {shown(weak)}.",
    )


def _success_by_loss(points: Points) -> list[Finding]:
    claim = f"strong success stays above {HIGH} up to a loss of 0.4"
    return [
        *_by_reading(claim, _up_to(points, BY_LOSS, 0.0, 0.4), "strong", HIGH, inf),
        _weak_above(points),
    ]


def _success(points: Points) -> list[Finding]:
    claim = f"strong success stays above {HIGH} over the whole range"
    return [*_by_reading(claim, points, "strong", HIGH, inf), _weak_above(points)]


def _one_round(points: Points) -> list[Finding]:
    claim = f"one round is expected (to {TOLERANCE:g})"
    return _by_reading(claim, points, "rounds", 1.0, 1.0 + TOLERANCE)


def _few_rounds(points: Points) -> list[Finding]:
    claim = "three rounds suffice on average"
    return _by_reading(claim, points, "rounds", -inf, 3.0, theirs=False)


def _flat(points: Points) -> list[Finding]:
    return _steady("messages do not vary with N", points, "messages")


def _some_messages(points: Points) -> list[Finding]:
    claim = "less than one message per member of the group"
    least = min(each.cell.members for column in points.values() for each in column)
    return _by_reading(claim, points, "messages", -inf, float(least), theirs=False)


CURVE_ALONE = "A curve, of which the text says no more than that it scales."

FIGURES = (
    Simulated(
        "a",
        "loss",
        "success",
        "Very high strong success up to a loss of 0.4; weak success is higher, and close to 1.",
        _success_by_loss,
    ),
    Simulated("b", "loss", "rounds", CURVE_ALONE, _few_rounds),
    Simulated("c", "loss", "messages", CURVE_ALONE, _some_messages),
    Simulated(
        "d",
        "size",
        "success",
        "Very high strong success up to and beyond N = 6000.",
        _success,
        rare=True,
    ),
    Simulated("e", "size", "rounds", "Termination within 1 expected round up to 6000.", _one_round),
    Simulated("f", "size", "messages", "No variation of the messages with N.", _flat),
    Simulated(
        "g",
        "view",
        "success",
        "Very high strong success down to view_prob 0.2.",
        _success,
        rare=True,
    ),
    Simulated("h", "view", "rounds", CURVE_ALONE, _few_rounds),
    Simulated("i", "view", "messages", CURVE_ALONE, _some_messages),
)
