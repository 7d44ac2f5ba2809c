"""What closed forms speak of: a setting, the counts of one election, a named form.

Units: one message transmission is one unit of time, and a message counts when it is sent, also
to a dead member. Detection is at 0; timers fire after the arrivals of the same instant.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from hustings.core.errors import BadInput

Number = int | Fraction

LECTURE = "elections lecture, chapter 15"
OVERHEAD = "overhead-aware election"

COUNTED = "counted"  # holds in an event run of the protocol
DECIDED = "counted; the source leaves it open"


@dataclass(frozen=True, slots=True)
class Counts:
    """What one election costs; None where no closed form is known.

    >>> Counts(election=3, answer=2, coordinator=1, other=0).messages
    6
    """

    election: int | None = None
    answer: int | None = None
    coordinator: int | None = None
    other: int | None = None
    time: Number | None = None
    leader: int | None = None
    why: str = ""  # why something is None

    @property
    def messages(self) -> int | None:
        """All messages, or None when one of the kinds has no closed form."""
        total = 0
        for part in (self.election, self.answer, self.coordinator, self.other):
            if part is None:
                return None
            total += part
        return total

    def metrics(self) -> dict[str, Number | None]:
        """The counts under the names that the simulator reports."""
        return {
            "election_messages": self.election,
            "answer_messages": self.answer,
            "coordinator_messages": self.coordinator,
            "other_messages": self.other,
            "messages": self.messages,
            "time": self.time,
            "leader": self.leader,
        }


@dataclass(frozen=True, slots=True)
class Form:
    """One result: its name, value, formula, where it stands and whether it is true."""

    name: str
    value: Number | float
    formula: str
    source: str
    verdict: str
    printed: bool = False

    def to_json(self) -> dict[str, object]:
        """Plain values only."""
        return {
            "name": self.name,
            "value": plain(self.value),
            "formula": self.formula,
            "source": self.source,
            "verdict": self.verdict,
            "printed": self.printed,
        }


@dataclass(frozen=True, slots=True)
class Setting:
    """Who lives, who detects and which timers run: the left-hand side of a closed form.

    `top` is the highest id not known to be dead: n - 1 once the leader's crash is detected, n
    when a group starts and nobody leads.
    """

    n: int
    live: tuple[int, ...]  # in increasing order
    detectors: tuple[int, ...]  # in increasing order, all alive
    start: bool = False
    timers: Mapping[str, Number] = field(default_factory=dict)
    numbers: Mapping[str, int] = field(default_factory=dict)
    flags: Mapping[str, bool] = field(default_factory=dict)

    @property
    def m(self) -> int:
        """The highest live member."""
        return self.live[-1]

    @property
    def d(self) -> int:
        """The lowest detector."""
        return self.detectors[0]

    @property
    def single(self) -> bool:
        """One detector only."""
        return len(self.detectors) == 1

    @property
    def top(self) -> int:
        """The highest id not known to be dead."""
        return self.n if self.start else self.n - 1

    def live_above(self, member: int) -> int:
        """How many live members have a higher id."""
        return len(self.live) - bisect_right(self.live, member)

    def live_from(self, member: int) -> tuple[int, ...]:
        """The live members from `member` upwards."""
        return self.live[bisect_left(self.live, member) :]


def plain(value: Number | float) -> int | float:
    """An exact number as JSON can carry it: an int where it is whole.

    >>> plain(Fraction(4, 2)), plain(Fraction(1, 4))
    (2, 0.25)
    """
    if isinstance(value, Fraction):
        return value.numerator if value.denominator == 1 else float(value)
    return value


def exact(value: Number | float) -> Number:
    """A timer as an exact number, so that sums of timers do not round.

    >>> exact(2), exact(0.1) + exact(0.2) == exact(0.3)
    (2, True)
    """
    if isinstance(value, float):
        value = Fraction(str(value))
    return value.numerator if value.denominator == 1 else value


def require(holds: bool, sentence: str) -> None:
    """Refuse an argument outside a form's domain."""
    if not holds:
        raise BadInput(sentence)


def members(n: int, d: int, m: int | None = None, dead: Collection[int] = ()) -> tuple[int, ...]:
    """The live members 1..m without `dead`; n is the crashed leader and m is n - 1 by default.

    >>> members(8, d=2, m=6, dead=[3, 4])
    (1, 2, 5, 6)
    """
    require(n >= 2, f"n must be at least 2, the crashed leader and one more, not {n}")
    highest = n - 1 if m is None else m
    require(1 <= highest < n, f"m must be between 1 and n - 1 = {n - 1}, not {highest}")
    require(highest not in dead, f"m = {highest} is the highest live member, so it is not dead")
    live = tuple(j for j in range(1, highest + 1) if j not in dead)
    require(d in live, f"d must be a live member, not {d}")
    return live
