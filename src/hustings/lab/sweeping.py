"""`sweep`: many experiments, played anywhere, with the same numbers everywhere."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from html import escape
from itertools import product
from pathlib import Path
from typing import Any, cast

from hustings.core.errors import BadInput
from hustings.core.streams import derive
from hustings.lab.options import FLAGS, Options, named
from hustings.lab.runs.executors import MAX_JOBS, check_place
from hustings.lab.runs.playing import Tell
from hustings.lab.simulation import Goals, check_whole, prepare
from hustings.lab.sweeps import picture
from hustings.lab.sweeps.points import (
    SweepPoint,
    SweepResult,
    Value,
    check_points,
    check_sweep,
    play_points,
    usual_place,
)
from hustings.lab.sweeps.table import rows_of
from hustings.lab.tables import Table, as_html, needed
from hustings.protocols.registry import Protocol, find

PROTOCOL, ENGINE, SEED = "protocol", "engine", "seed"
APART = (PROTOCOL, ENGINE, SEED)


@dataclass(frozen=True, slots=True)
class Sweep(Table):
    """Every point with its runs. `sweep.results[0].point.command` gives the same numbers."""

    results: list[SweepResult]
    warnings: tuple[str, ...]

    def rows(self) -> list[dict[str, object]]:
        """One row for each point and metric."""
        return [dict(row) for row in rows_of(self.results)]

    @property
    def short(self) -> list[str]:
        """A sentence for each point whose precision was not reached."""
        return [each.shortfall for each in self.results if each.shortfall is not None]

    def plot(self, **wishes: object) -> dict[str, bytes]:
        """A picture as PNG and SVG; `x`, `metric` and `log` say what is drawn."""
        plan = picture.plan([each.point for each in self.results], wishes)
        if isinstance(plan, str):
            raise BadInput(plan)
        drawing = needed("hustings.lab.figures.drawing", "figures")
        return cast(dict[str, bytes], drawing.draw(picture.made_of("sweep", self.results, plan)))

    def _repr_html_(self) -> str:
        warnings = "".join(f"<li>{escape(each)}</li>" for each in self.warnings)
        return f"{as_html(self.rows())}<ul>{warnings}</ul>"


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
    check_whole("jobs", jobs, 1, MAX_JOBS)
    if isinstance(on, str):
        check_place(on)
    goals = Goals(runs, stderr, metric)
    points, warnings = _points({**fixed, **grid}, goals)
    check_points(points)
    check_sweep(points, jobs)
    kept = None if checkpoint is None else Path(checkpoint)
    place = usual_place(points) if on is None else on
    return Sweep(play_points(points, place, jobs, checkpoint=kept, tell=tell), warnings)


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
        flag = FLAGS.get(self.name, self.name.replace("_", "-"))
        return flag if self.entry is None else f"{flag}.{self.entry}"


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
