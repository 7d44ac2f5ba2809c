"""`hustings compare`: protocols side by side, and Table 1 of the overhead-aware paper."""

from __future__ import annotations

from typing import Any

import click

from hustings.cli.experiment_options import group_options
from hustings.cli.output import show, show_json, show_table, warn
from hustings.lab.closed_forms.overhead_table import formulas
from hustings.lab.comparison import compared
from hustings.lab.figures.comparison import ComparisonRow
from hustings.lab.figures.overhead_table import COLUMNS, counted_table
from hustings.lab.options import Options


@click.command()
@click.argument("protocols", nargs=-1)
@group_options
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
@click.option("--check", is_flag=True, help="Exit 1 if a count and its formula differ.")
def compare(protocols: tuple[str, ...], as_json: bool, check: bool, **typed: Any) -> int:
    """Run PROTOCOLS (default: all classic ones) on equal terms, with formulas beside the counts.

    If n is divisible by 4, the formulas (1) to (7) and Table 1 of the overhead-aware paper follow,
    as printed and as counted.

    \b
    hustings compare -n 64 --scenario leader-crash
    hustings compare bully bully-map -n 16 --scenario leader-crash --crashed 13-15
    """
    found = compared(protocols, Options(**typed))
    for sentence in found.warnings:
        warn(sentence)
    if as_json:
        show_json(found.to_json())
    else:
        _show(list(found.compared), found.options)
        if found.paper:
            _show_paper(found.members)
        elif found.options.scenario == "leader-crash" and found.options.environment is None:
            warn("the overhead-aware paper's tables are shown for n divisible by 4")
    return 0 if found.agrees or not check else 1


def _show(rows: list[ComparisonRow], options: Options) -> None:
    network = f"delay {options.delay}"
    if options.environment is not None:
        network = "in the environment, times in seconds"
    openers = ", ".join((*options.detectors, *options.initiators)) or "the worst live member"
    show_table(
        f"{options.size} members, scenario {options.scenario}, opened by {openers}, {network}",
        ["protocol", "elect", "answer", "coord", "other", "messages", "time", "leader", "judged"],
        [
            [
                row.protocol,
                *row.by_role,
                _beside(row, "messages"),
                _beside(row, "time"),
                _beside(row, "leader"),
                _judged(row),
            ]
            for row in rows
        ],
        "A message counts when sent, also to the dead; n counts the crashed leader. Ring and "
        "broadcast run over the live members; all notice the crash where all must agree on it. "
        "= the formula agrees, != it says otherwise.",
    )
    lines = [
        [
            row.protocol,
            row.expressions.get("messages"),
            row.formula.get("messages"),
            row.expressions.get("time"),
            row.formula.get("time"),
        ]
        for row in rows
        if row.formula
    ]
    if lines:
        columns = ["protocol", "messages", "value", "time", "value"]
        show_table("Their formulas", columns, lines)


def _beside(row: ComparisonRow, metric: str) -> str:
    """A count, and whether its formula agrees."""
    counted, formula = row.counted[metric], row.formula.get(metric)
    if formula is None:
        return show(counted)
    return f"{show(counted)} =" if counted == formula else f"{show(counted)} != {show(formula)}"


def _judged(row: ComparisonRow) -> str:
    broken = [f"{name} {verdict}" for name, verdict in row.verdicts.items() if verdict != "holds"]
    return ", ".join(broken) or "all hold"


def _show_paper(n: int) -> None:
    show_table(
        f"Overhead-aware paper, formulas (1) to (7), n = {n}: ELECTION + OK messages",
        [
            "#",
            "election",
            "detector",
            "crashed",
            "printed formula",
            "printed",
            "counted formula",
            "counted",
            "verdict",
        ],
        [
            [
                f"({row.number})",
                row.election,
                row.detector,
                row.crashed,
                row.printed_formula,
                row.printed,
                row.corrected_formula,
                row.corrected,
                row.verdict,
            ]
            for row in formulas(n)
        ],
    )
    show_table(
        f"Overhead-aware paper, Table 1, n = {n}: orders printed, overhead counted by a run",
        [*COLUMNS, "verdict"],
        [[*cell.shown, cell.row.verdict] for cell in counted_table(n)],
    )
