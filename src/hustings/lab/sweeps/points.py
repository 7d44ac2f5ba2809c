"""The points of a sweep: one experiment each, its engine, and its number of runs.

`play_points` plays them on any executor, and stores what is finished.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path

import msgspec

from hustings.core.errors import BadInput
from hustings.lab.runs.block import Block
from hustings.lab.runs.checkpoint import Checkpoint, code_digest
from hustings.lab.runs.engines import (
    EVENTS,
    OF_A_MEMBER,
    BlockTotal,
    Player,
    check_memory,
    engine_of,
    play_block,
)
from hustings.lab.runs.executors import PROCESSES, THREADS, Pool, open_pool
from hustings.lab.runs.playing import Goal, Precision, Runs, Series, Tell, play_all
from hustings.sim.experiment import Experiment

Value = str | int | float | bool | None

MAX_POINTS = 10_000
OF_A_CANDIDATE = 90  # bytes of a member in a description; rounded down
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


@dataclass(frozen=True, slots=True)
class SweepPoint:
    """`parameters` identify a point, and are columns of the table."""

    parameters: Mapping[str, Value]
    experiment: Experiment
    goal: Goal = field(default_factory=lambda: Runs(1))
    engine: str = EVENTS
    command: str = ""  # gives the same numbers; "" if there is none

    def __post_init__(self) -> None:
        engine_of(self.experiment, self.engine).admit(self.experiment)

    @property
    def player(self) -> Player:
        """The player of its runs."""
        return engine_of(self.experiment, self.engine).player(self.experiment)

    def series(self, total: BlockTotal, number: int) -> Series[Player, Block]:
        """Its runs, for the engine of all runs; `number` is counted from 1."""
        piece = engine_of(self.experiment, self.engine).piece(self.experiment)
        return Series(self.player, self.goal, total, lambda _: piece, name=f"point {number}")

    @property
    def name(self) -> str:
        """The name of the point in a sentence."""
        told = ", ".join(f"{key}={value}" for key, value in self.parameters.items())
        return told or "the only one"

    @property
    def text(self) -> str:
        """Everything that its numbers, and their description, depend on."""
        goal = f"{type(self.goal).__name__} {self.goal!r}"
        what = self.command or _ADDRESS.sub("", repr(self.experiment))
        parameters = msgspec.json.encode(dict(self.parameters)).decode()
        source = self.experiment.source
        parts = [parameters, self.engine, str(self.experiment.seed), goal, what]
        return "\n".join([*parts, source] if source else parts)


@dataclass(frozen=True, slots=True)
class SweepResult:
    """A point with its runs."""

    point: SweepPoint
    block: Block

    @property
    def shortfall(self) -> str | None:
        """A sentence if the requested precision was not reached."""
        if not isinstance(self.point.goal, Precision):
            return None
        return self.point.goal.shortfall(self.block.runs, self.block.metrics)

    def to_json(self) -> dict[str, object]:
        """The point as data for scripts."""
        point, block = self.point, self.block
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
            "shortfall": self.shortfall,
        }


def check_points(points: Sequence[SweepPoint]) -> None:
    """Refuse an empty grid, too many points, and two equal ones."""
    if not points:
        raise BadInput("a sweep needs at least one point")
    if len(points) > MAX_POINTS:
        raise BadInput(f"{len(points):,} points are more than the {MAX_POINTS:,} of one sweep")
    seen: dict[str, int] = {}
    for number, point in enumerate(points, 1):
        other = seen.setdefault(point.text, number)
        if other != number:
            raise BadInput(f"points {other} and {number} are the same: {point.name}")


def check_sweep(points: Sequence[SweepPoint], jobs: int) -> None:
    """Refuse a grid too large for memory, with all points described and some being played."""
    groups = [point.experiment.members for point in points if point.engine == EVENTS]
    largest = sorted(groups, reverse=True)[:jobs]
    check_memory(
        sum(groups) * OF_A_CANDIDATE + sum(largest) * OF_A_MEMBER,
        f"{len(points):,} points with {sum(groups):,} members, played {jobs} at a time,",
    )


def usual_place(points: Sequence[SweepPoint]) -> str:
    """Threads if compiled kernels play every point, else processes."""
    threaded = all(engine_of(each.experiment, each.engine).threaded for each in points)
    return THREADS if threaded else PROCESSES


def digest_of(points: Sequence[SweepPoint]) -> str:
    """A name for a grid: a digest of all its points in order."""
    digest = blake2b(digest_size=16)
    for point in points:
        text = point.text.encode()
        digest.update(f"{len(text)}\n".encode() + text)
    return digest.hexdigest()


def play_points(
    points: Sequence[SweepPoint],
    on: str | Executor = PROCESSES,
    jobs: int = 1,
    *,
    checkpoint: Path | None = None,
    tell: Tell | None = None,
) -> list[SweepResult]:
    """Play all points, on any executor or in this process; store blocks in a file if one is named.

    Results are the same to the last bit wherever they were played. A point that does not reach its
    precision says so in its result and raises no error.
    """
    with open_pool(on, jobs, play_block) as pool:
        return play_points_in(pool, points, checkpoint=checkpoint, tell=tell)


def play_points_in(
    pool: Pool[Player, Block],
    points: Sequence[SweepPoint],
    *,
    checkpoint: Path | None = None,
    tell: Tell | None = None,
) -> list[SweepResult]:
    """The same in an open pool."""
    check_points(points)
    totals = [BlockTotal() for _ in points]
    series = [
        point.series(total, n)
        for n, (point, total) in enumerate(zip(points, totals, strict=True), 1)
    ]
    if checkpoint is None:
        play_all(series, pool, tell=tell)
    else:
        grid = digest_of(points)
        with Checkpoint(checkpoint, code=code_digest(), grid=grid, points=len(points)) as kept:
            play_all(series, pool, kept=kept, tell=tell)
    return [SweepResult(point, total.whole) for point, total in zip(points, totals, strict=True)]
