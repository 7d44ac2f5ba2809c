"""Results as one tidy table: a row for every point and metric, as CSV and as Parquet.

The same results give the same bytes: no dates, no names of machines.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from hustings.core.errors import BadInput
from hustings.extras import install_command
from hustings.lab.runs.playing import Precision
from hustings.lab.sweeps.points import SweepResult, Value

MEASURED = ("engine", "seed", "metric", "runs", "count", "mean", "stderr", "min", "max")
PROMISED = ("target", "reached")
_INT64 = 1 << 63

Row = dict[str, Value]


def rows_of(results: Sequence[SweepResult]) -> list[Row]:
    """All rows, each with all columns."""
    names = dict.fromkeys(key for result in results for key in result.point.parameters)
    own = [name for name in names if name not in ("point", *MEASURED, *PROMISED)]
    return [
        {
            "point": number,
            **{name: result.point.parameters.get(name) for name in own},
            **measured,
            **_promised(result, str(measured["metric"])),
        }
        for number, result in enumerate(results, 1)
        for measured in _measured(result)
    ]


def _measured(result: SweepResult) -> list[Row]:
    point, block = result.point, result.block
    rows: list[Row] = []
    for name, column in block.metrics.items():
        moments = column.moments
        rows.append(
            {
                "engine": point.engine,
                "seed": point.experiment.seed,
                "metric": name,
                "runs": block.runs,
                "count": moments.count,
                "mean": moments.mean if moments.count else None,
                "stderr": moments.stderr if moments.count > 1 else None,
                "min": column.least,
                "max": column.most,
            }
        )
    return rows


def _promised(result: SweepResult, metric: str) -> Row:
    """Whether the requested standard error was reached, for the metric that it concerns."""
    goal = result.point.goal
    if not isinstance(goal, Precision) or goal.aim(result.block.metrics) != metric:
        return {"target": None, "reached": None}
    return {"target": goal.stderr, "reached": result.shortfall is None}


def as_csv(rows: Sequence[Row]) -> str:
    """The table as text; a float is written so that it reads back exactly."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(rows[0])
    writer.writerows([_cell(value) for value in row.values()] for row in rows)
    return out.getvalue()


def _cell(value: Value) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    return repr(value) if isinstance(value, float) else str(value)


def as_parquet(rows: Sequence[Row]) -> bytes:
    """The table as a file of Apache Parquet; a column of mixed types becomes one of text."""
    try:
        pyarrow: Any = import_module("pyarrow")  # an extra
        parquet: Any = import_module("pyarrow.parquet")
    except ModuleNotFoundError as missing:
        if missing.name is None or missing.name.partition(".")[0] != "pyarrow":
            raise
        raise BadInput(f"Parquet needs pyarrow: {install_command('sweep')}") from None
    columns = {}
    for name in rows[0]:
        values = [row[name] for row in rows]
        kind = _kind(values)
        columns[name] = pyarrow.array(
            [_as(kind, value) for value in values], type=getattr(pyarrow, kind)()
        )
    out = io.BytesIO()
    parquet.write_table(pyarrow.table(columns), out)
    return out.getvalue()


def _kind(values: Sequence[Value]) -> str:
    """The narrowest type that holds all values."""
    known = [value for value in values if value is not None]
    if known and all(isinstance(value, bool) for value in known):
        return "bool_"
    if any(isinstance(value, bool | str) for value in known):
        return "string"
    if known and all(isinstance(value, int) for value in known):
        return "int64" if all(-_INT64 <= int(value) < _INT64 for value in known) else "string"
    return "float64"


def _as(kind: str, value: Value) -> Value:
    if value is None or kind in ("bool_", "int64"):
        return value
    if kind == "string":
        return _cell(value)
    return float(value)
