"""Results that have rows: as Arrow, as pandas, and as a table in a notebook."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Sequence
from html import escape
from importlib import import_module
from typing import Any, cast

from hustings.core.errors import BadInput
from hustings.extras import install_command

Rows = Sequence[dict[str, object]]


def needed(module: str, extra: str) -> Any:
    """A module of an extra, or a sentence that says how to install the extra."""
    try:
        return import_module(module)
    except ModuleNotFoundError as missing:
        name = module.partition(".")[0]
        if missing.name is None or missing.name.partition(".")[0] != name:
            raise
        raise BadInput(f"this needs {name}: {install_command(extra)}") from None


def as_html(rows: Rows) -> str:
    """A table with a line for each row; the first cell of a row is its name."""
    columns = list(rows[0]) if rows else []
    head = "".join(f"<th>{escape(each)}</th>" for each in columns)
    body = "".join(
        "<tr>"
        + "".join(
            f"<th>{_cell(row[each])}</th>" if place == 0 else f"<td>{_cell(row[each])}</td>"
            for place, each in enumerate(columns)
        )
        + "</tr>"
        for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cell(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.6g}" if math.isfinite(value) else str(value)
    return escape(str(value))


def as_notes(sentences: Sequence[str]) -> str:
    """A list of sentences; nothing where there are none."""
    items = "".join(f"<li>{escape(each)}</li>" for each in sentences)
    return f"<ul>{items}</ul>" if items else ""


def plotted(name: str, draw: Callable[[Any], object]) -> dict[str, bytes]:
    """A picture as PNG and SVG, drawn by a function on matplotlib's axes."""
    logging.getLogger("matplotlib").setLevel(logging.ERROR)  # it reports its own caches
    needed("matplotlib", "figures")
    drawing = import_module("hustings.lab.figures.drawing")
    return cast(dict[str, bytes], drawing.draw_one(name, draw))


class Table:
    """Base of results: rows, the command line that gives the same, and a page in a notebook.

    Results that are worth a picture have `plot`, which gives it as PNG and SVG.
    """

    __slots__ = ()

    command: str  # "" where a class has no name that a command line could give

    def rows(self) -> list[dict[str, object]]:
        """One row for each thing that was measured or computed."""
        raise NotImplementedError

    def to_arrow(self) -> Any:
        """The rows as a `pyarrow.Table`."""
        return needed("pyarrow", "sweep").Table.from_pylist(self.rows())

    def to_pandas(self) -> Any:
        """The rows as a `pandas.DataFrame`."""
        return needed("pandas", "lab").DataFrame(self.rows())

    def notes_html(self) -> str:
        """What stands between the table and the command line."""
        return ""

    def _repr_html_(self) -> str:
        return f"{as_html(self.rows())}{self.notes_html()}<pre>{escape(self.command)}</pre>"
