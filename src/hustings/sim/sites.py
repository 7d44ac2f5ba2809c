"""Groups at several sites: which member is where, and delay and loss between the sites.

Sites are a delay model and a loss model like others: both look up the site of the sender and that
of the receiver, and ask the law of that pair.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import accumulate
from random import Random
from typing import TypeVar

from hustings.core.choice import MemberId
from hustings.core.config import finite_number
from hustings.core.errors import BadInput, UnknownName
from hustings.sim.delay import Delay, parse_delay
from hustings.sim.loss import Fate, Loss

SITE = r"[A-Za-z][\w-]*"  # the name of a site
_PAIR = re.compile(rf"\s*({SITE})\s*([,>])\s*({SITE})\s*")
Pair = tuple[int, int]  # sites, by number: of the sender, of the receiver
V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class Sites:
    """Which member is where: the first members at the first site, and so on.

    Members that join later are at the last site. A central guard is at the first.

    >>> sites = Sites(("a", "b"), (3, 2))
    >>> [sites.of(member) for member in range(1, 7)]
    [0, 0, 0, 1, 1, 1]
    """

    names: tuple[str, ...]
    sizes: tuple[int, ...]
    _ends: tuple[MemberId, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if len(self.names) < 2:
            raise BadInput("sites are at least two: write --sites a=3,b=5")
        if len(set(self.names)) != len(self.names):
            raise BadInput("every site needs a name of its own")
        if min(self.sizes) < 1:
            raise BadInput("every site needs at least one member")
        object.__setattr__(self, "_ends", tuple(accumulate(self.sizes))[:-1])

    @property
    def members(self) -> int:
        """How many members there are at all sites."""
        return sum(self.sizes)

    def of(self, member: MemberId) -> int:
        """The number of a member's site."""
        return bisect_left(self._ends, member)

    def share(self, pair: Pair) -> float:
        """The share of all links that lead from one site to the other."""
        one, other = pair
        links = self.sizes[one] * (self.sizes[other] - (one == other))
        return links / max(1, self.members * (self.members - 1))


@dataclass(frozen=True, slots=True)
class SiteDelay(Delay):
    """A law of delays for each pair of sites, and one within them."""

    name = "sites"

    sites: Sites
    within: Delay
    between: Mapping[Pair, Delay]

    def __post_init__(self) -> None:
        names = self.sites.names
        for one in range(len(names)):
            for other in range(len(names)):
                if one != other and (one, other) not in self.between:
                    raise BadInput(
                        f"no delay is given from site {names[one]} to site {names[other]}: add "
                        f"--between {names[one]},{names[other]}=DELAY"
                    )

    def draw(self, rng: Random, sender: MemberId, receiver: MemberId) -> float:
        of = self.sites.of
        law = self.between.get((of(sender), of(receiver)), self.within)
        return law.draw(rng, sender, receiver)

    @property
    def bound(self) -> float:
        return max([self.within.bound, *(law.bound for law in self.between.values())])

    def check(self, members: int, joining: int) -> None:
        if self.sites.members != members:
            raise BadInput(
                f"--sites places {self.sites.members} members, and the group has {members}: both "
                "numbers must be the same"
            )


@dataclass(frozen=True, slots=True)
class SiteLoss(Loss):
    """A loss for each pair of sites, and one within them. Each receiver's loss is its own."""

    name = "sites"

    sites: Sites = field(kw_only=True)
    within: Loss = field(kw_only=True)
    between: Mapping[Pair, Loss] = field(kw_only=True)

    @classmethod
    def of(cls, sites: Sites, within: Loss, between: Mapping[Pair, Loss]) -> SiteLoss:
        """`p` is the mean over all links."""
        for loss in (within, *between.values()):
            if loss.shared:
                raise BadInput(f"loss between sites goes with no {loss.name} loss: drop that model")
            if loss.collision:
                raise BadInput("loss between sites goes with no collisions: drop --collision")
        count = range(len(sites.names))
        pairs = [(one, other) for one in count for other in count]
        p = sum(sites.share(pair) * between.get(pair, within).p for pair in pairs)
        return cls(min(1.0, p), sites=sites, within=within, between=between)

    def again(self, overlapping: int) -> float:
        losses = (self.within, *self.between.values())
        return max(loss.again(overlapping) for loss in losses)

    def with_p(self, p: float) -> Loss:
        if p != self.p:
            raise BadInput("losses between sites are given by --between-loss: drop p_ucastl")
        return self

    def fate(self, chance: Random) -> Fate:
        of = self.sites.of
        within = self.within.fate(chance)
        between = {pair: loss.fate(chance) for pair, loss in self.between.items()}

        def lost(now: float, sender: MemberId, receiver: MemberId) -> bool:
            fate = between.get((of(sender), of(receiver)), within)
            return fate(now, sender, receiver)

        return lost


# From options to sites


def parse_sites(text: str) -> Sites:
    """`a=20,b=10` as sites with these numbers of members.

    >>> parse_sites("a=20,b=10").members
    30
    """
    names, sizes = [], []
    for part in text.split(","):
        match = re.fullmatch(rf"\s*({SITE})\s*=\s*([0-9]{{1,7}})\s*", part)
        if match is None:
            raise BadInput(f"--sites {text!r} is not understood: write NAME=MEMBERS, as a=20,b=10")
        names.append(match[1])
        sizes.append(int(match[2]))
    return Sites(tuple(names), tuple(sizes))


def site_delay(sites: Sites, within: Delay, texts: Iterable[str]) -> SiteDelay:
    """`a,b=0.04` is the delay between two sites, `a>b=0.04` that in one direction."""
    between = _pairs(sites, texts, "between", "DELAY")
    return SiteDelay(sites, within, {pair: parse_delay(text) for pair, text in between.items()})


def site_loss(sites: Sites, within: Loss, texts: Iterable[str]) -> Loss:
    """`a,b=0.1` is the loss between two sites, by the same model as within them."""
    between = {
        pair: within.with_p(finite_number(text, "loss between sites"))
        for pair, text in _pairs(sites, texts, "between-loss", "LOSS").items()
    }
    return SiteLoss.of(sites, within, between) if between else within


def _pairs(sites: Sites, texts: Iterable[str], option: str, value: str) -> dict[Pair, str]:
    table: dict[Pair, str] = {}
    for text in texts:
        name, equals, rest = text.partition("=")
        if not equals or not rest or _PAIR.fullmatch(name) is None:
            raise BadInput(f"--{option} {text!r} is not understood: write A,B={value}")
        for pair in parse_pair(sites, name):
            if pair in table:
                raise BadInput(f"--{option} {name.strip()} is given twice")
            table[pair] = rest.strip()
    return table


def parse_pair(sites: Sites, text: str) -> list[Pair]:
    """`a,b` is both directions between two sites, `a>b` is one of them.

    >>> parse_pair(Sites(("a", "b"), (3, 2)), "a,b"), parse_pair(Sites(("a", "b"), (3, 2)), "b>a")
    ([(0, 1), (1, 0)], [(1, 0)])
    """
    match = _PAIR.fullmatch(text)
    if match is None:
        raise BadInput(f"{text!r} names no two sites: write A,B or, for one direction, A>B")
    for name in (match[1], match[3]):
        if name not in sites.names:
            raise UnknownName("site", name, sites.names)
    one, other = sites.names.index(match[1]), sites.names.index(match[3])
    if match[2] == ">" or one == other:
        return [(one, other)]
    return [(one, other), (other, one)]
