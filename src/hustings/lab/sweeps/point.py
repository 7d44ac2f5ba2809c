"""A point: one experiment of a sweep, who plays it, and how many runs it gets."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b

import msgspec

from hustings.core.errors import BadInput
from hustings.lab.sweeps.block import Block
from hustings.lab.sweeps.engines import EVENTS, Player, engine_of
from hustings.lab.sweeps.goal import Goal, Precision, Runs
from hustings.protocols.plugins import source_digest
from hustings.sim.experiment import Experiment

Value = str | int | float | bool | None

MAX_POINTS = 10_000
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


@dataclass(frozen=True, slots=True)
class Point:
    """`parameters` tell it from the others, and are columns of the table."""

    parameters: Mapping[str, Value]
    experiment: Experiment
    goal: Goal = field(default_factory=lambda: Runs(1))
    engine: str = EVENTS
    command: str = ""  # that gives the same numbers, where there is one

    def __post_init__(self) -> None:
        engine_of(self.experiment, self.engine).admit(self.experiment)

    @property
    def player(self) -> Player:
        """What plays its runs."""
        return engine_of(self.experiment, self.engine).player(self.experiment)

    @property
    def piece(self) -> int:
        """How many of its runs make a block."""
        return engine_of(self.experiment, self.engine).piece(self.experiment)

    @property
    def name(self) -> str:
        """The point in a sentence."""
        told = ", ".join(f"{key}={value}" for key, value in self.parameters.items())
        return told or "the only one"

    @property
    def text(self) -> str:
        """Everything that its numbers depend on, and how they are told."""
        goal = f"{type(self.goal).__name__} {self.goal!r}"
        what = self.command or _ADDRESS.sub("", repr(self.experiment))
        parameters = msgspec.json.encode(dict(self.parameters)).decode()
        source = source_digest(self.experiment.kind)
        parts = [parameters, self.engine, str(self.experiment.seed), goal, what]
        return "\n".join([*parts, source] if source else parts)


@dataclass(frozen=True, slots=True)
class Result:
    """A point with its runs."""

    point: Point
    block: Block

    @property
    def shortfall(self) -> str | None:
        """A sentence where the precision asked for was not reached."""
        if not isinstance(self.point.goal, Precision):
            return None
        return self.point.goal.shortfall(self.block.runs, self.block.metrics)


def check_points(points: Sequence[Point]) -> None:
    """Refuse none, too many, and two of one kind."""
    if not points:
        raise BadInput("a sweep needs at least one point")
    if len(points) > MAX_POINTS:
        raise BadInput(f"{len(points):,} points are more than the {MAX_POINTS:,} of one sweep")
    seen: dict[str, int] = {}
    for number, point in enumerate(points, 1):
        other = seen.setdefault(point.text, number)
        if other != number:
            raise BadInput(f"points {other} and {number} are the same: {point.name}")


def digest_of(points: Sequence[Point]) -> str:
    """A name for a grid: of all its points in order."""
    digest = blake2b(digest_size=16)
    for point in points:
        text = point.text.encode()
        digest.update(f"{len(text)}\n".encode() + text)
    return digest.hexdigest()


def play_block(player: Player, first: int, last: int) -> Block:
    """Runs first .. last-1, wherever this is called."""
    return Block.of(first, last, player.play(first, last))
