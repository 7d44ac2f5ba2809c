"""`hustings sweep`: a grid of experiments from a file, on any executor, saved as it runs."""

from __future__ import annotations

import logging
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import fields
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hustings.cli.options import WholeRange
from hustings.cli.output import progress, show_json, show_table, warn
from hustings.cli.sim import sim as one
from hustings.core.errors import BadInput
from hustings.extras import install_command
from hustings.lab.options import Options
from hustings.lab.runs.executors import MAX_JOBS
from hustings.lab.simulation import Goals
from hustings.sim.files import shown, write_atomically

if TYPE_CHECKING:
    from hustings.lab.sweeps.gridfile import GridFile, Kind, Typed
    from hustings.lab.sweeps.picture import PictureLayout
    from hustings.lab.sweeps.points import SweepPoint, SweepResult, Value

ROWS = 60  # of a table on the terminal
CHECKPOINT = "checkpoint"
PROTOCOL, ENGINE, SEED = "protocol", "engine", "seed"
GOALS = ("runs", "stderr", "metric")  # how often a point is played, not what is played
LEFT_OUT = ("time_series", "debug")  # they change nothing in the table

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
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--example", is_flag=True, help="Write a small FILE to begin with, and stop.")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=None,
    help="The folder for the files.  [default: the name of FILE without its ending]",
)
@click.option(
    "--on",
    "where",
    default=None,
    metavar="PLACE",
    help="threads, processes, local-cluster (Dask on this machine) or dask://host:8786; the "
    "numbers are the same everywhere.  [default: threads if compiled kernels play every point, "
    "otherwise processes]",
)
@click.option(
    "--jobs",
    type=WholeRange(1, MAX_JOBS),
    default=None,
    help="The number of workers; on dask:// all workers play.  [default: one for each processor]",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
def sweep(
    file: Path, example: bool, out: Path | None, where: str | None, jobs: int | None, as_json: bool
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
    """
    if example:
        return _write_example(file)
    from hustings.lab.runs.executors import check_place
    from hustings.lab.sweeping import processors
    from hustings.lab.sweeps import gridfile
    from hustings.lab.sweeps.points import (
        check_points,
        check_sweep,
        digest_of,
        play_points,
        usual_place,
    )

    if where is not None:
        check_place(where)
    grid = gridfile.read(file, _kinds())
    points, warnings = _points(grid)
    check_points(points)
    jobs = jobs or processors()
    check_sweep(points, jobs)
    plan = _plan(grid, points, warnings)
    _look_for_parquet(warnings)
    for sentence in warnings:
        warn(sentence)
    out = Path(file.stem) if out is None else out
    checkpoint = out / CHECKPOINT
    try:
        with progress("points") as tell:
            place = where or usual_place(points)
            results = play_points(points, place, jobs, checkpoint=checkpoint, tell=tell)
    except KeyboardInterrupt:
        warn(f"what is finished is kept in {shown(checkpoint)}: the same command goes on from it")
        raise
    written, late = _write(out, file.stem, results, plan)
    if as_json:
        about = {"file": str(file), "grid": digest_of(points), "warnings": warnings}
        show_json({**about, "points": [_to_json(each) for each in results], "files": written})
    else:
        _show(file.stem, results, written)
    return _told(results, late)


def _write_example(file: Path) -> int:
    if file.exists():
        raise BadInput(f"{shown(file)} is there already: name another file")
    write_atomically(file, EXAMPLE)
    click.echo(f"try: hustings sweep {shlex.quote(str(file))}")
    return 0


def _kinds() -> dict[str, Kind]:
    """The keys of a file, from the options of `hustings sim`."""
    from hustings.lab.sweeps.gridfile import Kind

    wanted = {field.name for field in fields(Options)} - {*LEFT_OUT} | {ENGINE}
    kinds = {PROTOCOL: Kind.ONE}
    for option in one.params:
        if not isinstance(option, click.Option):
            continue
        key = _key(option)
        if option.name in wanted:
            kinds[key] = Kind.ONE
            if option.is_flag:
                kinds[key] = Kind.FLAG
            elif option.multiple:
                tabled = option.metavar == "KEY=VALUE"
                kinds[key] = Kind.TABLE if tabled else Kind.SEVERAL
        elif key in GOALS:
            kinds[key] = Kind.FIXED
    return kinds


def _key(option: click.Parameter) -> str:
    return max(option.opts, key=len).removeprefix("--")


def _points(grid: GridFile) -> tuple[list[SweepPoint], list[str]]:
    """All points, and the warnings about them, each once."""
    points: list[SweepPoint] = []
    warnings: dict[str, None] = {}
    varied = _varied(grid.points)
    for number, typed in enumerate(grid.points, 1):
        point, said = _point(grid, typed, number, varied)
        points.append(point)
        warnings |= dict.fromkeys(said)
    return points, list(warnings)


def _varied(points: Sequence[Typed]) -> dict[str, bool]:
    """Which of engine and seed take several values, and so distinguish points."""
    return {
        key: len({typed.of(key) for typed in points}) > 1  # counted, not iterated
        for key in (ENGINE, SEED)
    }


def _point(
    grid: GridFile, typed: Typed, number: int, varied: Mapping[str, bool]
) -> tuple[SweepPoint, list[str]]:
    from hustings.lab.sweeping import point_of

    protocol = typed.of(PROTOCOL)
    if protocol is None:
        raise BadInput(f'{shown(grid.path)} names no protocol: write protocol = "bully"')
    world = [
        f"--{key}" + ("" if word is None else f"={word}")
        for key, word in typed.words
        if key not in (PROTOCOL, ENGINE, SEED, *GOALS)
    ]
    rest = [f"--{key}={word}" for key, word in typed.words if key in (ENGINE, *GOALS)]
    try:
        given = one.make_context("sim", [*world, *rest, _seed(typed), "--", protocol]).params
        return point_of(
            protocol,
            Options(**_of_a_point(given)),
            Goals(given["runs"], given["stderr"], given["metric"]),
            engine=given["engine"],
            world=world,
            parameters=_parameters(typed, varied),
        )
    except click.UsageError as error:
        raise _refusal(grid, typed, error) from None
    except BadInput as error:
        raise _wrong(grid, typed, number, str(error)) from None


def _seed(typed: Typed) -> str:
    return f"--seed={typed.of(SEED) or 1}"


def _of_a_point(given: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a point, without those of the command."""
    options = {field.name for field in fields(Options)}
    return {key: given[key] for key in given if key in options}


def _parameters(typed: Typed, varied: Mapping[str, bool]) -> dict[str, Value]:
    """The parameters that distinguish a point; engine and seed have columns of their own."""
    found = {key: value for key, value in typed.labels.items() if key not in (ENGINE, SEED)}
    if varied[ENGINE]:
        found[ENGINE] = typed.of(ENGINE)
    if varied[SEED]:
        found["sweep_seed"] = typed.labels.get(SEED, 1)
    return found


def _names(typed: Typed) -> str:
    return ", ".join(f"{key}={value}" for key, value in typed.labels.items())


def _wrong(grid: GridFile, typed: Typed, number: int, sentence: str) -> BadInput:
    """The error of a point, with the line of the setting that the sentence names."""
    said = f"point {number} ({_names(typed)}): {sentence}"
    for name, where in typed.entries.items():
        if re.search(rf"(?<![\w.-]){re.escape(name)}(?![\w.-])", sentence):
            return grid.complaint(where, said)
    return BadInput(f"{shown(grid.path)} {said}")


def _refusal(grid: GridFile, typed: Typed, error: click.UsageError) -> BadInput:
    """An option's complaint about its value, with the line of the value."""
    option = getattr(error, "param", None)
    key = "" if option is None else _key(option)
    if key not in typed.keys:
        return BadInput(f"{shown(grid.path)} ({_names(typed)}): {error.format_message()}")
    return grid.complaint(typed.keys[key], error.format_message())


def _plan(
    grid: GridFile, points: Sequence[SweepPoint], warnings: list[str]
) -> PictureLayout | None:
    """The picture to draw, if one can be drawn."""
    from hustings.lab.sweeps import picture

    try:
        plan = picture.plan(points, grid.plot)
    except BadInput as error:
        raise grid.complaint(("plot",), f"plot: {error}") from None
    if isinstance(plan, str):
        warnings.append(plan)
        return None
    logging.getLogger("matplotlib").setLevel(logging.ERROR)  # it reports its own caches
    if find_spec("matplotlib") is None:
        warnings.append(f"nothing is drawn without matplotlib: {install_command('sweep')}")
        return None
    return plan


def _look_for_parquet(warnings: list[str]) -> None:
    if find_spec("pyarrow") is None:
        warnings.append(f"no Parquet is written without pyarrow: {install_command('sweep')}")


def _write(
    out: Path, stem: str, results: Sequence[SweepResult], plan: PictureLayout | None
) -> tuple[list[str], BadInput | None]:
    """Write all files; return also what is wrong with the picture, known only now."""
    from importlib.util import find_spec

    from hustings.lab.sweeps.picture import made_of
    from hustings.lab.sweeps.table import as_csv, as_parquet, rows_of

    rows = rows_of(results)
    contents: dict[str, str | bytes] = {"csv": as_csv(rows)}
    if find_spec("pyarrow") is not None:
        contents["parquet"] = as_parquet(rows)
    late = None
    if plan is not None:
        from hustings.lab.figures.drawing import draw

        try:
            contents |= draw(made_of(stem, results, plan))
        except BadInput as error:
            late = BadInput(f"plot: {error}")
    written = []
    for ending, data in contents.items():
        write_atomically(out / f"{stem}.{ending}", data)
        written.append(str(out / f"{stem}.{ending}"))
    return written, late


def _to_json(result: SweepResult) -> dict[str, object]:
    point, block = result.point, result.block
    return {
        "parameters": dict(point.parameters),
        "engine": point.engine,
        "seed": point.experiment.seed,
        "runs": block.runs,
        "command": point.command,
        "metrics": {
            name: {
                "mean": column.moments.mean if column.moments.count else None,
                "stderr": column.moments.stderr if column.moments.count > 1 else None,
                "min": column.least,
                "max": column.most,
                "count": column.moments.count,
            }
            for name, column in block.metrics.items()
        },
        "endings": block.endings,
        "violated": block.violated,
        "shortfall": result.shortfall,
    }


def _show(stem: str, results: Sequence[SweepResult], written: list[str]) -> None:
    from hustings.lab.sweeps.picture import aimed_at

    metric = aimed_at(results)
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
    show_table(f"{stem}, {len(results):,} points", columns, rows, note)
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
