"""`hustings sweep`: a grid of experiments from a file, on any executor, saved as it runs."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hustings.cli.options import WholeRange, on_option
from hustings.cli.output import progress, show_json, show_table, warn
from hustings.core.errors import BadInput
from hustings.lab.runs.executors import MAX_JOBS
from hustings.sim.files import shown, write_atomically

if TYPE_CHECKING:
    from hustings.lab.sweeping import Sweep
    from hustings.lab.sweeps.points import SweepResult

ROWS = 60  # of a table on the terminal
CHECKPOINT = "checkpoint"
ENGINE = "engine"

EXAMPLE = """\
# Every list is an axis; the grid is all combinations. Keys are the options of hustings sim.
protocol = ["le-a", "le-s", "le-m"]
members = [10, 50, 250]
loss = 0.2
delay = 0.1
engine = "fast"
stderr = 0.02          # until the standard error of the metric is this, or runs are used up
metric = "tmax"
runs = 20000

[set]                  # settings of the protocol, as after --set
T_A = 1.2
T_L = "inf"
"""


@click.command()
@click.argument("file", type=click.Path(path_type=Path), required=False)
@click.option("--example", is_flag=True, help="Write a small FILE to begin with, and stop.")
@click.option(
    "--grid",
    "lines",
    multiple=True,
    metavar="LINE",
    help="A line of TOML, instead of FILE; may be given several times.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=None,
    help="The folder for the files.  [default: the name of FILE without its ending, or sweep]",
)
@on_option("threads if compiled kernels play every point, otherwise processes")
@click.option(
    "--jobs",
    type=WholeRange(1, MAX_JOBS),
    default=None,
    help="The number of workers; on dask:// all workers play.  [default: one for each processor]",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
def sweep(
    file: Path | None,
    example: bool,
    lines: tuple[str, ...],
    out: Path | None,
    where: str | None,
    jobs: int | None,
    as_json: bool,
) -> int:
    """Play the grid of experiments in FILE, and write one table: CSV, Parquet, and a picture.

    FILE is TOML. Its keys are the long options of hustings sim. A list is an axis, and all
    combinations are played. [set] and similar options are tables. [[grid]] tables add up to one
    sweep, each with the keys before them. [plot] says what is drawn (x, metric, log). Every point
    has a seed of its own, derived from the sweep's seed.

    What is finished is on disk at once: after Ctrl-C or a crash the same command continues from
    there. If a precision is not reached within runs, the command says so and exits 2, with all
    files written.

    \b
    hustings sweep grid.toml --example
    hustings sweep grid.toml
    hustings sweep grid.toml --jobs 2 --on processes --json
    hustings sweep --grid 'protocol = "bully"' --grid 'members = [4, 8, 16]'
    """
    if (file is None) == (not lines):
        raise BadInput("a sweep is a FILE, or lines of one: hustings sweep --grid LINE ...")
    if example:
        return _write_example(file)
    from hustings.lab.sweeping import processors, read_grid

    grid = read_grid(lines if file is None else file)
    for sentence in grid.warnings:
        warn(sentence)
    name = "sweep" if file is None else file.stem
    out = Path(name) if out is None else out
    checkpoint = out / CHECKPOINT
    try:
        with progress("points") as tell:
            found = grid.play(on=where, jobs=jobs or processors(), checkpoint=checkpoint, tell=tell)
    except KeyboardInterrupt:
        warn(f"what is finished is kept in {shown(checkpoint)}: the same command goes on from it")
        raise
    written, late = found.write(out, name)
    files = [str(path) for path in written]
    if as_json:
        show_json({"file": None if file is None else str(file), **found.to_json(), "files": files})
    else:
        _show(name, found, files)
    return _told(found.results, late)


def _write_example(file: Path | None) -> int:
    if file is None:
        raise BadInput("--example writes a FILE: name it")
    if file.exists():
        raise BadInput(f"{shown(file)} is there already: name another file")
    write_atomically(file, EXAMPLE)
    click.echo(f"try: hustings sweep {shlex.quote(str(file))}")
    return 0


def _show(name: str, found: Sweep, written: Sequence[str]) -> None:
    metric, results = found.metric, found.results
    keys = list(dict.fromkeys(key for each in results for key in each.point.parameters))
    rows = []
    for result in results[:ROWS]:
        column = result.block.metrics.get(metric)
        known = column is not None and column.moments.count > 0
        moments = None if column is None or not known else column.moments
        rows.append(
            [
                *(result.point.parameters.get(key) for key in keys),
                *([] if ENGINE in keys else [result.point.engine]),
                result.block.runs,
                None if moments is None else moments.mean,
                None if moments is None or moments.count < 2 else moments.stderr,
            ]
        )
    columns = [*keys, *([] if ENGINE in keys else [ENGINE]), "runs", metric, "stderr"]
    left = len(results) - len(rows)
    note = f"and {left:,} more points" if left > 0 else ""
    show_table(f"{name}, {len(results):,} points", columns, rows, note)
    for path in written:
        click.echo(path)


def _told(results: Sequence[SweepResult], late: BadInput | None) -> int:
    """Raise what is wrong with finished results, all in one sentence."""
    short = [(number, each) for number, each in enumerate(results, 1) if each.shortfall]
    if short:
        number, first = short[0]
        raise BadInput(
            f"{len(short)} of {len(results)} points fall short of their precision, as point "
            f"{number}, where {first.shortfall}"
        )
    if late is not None:
        raise late
    return 0
