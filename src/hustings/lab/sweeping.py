"""`sweep`: many experiments, played anywhere, with the same numbers everywhere.

A grid comes from Python, from a file, or from lines of such a file. `prepare_sweep` and `read_grid`
make a `SweepGrid` of it and report errors, with the line where there is one; `SweepGrid.play` makes
a `Sweep`, which holds the results.
"""

from __future__ import annotations

import logging
import os
import re
import shlex
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from typing import Any, cast

from hustings.core.errors import BadInput
from hustings.core.streams import derive
from hustings.extras import install_command
from hustings.lab.options import Options, environment_word, named
from hustings.lab.runs.executors import MAX_JOBS
from hustings.lab.runs.playing import Tell
from hustings.lab.simulation import Goals, check_jobs, prepare
from hustings.lab.sweep_words import (
    APART,
    ENGINE,
    PROTOCOL,
    SEED,
    WrongValue,
    goals_of,
    key_of,
    kinds,
    lines_of,
    options_of,
    world_of,
)
from hustings.lab.sweeps import gridfile, picture
from hustings.lab.sweeps.gridfile import GridFile, Typed
from hustings.lab.sweeps.picture import PictureLayout
from hustings.lab.sweeps.points import (
    SweepPoint,
    SweepResult,
    Value,
    check_points,
    check_sweep,
    digest_of,
    play_points,
    usual_place,
)
from hustings.lab.sweeps.table import as_csv, as_parquet, rows_of
from hustings.lab.tables import Table, as_notes, needed
from hustings.protocols.registry import Protocol, find
from hustings.sim.environment import Environment
from hustings.sim.files import reason, shown, write_atomically

LINES = Path("--grid")  # the name of lines without a file, in complaints


@dataclass(frozen=True, slots=True)
class Sweep(Table):
    """Every point with its runs. `sweep.command` gives the same numbers for all of them."""

    results: list[SweepResult]
    warnings: tuple[str, ...]
    command: str = ""  # the same as a command line; "" for a class that it cannot name
    layout: PictureLayout | None = None  # of the picture, if one can be drawn

    def rows(self) -> list[dict[str, object]]:
        """One row for each point and metric."""
        return [dict(row) for row in rows_of(self.results)]

    @property
    def short(self) -> list[str]:
        """A sentence for each point whose precision was not reached."""
        return [each.shortfall for each in self.results if each.shortfall is not None]

    @property
    def metric(self) -> str:
        """The metric that the points aim at."""
        return picture.aimed_at(self.results)

    def plot(self, **wishes: object) -> dict[str, bytes]:
        """A picture as PNG and SVG; `x`, `metric` and `log` say what is drawn."""
        layout: PictureLayout | str | None = self.layout
        if wishes or layout is None:
            layout = picture.plan([each.point for each in self.results], wishes)
        if isinstance(layout, str):
            raise BadInput(layout)
        return self._drawn("sweep", layout)

    def _drawn(self, name: str, layout: PictureLayout) -> dict[str, bytes]:
        logging.getLogger("matplotlib").setLevel(logging.ERROR)  # it reports its own caches
        drawing = needed("hustings.lab.figures.drawing", "figures")
        made = picture.made_of(name, self.results, layout)
        return cast(dict[str, bytes], drawing.draw(made))

    def write(self, out: str | Path, name: str = "sweep") -> tuple[list[Path], BadInput | None]:
        """Write the table as CSV and Parquet, and the picture, into a folder.

        Return also what is wrong with the picture, which only the results tell. What needs an extra
        that is not installed is left out.
        """
        rows = rows_of(self.results)
        contents: dict[str, str | bytes] = {"csv": as_csv(rows)}
        if find_spec("pyarrow") is not None:
            contents["parquet"] = as_parquet(rows)
        late = None
        if self.layout is not None:
            try:
                contents |= self._drawn(name, self.layout)
            except BadInput as error:
                late = BadInput(f"plot: {error}")
        try:
            Path(out).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise BadInput(f"cannot write to {shown(Path(out))}: {reason(error)}") from None
        written = [Path(out) / f"{name}.{ending}" for ending in contents]
        for path, data in zip(written, contents.values(), strict=True):
            write_atomically(path, data)
        return written, late

    def to_json(self) -> dict[str, object]:
        """As `hustings sweep --json` prints it."""
        return {
            "grid": digest_of([each.point for each in self.results]),
            "warnings": list(self.warnings),
            "points": [each.to_json() for each in self.results],
            "command": self.command,
        }

    def notes_html(self) -> str:
        return as_notes([*self.warnings, *self.short])


@dataclass(frozen=True, slots=True)
class SweepGrid:
    """A sweep that is ready to be played."""

    points: list[SweepPoint]
    warnings: tuple[str, ...]
    command: str
    layout: PictureLayout | None = None

    def play(
        self,
        *,
        on: str | Executor | None = None,
        jobs: int = 1,
        checkpoint: str | Path | None = None,
        tell: Tell | None = None,
    ) -> Sweep:
        """Play all points; a checkpoint keeps what is finished."""
        check_jobs(jobs, on)
        check_sweep(self.points, jobs)
        kept = None if checkpoint is None else Path(checkpoint)
        place = usual_place(self.points) if on is None else on
        results = play_points(self.points, place, jobs, checkpoint=kept, tell=tell)
        return Sweep(results, self.warnings, self.command, self.layout)


def sweep(
    grid: Mapping[str, Any],
    *,
    runs: int | None = None,
    stderr: float | None = None,
    metric: str | None = None,
    on: str | Executor | None = None,
    jobs: int = 1,
    checkpoint: str | Path | None = None,
    tell: Tell | None = None,
    **fixed: Any,
) -> Sweep:
    """Play all combinations of the lists in `grid`; all other options are the same for all.

    The options are those of `simulate`, and `protocol`, `engine` and `seed`. `settings` and similar
    options are tables whose lists are axes. Each point has a seed of its own, as in `hustings
    sweep`: a file with the same options gives the same numbers. `on` is threads, processes,
    local-cluster, dask://host:8786, or any `concurrent.futures.Executor`. With several `jobs` on
    processes, workers import the script, so the script must allow this (`if __name__ ==
    "__main__"`).

    >>> found = sweep({"members": [4, 8]}, protocol="bully", scenario="leader-crash")
    >>> [each.block.metrics["messages"].moments.mean for each in found.results]
    [11.0, 55.0]
    """
    check_jobs(jobs, on)
    words = {name: value for name, value in {**fixed, **grid}.items() if value is not None}
    goals = Goals(runs, stderr, metric)
    points, warnings = _points(words, goals)
    check_points(points)
    lines = lines_of(words, goals)
    command = ["hustings", "sweep", *(f"--grid={line}" for line in lines)]
    ready = SweepGrid(points, warnings, shlex.join(command) if lines else "")
    return ready.play(on=on, jobs=jobs, checkpoint=checkpoint, tell=tell)


def sweep_file(
    file: str | Path,
    *,
    on: str | Executor | None = None,
    jobs: int = 1,
    checkpoint: str | Path | None = None,
    tell: Tell | None = None,
) -> Sweep:
    """Play the grid of a file: as `hustings sweep FILE`, without writing any but the checkpoint."""
    check_jobs(jobs, on)
    return read_grid(file).play(on=on, jobs=jobs, checkpoint=checkpoint, tell=tell)


def processors() -> int:
    """How many processors this process may use."""
    try:
        return min(MAX_JOBS, len(os.sched_getaffinity(0)))
    except AttributeError:  # not on every system
        return min(MAX_JOBS, os.cpu_count() or 1)


def point_of(
    protocol: Protocol,
    options: Options,
    goals: Goals,
    *,
    engine: str | None,
    world: Sequence[str],
    parameters: Mapping[str, Value],
) -> tuple[SweepPoint, list[str]]:
    """One point. Points are independent: each has a seed of its own, from its own options."""
    name = named(protocol, find(protocol)) if not isinstance(protocol, str) else protocol
    seed = derive(options.seed, "sweep", name or "", *sorted(world)) >> 16
    ready = prepare(protocol, options.with_seed(seed), goals, engine=engine)
    words = ["hustings", "sim", name or "", *world, f"--engine={ready.chosen.engine.name}"]
    words += [f"--seed={seed}", *goals.words()]
    chosen = ready.chosen
    command = shlex.join([*words, "--json"]) if name is not None else ""
    point = SweepPoint(parameters, chosen.experiment, ready.goal, chosen.engine.name, command)
    return point, list(ready.warnings)


@dataclass(frozen=True, slots=True)
class _Axis:
    """One option and its values; `entry` if the option is an entry of a table."""

    name: str
    entry: str | None
    values: Sequence[Any]

    @property
    def label(self) -> str:
        key = key_of(self.name)
        return key if self.entry is None else f"{key}.{self.entry}"


def _axes(words: Mapping[str, Any]) -> list[_Axis]:
    axes = []
    for name, value in words.items():
        if isinstance(value, Mapping):
            axes += [_Axis(name, key, _values(key, each)) for key, each in value.items()]
        else:
            axes.append(_Axis(name, None, _values(name, value)))
    return axes


def _values(name: str, value: Any) -> Sequence[Any]:
    values = value if isinstance(value, list) else [value]
    if not values:
        raise BadInput(f"{name} lists no value")
    return values


def _points(words: Mapping[str, Any], goals: Goals) -> tuple[list[SweepPoint], tuple[str, ...]]:
    axes = _axes(words)
    varied = [each.name for each in axes if len(each.values) > 1]
    points: list[SweepPoint] = []
    warnings: dict[str, None] = {}
    for values in product(*(each.values for each in axes)):
        given: dict[str, Any] = {}
        labels: dict[str, Value] = {}
        for axis, value in zip(axes, values, strict=True):
            if axis.entry is None:
                given[axis.name] = value
            else:
                given.setdefault(axis.name, {})[axis.entry] = value
            labels[axis.label] = _label(value)
        point, said = _point(given, labels, goals, varied)
        points.append(point)
        warnings |= dict.fromkeys(said)
    return points, tuple(warnings)


def _label(value: Any) -> Value:
    if isinstance(value, type):
        return find(value).about.name
    if isinstance(value, Environment | Path):
        return environment_word(value)
    return value if isinstance(value, str | int | float) else " ".join(map(str, value))


def _point(
    given: dict[str, Any], labels: dict[str, Value], goals: Goals, varied: Sequence[str]
) -> tuple[SweepPoint, list[str]]:
    if PROTOCOL not in given:
        raise BadInput("a sweep names no protocol: give protocol='bully'")
    protocol, engine = given.pop(PROTOCOL), given.pop(ENGINE, None)
    options = Options.of(**given)
    world = options.words({name for name in given if name not in APART})
    parameters = {key: value for key, value in labels.items() if key not in (ENGINE, SEED)}
    if ENGINE in varied:
        parameters[ENGINE] = labels[ENGINE]
    if SEED in varied:
        parameters["sweep_seed"] = labels[SEED]
    return point_of(protocol, options, goals, engine=engine, world=world, parameters=parameters)


# A grid from a file, or from lines of such a file


def read_grid(file: str | Path | Sequence[str]) -> SweepGrid:
    """The grid of a file, or of a list of its lines; an error names the line."""
    if isinstance(file, str | Path):
        grid = gridfile.read(Path(file), kinds())
        command = ["hustings", "sweep", str(file)]
    else:
        grid = gridfile.parse("\n".join(file), LINES, kinds())
        command = ["hustings", "sweep", *(f"--grid={line}" for line in file)]
    varied = [
        key
        for key in (ENGINE, SEED)
        if len({typed.of(key) for typed in grid.points}) > 1  # counted, not iterated
    ]
    points: list[SweepPoint] = []
    warnings: dict[str, None] = {}
    for number, typed in enumerate(grid.points, 1):
        point, said = _typed_point(grid, typed, number, varied)
        points.append(point)
        warnings |= dict.fromkeys(said)
    check_points(points)
    layout, lacking = _layout(grid, points)
    every = (*warnings, *lacking)
    return SweepGrid(points, every, shlex.join(command), layout)


def _typed_point(
    grid: GridFile, typed: Typed, number: int, varied: Sequence[str]
) -> tuple[SweepPoint, list[str]]:
    protocol = typed.of(PROTOCOL)
    if protocol is None:
        raise BadInput(f'{shown(grid.path)} names no protocol: write protocol = "bully"')
    parameters = {key: value for key, value in typed.labels.items() if key not in (ENGINE, SEED)}
    if ENGINE in varied:
        parameters[ENGINE] = typed.of(ENGINE)
    if SEED in varied:
        parameters["sweep_seed"] = typed.labels.get(SEED, 1)
    try:
        return point_of(
            protocol,
            options_of(typed),
            goals_of(typed),
            engine=typed.of(ENGINE),
            world=world_of(typed),
            parameters=parameters,
        )
    except BadInput as error:
        raise _wrong(grid, typed, number, error) from None


def _wrong(grid: GridFile, typed: Typed, number: int, error: BadInput) -> BadInput:
    """The error of a point, with the line of the key that the error concerns or names."""
    names = ", ".join(f"{key}={value}" for key, value in typed.labels.items())
    said = f"point {number} ({names}): {error}"
    if isinstance(error, WrongValue):
        return grid.complaint(typed.keys[error.key], str(error))
    for name, where in {**typed.entries, **typed.keys}.items():
        if re.search(rf"(?<![\w.-]){re.escape(name)}(?![\w.-])", str(error)):
            return grid.complaint(where, said)
    return BadInput(f"{shown(grid.path)} {said}")


def _layout(grid: GridFile, points: Sequence[SweepPoint]) -> tuple[PictureLayout | None, list[str]]:
    """The picture to draw, if one can be drawn, and a sentence for each file that cannot be."""
    try:
        layout = picture.plan(points, grid.plot)
    except BadInput as error:
        raise grid.complaint(("plot",), f"plot: {error}") from None
    if not isinstance(layout, str) and find_spec("matplotlib") is None:
        layout = f"nothing is drawn without matplotlib: {install_command('sweep')}"
    lacking = [layout] if isinstance(layout, str) else []
    if find_spec("pyarrow") is None:
        lacking.append(f"no Parquet is written without pyarrow: {install_command('sweep')}")
    return (None if isinstance(layout, str) else layout), lacking
