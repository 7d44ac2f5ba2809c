"""From nearly everywhere to everywhere: members without a bit ask others, under a flood.

Nearly all good members know a bit, as after an election by committees; the rest must learn it.
Every good member asks some others at random, and takes what most answer. A good member answers a
bounded number of questions; if more come, each is answered with the same chance. Bad members answer
all that ask them, wrongly, and may ask every member, once each.

With labels every member asks some others under each label. When all questions are out, the members
that know the bit throw a label, and only questions under it are answered. A member that asks does
not know the label, and takes the one under which most answered.

Attacks: `none` asks nothing. `blind` asks every member under a label drawn at random, because it
sees no question. `rushing` sees all questions first, and spends all its own on the members that a
few chosen members ask, under all labels.

The asked members are drawn anew for every question. That is right for each member, but ignores the
luck that two of them share.
"""

from __future__ import annotations

from math import ceil, log, sqrt

import msgspec
import numpy as np

from hustings.core.errors import BadInput, UnknownName
from hustings.lab.kernels.compiling import compiled
from hustings.lab.kernels.counter import branch, root
from hustings.lab.kernels.draws import Stream, binomial, coin, uniform
from hustings.lab.kernels.results import Columns, Floats

ATTACKS = ("none", "blind", "rushing")
METRICS = ("all_know", "left", "dark", "bits", "share_of_n")
MOST_MEMBERS = 10**9
MOST_WORK = 2 * 10**8  # draws of one run
PRESSED = 8  # questions per answered one, at the members at which a rushing adversary aims


class Poll(msgspec.Struct, frozen=True, kw_only=True):
    """One group and how it asks."""

    members: int
    b: float = 0.2
    attack: str = "none"
    labels: int = 1
    ask: int = 0  # members asked under each label; 0: ten times ln n
    answers: int = 0  # questions that a good member answers at most; 0: three times `ask`
    dark: float = 0.0  # share of the good members that do not know; 0: 1/(ln n)^2

    def __post_init__(self) -> None:
        """Refuse what cannot be played."""
        if not 16 <= self.members <= MOST_MEMBERS:
            raise BadInput(f"members must lie between 16 and 10^9, not {self.members:,}")
        if not 0 <= self.b < 0.5:
            raise BadInput(f"b must lie in [0, 1/2), not {self.b:g}")
        if not 0 <= self.dark < 1:
            raise BadInput(f"dark must lie in [0, 1), not {self.dark:g}")
        if self.attack not in ATTACKS:
            raise UnknownName("attack", self.attack, ATTACKS)
        for name, least in (("labels", 1), ("ask", 0), ("answers", 0)):
            if not least <= getattr(self, name) <= self.members:
                raise BadInput(
                    f"{name} must lie between {least} and the {self.members:,} members, not "
                    f"{getattr(self, name)}"
                )
        if self.lost * (self.asked + self.labels) > MOST_WORK:
            raise BadInput(
                f"{self.lost:,} members in the dark and {self.labels:,} labels take too long: at "
                f"most {MOST_WORK:,} draws a run"
            )

    @property
    def asked(self) -> int:
        """How many members one asks under each label."""
        return self.ask or min(self.members - 1, ceil(10 * log(self.members)))

    @property
    def limit(self) -> int:
        """How many questions a good member answers."""
        return self.answers or min(self.members, 3 * self.asked)

    @property
    def bad(self) -> int:
        """The number of bad members."""
        return int(self.b * self.members + 1e-9)

    @property
    def lost(self) -> int:
        """The number of good members that do not know the bit."""
        share = self.dark or 1 / log(self.members) ** 2
        return max(1, round(share * (self.members - self.bad)))

    @property
    def bits(self) -> int:
        """The most bits that a good member sends: questions with their labels, and answers."""
        name = (self.labels - 1).bit_length()
        return self.asked * self.labels * (1 + name) + self.limit * (1 + name)

    @property
    def victims(self) -> int:
        """Members that a rushing adversary keeps ignorant: as many as it can press hard."""
        if self.attack != "rushing":
            return 0
        pressing = self.bad / (PRESSED * self.limit)  # labels at which each member can be pressed
        each = self.asked * self.labels / self.members  # questions of a victim for each member
        return max(1, min(self.lost, int(pressing / each)))


def rooted(members: int) -> int:
    """Return the square root of n, as labels.

    >>> rooted(10_000)
    100
    """
    return ceil(sqrt(members))


def play(poll: Poll, seed: int, first: int, last: int) -> Columns:
    """Play runs number `first` to `last` - 1.

    >>> play(Poll(members=1000, b=0.1), 1, 0, 2).metrics["all_know"].tolist()
    [1.0, 1.0]
    """
    if not 0 <= first < last:
        raise BadInput("runs must be numbered from 0, the first before the last")
    left = np.zeros(last - first)
    key = root(seed)
    for run in range(first, last):
        stream = np.array([branch(key, np.uint64(run)), 0], np.uint64)
        left[run - first] = _left(
            stream,
            poll.lost,
            poll.victims,
            np.array([poll.members, poll.bad, poll.asked, poll.labels, poll.limit], np.float64),
            ATTACKS.index(poll.attack),
        )
    runs = np.ones(last - first)
    columns = {
        "all_know": (left == 0).astype(np.float64),
        "left": left,
        "dark": poll.lost * runs,
        "bits": poll.bits * runs,
        "share_of_n": poll.bits / poll.members * runs,
    }
    return Columns(columns, np.zeros(last - first, np.bool_))


@compiled
def _left(stream: Stream, lost: int, victims: int, numbers: Floats, attack: int) -> int:
    """Draw how many members ask and do not learn the bit."""
    members, bad, asked, labels, limit = numbers
    wicked = bad / members
    knowing = (members - bad - lost) / (members - bad)
    shared = victims * asked * labels / members  # questions of victims that meet at one member
    left = 0
    for member in range(lost):
        pressed = attack == 2 and member < victims
        right = wrong = 0
        for _ in range(int(asked)):
            if coin(stream, wicked):
                wrong += 1
            elif coin(stream, knowing):
                load = 1.0 + binomial(stream, int((members - bad) * asked), 1.0 / members)
                if attack == 1:
                    load += binomial(stream, int(bad), 1.0 / labels)
                elif pressed:
                    load += bad / (1.0 + _poisson(stream, shared))
                if load <= limit or uniform(stream) * load <= limit:
                    right += 1
        for _ in range(int(labels) - 1):
            wrong = max(wrong, binomial(stream, int(asked), wicked))
        if right <= wrong:
            left += 1
    return left


@compiled
def _poisson(stream: Stream, mean: float) -> int:
    """Draw a Poisson number."""
    return binomial(stream, 1_000_000_000, mean / 1e9)
