"""Standing: which member is preferred before the choice function decides.

A member's standing is an attribute like any other, so gossip carries it. A member is eligible, the
last resort (it stands back, and is chosen only if there is no other member), or an observer, which
is never elected. An eligible member does not mention its standing.

Among members of one standing the incumbent comes first: the leader that must not be displaced by
the next better member. Which member that is, each member knows from the terms that it has heard
of. No message and no attribute says it.

Where a group has several leaders, they share the terms, so no term says which of them stay. There,
and only there, a leader that stays has a standing of its own: it is in office.

Attributes whose names begin with "~" are the project's own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hustings.core.choice import Candidate, Choice, MemberId

STANDING = "~standing"
ELIGIBLE = 0.0
LAST_RESORT = -1.0
OBSERVER = -2.0
IN_OFFICE = 1.0  # only where there are several leaders


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


@dataclass(slots=True, eq=False)
class ByStanding(Choice):
    """By standing first, then the incumbent, then by `choice`, as one member sees it.

    Each member has an order of its own, because the incumbent is what that member knows. A view
    that was ranked must be told when it changes.

    >>> from hustings.core.choice import HighestId
    >>> order = ByStanding(HighestId())
    >>> order.better(Candidate(1), with_standing(Candidate(2), LAST_RESORT)), order.name
    (True, 'standing:highest-id')
    >>> order.incumbent = 1
    >>> order.better(Candidate(1), Candidate(2))
    True
    """

    choice: Choice
    incumbent: MemberId | None = None
    taken: bool = False  # a member has it: no other one may
    several: bool = False  # whether the group has several leaders

    @property
    def name(self) -> str:
        return f"standing:{self.choice.name}"

    def key(self, candidate: Candidate) -> tuple[float, ...]:
        first = float(candidate.id == self.incumbent)
        return (standing_of(candidate), first, *self.choice.key(candidate))

    def better(self, one: Candidate, other: Candidate) -> bool:
        if one.attributes or other.attributes:
            mine, yours = standing_of(one), standing_of(other)
            if mine != yours:
                return mine > yours
        incumbent = self.incumbent
        if incumbent is not None and one.id != other.id and incumbent in (one.id, other.id):
            return one.id == incumbent
        return self.choice.better(one, other)

    def can_rank(self, candidate: Candidate) -> bool:
        standing = standing_of(candidate)
        if standing not in (ELIGIBLE, LAST_RESORT) and not (self.several and standing == IN_OFFICE):
            return False
        return self.choice.can_rank(candidate)


def accepts(choice: Choice) -> Callable[[Candidate], bool]:
    """Which members a membership may let in: all that can be ranked, and observers.

    >>> from hustings.core.choice import parse_choice
    >>> let_in = accepts(ByStanding(parse_choice("highest:cpu")))
    >>> let_in(Candidate(1)), let_in(with_standing(Candidate(1), OBSERVER))
    (False, True)
    """
    return lambda candidate: is_observer(candidate) or choice.can_rank(candidate)
