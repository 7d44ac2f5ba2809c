"""The cells of the figures: elections by committees on the compiled engine, and their rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hustings.lab.figures.figure import Axis, ClaimVerdict, Drawn, Finding, MeasuredPoint, Value
from hustings.lab.figures.judging import limit, shown, too_few
from hustings.lab.figures.measurement import Measurement
from hustings.lab.runs.engines import FAST

FAMILY = "committee"
SOURCE = "Scalable Byzantine election 2006"
SIZES = (1_000, 10_000, 100_000)
LOOKS = ("C0", "C1", "C3")
MARKS = ("o", "s", "^")
PERCENTS = (0, 5, 10, 15, 20, 25, 30)  # of bad members
LINE = (0, 2, 5, 8, 10, 13, 15, 18, 20, 23, 25, 28, 30, 32)  # where closed forms are drawn
COLUMNS = ("series", "metric", "place", "runs", "mean", "stderr", "closed_form", "command")
AIMS = ("p_good", "informed", "bits_mean")

DUST = 1e-12

Runs = tuple[tuple[int, int], ...]
RUNS: Runs = ((3_000, 200), (1_000_000, 100), (10**9, 40))  # for groups below this many members


def election(
    members: int, percent: int, adversary: str, profile: str = "lean", runs: int | None = None
) -> Measurement:
    """One point; `runs` is given where the usual number of runs would not decide."""
    return Measurement(
        protocol="committee",
        members=members,
        delay=1.0,
        settings=(
            ("b", repr(percent / 100)),
            ("adversary", adversary),
            ("profile", profile),
        ),
        engine=FAST,
        runs=runs or next(usual for most, usual in RUNS if members < most),
        aims=AIMS,
        work=members / 100,
    )


def percent_of(cell: Measurement) -> int:
    """The share of bad members in per cent."""
    return round(100 * float(dict(cell.settings)["b"]))


BY_SHARE = Axis("bad members, per cent", percent_of)


def rows(drawn: Drawn, axis: Axis, seed: int) -> list[list[Value]]:
    """The points of a curve, and where its closed form passes between them."""
    forms = {
        place: value
        for line in drawn.lines
        for place, value in zip(line.places, line.values, strict=True)
    }
    label, metric = drawn.curve.label, drawn.curve.metric
    found: list[list[Value]] = []
    for each in drawn.points:
        place = axis.place(each.cell)
        command = each.cell.command(seed, each.runs)
        found.append([label, metric, place, each.runs, each.mean, each.stderr, each.exact, command])
        forms.pop(round(place), None)
    for place, value in forms.items():
        found.append([label, metric, place, None, None, None, value, None])
    return found


def bounded(
    claim: str,
    points: Sequence[MeasuredPoint],
    low: float,
    high: float = float("inf"),
    *,
    theirs: bool = True,
) -> Finding:
    """All points lie within a range, allowing for chance."""
    if doubt := too_few(points):
        return Finding(claim, ClaimVerdict.UNDECIDED, doubt, theirs)
    most = limit(len(points))
    beyond = [
        each
        for each in points
        if each.mean - most * each.stderr > high or each.mean + most * each.stderr < low
    ]
    inside = all(
        low <= each.mean - most * each.stderr and each.mean + most * each.stderr <= high
        for each in points
    )
    verdict = (
        ClaimVerdict.FAILS if beyond else ClaimVerdict.HOLDS if inside else ClaimVerdict.UNDECIDED
    )
    worst = max(points, key=lambda each: max(low - each.mean, each.mean - high))
    return Finding(claim, verdict, f"{_many(points)}; nearest or beyond: {told(worst)}.", theirs)


def near(claim: str, points: Sequence[MeasuredPoint], slack: float, part: float = 0.0) -> Finding:
    """Points lie at their closed forms, whose own error is a slack or a share of the value."""
    pairs = [(each, each.exact) for each in points if each.exact is not None]
    if not pairs:
        return Finding(claim, ClaimVerdict.UNDECIDED, "Nothing to compare.", theirs=False)
    if doubt := too_few([each for each, _ in pairs]):
        return Finding(claim, ClaimVerdict.UNDECIDED, doubt, theirs=False)
    most = limit(len(pairs))
    off = [
        abs(each.mean - value) - most * each.stderr - slack - part * abs(value)
        for each, value in pairs
    ]
    worst, value = pairs[max(range(len(pairs)), key=off.__getitem__)]
    return Finding(
        claim,
        ClaimVerdict.FAILS if max(off) > 0 else ClaimVerdict.HOLDS,
        f"{_many(points)}; farthest off: {told(worst)} against {value:.4g}.",
        theirs=False,
    )


def told(point: MeasuredPoint) -> str:
    """A point with its place; an error that is only rounding, in equal runs, counts as 0."""
    if point.stderr < DUST:
        point = replace(point, stderr=0.0)
    return f"{shown(point)} at n = {point.members:,}, b = {percent_of(point.cell)} per cent"


def _many(points: Sequence[MeasuredPoint]) -> str:
    return f"{len(points)} points" if len(points) != 1 else "1 point"
