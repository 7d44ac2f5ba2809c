"""`probabilistic-safety`: how often two members lead, over loss, and the bounds on it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import exp, inf, lgamma, log

from hustings.lab.closed_forms.probabilistic.leaders import strategy, two_leaders_ever
from hustings.lab.closed_forms.probabilistic.round import Round
from hustings.lab.figures.figure import (
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
from hustings.lab.figures.judging import ALPHA, above, shown, too_few
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
from hustings.lab.figures.probabilistic.scale import FIRST_K, VIEW
from hustings.lab.figures.probabilistic.simulated import BY_LOSS, SIDE_BY_SIDE, settled
from hustings.protocols.probabilistic import risk
from hustings.protocols.probabilistic.strategy import PAPER
from hustings.protocols.probabilistic.strategy import strategy as plan

# Runs for each loss: with less loss, two leaders are rarer and runs shorter.
RUNS = {
    **dict.fromkeys((0.05, 0.1, 0.15, 0.2), 1_000_000),
    **dict.fromkeys((0.25, 0.3, 0.35, 0.4, 0.45, 0.5), 300_000),
}
LOSSES = tuple(RUNS)
SELDOM = 0.01  # two leaders in at most this share: what "high probability" of one leader leaves
NOTICED = 0.4  # the loss up to which the paper claims very high success
THREE = 3.0  # an event not seen in all runs has a share below 3/runs, at a level of 95 %
ROUNDS = 5
EVER, LAST = "two_leaders_ever", "two_leaders"
PANELS = {EVER: "at the end of some round", LAST: "at the end of all rounds"}
COLUMNS = (
    *("series", "metric", "loss", "runs", "seen", "mean", "stderr", "at_most"),
    *("bound", "risk", "command"),
)


@dataclass(frozen=True, slots=True)
class SafetyCurve:
    """One curve of each panel."""

    label: str
    reading: Reading
    members: int
    look: str
    mark: str
    share: int = 1  # divides the number of runs

    @property
    def cells(self) -> tuple[Measurement, ...]:
        """All losses."""
        return tuple(
            election(self.reading, self.members, loss, VIEW, runs=runs // self.share)
            for loss, runs in RUNS.items()
        )


DELAYED = SafetyCurve("N = 2,000, delay", CHOSEN, 2000, "C0", "o")
HASHED = SafetyCurve("N = 2,000, hash", HASH, 2000, "C3", "s")
LARGE = SafetyCurve("N = 1,000,000, delay", CHOSEN, 10**6, "C2", "^", 3)
SERIES = (DELAYED, HASHED, LARGE)

Points = Mapping[
    tuple[str, str], Sequence[MeasuredPoint]
]  # by the label of a series and the metric


@cache
def proven(members: int, loss: float) -> float:
    """An upper bound on two leaders at the end of some round."""
    one = Round(FIRST_K, VIEW, loss, loss, P_FAIL, members)
    return two_leaders_ever(one, strategy(FIRST_K, members, ROUNDS))


def stated(members: int, loss: float) -> float:
    """The bound that the protocol tells elected members: simpler, and higher."""
    return risk.two_leaders(plan(PAPER, FIRST_K, ROUNDS, None), members, loss, P_FAIL)


def _bound(cell: Measurement) -> float:
    return proven(cell.members, setting(cell, "p_mcastl"))


@dataclass(frozen=True, slots=True)
class Safety:
    """The figure; it implements `Figure`."""

    name: str = "probabilistic-safety"
    family: str = FAMILY
    title: str = "Two leaders at once, over loss"
    pictured: bool = True

    def cells(self) -> list[Measurement]:
        """Every series at every loss."""
        return [cell for series in SERIES for cell in series.cells]

    def make(self, results: Results, seed: int) -> Rendered:
        """The figure from its measured cells."""
        drawn = {
            metric: [_drawn(series, metric, results) for series in SERIES] for metric in PANELS
        }
        panels = [
            DrawnPanel(
                Panel(
                    PANELS[metric],
                    "P(two live leaders)",
                    tuple(each.curve for each in curves),
                    logarithmic=True,
                    axis=BY_LOSS,
                    forms="proven bound",
                    apart=True,
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
            source="Probabilistic election 2000, Uniqueness (section 2.2); it has no such figure",
            shows="With known high probability, exactly one non-faulty member considers itself the "
            "leader.",
            columns=list(COLUMNS),
            rows=[row for curves in drawn.values() for each in curves for row in _rows(each, seed)],
            findings=_judge(points),
            panels=panels,
            notes=[
                "Losses are independent: under a partition each side elects for itself, and "
                "nothing notices. K = 7, 14, 28, 56, N; view_prob = 0.5, p_fail = 0.001; played by "
                "the compiled kernel. Where none was seen a triangle stands at 3/runs, the most at "
                "a level of 95 %. The bound is on the end of some round, and so on the last one.",
                SIDE_BY_SIDE,
            ],
        )


def _drawn(series: SafetyCurve, metric: str, results: Results) -> Drawn:
    curve = Curve(series.label, metric, series.cells, _bound, look=series.look, mark=series.mark)
    points = [point(curve, cell, results[cell]) for cell in curve.cells]
    values = [_bound(cell) for cell in curve.cells]
    thinned = series.reading is HASH  # the bound of the other series applies to it
    return Drawn(curve, points, [] if thinned else [FormLine(LOSSES, values, printed=False)])


def _rows(drawn: Drawn, seed: int) -> list[list[Value]]:
    rows: list[list[Value]] = []
    for each in drawn.points:
        loss = BY_LOSS.place(each.cell)
        seen = _seen(each)
        row: list[Value] = [drawn.curve.label, drawn.curve.metric, loss, each.runs, seen]
        row += [each.mean, each.stderr, None if seen else THREE / each.runs, each.exact]
        row += [stated(each.members, loss), each.cell.command(seed, each.runs)]
        rows.append(row)
    return rows


def _seen(each: MeasuredPoint) -> int:
    """In how many runs there were two leaders."""
    return round(each.mean * each.runs)


def chance_of(seen: int, mean: float) -> float:
    """The chance of at least this many, if `mean` are expected (Poisson).

    Only an excess counts, so a number that is no more than expected has chance 1.

    >>> round(chance_of(2, 1.0), 4), chance_of(0, 0.5), chance_of(3, 0.0)
    (0.2642, 1.0, 0.0)
    """
    if seen <= mean or not mean:
        return 1.0 if seen <= mean else 0.0
    term = exp(seen * log(mean) - mean - lgamma(seen + 1))
    total, number = 0.0, seen
    while term > total * 1e-17:
        total += term
        number += 1
        term *= mean / number
    return min(1.0, total)


def _at_loss(each: MeasuredPoint) -> str:
    return f" at a loss of {BY_LOSS.place(each.cell):g}, N = {each.members:,}"


def _within(claim: str, points: Sequence[MeasuredPoint]) -> Finding:
    """No point exceeds its bound, which holds up to K^2/N."""
    if doubt := too_few(points):
        return Finding(claim, ClaimVerdict.UNDECIDED, doubt, theirs=False)
    chances = [
        chance_of(_seen(each), each.runs * _bound(each.cell) * (1 + FIRST_K**2 / each.members))
        for each in points
    ]
    least = min(chances)
    ratios = [each.mean / _bound(each.cell) for each in points]
    nearest = points[chances.index(least) if least < 1.0 else ratios.index(max(ratios))]
    return Finding(
        claim,
        ClaimVerdict.FAILS if least < ALPHA / len(points) else ClaimVerdict.HOLDS,
        f"{len(points)} points; nearest: {shown(nearest)}{_at_loss(nearest)} against "
        f"{_bound(nearest.cell):.2g}.",
        theirs=False,
    )


def _stated_above() -> Finding:
    """The bound that members are told is at least the proven one."""
    pairs = [
        (stated(members, loss), proven(members, loss))
        for members in dict.fromkeys(series.members for series in SERIES)
        for loss in LOSSES
    ]
    ratios = [told / bound for told, bound in pairs]
    return Finding(
        "the bound that an elected member is told lies above the proven one",
        ClaimVerdict.HOLDS if min(ratios) >= 1 else ClaimVerdict.FAILS,
        f"By a factor of {min(ratios):.1f} to {max(ratios):.1f}.",
        theirs=False,
    )


def _judge(points: Points) -> list[Finding]:
    found = [
        settled(
            f"two leaders in fewer than {SELDOM:.0%} of elections up to a loss of {NOTICED:g} "
            f"({series.label})",
            [each for each in points[series.label, EVER] if BY_LOSS.place(each.cell) <= NOTICED],
            -inf,
            SELDOM,
            theirs=False,  # the paper speaks of a known high probability, without a number
            at=_at_loss,
        )
        for series in SERIES
    ]
    measured = [each for (_, metric), column in points.items() if metric == EVER for each in column]
    last = {series.label: points[series.label, LAST][-1:] for series in SERIES}
    return [
        *found,
        _within("two leaders are no more frequent than the bound allows", measured),
        _stated_above(),
        above(
            f"in the end thinning by hash leaves more of them, at a loss of {LOSSES[-1]:g}",
            last[HASHED.label],
            last[DELAYED.label],
            theirs=False,
        ),
    ]


FIGURES = (Safety(),)
