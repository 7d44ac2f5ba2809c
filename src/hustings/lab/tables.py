"""Results that have rows: as Arrow, as pandas, and as a table in a notebook."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from importlib import import_module
from typing import Any

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


class Table:
    """Base of results that have rows."""

    __slots__ = ()

    def rows(self) -> list[dict[str, object]]:
        """One row for each thing that was measured or computed."""
        raise NotImplementedError

    def to_arrow(self) -> Any:
        """The rows as a `pyarrow.Table`."""
        return needed("pyarrow", "sweep").Table.from_pylist(self.rows())

    def to_pandas(self) -> Any:
        """The rows as a `pandas.DataFrame`."""
        return needed("pandas", "lab").DataFrame(self.rows())
