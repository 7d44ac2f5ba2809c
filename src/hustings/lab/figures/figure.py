"""Figures and tables of the papers: their parts, and how they are rendered.

A `Figure` says which measurements it needs and makes a `Rendered` of them: every number that is
shown or drawn, and every finding. `CurveFigure` is a figure of curves over an axis, `TableFigure` a
table; a figure of another kind has a class of its own beside its paper. `writing` and `drawing`
turn the rendered figure into files. Every verdict is computed from the numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol

import msgspec

from hustings.lab.figures.measurement import Measurement
from hustings.lab.figures.measuring import Results
from hustings.lab.runs.block import Block
from hustings.lab.runs.engines import FAST
from hustings.lab.runs.kernels import CUT

Value = str | int | float | None
Form = Callable[
    [Measurement], float | None
]  # a closed form at a cell's parameters; None where it makes no statement


class ClaimVerdict(Enum):
    """What the numbers say about a claim."""

    HOLDS = "holds"
    PARTLY = "holds in part"
    FAILS = "fails"
    UNDECIDED = "undecided"  # the error bars are too wide to decide


@dataclass(frozen=True, slots=True)
class Finding:
    """A claim, its verdict, and the numbers; `theirs` if the paper makes the claim."""

    claim: str
    verdict: ClaimVerdict
    evidence: str
    theirs: bool = True

    def to_json(self) -> dict[str, object]:
        """Plain values only."""
        return {
            "claim": self.claim,
            "by": "paper" if self.theirs else "hustings",
            "verdict": self.verdict.value,
            "evidence": self.evidence,
        }


@dataclass(frozen=True, slots=True)
class MeasuredPoint:
    """One measured cell of a curve, and the closed forms at its place."""

    cell: Measurement
    runs: int
    mean: float
    stderr: float
    exact: float | None = None
    printed: float | None = None
    less: float = 0.0  # what was subtracted from the mean

    @property
    def members(self) -> int:
        """The place on the axis."""
        return self.cell.members

    @property
    def z(self) -> float | None:
        """How many standard errors lie between the points and the closed form."""
        if self.exact is None:
            return None
        if self.mean == self.exact:
            return 0.0
        return (self.mean - self.exact) / self.stderr if self.stderr else None

    @property
    def relative(self) -> float:
        """The standard error as a share of the measured mean."""
        measured = abs(self.mean + self.less)
        return self.stderr / measured if measured else self.stderr


@dataclass(frozen=True, slots=True)
class Curve:
    """A metric along an axis; `less` is subtracted from it, for example a fixed delay."""

    label: str
    metric: str
    cells: tuple[Measurement, ...]
    exact: Form | None = None
    printed: Form | None = None  # the paper's formula, where it differs
    less: float = 0.0
    look: str = "C0"  # colour
    mark: str = "o"


@dataclass(frozen=True, slots=True)
class Axis:
    """What grows from left to right, and the place of a cell on it."""

    label: str
    place: Callable[[Measurement], float]
    ticks: tuple[float, ...] = ()  # empty: the picture chooses them
    logarithmic: bool = False


SIZES = Axis("members N", lambda cell: cell.members, (2, 5, 10, 20, 50, 100, 200, 500), True)


@dataclass(frozen=True, slots=True)
class Panel:
    """Curves on the same axes."""

    title: str
    measure: str  # the label of the vertical axis
    curves: tuple[Curve, ...]
    logarithmic: bool = False
    axis: Axis = SIZES
    forms: str = "closed form"  # the meaning of the lines
    apart: bool = False  # draw points side by side that would cover each other


@dataclass(frozen=True, slots=True)
class FormLine:
    """A closed form to draw."""

    places: Sequence[float]
    values: Sequence[float]
    printed: bool


@dataclass(frozen=True, slots=True)
class Drawn:
    """A curve with its numbers."""

    curve: Curve
    points: list[MeasuredPoint]
    lines: list[FormLine]


@dataclass(frozen=True, slots=True)
class DrawnPanel:
    """A panel with its numbers."""

    panel: Panel
    curves: list[Drawn]


@dataclass(frozen=True, slots=True)
class Rendered:
    """A figure with all its numbers, ready to be written."""

    name: str
    family: str
    title: str
    source: str
    shows: str
    columns: list[str]
    rows: list[list[Value]]
    findings: list[Finding]
    panels: list[DrawnPanel] = field(default_factory=list)
    as_table: bool = False  # the rows are the figure, and not only the numbers behind it
    notes: list[str] = field(default_factory=list)

    @property
    def verdict(self) -> str:
        """Whether the paper's claims are reproduced, over all findings about them."""
        found = [finding.verdict for finding in self.findings if finding.theirs]
        if not found:
            return "nothing claimed"
        if all(verdict is ClaimVerdict.HOLDS for verdict in found):
            return "reproduced"
        if all(verdict is ClaimVerdict.FAILS for verdict in found):
            return "not reproduced"
        if all(verdict is ClaimVerdict.UNDECIDED for verdict in found):
            return "undecided"
        return "reproduced in part"

    @property
    def checked(self) -> str:
        """The result of our own checks, in a word."""
        if not self.sound:
            return "NO"
        ours = [finding.verdict for finding in self.findings if not finding.theirs]
        return "undecided" if ClaimVerdict.UNDECIDED in ours else "yes"

    @property
    def sound(self) -> bool:
        """Whether our own checks hold, above all that runs and closed forms agree."""
        return all(
            finding.verdict is not ClaimVerdict.FAILS
            for finding in self.findings
            if not finding.theirs
        )


class Figure(Protocol):
    """The interface of everything that `hustings figure` can make."""

    @property
    def name(self) -> str: ...
    @property
    def family(self) -> str: ...
    @property
    def title(self) -> str: ...
    @property
    def pictured(self) -> bool:
        """Whether there is a picture to draw."""

    def cells(self) -> list[Measurement]:
        """What has to be measured."""

    def make(self, results: Results, seed: int) -> Rendered:
        """The figure from its measured cells."""


# Curves over an axis

# Places of a line besides the points: enough for a smooth curve on a logarithmic axis.
SMOOTH = (
    *(2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 17, 20, 24, 29, 35, 42, 50, 59, 70, 84, 100),
    *(119, 141, 168, 200, 238, 283, 336, 400, 450, 500),
)

Judge = Callable[[Mapping[str, Sequence[MeasuredPoint]]], list[Finding]]


@dataclass(frozen=True, slots=True)
class CurveFigure:
    """A figure of a paper."""

    name: str
    family: str
    title: str
    source: str
    shows: str  # what the paper shows and says
    panels: tuple[Panel, ...]
    judge: Judge  # judges points by the labels of their curves
    notes: tuple[str, ...] = ()
    pictured: bool = True

    def cells(self) -> list[Measurement]:
        """What has to be measured."""
        return [cell for panel in self.panels for curve in panel.curves for cell in curve.cells]

    def make(self, results: Results, seed: int) -> Rendered:
        """The figure from its measured cells."""
        panels = [
            DrawnPanel(panel, [_draw(curve, results) for curve in panel.curves])
            for panel in self.panels
        ]
        drawn = [curve for panel in panels for curve in panel.curves]
        points = {curve.curve.label: curve.points for curve in drawn}
        used = [results[cell] for cell in dict.fromkeys(self.cells())]
        return Rendered(
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


def point(curve: Curve, cell: Measurement, result: Block) -> MeasuredPoint:
    """One point of a curve."""
    moments = result.metrics[curve.metric]
    return MeasuredPoint(
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


def _line(curve: Curve, form: Form, printed: bool) -> FormLine:
    own = [cell.members for cell in curve.cells]
    places: list[int] = []
    values: list[float] = []
    for members in sorted({*own, *(each for each in SMOOTH if min(own) <= each <= max(own))}):
        value = form(msgspec.structs.replace(curve.cells[0], members=members))
        if value is not None:
            places.append(members)
            values.append(value)
    return FormLine(places, values, printed)


def _rows(drawn: Drawn, seed: int) -> list[list[Value]]:
    """The points, and the closed forms between them."""
    curve = drawn.curve
    by_place: dict[float, MeasuredPoint] = {each.members: each for each in drawn.points}
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


def _about_engines(cells: Sequence[Measurement]) -> list[str]:
    """A note on points that the event simulator did not play."""
    engines = {cell.engine for cell in cells}
    if FAST not in engines:
        return []
    if len(engines) == 1:
        return ["Played by the compiled kernels."]
    return ["Played by the compiled kernels, and message by message what these do not know."]


def _about_runs(results: Sequence[Block]) -> list[str]:
    """A note on the runs behind a figure."""
    notes = []
    cut = sum(block.endings.get(name, 0) for block in results for name in ("max-events", CUT))
    if cut:
        notes.append(f"{cut} runs were cut off by their limit.")
    violated = sum(block.violated for block in results)
    if violated:
        notes.append(f"{violated} runs violated a property that their protocol promises.")
    return notes


# Tables


@dataclass(frozen=True, slots=True)
class TableContent:
    """The content of a table."""

    columns: list[str]
    rows: list[list[Value]]
    findings: list[Finding]


@dataclass(frozen=True, slots=True)
class TableFigure:
    """Rows computed from measured cells."""

    name: str
    family: str
    title: str
    source: str
    shows: str
    needs: tuple[Measurement, ...]
    fill: Callable[[Results], TableContent]
    notes: tuple[str, ...] = ()
    pictured: bool = False

    def cells(self) -> list[Measurement]:
        """What has to be measured."""
        return list(self.needs)

    def make(self, results: Results, seed: int) -> Rendered:
        """The table from its measured cells."""
        filled = self.fill(results)
        return Rendered(
            name=self.name,
            family=self.family,
            title=self.title,
            source=self.source,
            shows=self.shows,
            columns=filled.columns,
            rows=filled.rows,
            findings=filled.findings,
            as_table=True,
            notes=list(self.notes),
        )
