"""The results of some runs of one point, as numbers that can be stored and added up.

Blocks are cut at run numbers that depend on the point alone, and added up in order. So sums are the
same to the last bit, wherever blocks were played and in whatever order they came back.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import msgspec

from hustings.core.errors import ProtocolBug


@dataclass(frozen=True, slots=True)
class RunValues:
    """The values of each metric in the runs that have one, and how all runs ended."""

    metrics: dict[str, list[float]]
    endings: dict[str, int]
    violated: int = 0  # runs in which a property was violated


class Moments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How many values, their mean, and the sum of squared distances from it.

    >>> Moments.of([1.0, 2.0, 3.0, 4.0])
    Moments(count=4, mean=2.5, spread=5.0)
    >>> Moments.of([1.0, 2.0]) + Moments.of([3.0, 4.0])
    Moments(count=4, mean=2.5, spread=5.0)
    """

    count: int
    mean: float
    spread: float

    @classmethod
    def of(cls, values: list[float]) -> Moments:
        """The moments of some values."""
        if not values:
            return NOTHING
        mean = math.fsum(values) / len(values)
        return cls(len(values), mean, math.fsum((value - mean) ** 2 for value in values))

    def __add__(self, other: Moments) -> Moments:
        if not self.count or not other.count:
            return self if self.count else other
        count = self.count + other.count
        apart = other.mean - self.mean
        return Moments(
            count,
            self.mean + apart * other.count / count,
            self.spread + other.spread + apart * apart * self.count * other.count / count,
        )

    @property
    def stderr(self) -> float:
        """The standard error of the mean; infinite for a single value.

        >>> round(Moments.of([1.0, 2.0, 3.0, 4.0]).stderr, 6), Moments.of([7.0]).stderr
        (0.645497, inf)
        """
        if self.count < 2:
            return math.inf
        return math.sqrt(self.spread / (self.count - 1) / self.count)

    @property
    def relative(self) -> float:
        """The standard error as a share of the mean; 0 if all values are equal."""
        error = self.stderr
        if error == 0.0:
            return 0.0
        return error / abs(self.mean) if self.mean else math.inf


NOTHING = Moments(0, 0.0, 0.0)


class Column(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One metric over some runs; its least and greatest values are missing if no run has one.

    >>> Column.of([1.0, 4.0]) + Column.of([2.0, 1.0])
    Column(moments=Moments(count=4, mean=2.0, spread=6.0), least=1.0, most=4.0)
    """

    moments: Moments = NOTHING
    least: float | None = None
    most: float | None = None

    @classmethod
    def of(cls, values: list[float]) -> Column:
        """The column of some values."""
        if not values:
            return cls()
        return cls(Moments.of(values), float(min(values)), float(max(values)))

    def __add__(self, other: Column) -> Column:
        if self.least is None or self.most is None:
            return other
        if other.least is None or other.most is None:
            return self
        return Column(
            self.moments + other.moments,
            min(self.least, other.least),
            max(self.most, other.most),
        )

    @property
    def count(self) -> int:
        """How many values."""
        return self.moments.count

    @property
    def mean(self) -> float:
        """Their mean."""
        return self.moments.mean

    @property
    def stderr(self) -> float:
        """The standard error of the mean."""
        return self.moments.stderr

    @property
    def relative(self) -> float:
        """The standard error as a share of the mean."""
        return self.moments.relative

    @property
    def plausible(self) -> bool:
        """Whether such values are possible."""
        count, mean, spread = self.moments.count, self.moments.mean, self.moments.spread
        if count == 0:
            return self == Column()
        if self.least is None or self.most is None or count < 0:
            return False
        slack = 1e-9 * max(abs(self.least), abs(self.most))  # a mean is rounded
        finite = all(map(math.isfinite, (self.least, self.most, mean, spread)))
        return finite and self.least - slack <= mean <= self.most + slack and spread >= 0.0


class Block(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Runs first .. last-1 of a point."""

    first: int
    last: int
    metrics: dict[str, Column]
    endings: dict[str, int]
    violated: int = 0

    @classmethod
    def of(cls, first: int, last: int, values: RunValues) -> Block:
        """The results of runs first .. last-1."""
        for name, column in values.metrics.items():
            if not all(map(math.isfinite, column)):
                raise ProtocolBug(f"a value of metric {name} in runs {first} to {last - 1} is not")
        return cls(
            first=first,
            last=last,
            metrics={name: Column.of(column) for name, column in values.metrics.items()},
            endings=dict(sorted(values.endings.items())),
            violated=values.violated,
        )

    def __add__(self, other: Block) -> Block:
        if other.first != self.last:
            raise ProtocolBug(f"block {other.first} does not follow {self.last}")
        names = dict.fromkeys([*self.metrics, *other.metrics])
        nothing = Column()
        return Block(
            first=self.first,
            last=other.last,
            metrics={
                name: self.metrics.get(name, nothing) + other.metrics.get(name, nothing)
                for name in names
            },
            endings=dict(sorted((Counter(self.endings) + Counter(other.endings)).items())),
            violated=self.violated + other.violated,
        )

    @property
    def runs(self) -> int:
        """How many runs."""
        return self.last - self.first

    @property
    def plausible(self) -> bool:
        """Whether runs can give such results: a file may contain anything."""
        return (
            0 <= self.first < self.last
            and min(self.endings.values(), default=0) > 0
            and sum(self.endings.values()) == self.runs
            and 0 <= self.violated <= self.runs
            and all(
                column.plausible and column.moments.count <= self.runs
                for column in self.metrics.values()
            )
        )


EMPTY = Block(0, 0, {}, {})


def total(blocks: Iterable[Block]) -> Block:
    """All blocks as one; they follow each other from run 0."""
    whole = EMPTY
    for block in blocks:
        whole += block
    return whole
