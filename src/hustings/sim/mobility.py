"""Mobility: members that move in a square, and which members are in radio range of each other.

A model draws a path for each member, in pieces of constant velocity. So the instants at which two
members come into range of each other, or leave it, follow from quadratic equations. Nothing is
sampled, and no change is missed. Every member's path has a stream of its own under the run's seed.

`random-waypoint` is the model of Johnson and Maltz (1996): a member chooses a point and a speed,
goes there, rests, and chooses again. Paths begin in the steady state, drawn as in Navidi and Camp
(2004). Otherwise members would slow down and gather in the middle while a run is measured.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from itertools import combinations, groupby, pairwise
from typing import ClassVar, NamedTuple

from hustings.core.choice import MemberId
from hustings.core.config import parse_number
from hustings.core.errors import BadInput, UnknownName
from hustings.core.streams import Stream, derive
from hustings.sim.queue import END_OF_TIME, on_grid

ROUTED, DIRECT = "routed", "direct"
MAX_ROAMING = 200  # members of a mobile group
MAX_PIECES = 5_000_000  # expected stretches of constant velocity in one run, over all pairs
MEAN_LEG = 0.5214054331647207  # mean distance of two random points in a square of side 1

Place = tuple[float, float]
Component = tuple[MemberId, ...]  # by id


class Leg(NamedTuple):
    """A stretch of constant velocity; for a rest the velocity is zero."""

    start: float
    x: float
    y: float
    vx: float = 0.0
    vy: float = 0.0

    def at(self, instant: float) -> Place:
        """Where a member on this leg is at a time.

        >>> Leg(10.0, 5.0, 5.0, 1.0, -2.0).at(12.0)
        (7.0, 1.0)
        """
        passed = instant - self.start
        return self.x + passed * self.vx, self.y + passed * self.vy


Path = tuple[Leg, ...]  # the first begins at 0; each lasts until the next begins


@dataclass(frozen=True, slots=True)
class Topology:
    """Which members are in range of each other from an instant on."""

    at: float
    neighbours: Mapping[MemberId, Mapping[MemberId, None]]

    def components(self) -> tuple[Component, ...]:
        """Groups of members that are connected, directly or through others; ordered by smallest id.

        >>> Topology(0.0, {1: {3: None}, 2: {}, 3: {1: None}}).components()
        ((1, 3), (2,))
        """
        seen: dict[MemberId, None] = {}
        found: list[Component] = []
        for first in self.neighbours:
            if first not in seen:
                reached = self._reached(first)
                seen.update(reached)
                found.append(tuple(sorted(reached)))
        return tuple(found)

    def _reached(self, first: MemberId) -> dict[MemberId, None]:
        reached = {first: None}
        waiting = [first]
        while waiting:
            fresh = [other for other in self.neighbours[waiting.pop()] if other not in reached]
            reached.update(dict.fromkeys(fresh))
            waiting += fresh
        return reached


@dataclass(frozen=True, slots=True, kw_only=True)
class Mobility(ABC):
    """How members of a group move, and what their range means; lengths and times have no unit.

    `links`: routed, so that all members of a component reach each other (a routing layer carries
    messages over several hops, as fast as over one), or direct, so that a message goes one hop.
    `settle`: how long members may stay together without one leader before that is a violation.
    """

    name: ClassVar[str]
    side: float = 1000.0
    range: float = 250.0
    links: str = ROUTED
    settle: float | None = None  # None: what the election takes at most, by its settings

    def __post_init__(self) -> None:
        """Refuse impossible settings, and report all of them at once."""
        wrong = self.broken_rules()
        if wrong:
            raise BadInput("; ".join(wrong))

    def broken_rules(self) -> list[str]:
        """Sentences about fields that make no sense."""
        wrong = []
        if not 0.0 < self.side < math.inf:
            wrong.append(f"side must be a length > 0, not {self.side:g}")
        if not self.range >= 0.0:
            wrong.append(f"range must be a length >= 0, not {self.range:g}")
        if self.links not in (ROUTED, DIRECT):
            wrong.append(f"links must be {ROUTED} or {DIRECT}, not {self.links!r}")
        if self.settle is not None and not 0.0 < self.settle <= END_OF_TIME:
            wrong.append(f"settle must be a time > 0, not {self.settle:g}")
        return wrong

    @abstractmethod
    def path(self, stream: Stream, horizon: float) -> Path:
        """One member's path until the horizon."""

    @abstractmethod
    def legs(self, horizon: float) -> float:
        """How many legs to expect in a path."""

    def check(self, members: int, horizon: float) -> None:
        """Refuse a group that is too large, or paths with too many pieces."""
        if members > MAX_ROAMING:
            raise BadInput(f"at most {MAX_ROAMING} members move about, not {members:,}")
        if members * members * self.legs(horizon) > MAX_PIECES:
            raise BadInput(
                f"{members} members that move so fast until {horizon:g} make too many pieces of "
                "paths: choose a lower speed, a larger side or a shorter run"
            )

    def paths(self, members: int, horizon: float, seed: int) -> dict[MemberId, Path]:
        """The paths of all members in the run of this seed."""
        return {
            member: self.path(Stream(derive(seed, "mobility", member)), horizon)
            for member in range(1, members + 1)
        }

    def topologies(self, members: int, horizon: float, seed: int) -> Iterator[Topology]:
        """The topology at 0, and at each instant at which members enter or leave range."""
        self.check(members, horizon)
        horizon = on_grid(horizon)
        paths = self.paths(members, horizon, seed)
        neighbours: dict[MemberId, dict[MemberId, None]] = {member: {} for member in paths}
        changes: list[tuple[float, MemberId, MemberId]] = []
        for one, other in combinations(paths, 2):
            for start, end in contacts(paths[one], paths[other], self.range, horizon):
                changes.append((start, one, other))
                if end < horizon:
                    changes.append((end, one, other))
        if all(at > 0.0 for at, _, _ in changes):
            yield Topology(0.0, {member: {} for member in paths})
        for at, flips in groupby(sorted(changes), key=lambda change: change[0]):
            for _, one, other in flips:
                _flip(neighbours, one, other)
            yield Topology(at, {member: dict(near) for member, near in neighbours.items()})

    def to_json(self) -> dict[str, object]:
        """Plain values only."""
        return {"model": self.name, **asdict(self)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Still(Mobility):
    """Members stay at random places."""

    name = "still"

    def path(self, stream: Stream, horizon: float) -> Path:
        x, y = _place(self.side, stream)
        return (Leg(0.0, x, y),)

    def legs(self, horizon: float) -> float:
        return 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RandomWaypoint(Mobility):
    """Go to a random point at a random speed, rest there for `pause`, and repeat."""

    name = "random-waypoint"
    speed_min: float = 1.0
    speed_max: float = 10.0
    pause: float = 0.0

    def broken_rules(self) -> list[str]:
        # Not super(): a dataclass with slots is a different class from the one that it was made of.
        wrong = Mobility.broken_rules(self)
        if not 0.0 < self.speed_min <= self.speed_max < math.inf:
            wrong.append(
                "speed_min must be > 0 and at most speed_max, or members slow down for ever; "
                f"not {self.speed_min:g} and {self.speed_max:g}"
            )
        if not 0.0 <= self.pause <= END_OF_TIME:
            wrong.append(f"pause must be a time >= 0, not {self.pause:g}")
        return wrong

    @property
    def journey(self) -> float:
        """The mean time from point to point."""
        low, high = self.speed_min, self.speed_max
        slowness = math.log(high / low) / (high - low) if high > low else 1.0 / low
        return MEAN_LEG * self.side * slowness

    def legs(self, horizon: float) -> float:
        return 2.0 + 2.0 * horizon / (self.journey + self.pause)

    def path(self, stream: Stream, horizon: float) -> Path:
        legs: list[Leg] = []
        at = 0.0
        if stream.random() * (self.journey + self.pause) < self.pause:
            here = _place(self.side, stream)
            legs.append(Leg(0.0, *here))
            at = self.pause * stream.random()
        else:
            here, target, speed = self._under_way(stream)
            at = _go(legs, at, here, target, speed)
            here, at = target, self._rest(legs, at, target)
        while at < horizon:
            target = _place(self.side, stream)
            at = _go(legs, at, here, target, stream.uniform(self.speed_min, self.speed_max))
            here, at = target, self._rest(legs, at, target)
        return tuple(legs)

    def _rest(self, legs: list[Leg], at: float, here: Place) -> float:
        if self.pause:
            legs.append(Leg(at, *here))
        return at + self.pause

    def _under_way(self, stream: Stream) -> tuple[Place, Place, float]:
        """Begin in the middle of a leg: a long or slow leg is more likely to be under way."""
        begin, end = _place(self.side, stream), _place(self.side, stream)
        while stream.random() * math.sqrt(2.0) * self.side >= math.dist(begin, end):
            begin, end = _place(self.side, stream), _place(self.side, stream)
        part = stream.random()
        here = (begin[0] + part * (end[0] - begin[0]), begin[1] + part * (end[1] - begin[1]))
        speed = self.speed_min * (self.speed_max / self.speed_min) ** stream.random()
        return here, end, speed


MODELS: dict[str, type[Mobility]] = {model.name: model for model in (RandomWaypoint, Still)}


def parse_mobility(model: str, settings: Mapping[str, object]) -> Mobility:
    """A model by name; settings may be numbers or texts as typed.

    >>> parse_mobility("random-waypoint", {"range": "100", "speed_max": 20}).to_json()["range"]
    100.0
    """
    if model not in MODELS:
        raise UnknownName("mobility", model, MODELS)
    known = [field.name for field in fields(MODELS[model])]
    for name in settings:
        if name not in known:
            raise UnknownName("mobility setting", name, known)
    values = {name: _value(name, value) for name, value in settings.items()}
    return MODELS[model](**values)  # type: ignore[arg-type] # checked by the model itself


def _value(name: str, value: object) -> float | str:
    if name == "links":
        return str(value)
    try:
        return parse_number(str(value))
    except ValueError:
        raise BadInput(f"{name} must be a number, not {value!r}") from None


def contacts(one: Path, other: Path, radius: float, horizon: float) -> list[tuple[float, float]]:
    """When two members are in range of each other: stretches of time, on the grid.

    >>> moving, standing = (Leg(0.0, 0.0, 0.0, 1.0, 0.0),), (Leg(0.0, 5.0, 0.0),)
    >>> contacts(moving, standing, 2.0, 100.0)
    [(3.0, 7.0)]
    """
    found: list[tuple[float, float]] = []
    for start, end, mine, its in _pieces(one, other, horizon):
        begin, stop = _within(mine, its, start, end, radius)
        begin, stop = on_grid(begin), on_grid(stop)
        if begin >= stop:
            continue
        if found and begin <= found[-1][1]:  # the two were in range until now
            begin = found.pop()[0]
        found.append((begin, stop))
    return found


def _pieces(one: Path, other: Path, horizon: float) -> Iterator[tuple[float, float, Leg, Leg]]:
    """Stretches of time in which neither member changes its velocity."""
    starts = sorted({leg.start for leg in (*one, *other) if leg.start < horizon})
    i = j = 0
    for start, end in pairwise([*starts, horizon]):
        while i + 1 < len(one) and one[i + 1].start <= start:
            i += 1
        while j + 1 < len(other) and other[j + 1].start <= start:
            j += 1
        yield start, end, one[i], other[j]


def _within(one: Leg, other: Leg, start: float, end: float, radius: float) -> Place:
    """The part of an interval in which the distance is at most the radius."""
    (ax, ay), (bx, by) = one.at(start), other.at(start)
    dx, dy, vx, vy = ax - bx, ay - by, one.vx - other.vx, one.vy - other.vy
    # |d + v t|^2 = r^2 is quadratic in t; these are its coefficients.
    square, half, rest = vx * vx + vy * vy, dx * vx + dy * vy, dx * dx + dy * dy - radius * radius
    if square == 0.0:
        return (start, end) if rest < 0.0 else (start, start)
    inner = half * half - square * rest
    if inner <= 0.0:
        return start, start
    root = math.sqrt(inner)
    first, last = start + (-half - root) / square, start + (-half + root) / square
    return max(start, first), min(end, last)


def _flip(neighbours: dict[MemberId, dict[MemberId, None]], one: MemberId, other: MemberId) -> None:
    for here, there in ((one, other), (other, one)):
        if there in neighbours[here]:
            del neighbours[here][there]
        else:
            neighbours[here][there] = None


def _place(side: float, stream: Stream) -> Place:
    return side * stream.random(), side * stream.random()


def _go(legs: list[Leg], at: float, here: Place, there: Place, speed: float) -> float:
    """Add a leg, and return when it ends."""
    way = math.dist(here, there)
    if way == 0.0:
        return at
    factor = speed / way
    legs.append(Leg(at, *here, factor * (there[0] - here[0]), factor * (there[1] - here[1])))
    return at + way / speed
