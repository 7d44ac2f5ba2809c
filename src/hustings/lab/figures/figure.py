"""A figure of a paper as data: which cells, which metric, which closed form beside it.

`make` joins it with measured cells into what is written and drawn.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from hustings.lab.figures.cell import Cell
from hustings.lab.figures.exhibit import (
    Curve,
    Drawn,
    DrawnPanel,
    Finding,
    Form,
    Line,
    Made,
    Panel,
    Point,
    Value,
)
from hustings.lab.figures.measuring import Results
from hustings.lab.runs.block import Block
from hustings.lab.runs.engines import FAST
from hustings.lab.runs.kernels import CUT

# Where a line is drawn, besides the points: enough for a smooth curve on a logarithmic axis.
SMOOTH = (
    *(2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 17, 20, 24, 29, 35, 42, 50, 59, 70, 84, 100),
    *(119, 141, 168, 200, 238, 283, 336, 400, 450, 500),
)

Judge = Callable[[Mapping[str, Sequence[Point]]], list[Finding]]


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure of a paper."""

    name: str
    family: str
    title: str
    source: str
    shows: str  # what the paper shows and says
    panels: tuple[Panel, ...]
    judge: Judge  # from points by the labels of their curves
    notes: tuple[str, ...] = ()
    pictured: bool = True

    def cells(self) -> list[Cell]:
        """What has to be measured."""
        return [cell for panel in self.panels for curve in panel.curves for cell in curve.cells]

    def make(self, results: Results, seed: int) -> Made:
        """The figure from its measured cells."""
        panels = [
            DrawnPanel(panel, [_draw(curve, results) for curve in panel.curves])
            for panel in self.panels
        ]
        drawn = [curve for panel in panels for curve in panel.curves]
        points = {curve.curve.label: curve.points for curve in drawn}
        used = [results[cell] for cell in dict.fromkeys(self.cells())]
        return Made(
            name=self.name,
            family=self.family,
            title=self.title,
            source=self.source,
            shows=self.shows,
            columns=list(COLUMNS),
            rows=[row for curve in drawn for row in _rows(curve, seed)],
            findings=self.judge(points),
            panels=panels,
            notes=[*self.notes, *_about_engines(self.cells()), *_about_runs(used)],
        )


COLUMNS = (
    "series",
    "metric",
    "members",
    "runs",
    "mean",
    "stderr",
    "closed_form",
    "z",
    "printed_formula",
    "command",
)


def point(curve: Curve, cell: Cell, result: Block) -> Point:
    """One point of a curve."""
    moments = result.metrics[curve.metric]
    return Point(
        cell=cell,
        runs=result.runs,
        mean=moments.mean - curve.less,
        stderr=moments.stderr,
        exact=None if curve.exact is None else curve.exact(cell),
        printed=None if curve.printed is None else curve.printed(cell),
        less=curve.less,
    )


def _draw(curve: Curve, results: Results) -> Drawn:
    points = [point(curve, cell, results[cell]) for cell in curve.cells]
    lines = []
    if points:
        for form, printed in ((curve.exact, False), (curve.printed, True)):
            if form is not None:
                lines.append(_line(curve, form, printed))
    return Drawn(curve, points, [line for line in lines if line.values])


def _line(curve: Curve, form: Form, printed: bool) -> Line:
    own = [cell.members for cell in curve.cells]
    places: list[int] = []
    values: list[float] = []
    for members in sorted({*own, *(each for each in SMOOTH if min(own) <= each <= max(own))}):
        value = form(msgspec.structs.replace(curve.cells[0], members=members))
        if value is not None:
            places.append(members)
            values.append(value)
    return Line(places, values, printed)


def _rows(drawn: Drawn, seed: int) -> list[list[Value]]:
    """The points, and where a line passes between them."""
    curve = drawn.curve
    by_place: dict[float, Point] = {each.members: each for each in drawn.points}
    exact, printed = (
        dict(zip(line.places, line.values, strict=True)) if line is not None else {}
        for line in (
            next((line for line in drawn.lines if line.printed is kind), None)
            for kind in (False, True)
        )
    )
    rows: list[list[Value]] = []
    for members in sorted({*by_place, *exact, *printed}):
        row: list[Value] = [curve.label, curve.metric, members]
        found = by_place.get(members)
        if found is None:
            row += [None, None, None, exact.get(members), None, printed.get(members), None]
        else:
            row += [found.runs, found.mean, found.stderr, exact.get(members), found.z]
            row += [printed.get(members), found.cell.command(seed, found.runs)]
        rows.append(row)
    return rows


def _about_engines(cells: Sequence[Cell]) -> list[str]:
    """Which points are not the event simulator's."""
    engines = {cell.engine for cell in cells}
    if FAST not in engines:
        return []
    if len(engines) == 1:
        return ["Played by the compiled kernels."]
    return ["Played by the compiled kernels, and message by message what these do not know."]


def _about_runs(results: Sequence[Block]) -> list[str]:
    """What a reader should know of the runs behind a figure."""
    notes = []
    cut = sum(block.endings.get(name, 0) for block in results for name in ("max-events", CUT))
    if cut:
        notes.append(f"{cut} runs were cut off by their limit.")
    violated = sum(block.violated for block in results)
    if violated:
        notes.append(f"{violated} runs violated a property that their protocol promises.")
    return notes
