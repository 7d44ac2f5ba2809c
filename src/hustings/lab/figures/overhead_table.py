"""Table 1 of the overhead-aware paper: what it prints, what the formula gives, what runs count."""

from __future__ import annotations

from dataclasses import dataclass

from hustings.lab.closed_forms.overhead_table import Table1Row, table_1
from hustings.protocols.registry import find
from hustings.sim.experiment import Experiment
from hustings.sim.play import play
from hustings.sim.scenarios import Scenario

COLUMNS = ("detector", "elections", "election", "order", "printed", "formula", "run")


@dataclass(frozen=True, slots=True)
class CountedCell:
    """One cell of the table with the ELECTION and OK messages that a run of it sent."""

    row: Table1Row
    run: int

    @property
    def agrees(self) -> bool:
        """Whether the corrected formula and the run agree."""
        return self.run == self.row.counted

    @property
    def shown(self) -> list[str | int | float | None]:
        """As a row of a table, in the order of COLUMNS."""
        row = self.row
        order, printed, formula = row.printed_order, row.printed, row.counted
        return [row.detector, row.elections, row.election, order, printed, formula, self.run]

    def to_json(self) -> dict[str, object]:
        """Plain values only."""
        return {**self.row.to_json(), "run": self.run, "agrees": self.agrees}


def counted_table(n: int) -> list[CountedCell]:
    """The whole table at one n, with every cell played."""
    return [CountedCell(row, _overhead(n, row)) for row in table_1(n)]


def _overhead(n: int, row: Table1Row) -> int:
    """The paper's overhead: ELECTION and OK messages; the leader is one of the crashed."""
    kind = find(row.election)
    experiment = Experiment(
        kind=kind,
        members=n,
        config=kind.Settings(),
        scenario=Scenario(
            name="leader-crash",
            crashed=tuple(range(n - row.crashed + 1, n)),
            detectors=(row.detector_id,),
        ),
    )
    metrics = play(experiment, 0).metrics
    return int((metrics["election_messages"] or 0) + (metrics["answer_messages"] or 0))
