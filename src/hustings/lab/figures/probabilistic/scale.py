"""`probabilistic-scale`: success, rounds and messages in groups of a thousand to a billion."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import inf

from hustings.lab.closed_forms.probabilistic.leaders import reached, strategy
from hustings.lab.closed_forms.probabilistic.round import Round
from hustings.lab.figures.figure import (
    Axis,
    ClaimVerdict,
    Curve,
    Drawn,
    DrawnPanel,
    Finding,
    FormLine,
    MeasuredPoint,
    Panel,
    Rendered,
    Value,
    point,
)
from hustings.lab.figures.judging import grows, limit, shown, too_few
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
from hustings.lab.figures.probabilistic.simulated import HIGH, settled

SIZES = tuple(10**power for power in range(3, 10))
VIEW = 0.5
FIRST_K = 7
CAP = 112  # the value that doubling would reach in the fifth round
ALMOST = 2.0  # an almost constant number varies by at most this factor
FEW = 10_000  # messages: a cap on K keeps below this in any group
BY_SIZE = Axis("members N", lambda cell: cell.members, logarithmic=True)
METRICS = {"strong": "P(success)", "rounds": "rounds", "messages": "messages"}
COLUMNS = ("series", "metric", "members", "runs", "mean", "stderr", "bound", "command")


@dataclass(frozen=True, slots=True)
class ScaleCurve:
    """One curve of each panel."""

    label: str
    reading: Reading
    loss: float
    look: str
    mark: str
    capped: bool = False

    @property
    def bounded(self) -> bool:
        """Whether to draw the bound on rounds: once for each loss."""
        return self.reading is CHOSEN and not self.capped

    @property
    def cells(self) -> tuple[Measurement, ...]:
        """All sizes."""
        more = (("K_max", str(CAP)),) if self.capped else ()
        return tuple(election(self.reading, n, self.loss, VIEW, more=more) for n in SIZES)


LOWEST = ScaleCurve("loss 0.001", CHOSEN, 0.001, "C0", "o")
MIDDLE = ScaleCurve("loss 0.2", CHOSEN, 0.2, "C2", "^")
HIGHEST = ScaleCurve("loss 0.4", CHOSEN, 0.4, "C3", "v")
CAPPED = ScaleCurve(f"loss 0.4, K at most {CAP}", CHOSEN, 0.4, "C4", "x", capped=True)
HASHED = ScaleCurve("loss 0.2, thinned by hash", HASH, 0.2, "C5", "D")
SERIES = (LOWEST, ScaleCurve("loss 0.1", CHOSEN, 0.1, "C1", "s"), MIDDLE, HIGHEST, CAPPED, HASHED)

Points = Mapping[
    tuple[str, str], Sequence[MeasuredPoint]
]  # by the label of a series and the metric


@cache
def rounds_at_most(members: int, loss: float) -> float:
    """An upper bound on the mean number of rounds."""
    one = Round(FIRST_K, VIEW, loss, loss, P_FAIL, members)
    return sum(reached(one, strategy(FIRST_K, members)))


def _bound(cell: Measurement) -> float:
    return rounds_at_most(cell.members, setting(cell, "p_mcastl"))


@dataclass(frozen=True, slots=True)
class ScaleFigure:
    """The figure; it implements `Figure`."""

    name: str = "probabilistic-scale"
    family: str = FAMILY
    title: str = "Probabilistic elections in groups of 10^3 to 10^9"
    pictured: bool = True

    def cells(self) -> list[Measurement]:
        """Every series at every size."""
        return [cell for series in SERIES for cell in series.cells]

    def make(self, results: Results, seed: int) -> Rendered:
        """The figure from its measured cells."""
        drawn = {
            metric: [_drawn(series, metric, results) for series in SERIES] for metric in METRICS
        }
        panels = [
            DrawnPanel(
                Panel(
                    "view_prob = 0.5, p_fail = 0.001, K = 7, 14, 28, 56, N",
                    METRICS[metric],
                    tuple(each.curve for each in curves),
                    logarithmic=metric == "messages",
                    axis=BY_SIZE,
                    forms="bound from above",
                ),
                curves,
            )
            for metric, curves in drawn.items()
        ]
        points = {
            (each.curve.label, metric): each.points
            for metric, curves in drawn.items()
            for each in curves
        }
        return Rendered(
            name=self.name,
            family=self.family,
            title=self.title,
            source="Probabilistic election 2000, abstract; its own groups end at 6,000",
            shows="The probability of success, and a constant number of messages, do not depend "
            "on the size of the group.",
            columns=list(COLUMNS),
            rows=[row for curves in drawn.values() for each in curves for row in _rows(each, seed)],
            findings=_judge(points),
            panels=panels,
            notes=[
                "Played by the compiled kernel, whose cost does not depend on N; it counts the "
                "unicasts of a round with K = N by their mean, of order N^2. So where some "
                "elections come to a fifth round, the mean of all is theirs. The bound on rounds "
                "is for thinning by delay and is true up to K^2/N."
            ],
        )


def _drawn(series: ScaleCurve, metric: str, results: Results) -> Drawn:
    exact: Callable[[Measurement], float] | None = None
    if metric == "rounds" and series.bounded:
        exact = _bound
    curve = Curve(series.label, metric, series.cells, exact, look=series.look, mark=series.mark)
    points = [point(curve, cell, results[cell]) for cell in curve.cells]
    lines = [] if exact is None else [FormLine(SIZES, [exact(each) for each in curve.cells], False)]
    return Drawn(curve, points, lines)


def _rows(drawn: Drawn, seed: int) -> list[list[Value]]:
    label, metric = drawn.curve.label, drawn.curve.metric
    return [
        [
            *(label, metric, each.members, each.runs, each.mean, each.stderr, each.exact),
            each.cell.command(seed, each.runs),
        ]
        for each in drawn.points
    ]


def at_size(each: MeasuredPoint) -> str:
    """The place of a point."""
    return f" at N = {each.members:,}"


def _almost_constant(claim: str, points: Sequence[MeasuredPoint]) -> Finding:
    """The largest mean is at most a small multiple of the smallest."""
    if doubt := too_few(points):
        return Finding(claim, ClaimVerdict.UNDECIDED, doubt)
    low, high = (pick(points, key=lambda each: each.mean) for pick in (min, max))
    most = limit(len(points)) * (high.stderr + ALMOST * low.stderr)
    beyond = high.mean - ALMOST * low.mean
    verdict = ClaimVerdict.HOLDS if beyond <= -most else ClaimVerdict.FAILS
    if abs(beyond) < most:
        verdict = ClaimVerdict.UNDECIDED
    told = f"From {shown(low)}{at_size(low)} to {shown(high)}{at_size(high)}."
    return Finding(claim, verdict, told)


def _below_bound(points: Sequence[MeasuredPoint]) -> Finding:
    """No point exceeds its bound, which holds up to K^2/N."""
    claim = "rounds lie below their bound (up to K^2/N)"
    pairs = [(each, each.exact) for each in points if each.exact is not None]
    if doubt := too_few([each for each, _ in pairs]):
        return Finding(claim, ClaimVerdict.UNDECIDED, doubt, theirs=False)
    most = limit(len(pairs))
    excess = [
        each.mean - most * each.stderr - bound * (1 + FIRST_K**2 / each.members)
        for each, bound in pairs
    ]
    each, bound = pairs[excess.index(max(excess))]
    return Finding(
        claim,
        ClaimVerdict.FAILS if max(excess) > 0 else ClaimVerdict.HOLDS,
        f"{len(pairs)} points; nearest: {shown(each)}{at_size(each)} against {bound:.4f}.",
        theirs=False,
    )


def _judge(points: Points) -> list[Finding]:
    found = [
        settled(
            f"success stays above {HIGH} in any group ({each.label})",
            points[each.label, "strong"],
            HIGH,
            inf,
            at=at_size,
        )
        for each in SERIES
    ]
    found += [
        _almost_constant(
            f"messages vary by a factor of {ALMOST:g} at most ({each.label})",
            points[each.label, "messages"],
        )
        for each in SERIES
    ]
    rounds = [
        each for (_, metric), column in points.items() if metric == "rounds" for each in column
    ]
    return [
        *found,
        _below_bound(rounds),
        grows(
            "rounds grow with N (loss 0.2), so that success need not fall",
            points[MIDDLE.label, "rounds"],
            theirs=False,
        ),
        settled(
            f"with a cap on K fewer than {FEW:,} messages in any group (loss 0.4)",
            points[CAPPED.label, "messages"],
            -inf,
            FEW,
            theirs=False,
            at=at_size,
        ),
    ]


FIGURES = (ScaleFigure(),)
