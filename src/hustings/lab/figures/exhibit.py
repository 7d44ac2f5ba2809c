"""What a figure consists of: points, curves, findings, and all of them made.

A `Made` holds every number that is drawn and every finding; `writing` and `drawing` turn it into
files. A verdict is always worked out from the numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol

from hustings.lab.figures.cell import Cell
from hustings.lab.figures.measuring import Results

Value = str | int | float | None
Form = Callable[[Cell], float | None]  # a closed form at a cell's parameters, None out of its reach


class Verdict(Enum):
    """What the numbers say of a claim."""

    HOLDS = "holds"
    PARTLY = "holds in part"
    FAILS = "fails"
    UNDECIDED = "undecided"  # the error bars are too wide to tell


@dataclass(frozen=True, slots=True)
class Finding:
    """A claim, what the numbers say of it, and the numbers; `theirs` when the paper makes it."""

    claim: str
    verdict: Verdict
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
class Point:
    """One measured cell of a curve, and the closed forms at its place."""

    cell: Cell
    runs: int
    mean: float
    stderr: float
    exact: float | None = None
    printed: float | None = None
    less: float = 0.0  # what has been taken off the mean

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
        """The standard error as a part of the mean that was measured."""
        measured = abs(self.mean + self.less)
        return self.stderr / measured if measured else self.stderr


@dataclass(frozen=True, slots=True)
class Curve:
    """A metric along an axis; `less` is taken off it, as a fixed delay may be."""

    label: str
    metric: str
    cells: tuple[Cell, ...]
    exact: Form | None = None
    printed: Form | None = None  # the paper's formula, where it says something else
    less: float = 0.0
    look: str = "C0"  # colour
    mark: str = "o"


@dataclass(frozen=True, slots=True)
class Axis:
    """What grows from left to right, and where on it a cell stands."""

    label: str
    place: Callable[[Cell], float]
    ticks: tuple[float, ...] = ()  # where they are not left to the picture
    logarithmic: bool = False


SIZES = Axis("members N", lambda cell: cell.members, (2, 5, 10, 20, 50, 100, 200, 500), True)


@dataclass(frozen=True, slots=True)
class Panel:
    """Curves that share axes."""

    title: str
    measure: str  # what the vertical axis shows
    curves: tuple[Curve, ...]
    logarithmic: bool = False
    axis: Axis = SIZES
    forms: str = "closed form"  # what the lines are
    apart: bool = False  # points that would cover each other stand side by side


@dataclass(frozen=True, slots=True)
class Line:
    """A closed form to be drawn."""

    places: Sequence[float]
    values: Sequence[float]
    printed: bool


@dataclass(frozen=True, slots=True)
class Drawn:
    """A curve with its numbers."""

    curve: Curve
    points: list[Point]
    lines: list[Line]


@dataclass(frozen=True, slots=True)
class DrawnPanel:
    """A panel with its numbers."""

    panel: Panel
    curves: list[Drawn]


@dataclass(frozen=True, slots=True)
class Made:
    """An exhibit with all its numbers, ready to be written."""

    name: str
    family: str
    title: str
    source: str
    shows: str
    columns: list[str]
    rows: list[list[Value]]
    findings: list[Finding]
    panels: list[DrawnPanel] = field(default_factory=list)
    as_table: bool = False  # the rows are the exhibit, not only the numbers behind it
    notes: list[str] = field(default_factory=list)

    @property
    def verdict(self) -> str:
        """Whether the paper's claims are reproduced, over all findings about them."""
        found = [finding.verdict for finding in self.findings if finding.theirs]
        if not found:
            return "nothing claimed"
        if all(verdict is Verdict.HOLDS for verdict in found):
            return "reproduced"
        if all(verdict is Verdict.FAILS for verdict in found):
            return "not reproduced"
        if all(verdict is Verdict.UNDECIDED for verdict in found):
            return "undecided"
        return "reproduced in part"

    @property
    def checked(self) -> str:
        """What came of our own checks, in a word."""
        if not self.sound:
            return "NO"
        ours = [finding.verdict for finding in self.findings if not finding.theirs]
        return "undecided" if Verdict.UNDECIDED in ours else "yes"

    @property
    def sound(self) -> bool:
        """Whether our own checks hold, above all that runs and closed forms agree."""
        return all(
            finding.verdict is not Verdict.FAILS for finding in self.findings if not finding.theirs
        )


class Exhibit(Protocol):
    """Whatever `hustings figure` can make."""

    @property
    def name(self) -> str: ...
    @property
    def family(self) -> str: ...
    @property
    def title(self) -> str: ...
    @property
    def pictured(self) -> bool:
        """Whether there is something to draw."""

    def cells(self) -> list[Cell]:
        """What has to be measured."""

    def make(self, results: Results, seed: int) -> Made:
        """The exhibit from its measured cells."""
