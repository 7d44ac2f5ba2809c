"""Pictures with matplotlib: the only module that needs it, imported only to draw.

Points have bars of two standard errors, closed forms are lines, and formulas as printed in the
paper are dashed lines. The same numbers give the same bytes under one version of matplotlib.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from matplotlib import rc_context
from matplotlib.figure import Figure

from hustings.lab.figures.figure import Curve, Drawn, DrawnPanel, MeasuredPoint, Panel, Rendered

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.typing import RcKeyType

WIDTH, HEIGHT = 6.4, 4.6  # inches of one panel
DPI = 150
ASIDE = 0.011  # share of the axis between two curves whose points stand side by side

# An event not seen in R runs happens, with 95 % confidence, in at most 3/R of all runs.
RULE_OF_THREE = 3.0
ZERO = "0 in all runs: at most 3/runs (95 %)"


def draw(made: Rendered) -> dict[str, bytes]:
    """The picture of a figure, in the format of the file's ending."""
    with rc_context(_settings(made.name)):
        figure = Figure(figsize=(WIDTH * len(made.panels), HEIGHT), dpi=DPI, layout="constrained")
        figure.suptitle(made.title, fontsize=10)
        for place, panel in enumerate(made.panels, 1):
            _draw_panel(figure.add_subplot(1, len(made.panels), place), panel)
        return _saved(figure)


def draw_one(name: str, draw: Callable[[Axes], object]) -> dict[str, bytes]:
    """A picture with one panel, which a function draws."""
    with rc_context(_settings(name)):
        figure = Figure(figsize=(WIDTH, HEIGHT), dpi=DPI, layout="constrained")
        draw(figure.add_subplot())
        return _saved(figure)


def _saved(figure: Figure) -> dict[str, bytes]:
    pictures = {}
    for form, metadata in (("png", {"Software": None}), ("svg", {"Date": None})):
        out = io.BytesIO()
        figure.savefig(out, format=form, metadata=metadata)
        pictures[form] = out.getvalue()
    return pictures


def _settings(salt: str) -> dict[RcKeyType, Any]:
    return {
        "axes.grid": True,
        "axes.spines.right": False,
        "axes.spines.top": False,
        "font.family": "DejaVu Sans",  # part of matplotlib, so letters are the same everywhere
        "font.size": 9.0,
        "grid.alpha": 0.3,
        "legend.fontsize": 8.0,
        "svg.fonttype": "path",
        "svg.hashsalt": salt,  # otherwise the names of shapes are random
    }


def _draw_panel(axes: Axes, panel: DrawnPanel) -> None:
    axis = panel.panel.axis
    for place, drawn in enumerate(panel.curves):
        _draw_curve(axes, drawn, panel.panel, _aside(panel, place))
    if axis.logarithmic:
        axes.set_xscale("log")
    if axis.ticks:
        axes.set_xticks(axis.ticks, [f"{tick:g}" for tick in axis.ticks])
        axes.minorticks_off()
    axes.set_xlabel(axis.label)
    axes.set_ylabel(panel.panel.measure)
    if panel.panel.logarithmic:
        axes.set_yscale("log")
    else:
        axes.set_ylim(bottom=0)
    if panel.panel.title:
        axes.set_title(panel.panel.title, fontsize=9)
    if panel.panel.logarithmic and any(_zeros(drawn) for drawn in panel.curves):
        axes.plot([], [], "v", color="0.4", markersize=4.5, label=ZERO)
    for printed in sorted({line.printed for drawn in panel.curves for line in drawn.lines}):
        label = "formula as printed" if printed else panel.panel.forms
        axes.plot([], [], _style(printed), color="0.4", linewidth=1.0, label=label)
    # Below the panel, where it covers no point.
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.13), ncols=2, frameon=False)


def _aside(panel: DrawnPanel, place: int) -> float:
    """How far to the right of their place the points of a curve are drawn."""
    drawn = panel.curves
    if not panel.panel.apart:
        return 0.0
    places = [panel.panel.axis.place(point.cell) for each in drawn for point in each.points]
    return ASIDE * (max(places) - min(places)) * (place - (len(drawn) - 1) / 2)


def _draw_curve(axes: Axes, drawn: Drawn, panel: Panel, aside: float) -> None:
    curve = drawn.curve
    points = [point for point in drawn.points if point.mean > 0 or not panel.logarithmic]
    if panel.logarithmic and (zeros := _zeros(drawn)):
        # 0 has no place on a logarithmic axis; the most that the runs allow has one.
        axes.plot(
            [panel.axis.place(point.cell) + aside for point in zeros],
            [RULE_OF_THREE / point.runs for point in zeros],
            "v",
            color=curve.look,
            markersize=4.5,
            label=None if points else curve.label,
        )
    shown = bool(points or (panel.logarithmic and _zeros(drawn)))
    if points:
        _draw_points(axes, curve, panel, points, aside)
    for line in drawn.lines:
        # For a curve without points, the legend shows its first line.
        named = not shown and line is drawn.lines[0]
        axes.plot(
            line.places,
            line.values,
            _style(line.printed),
            color=curve.look,
            alpha=0.7,
            linewidth=1.0,
            label=curve.label if named else None,
        )


def _draw_points(
    axes: Axes, curve: Curve, panel: Panel, points: list[MeasuredPoint], aside: float
) -> None:
    axes.errorbar(
        [panel.axis.place(point.cell) + aside for point in points],
        [point.mean for point in points],
        yerr=[
            [_below(point, panel.logarithmic) for point in points],
            [2 * point.stderr for point in points],
        ],
        fmt=curve.mark,
        color=curve.look,
        markersize=4.5,
        markerfacecolor="none",
        capsize=2.5,
        elinewidth=0.8,
        label=curve.label,
    )


def _below(point: MeasuredPoint, logarithmic: bool) -> float:
    """How far a point's bar reaches down; on a logarithmic axis it must not reach 0."""
    return min(2 * point.stderr, 0.9 * point.mean) if logarithmic else 2 * point.stderr


def _zeros(drawn: Drawn) -> list[MeasuredPoint]:
    """Points whose event was never seen."""
    return [point for point in drawn.points if point.mean == 0]


def _style(printed: bool) -> str:
    return "--" if printed else "-"
