"""The classic elections' tables as exhibits: protocols side by side, and the overhead table."""

from __future__ import annotations

from hustings.figures.comparison import MESSAGES, compare
from hustings.figures.exhibit import Finding, Verdict
from hustings.figures.measuring import Results
from hustings.figures.overhead_table import COLUMNS, counted_table
from hustings.figures.table import Filled, Table
from hustings.protocols.catalogue import COMPARED
from hustings.sim.experiment import Experiment
from hustings.sim.scenarios import Scenario

FAMILY = "classic"
MEMBERS = 64


def _comparison(results: Results) -> Filled:
    rows = compare(
        Experiment(
            kind=kind,
            members=MEMBERS,
            config=kind.Settings(),
            scenario=Scenario(name="leader-crash"),
        )
        for kind in COMPARED
    )
    differing = [row.protocol for row in rows if row.agrees is False]
    with_formula = [row for row in rows if row.agrees is not None]
    check = Finding(
        "runs and closed forms agree in every count",
        Verdict.FAILS if differing else Verdict.HOLDS,
        f"They differ for {', '.join(differing)}."
        if differing
        else f"{len(with_formula)} protocols with {sum(len(r.formula) for r in rows)} counts.",
        theirs=False,
    )
    return Filled(
        columns=["protocol", *MESSAGES, "messages", "formula", "time", "formula_time", "agrees"],
        rows=[
            [
                row.protocol,
                *row.by_role,
                row.counted["messages"],
                row.formula.get("messages"),
                row.counted["time"],
                row.formula.get("time"),
                {True: "yes", False: "no", None: None}[row.agrees],
            ]
            for row in rows
        ],
        findings=[check],
    )


def _overhead(results: Results) -> Filled:
    cells = counted_table(MEMBERS)
    wrong = [cell for cell in cells if cell.row.printed != cell.row.counted]
    differing = [cell for cell in cells if not cell.agrees]
    return Filled(
        columns=list(COLUMNS),
        rows=[cell.shown for cell in cells],
        findings=[
            Finding(
                "the printed overheads are those of the protocols",
                Verdict.FAILS if wrong else Verdict.HOLDS,
                f"{len(wrong)} of {len(cells)} cells differ from what is counted.",
            ),
            Finding(
                "runs and corrected formulas agree in every cell",
                Verdict.FAILS if differing else Verdict.HOLDS,
                f"{len(cells) - len(differing)} of {len(cells)} cells agree.",
                theirs=False,
            ),
        ],
    )


EXHIBITS = (
    Table(
        name="classic-comparison",
        family=FAMILY,
        title=f"Classic elections after a leader's crash, {MEMBERS} members",
        source="Elections lecture and relatives",
        shows="What one election costs when the worst live member notices the crash.",
        needs=(),
        fill=_comparison,
    ),
    Table(
        name="overhead-table-1",
        family=FAMILY,
        title=f"Overhead-aware election, Table 1, n = {MEMBERS}",
        source="Overhead-aware paper, Table 1",
        shows="ELECTION and OK messages by who detects the crash and how many candidates are dead.",
        needs=(),
        fill=_overhead,
    ),
)
