"""The classic elections' tables as figures: protocols side by side, and the overhead table."""

from __future__ import annotations

from math import log2

from hustings.lab.figures.comparison import MESSAGES, compare
from hustings.lab.figures.figure import ClaimVerdict, Finding, TableContent, TableFigure
from hustings.lab.figures.measuring import Results
from hustings.lab.figures.overhead_table import COLUMNS, counted_table
from hustings.protocols.registry import COMPARED, classes
from hustings.sim.experiment import Experiment
from hustings.sim.scenarios import Scenario

FAMILY = "classic"
MEMBERS = 64


POWERS = {"2": 0, "O(n)": 1, "O(n^2)": 2}  # the orders in the table, as powers of n


def growth(count: int, doubled: int) -> int:
    """The power of n by which a count grows when n is doubled, to the nearest whole number.

    >>> growth(2, 2), growth(33, 65), growth(3969, 16129)
    (0, 1, 2)
    """
    return round(log2(doubled / count))


def _comparison(results: Results) -> TableContent:
    rows = compare(
        Experiment(
            kind=kind,
            members=MEMBERS,
            config=kind.Settings(),
            scenario=Scenario(name="leader-crash"),
        )
        for kind in classes(COMPARED)
    )
    differing = [row.protocol for row in rows if row.agrees is False]
    with_formula = [row for row in rows if row.agrees is not None]
    check = Finding(
        "runs and closed forms agree in every count",
        ClaimVerdict.FAILS if differing else ClaimVerdict.HOLDS,
        f"They differ for {', '.join(differing)}."
        if differing
        else f"{len(with_formula)} protocols with {sum(len(r.formula) for r in rows)} counts.",
        theirs=False,
    )
    return TableContent(
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


def _overhead(results: Results) -> TableContent:
    cells, larger = counted_table(MEMBERS), counted_table(2 * MEMBERS)
    wrong = [cell for cell in cells if cell.row.printed != cell.row.counted]
    differing = [cell for cell in cells if not cell.agrees]
    powers = [(one, growth(one.run, two.run)) for one, two in zip(cells, larger, strict=True)]
    strange = [cell for cell, power in powers if power != POWERS[cell.row.printed_order]]
    return TableContent(
        columns=list(COLUMNS),
        rows=[cell.shown for cell in cells],
        findings=[
            Finding(
                "the overheads grow as the table says",
                ClaimVerdict.FAILS if strange else ClaimVerdict.HOLDS,
                f"From n = {MEMBERS} to {2 * MEMBERS}, {len(cells) - len(strange)} of {len(cells)} "
                "cells grow by the printed order.",
            ),
            Finding(
                "formulas (1) to (7) behind the table count what the protocols send",
                ClaimVerdict.FAILS if wrong else ClaimVerdict.HOLDS,
                f"{len(wrong)} of {len(cells)} cells differ from what is counted.",
            ),
            Finding(
                "runs and corrected formulas agree in every cell",
                ClaimVerdict.FAILS if differing else ClaimVerdict.HOLDS,
                f"{len(cells) - len(differing)} of {len(cells)} cells agree.",
                theirs=False,
            ),
        ],
    )


FIGURES = (
    TableFigure(
        name="classic-comparison",
        family=FAMILY,
        title=f"Classic elections after a leader's crash, {MEMBERS} members",
        source="Elections lecture and relatives",
        shows="What one election costs when the worst live member notices the crash.",
        needs=(),
        fill=_comparison,
    ),
    TableFigure(
        name="overhead-table-1",
        family=FAMILY,
        title=f"Overhead-aware election, Table 1, n = {MEMBERS}",
        source="Overhead-aware paper, Table 1",
        shows="The order of the ELECTION and OK messages, by the node that detects the crash and "
        "the number of elections, which is that of the crashed nodes.",
        needs=(),
        fill=_overhead,
    ),
)
