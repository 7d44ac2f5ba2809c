"""A figure as files: CSV for the numbers, a page for the text, PNG and SVG for the picture.

The same numbers give the same bytes: no dates, no names of machines.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from pathlib import Path

from hustings.core.errors import BadInput
from hustings.lab.figures.figure import Finding, MeasuredPoint, Rendered, Value
from hustings.sim.files import reason, shown, write_atomically

Draw = Callable[[Rendered], dict[str, bytes]]


def write(made: Rendered, folder: Path, draw: Draw) -> list[Path]:
    """Write all files of a figure; each appears whole or not at all."""
    contents: dict[str, str | bytes] = {"csv": as_csv(made), "md": as_page(made)}
    if made.panels:
        contents |= draw(made)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadInput(f"cannot make the folder {shown(folder)}: {reason(error)}") from None
    written = []
    for suffix, data in contents.items():
        path = folder / f"{made.name}.{suffix}"
        write_atomically(path, data)
        written.append(path)
    return written


def as_csv(made: Rendered) -> str:
    """The numbers, one row each; a float is written so that it reads back exactly."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(made.columns)
    writer.writerows([_cell(value) for value in row] for row in made.rows)
    return out.getvalue()


def _cell(value: Value) -> str:
    if value is None:
        return ""
    return repr(value) if isinstance(value, float) else str(value)


def as_page(made: Rendered) -> str:
    """The caption as a page of Markdown, with the picture or the table."""
    lines = [f"# {made.title}", ""]
    if made.panels:
        lines += [f"![{made.title}]({made.name}.svg)", ""]
    if made.as_table:
        lines += [*as_table(made.columns, made.rows), ""]
    lines += [*caption(made), ""]
    return "\n".join(lines)


def caption(made: Rendered) -> list[str]:
    """What the paper shows, whether we find the same, and how precise our numbers are."""
    lines = [f"**{made.source}.** {made.shows}", "", f"**Here: {made.verdict}.**"]
    rows = [row[0] for row in made.rows] if made.as_table else []
    lines += [f"- {_told(each)}" for each in made.findings if each.claim not in rows]
    for note in [*_precision(made), *made.notes]:
        lines += ["", note]
    return lines


def as_table(columns: Sequence[str], rows: Sequence[Sequence[Value]]) -> list[str]:
    """A Markdown table."""
    head = [_row(columns), "|" + "---|" * len(columns)]
    return head + [_row([_short(value) for value in row]) for row in rows]


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _short(value: Value) -> str:
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _told(finding: Finding) -> str:
    who = "" if finding.theirs else "(our check) "
    return f"{who}{finding.claim}: **{finding.verdict.value}**. {finding.evidence}"


def _precision(made: Rendered) -> list[str]:
    if not (points := points_of(made)):
        return []
    runs = [point.runs for point in points]
    worst = max(point.relative for point in points)
    return [
        f"{len(points)} points of {min(runs):,} to {max(runs):,} runs each; bars show two standard "
        f"errors, of which the largest is {100 * worst:.2g} % of its mean."
    ]


def points_of(made: Rendered) -> list[MeasuredPoint]:
    """Every measured point that a figure shows."""
    return [point for panel in made.panels for drawn in panel.curves for point in drawn.points]
