"""A sweep as a picture: a metric along one axis of the grid, a curve for every other combination.

The picture is the figures' own: points with bars of two standard errors.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from hustings.core.errors import BadInput, UnknownName
from hustings.lab.figures import figure as figures
from hustings.lab.figures.measurement import Measurement
from hustings.lab.runs.playing import USUAL, Precision
from hustings.lab.sweeps.points import SweepPoint, SweepResult, Value

MOST_CURVES = 16
MOST_METRICS = 4
WIDE = 50.0  # from this ratio of largest to smallest value on, an axis is logarithmic
MARKS = "osD^v<>*"


@dataclass(frozen=True, slots=True)
class PictureLayout:
    """What to draw: the parameter of the axis, with a curve for every combination of the others."""

    along: str
    apart: tuple[str, ...]
    metrics: tuple[str, ...] = ()  # the metrics that the points aim at
    log: bool = False  # the vertical axis

    def curve(self, point: SweepPoint) -> str:
        """The curve that a point lies on."""
        told = [_told(key, point.parameters.get(key)) for key in self.apart]
        return ", ".join(each for each in told if each) or self.along


def _told(key: str, value: Value) -> str:
    if value is None:
        return ""
    return str(value) if key in ("protocol", "engine") else f"{key}={value}"


def plan(points: Sequence[SweepPoint], wishes: Mapping[str, object]) -> PictureLayout | str:
    """The requested layout, else the one that fits; or why there is nothing to draw."""
    known = ("x", "metric", "log")
    for key in wishes:
        if key not in known:
            raise UnknownName("key", key, known)
    varied = _varied(points)
    numeric = [key for key, values in varied.items() if all(map(_is_number, values))]
    x = wishes.get("x")
    if x is not None and (not isinstance(x, str) or x not in numeric):
        raise UnknownName("axis of numbers", str(x), numeric)
    if x is None and not numeric:
        return "nothing is drawn: no parameter takes several numbers"
    along = x if isinstance(x, str) else max(numeric, key=lambda key: len(varied[key]))
    log = wishes.get("log", False)
    if not isinstance(log, bool):
        raise BadInput("log must be true or false")
    apart = tuple(key for key in varied if key != along)
    found = PictureLayout(along, apart, _metrics(wishes.get("metric", [])), log)
    curves = len(dict.fromkeys(map(found.curve, points)))
    if curves > MOST_CURVES:
        return f"nothing is drawn: {curves} curves are more than the {MOST_CURVES} of one picture"
    return found


def _metrics(wish: object) -> tuple[str, ...]:
    metrics = wish if isinstance(wish, list) else [wish]
    if not all(isinstance(each, str) for each in metrics) or len(metrics) > MOST_METRICS:
        raise BadInput(f"metric must be a name, or a list of at most {MOST_METRICS}")
    return tuple(metrics)


def _varied(points: Sequence[SweepPoint]) -> dict[str, list[Value]]:
    """Parameters with more than one value, and their values."""
    keys = dict.fromkeys(key for point in points for key in point.parameters)
    values = {
        key: list(dict.fromkeys(point.parameters.get(key) for point in points)) for key in keys
    }
    return {key: each for key, each in values.items() if len(each) > 1}


def _is_number(value: Value) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def made_of(name: str, results: Sequence[SweepResult], plan: PictureLayout) -> figures.Rendered:
    """The picture of results, ready to be drawn."""
    places: dict[Measurement, float] = {}
    cells: list[Measurement] = []
    for number, result in enumerate(results):
        cell = Measurement(
            protocol=result.point.experiment.kind.about.name,
            members=result.point.experiment.members,
            settings=(("point", str(number)),),  # so that no two are equal
            aims=(),
        )
        cells.append(cell)
        places[cell] = float(str(result.point.parameters[plan.along]))
    axis = figures.Axis(plan.along, places.__getitem__, logarithmic=_wide(places.values()))
    panels = []
    for metric in plan.metrics or (aimed_at(results),):
        if not any(metric in result.block.metrics for result in results):
            known = dict.fromkeys(each for result in results for each in result.block.metrics)
            raise UnknownName("metric", metric, known)
        panels.append(_panel(metric, results, cells, plan, axis))
    return figures.Rendered(
        name=name,
        family="sweep",
        title=name,
        source="",
        shows="",
        columns=[],
        rows=[],
        findings=[],
        panels=panels,
    )


def aimed_at(results: Sequence[SweepResult]) -> str:
    """The metric that the points aim at."""
    goals = [result.point.goal for result in results]
    known = dict.fromkeys(each for result in results for each in result.block.metrics)
    for goal, result in zip(goals, results, strict=True):
        if isinstance(goal, Precision):
            return goal.aim(result.block.metrics)
    return next((name for name in USUAL if name in known), next(reversed(known)))


def _panel(
    metric: str,
    results: Sequence[SweepResult],
    cells: list[Measurement],
    plan: PictureLayout,
    axis: figures.Axis,
) -> figures.DrawnPanel:
    curves: dict[str, list[figures.MeasuredPoint]] = {}
    for result, cell in zip(results, cells, strict=True):
        column = result.block.metrics.get(metric)
        if column is None or not column.moments.count:
            continue
        stderr = column.moments.stderr if column.moments.count > 1 else 0.0
        curves.setdefault(plan.curve(result.point), []).append(
            figures.MeasuredPoint(cell, result.block.runs, column.moments.mean, stderr)
        )
    drawn = [
        figures.Drawn(
            figures.Curve(
                label,
                metric,
                tuple(point.cell for point in points),
                look=f"C{place % 10}",
                mark=f"{MARKS[place % len(MARKS)]}-",
            ),
            sorted(points, key=lambda point: axis.place(point.cell)),
            [],
        )
        for place, (label, points) in enumerate(curves.items())
    ]
    panel = figures.Panel(
        "", metric, tuple(each.curve for each in drawn), logarithmic=plan.log, axis=axis
    )
    return figures.DrawnPanel(panel, drawn)


def _wide(places: Collection[float]) -> bool:
    return min(places) > 0 and max(places) / min(places) >= WIDE
