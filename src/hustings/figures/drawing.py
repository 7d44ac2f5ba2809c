"""Pictures with matplotlib: the only module that needs it, and imported only to draw.

Points with bars of two standard errors, closed forms as lines, formulas as printed in the paper as
dashed lines. The same numbers give the same bytes under one version of matplotlib.
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

from matplotlib import rc_context
from matplotlib.figure import Figure

from hustings.figures.exhibit import Drawn, DrawnPanel, Made, Panel

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.typing import RcKeyType

WIDTH, HEIGHT = 6.4, 4.6  # inches of one panel
DPI = 150


def draw(made: Made) -> dict[str, bytes]:
    """The picture of an exhibit, by the ending of its file."""
    pictures = {}
    with rc_context(_settings(made.name)):
        figure = Figure(figsize=(WIDTH * len(made.panels), HEIGHT), dpi=DPI, layout="constrained")
        figure.suptitle(made.title, fontsize=10)
        for place, panel in enumerate(made.panels, 1):
            _draw_panel(figure.add_subplot(1, len(made.panels), place), panel)
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
        "font.family": "DejaVu Sans",  # comes with matplotlib, so letters are the same everywhere
        "font.size": 9.0,
        "grid.alpha": 0.3,
        "legend.fontsize": 8.0,
        "svg.fonttype": "path",
        "svg.hashsalt": salt,  # else the names of shapes are drawn by lot
    }


def _draw_panel(axes: Axes, panel: DrawnPanel) -> None:
    axis = panel.panel.axis
    for drawn in panel.curves:
        _draw_curve(axes, drawn, panel.panel)
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
        axes.set_ylim(0, 1.15 * axes.get_ylim()[1])  # room for the legend
    if panel.panel.title:
        axes.set_title(panel.panel.title, fontsize=9)
    for printed in sorted({line.printed for drawn in panel.curves for line in drawn.lines}):
        label = "formula as printed" if printed else panel.panel.forms
        axes.plot([], [], _style(printed), color="0.4", linewidth=1.0, label=label)
    axes.legend(framealpha=0.85)


def _draw_curve(axes: Axes, drawn: Drawn, panel: Panel) -> None:
    curve = drawn.curve
    # What has never happened has no place on a logarithmic axis.
    points = [point for point in drawn.points if point.mean > 0 or not panel.logarithmic]
    axes.errorbar(
        [panel.axis.place(point.cell) for point in points],
        [point.mean for point in points],
        yerr=[2 * point.stderr for point in points],
        fmt=curve.mark,
        color=curve.look,
        markersize=4.5,
        markerfacecolor="none",
        capsize=2.5,
        elinewidth=0.8,
        label=curve.label,
    )
    for line in drawn.lines:
        axes.plot(
            line.places,
            line.values,
            _style(line.printed),
            color=curve.look,
            alpha=0.7,
            linewidth=1.0,
        )


def _style(printed: bool) -> str:
    return "--" if printed else "-"
