"""Standing: which member is preferred before the choice function decides.

A member's standing is an attribute like any other, so gossip carries it. It is one of three: a
member is eligible, the last resort (it stands back, and is chosen only if there is no other
member), or an observer, which is never elected. An eligible member does not mention its standing.

Besides, a leader that was handed its leadership, or that the next better member must not displace,
has a priority. It is the attribute "~incumbency"; without it a member has priority 0.

Attributes whose names begin with "~" are the project's own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from hustings.core.choice import Candidate, Choice

STANDING = "~standing"
ELIGIBLE = 0.0
LAST_RESORT = -1.0
OBSERVER = -2.0

PRIORITY = "~incumbency"
MAX_PRIORITY = 2.0**52  # one more than any priority up to this is a different number


def with_attribute(candidate: Candidate, name: str, value: float) -> Candidate:
    """The same member with one more attribute, or with another value of an attribute.

    >>> with_attribute(Candidate(3, (("cpu", 8.0), ("~standing", -1.0))), "load", 0.5)
    Candidate(id=3, attributes=(('cpu', 8.0), ('load', 0.5), ('~standing', -1.0)))
    """
    others = [pair for pair in candidate.attributes if pair[0] != name]
    return Candidate(candidate.id, tuple(sorted([*others, (name, value)])))


def _with_number(candidate: Candidate, name: str, value: float) -> Candidate:
    """The same member with this value. A value of 0 is left out, so that equals stay equal."""
    if value == _number(candidate, name):
        return candidate
    if value:
        return with_attribute(candidate, name, value)
    others = (pair for pair in candidate.attributes if pair[0] != name)
    return Candidate(candidate.id, tuple(others))


def _number(candidate: Candidate, name: str) -> float:
    for key, value in candidate.attributes:
        if key == name:
            return value
    return 0.0


def with_standing(candidate: Candidate, standing: float) -> Candidate:
    """The same member with this standing.

    >>> with_standing(Candidate(3, (("~standing", -1.0),)), ELIGIBLE)
    Candidate(id=3, attributes=())
    """
    return _with_number(candidate, STANDING, standing)


def standing_of(candidate: Candidate) -> float:
    """A member's standing; a member that does not mention it is eligible."""
    return _number(candidate, STANDING)


def is_observer(candidate: Candidate) -> bool:
    """Whether a member only watches and is never elected."""
    return standing_of(candidate) == OBSERVER


def with_priority(candidate: Candidate, priority: float) -> Candidate:
    """The same member with this priority."""
    return _with_number(candidate, PRIORITY, priority)


def priority_of(candidate: Candidate) -> float:
    """A member's priority; 0 for a member without one."""
    return _number(candidate, PRIORITY)


@dataclass(frozen=True, slots=True)
class ByStanding(Choice):
    """By standing first, then by priority, then by `choice`.

    >>> from hustings.core.choice import HighestId
    >>> order = ByStanding(HighestId())
    >>> order.better(Candidate(1), with_standing(Candidate(2), LAST_RESORT)), order.name
    (True, 'standing:highest-id')
    """

    choice: Choice
    # The highest priority that any member can have by now, where the world knows better.
    most: Callable[[], float] = field(default=lambda: MAX_PRIORITY, compare=False, repr=False)

    @property
    def name(self) -> str:
        return f"standing:{self.choice.name}"

    def key(self, candidate: Candidate) -> tuple[float, ...]:
        return (standing_of(candidate), priority_of(candidate), *self.choice.key(candidate))

    def better(self, one: Candidate, other: Candidate) -> bool:
        if not one.attributes and not other.attributes:
            return self.choice.better(one, other)
        mine = standing_of(one), priority_of(one)
        yours = standing_of(other), priority_of(other)
        return mine > yours or (mine == yours and self.choice.better(one, other))

    def can_rank(self, candidate: Candidate) -> bool:
        standing, priority = standing_of(candidate), priority_of(candidate)
        return (
            standing in (ELIGIBLE, LAST_RESORT)
            and (not priority or 0.0 <= priority <= self.most())
            and self.choice.can_rank(candidate)
        )


def accepts(choice: Choice) -> Callable[[Candidate], bool]:
    """Which members a membership may let in: all that can be ranked, and observers.

    >>> from hustings.core.choice import parse_choice
    >>> let_in = accepts(ByStanding(parse_choice("highest:cpu")))
    >>> let_in(Candidate(1)), let_in(with_standing(Candidate(1), OBSERVER))
    (False, True)
    """
    return lambda candidate: is_observer(candidate) or choice.can_rank(candidate)
