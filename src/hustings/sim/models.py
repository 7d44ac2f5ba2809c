"""Network models: frozen values that say how messages fare. Compose them in a `Network`."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import lru_cache
from random import Random

from hustings.core.choice import MemberId
from hustings.core.errors import BadInput


def check_probability(name: str, value: float) -> float:
    """`value` if it is a probability, else a sentence."""
    if not 0.0 <= value <= 1.0:
        raise BadInput(f"{name} must lie in [0, 1], not {value:g}")
    return value


def _check_time(name: str, value: float) -> None:
    if not 0.0 <= value < math.inf:
        raise BadInput(f"{name} must be a finite time >= 0, not {value:g}")


def reached(receivers: int, p: float, chance: Random) -> bytearray:
    """Whom a message reaches when each loses it with probability `p`: a 1 or a 0 for each.

    One random byte decides for most receivers; where it falls on the byte in which `p` lies, a
    second draw decides, so the probability is exact and the work is done in bulk.
    """
    if p <= 0.0:
        return bytearray(b"\1") * receivers
    marks = bytearray(chance.randbytes(receivers).translate(_verdicts(p)))
    rest = p * 256 - int(p * 256)
    place = marks.find(_UNDECIDED)
    while place >= 0:
        marks[place] = chance.random() >= rest
        place = marks.find(_UNDECIDED, place + 1)
    return marks


_UNDECIDED = 2


@lru_cache(maxsize=64)
def _verdicts(p: float) -> bytes:
    """What each value of a random byte means: lost, undecided, reached."""
    lost = int(p * 256)
    return (bytes(lost) + bytes([_UNDECIDED]) + b"\1" * 256)[:256]


class Delay(ABC):
    """How long a message travels."""

    @abstractmethod
    def draw(self, rng: Random, sender: MemberId, receiver: MemberId) -> float:
        """One message's delay on one link."""

    @property
    @abstractmethod
    def bound(self) -> float:
        """A time within which (nearly) every message arrives; timers default to it."""


@dataclass(frozen=True, slots=True)
class Fixed(Delay):
    """Every message takes the same time: the papers' model, and the fast path."""

    delay: float = 1.0

    def __post_init__(self) -> None:
        _check_time("delay", self.delay)

    def draw(self, rng: Random, sender: MemberId, receiver: MemberId) -> float:
        return self.delay

    @property
    def bound(self) -> float:
        return self.delay


@dataclass(frozen=True, slots=True)
class Uniform(Delay):
    """Uniform between two bounds."""

    low: float
    high: float

    def __post_init__(self) -> None:
        _check_time("uniform delay's lower end", self.low)
        _check_time("uniform delay's upper end", self.high)
        if self.high < self.low:
            raise BadInput(f"uniform delay needs LOW <= HIGH, not {self.low:g} > {self.high:g}")

    def draw(self, rng: Random, sender: MemberId, receiver: MemberId) -> float:
        return rng.uniform(self.low, self.high)

    @property
    def bound(self) -> float:
        return self.high


@dataclass(frozen=True, slots=True)
class Lognormal(Delay):
    """Lognormal around a median: no bound in truth; `bound` is the 99.9th percentile."""

    median: float
    sigma: float

    def __post_init__(self) -> None:
        _check_time("lognormal delay's median", self.median)
        _check_time("lognormal delay's sigma", self.sigma)
        if self.median == 0:
            raise BadInput("lognormal delay's median must be > 0")
        if self.sigma > 50:
            raise BadInput(f"lognormal delay's sigma must be at most 50, not {self.sigma:g}")

    def draw(self, rng: Random, sender: MemberId, receiver: MemberId) -> float:
        return self.median * math.exp(rng.gauss(0.0, self.sigma))

    @property
    def bound(self) -> float:
        return self.median * math.exp(3.0902323061678132 * self.sigma)


@dataclass(frozen=True, slots=True)
class PerLink(Delay):
    """A table of delays by (sender, receiver), and one for all other links."""

    table: Mapping[tuple[MemberId, MemberId], float] = field(default_factory=dict)
    otherwise: float = 1.0

    def __post_init__(self) -> None:
        _check_time("delay", self.otherwise)
        for (sender, receiver), delay in self.table.items():
            _check_time(f"delay of link {sender}->{receiver}", delay)

    def draw(self, rng: Random, sender: MemberId, receiver: MemberId) -> float:
        return self.table.get((sender, receiver), self.otherwise)

    @property
    def bound(self) -> float:
        return max([self.otherwise, *self.table.values()])


class LossModel(Enum):
    """For whom a coin is tossed."""

    NONE = "none"
    UNCORRELATED = "uncorrelated"  # one coin per message and receiver
    CORRELATED = "correlated"  # one coin per message: lost by all receivers or by none


@dataclass(frozen=True, slots=True)
class Loss:
    """How messages get lost.

    `collision` makes loss grow with traffic: a message whose flight overlaps with s - 1 others is
    lost with probability 1 - (1 - p)(1 - collision)**(s - 1) instead of p.
    """

    model: LossModel = LossModel.NONE
    p: float = 0.0
    collision: float = 0.0

    def __post_init__(self) -> None:
        check_probability("loss", self.p)
        check_probability("collision", self.collision)
        if self.model is LossModel.NONE and (self.p > 0 or self.collision > 0):
            raise BadInput("loss model 'none' loses nothing: drop the probability or name a model")

    def at(self, overlapping: int) -> float:
        """The probability for a message that shared the network with `overlapping - 1` others."""
        if not self.collision:
            return self.p
        return 1.0 - (1.0 - self.p) * (1.0 - self.collision) ** (overlapping - 1)


@dataclass(frozen=True, slots=True)
class Network:
    """All that may happen to a message on its way."""

    delay: Delay = field(default_factory=Fixed)
    loss: Loss = field(default_factory=Loss)
    duplicate: float = 0.0  # probability of a second copy, with a delay of its own
    reorder: float = 0.0  # probability of being held back, so that later messages overtake it
    hold_back: float = 0.0  # for at most this long, uniformly
    fifo: bool = False  # a link never delivers out of order
    multicast_loss: Loss | None = None  # of messages to the group, where it is another

    def __post_init__(self) -> None:
        check_probability("duplicate", self.duplicate)
        check_probability("reorder", self.reorder)
        _check_time("hold-back time", self.hold_back)
        if self.reorder and not self.hold_back:
            raise BadInput("reordering needs a hold-back time > 0")
        if self.hold_back and not self.reorder:
            raise BadInput("a hold-back time goes with a probability of reordering")
        if self.reorder and self.fifo:
            raise BadInput("a network cannot both reorder and keep links in order")

    @property
    def multicasts(self) -> Loss:
        """How messages to the group get lost."""
        return self.loss if self.multicast_loss is None else self.multicast_loss

    @property
    def plain(self) -> bool:
        """Whether one entry per send tells the whole fate of a message (the fast path)."""
        return (
            isinstance(self.delay, Fixed)
            and not self.duplicate
            and not self.reorder
            and not self.loss.collision
            and not self.multicasts.collision
        )
