"""How messages get lost. Each model is a strategy: one class, a frozen value.

`LOSSES` gives each model the name that `--loss-model` takes. A model of your own is a subclass of
`Loss`, named as `file.py:Class`: see "Add a loss or delay model" in CONTRIBUTING.md.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from random import Random
from typing import ClassVar

from hustings.core.choice import MemberId
from hustings.core.config import parse_number
from hustings.core.errors import BadInput, UnknownName
from hustings.core.plugins import Plugins

# Whether a message that leaves now is lost: (now, sender, receiver).
Fate = Callable[[float, MemberId, MemberId], bool]


def check_probability(name: str, value: float) -> float:
    """`value` if it is a probability, else a sentence."""
    if not 0.0 <= value <= 1.0:
        raise BadInput(f"{name} must lie in [0, 1], not {value:g}")
    return value


@dataclass(frozen=True, slots=True)
class Loss(ABC):
    """A loss model. `p` is the share of its messages that a link loses in the long run.

    Further fields are settings of the model: `--loss-set NAME=NUMBER` gives them.
    """

    name: ClassVar[str]
    shared: ClassVar[bool] = False  # one decision for all receivers of a multicast

    p: float = 0.0

    def __post_init__(self) -> None:
        check_probability("loss", self.p)

    @abstractmethod
    def fate(self, chance: Random) -> Fate:
        """The decisions of one run. `chance` is the only source of random numbers."""

    @property
    def collision(self) -> float:
        """By how much each message that is under way at the same time adds to the loss."""
        return 0.0

    def at(self, overlapping: int) -> float:
        """The probability for a message that shared the network with `overlapping - 1` others."""
        return self.p

    def again(self, overlapping: int) -> float:
        """The probability that a link which has just lost a message loses the next one, too."""
        return self.at(overlapping)

    def with_p(self, p: float) -> Loss:
        """The same model with another share of lost messages."""
        return replace(self, p=p)

    @classmethod
    def parse(cls, p: float, collision: float, settings: Mapping[str, str]) -> Loss:
        """A loss from options: `--loss`, `--collision` and `--loss-set`."""
        known = [each.name for each in fields(cls) if each.name not in ("p", "collision")]
        values: dict[str, float] = {"p": p}
        for key, text in settings.items():
            if not known:
                raise BadInput(f"loss model {cls.name!r} has no settings: drop --loss-set")
            if key not in known:
                raise UnknownName("loss setting", key, known)
            values[key] = _number(key, text)
        if collision:
            if not issubclass(cls, Coins):
                raise BadInput(f"--collision does not go with loss model {cls.name!r}")
            values["collision"] = collision
        return cls(**values)


@dataclass(frozen=True, slots=True)
class Coins(Loss):
    """Losses without memory: one probability, one coin.

    The fast path of the world tosses these coins itself, in bulk where it can.
    `collision` makes loss grow with traffic: a message whose flight overlaps with s - 1 others is
    lost with probability 1 - (1 - p)(1 - collision)**(s - 1) instead of p.
    """

    collision: float = 0.0

    def __post_init__(self) -> None:
        check_probability("loss", self.p)
        check_probability("collision", self.collision)

    def at(self, overlapping: int) -> float:
        if not self.collision:
            return self.p
        return 1.0 - (1.0 - self.p) * (1.0 - self.collision) ** (overlapping - 1)

    def fate(self, chance: Random) -> Fate:
        p = self.at(1)
        return lambda now, sender, receiver: p > 0 and chance.random() < p


@dataclass(frozen=True, slots=True)
class NoLoss(Coins):
    """Every message arrives."""

    name = "none"

    def __post_init__(self) -> None:
        if self.p or self.collision:
            raise BadInput("loss model 'none' loses nothing: drop the probability or name a model")

    def with_p(self, p: float) -> Loss:
        return Uncorrelated(p) if p else self


@dataclass(frozen=True, slots=True)
class Uncorrelated(Coins):
    """One coin for each message and receiver."""

    name = "uncorrelated"


@dataclass(frozen=True, slots=True)
class Correlated(Coins):
    """One coin for each message: all receivers lose it, or none does."""

    name = "correlated"
    shared = True


@dataclass(frozen=True, slots=True)
class Burst(Loss):
    """Losses in bursts, each link for itself: the model of Gilbert (1960) and Elliott (1963).

    A link is good or bad. It may change with each message that it takes. A good link loses nothing,
    a bad link loses each message with probability `bad`. `length` is how many messages a bad spell
    takes on average; with `bad` = 1 it is the mean length of a burst. The links begin in their
    long-run state.
    """

    name = "burst"

    length: float = 5.0
    bad: float = 1.0

    def __post_init__(self) -> None:
        check_probability("loss", self.p)
        check_probability("bad", self.bad)
        if not 1.0 <= self.length < float("inf"):
            raise BadInput(f"the mean length of a burst must be >= 1, not {self.length:g}")
        if self.p > self.share * self.bad * (1 + 1e-12):
            most = self.length / (self.length + 1.0) * self.bad
            raise BadInput(
                f"bursts of {self.length:g} messages lose at most {most:.3g} of all messages, not "
                f"{self.p:g}: give a longer length"
            )

    @property
    def share(self) -> float:
        """The share of messages that meet a bad link."""
        longest = self.length / (self.length + 1.0)  # one good message between two bursts
        return min(longest, self.p / self.bad) if self.bad else 0.0

    @property
    def leave(self) -> float:
        """The probability that a bad link is good for the next message."""
        return 1.0 / self.length

    @property
    def enter(self) -> float:
        """The probability that a good link is bad for the next message."""
        return min(1.0, self.leave * self.share / (1.0 - self.share))

    def again(self, overlapping: int) -> float:
        return max(self.p, (1.0 - self.leave) * self.bad) if self.p else 0.0

    def fate(self, chance: Random) -> Fate:
        share, enter, leave, bad = self.share, self.enter, self.leave, self.bad
        coin = chance.random
        states: dict[tuple[MemberId, MemberId], bool] = {}  # whether a link is bad

        def lost(now: float, sender: MemberId, receiver: MemberId) -> bool:
            link = sender, receiver
            before = states.get(link)
            if before is None:
                state = coin() < share
            else:
                state = coin() >= leave if before else coin() < enter
            states[link] = state
            return state and (bad >= 1.0 or coin() < bad)

        return lost


# From options to a loss

LOSSES: Mapping[str, type[Loss]] = {
    kind.name: kind for kind in (NoLoss, Uncorrelated, Correlated, Burst)
}
ADJUSTED = "adjusted"  # uncorrelated loss that grows with the traffic
_PLUGINS = Plugins(
    group="hustings.losses",
    noun="loss model",
    base=Loss,
    name_of=lambda kind: getattr(kind, "name", None),
)


def parse_loss(
    model: str | None, p: float, collision: float = 0.0, settings: Mapping[str, str] | None = None
) -> Loss:
    """A loss from plain options; without a model it is uncorrelated if anything is lost.

    >>> parse_loss("burst", 0.1, settings={"length": "4"})
    Burst(p=0.1, length=4.0, bad=1.0)
    """
    if model is None:
        if settings:
            raise BadInput("--loss-set goes with --loss-model")
        model = "uncorrelated" if p or collision else "none"
    if model == ADJUSTED:
        if not collision:
            raise BadInput("loss model 'adjusted' needs --collision: how much each message adds")
        model = "uncorrelated"
    return find_loss(model).parse(p, collision, settings or {})


def find_loss(model: str) -> type[Loss]:
    """The class of a loss model: one of ours, an installed one, or a class in a file or module."""
    if model in LOSSES:
        return LOSSES[model]
    found = _PLUGINS.load(model, [*LOSSES, ADJUSTED])
    if not (isinstance(found, type) and issubclass(found, Loss)):
        raise BadInput(f"{model} is no loss model: a loss model is a subclass of Loss")
    if not isinstance(getattr(found, "name", None), str):
        raise BadInput(f"{model} is not complete: a loss model says its `name`")
    return found


def _number(key: str, text: str) -> float:
    try:
        return parse_number(text)
    except ValueError:
        raise BadInput(f"loss setting {key} must be a number, not {text!r}") from None


# Coins in bulk


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
