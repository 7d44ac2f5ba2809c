"""A table of a paper, or of claims: rows instead of curves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hustings.lab.figures.cell import Cell
from hustings.lab.figures.exhibit import Finding, Made, Value
from hustings.lab.figures.measuring import Results


@dataclass(frozen=True, slots=True)
class Filled:
    """A table with its contents."""

    columns: list[str]
    rows: list[list[Value]]
    findings: list[Finding]


@dataclass(frozen=True, slots=True)
class Table:
    """Rows worked out from measured cells."""

    name: str
    family: str
    title: str
    source: str
    shows: str
    needs: tuple[Cell, ...]
    fill: Callable[[Results], Filled]
    notes: tuple[str, ...] = ()
    pictured: bool = False

    def cells(self) -> list[Cell]:
        """What has to be measured."""
        return list(self.needs)

    def make(self, results: Results, seed: int) -> Made:
        """The table from its measured cells."""
        filled = self.fill(results)
        return Made(
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
