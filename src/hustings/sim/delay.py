"""How long messages travel. Each model is a strategy: one class, a frozen value.

`DELAYS` gives each model its word in `--delay WORD:NUMBER,...`. A model of your own is a subclass
of `Delay`, named as `file.py:Class`: see "Add a loss or delay model" in CONTRIBUTING.md.
"""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from random import Random
from typing import ClassVar

from hustings.core.choice import MemberId
from hustings.core.config import finite_number
from hustings.core.durations import is_duration, parse_duration
from hustings.core.errors import BadInput
from hustings.core.plugins import Plugins, place_of
from hustings.core.quantities import write_duration

_PERCENTILE = 3.0902323061678132  # of the normal law: 99.9 % lie below
MOST_SIGMA = 50.0  # beyond it a draw may be larger than any float


def check_time(name: str, value: float) -> None:
    """Refuse what is no time."""
    if not 0.0 <= value < math.inf:
        raise BadInput(f"{name} must be a finite time >= 0, not {value:g}")


@dataclass(frozen=True, slots=True)
class Delay(ABC):
    """A law of delays. Its fields are the numbers that follow its word in `--delay`."""

    name: ClassVar[str]  # the word for it in `--delay`
    unitless: ClassVar[tuple[str, ...]] = ()  # fields that are no times

    @abstractmethod
    def draw(self, rng: Random, sender: MemberId, receiver: MemberId) -> float:
        """One message's delay on one link. `rng` is the only source of random numbers."""

    @property
    @abstractmethod
    def bound(self) -> float:
        """A time within which (nearly) every message arrives; timers default to it."""

    def check(self, members: int, joining: int) -> None:
        """Refuse a law that does not fit the group: `members`, and later `joining` more."""


@dataclass(frozen=True, slots=True)
class Fixed(Delay):
    """Every message takes the same time: the papers' model, and the fast path."""

    name = "fixed"  # a number alone says it in `--delay`

    delay: float = 1.0

    def __post_init__(self) -> None:
        check_time("delay", self.delay)

    def draw(self, rng: Random, sender: MemberId, receiver: MemberId) -> float:
        return self.delay

    @property
    def bound(self) -> float:
        return self.delay


@dataclass(frozen=True, slots=True)
class Uniform(Delay):
    """Uniform between two bounds."""

    name = "uniform"

    low: float
    high: float

    def __post_init__(self) -> None:
        check_time("uniform delay's lower end", self.low)
        check_time("uniform delay's upper end", self.high)
        if self.high < self.low:
            raise BadInput(f"uniform delay needs LOW <= HIGH, not {self.low:g} > {self.high:g}")

    def draw(self, rng: Random, sender: MemberId, receiver: MemberId) -> float:
        return rng.uniform(self.low, self.high)

    @property
    def bound(self) -> float:
        return self.high


@dataclass(frozen=True, slots=True)
class Exponential(Delay):
    """Exponential with a mean: no bound in truth; `bound` is the 99.9th percentile."""

    name = "exponential"

    mean: float

    def __post_init__(self) -> None:
        check_time("exponential delay's mean", self.mean)
        if self.mean == 0:
            raise BadInput("exponential delay's mean must be > 0")

    def draw(self, rng: Random, sender: MemberId, receiver: MemberId) -> float:
        return rng.expovariate(1.0 / self.mean)

    @property
    def bound(self) -> float:
        return self.mean * math.log(1000.0)


@dataclass(frozen=True, slots=True)
class Lognormal(Delay):
    """Lognormal around a median: no bound in truth; `bound` is the 99.9th percentile."""

    name = "lognormal"
    unitless = ("sigma",)

    median: float
    sigma: float

    def __post_init__(self) -> None:
        check_time("lognormal delay's median", self.median)
        check_time("lognormal delay's sigma", self.sigma)
        if self.median == 0:
            raise BadInput("lognormal delay's median must be > 0")
        if self.sigma > MOST_SIGMA:
            raise BadInput(
                f"lognormal delay's sigma must be at most {MOST_SIGMA:g}, not {self.sigma:g}"
            )

    def draw(self, rng: Random, sender: MemberId, receiver: MemberId) -> float:
        return self.median * math.exp(rng.gauss(0.0, self.sigma))

    @property
    def bound(self) -> float:
        return self.median * math.exp(_PERCENTILE * self.sigma)


@dataclass(frozen=True, slots=True)
class PerLink(Delay):
    """A table of delays by (sender, receiver), and one for all other links."""

    table: Mapping[tuple[MemberId, MemberId], float] = field(default_factory=dict)
    otherwise: float = 1.0

    def __post_init__(self) -> None:
        check_time("delay", self.otherwise)
        for (sender, receiver), delay in self.table.items():
            check_time(f"delay of link {sender}->{receiver}", delay)

    def draw(self, rng: Random, sender: MemberId, receiver: MemberId) -> float:
        return self.table.get((sender, receiver), self.otherwise)

    @property
    def bound(self) -> float:
        return max([self.otherwise, *self.table.values()])

    def check(self, members: int, joining: int) -> None:
        last = members + joining
        for sender, receiver in self.table:
            if not 1 <= min(sender, receiver) <= max(sender, receiver) <= last:
                raise BadInput(f"--link {sender}>{receiver} names no member: ids are 1 to {last}")


# From options to a delay

DELAYS: Mapping[str, type[Delay]] = {kind.name: kind for kind in (Uniform, Lognormal, Exponential)}
_PLUGINS = Plugins(
    group="hustings.delays",
    noun="delay model",
    base=Delay,
    name_of=lambda kind: getattr(kind, "name", None),
)


def _numbers(kind: type[Delay]) -> list[str]:
    return [each.name.upper() for each in fields(kind)]


USAGES = tuple(f"{word}:{','.join(_numbers(kind))}" for word, kind in DELAYS.items())


def parse_delay(text: str, links: Iterable[str] = ()) -> Delay:
    """`0.1`, `uniform:0.5,1.5`, ..., `file.py:Class:0.5`; links `1>2=5` differ from a fixed one.

    >>> parse_delay("uniform:0.5,1.5"), parse_delay("2", ["1>2=5"])
    (Uniform(low=0.5, high=1.5), PerLink(table={(1, 2): 5.0}, otherwise=2.0))
    """
    table = _links(links)
    if ":" not in text:
        fixed = finite_number(text, "delay")
        return PerLink(table, fixed) if table else Fixed(fixed)
    if table:
        raise BadInput("--link goes with a fixed --delay only")
    kind, name, numbers = _law(text)
    return kind(*(finite_number(part, f"{name} delay") for part in numbers))


def parse_law(value: object) -> Delay:
    """A law of times in seconds, with units: `40ms`, `uniform:1ms,3ms`, `lognormal:12ms,0.4`.

    >>> parse_law("40ms"), parse_law("lognormal:12ms,0.4")
    (Fixed(delay=0.04), Lognormal(median=0.012, sigma=0.4))
    """
    if not isinstance(value, str) or ":" not in value:
        try:
            return Fixed(parse_duration(value, ""))
        except BadInput:
            known = "40ms, uniform:1ms,3ms, exponential:80ms or lognormal:12ms,0.4"
            raise BadInput(f"{str(value)[:60]!r} is no law of times: write {known}") from None
    kind, name, numbers = _law(value)
    numbers_of = [each.name for each in fields(kind)]
    read = zip(numbers_of, numbers, strict=True)
    return kind(*(_in_seconds(kind, key, text.strip(), name) for key, text in read))


def _in_seconds(kind: type[Delay], key: str, text: str, name: str) -> float:
    """A number of a law; times have units. The fields of a user's class may be anything."""
    if key in kind.unitless:
        return finite_number(text, f"{name} law's {key}")
    if kind not in DELAYS.values() and not is_duration(text):
        return finite_number(text, f"{name} law's {key}")
    return parse_duration(text, f"{name} law's {key}")


def write_law(law: Delay) -> str:
    """The text of a law in seconds, which `parse_law` reads as the same law.

    >>> write_law(Fixed(0.04)), write_law(Lognormal(0.012, 0.4))
    ('40ms', 'lognormal:12ms,0.4')
    """
    if isinstance(law, Fixed):
        return write_duration(law.delay)
    values = {each.name: getattr(law, each.name) for each in fields(law)}
    if not all(isinstance(value, int | float) for value in values.values()):
        raise BadInput(f"a delay of the class {type(law).__name__} cannot be written as one law")
    ours = type(law) in DELAYS.values()
    plain = law.unitless if ours else tuple(values)
    texts = [repr(v) if key in plain else write_duration(v) for key, v in values.items()]
    word = law.name if ours else place_of(type(law))
    return f"{word}:{','.join(texts)}" if texts else word


def _law(text: str) -> tuple[type[Delay], str, list[str]]:
    """The class that a text names, its last word, and its numbers, as many as it takes."""
    word, numbers = _split(text)
    kind = _find(word)
    name = word.rpartition(":")[2]
    wanted = _numbers(kind)
    if len(numbers) != len(wanted):
        counted = "1 number" if len(wanted) == 1 else f"{len(wanted)} numbers"
        raise BadInput(f"delay {text!r} needs {counted}: {':'.join([name, ','.join(wanted)])}")
    return kind, name, numbers


def _split(text: str) -> tuple[str, list[str]]:
    """The word of a delay and its numbers."""
    word, _, numbers = text.partition(":")
    if word in DELAYS:
        return word, numbers.split(",")
    word, _, numbers = text.rpartition(":")
    if ":" in word or re.match(r"[\s\d.+-]", numbers):
        return word, numbers.split(",")
    return text, []


def _find(word: str) -> type[Delay]:
    if word in DELAYS:
        return DELAYS[word]
    found = _PLUGINS.load(word, USAGES)
    if not (isinstance(found, type) and issubclass(found, Delay)):
        raise BadInput(f"{word} is no delay model: a delay model is a subclass of Delay")
    return found


def _links(texts: Iterable[str]) -> dict[tuple[MemberId, MemberId], float]:
    table: dict[tuple[MemberId, MemberId], float] = {}
    for text in texts:
        match = re.fullmatch(r"([0-9]{1,9})>([0-9]{1,9})=(.+)", text.strip())
        if match is None:
            raise BadInput(f"--link {text!r} is not understood: write SENDER>RECEIVER=DELAY")
        link = int(match[1]), int(match[2])
        if link[0] == link[1]:
            raise BadInput(f"--link {text!r} joins a member to itself: name two members")
        if link in table:
            raise BadInput(f"--link {match[1]}>{match[2]} is given twice")
        table[link] = finite_number(match[3], "link delay")
    return table
