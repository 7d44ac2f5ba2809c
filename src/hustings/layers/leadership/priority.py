"""Priority: which member is preferred before the choice function decides.

A member's priority is an attribute like any other, so gossip and announcements carry it. A leader
has a high priority if it was handed its leadership, or if the next better member must not displace
it. A member that stands back has a negative one. Without a change of leader all others have none,
which counts as 0.

Attributes whose names begin with "~" are the project's own: "~incumbency", and "~observer" of
members that only watch and are never elected.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from hustings.core.choice import Candidate, Choice

PRIORITY = "~incumbency"
OBSERVER = "~observer"

MAX_PRIORITY = 2.0**52  # one more than any priority up to this is a different number
STOOD_BACK = -1.0  # chosen only if there is no other member


def with_attribute(candidate: Candidate, name: str, value: float) -> Candidate:
    """The same member with one more attribute, or with another value of an attribute.

    >>> with_attribute(Candidate(3, (("cpu", 8.0), ("~incumbency", 1.0))), "load", 0.5)
    Candidate(id=3, attributes=(('cpu', 8.0), ('load', 0.5), ('~incumbency', 1.0)))
    """
    others = [pair for pair in candidate.attributes if pair[0] != name]
    return Candidate(candidate.id, tuple(sorted([*others, (name, value)])))


def with_priority(candidate: Candidate, priority: float) -> Candidate:
    """The same member with this priority. A priority of 0 is left out, so that equals stay equal.

    >>> with_priority(Candidate(3, (("~incumbency", 1.0),)), 0.0)
    Candidate(id=3, attributes=())
    """
    if priority == priority_of(candidate):
        return candidate
    if priority:
        return with_attribute(candidate, PRIORITY, priority)
    others = (pair for pair in candidate.attributes if pair[0] != PRIORITY)
    return Candidate(candidate.id, tuple(others))


def priority_of(candidate: Candidate) -> float:
    """A member's priority; 0 for a member without one."""
    for name, value in candidate.attributes:
        if name == PRIORITY:
            return value
    return 0.0


def is_observer(candidate: Candidate) -> bool:
    """Whether a member only watches and is never elected."""
    attributes = candidate.attributes
    return bool(attributes) and any(name == OBSERVER and value for name, value in attributes)


@dataclass(frozen=True, slots=True)
class ByPriority(Choice):
    """By priority first, then by `choice`.

    >>> from hustings.core.choice import HighestId
    >>> order = ByPriority(HighestId())
    >>> order.better(with_priority(Candidate(1), 1.0), Candidate(2)), order.name
    (True, 'favoured:highest-id')
    """

    choice: Choice
    # The highest priority that any member can have by now, where the world knows better.
    most: Callable[[], float] = field(default=lambda: MAX_PRIORITY, compare=False, repr=False)

    @property
    def name(self) -> str:
        return f"favoured:{self.choice.name}"

    def key(self, candidate: Candidate) -> tuple[float, ...]:
        return (priority_of(candidate), *self.choice.key(candidate))

    def better(self, one: Candidate, other: Candidate) -> bool:
        mine, yours = priority_of(one), priority_of(other)
        return mine > yours or (mine == yours and self.choice.better(one, other))

    def can_rank(self, candidate: Candidate) -> bool:
        priority = priority_of(candidate)
        return (not priority or -MAX_PRIORITY <= priority <= self.most()) and self.choice.can_rank(
            candidate
        )


def accepts(choice: Choice) -> Callable[[Candidate], bool]:
    """Which members a membership may let in: all that can be ranked, and observers.

    >>> from hustings.core.choice import parse_choice
    >>> let_in = accepts(ByPriority(parse_choice("highest:cpu")))
    >>> let_in(Candidate(1)), let_in(with_attribute(Candidate(1), OBSERVER, 1.0))
    (False, True)
    """
    return lambda candidate: is_observer(candidate) or choice.can_rank(candidate)
