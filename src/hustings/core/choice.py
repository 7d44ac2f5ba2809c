"""Choice functions: the total order by which candidates are compared.

A choice function is the same at all members. It reads only a candidate's own values. It breaks ties
by id. So any two different candidates are ordered, and every member orders them alike.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from math import inf

import msgspec

from hustings.core.errors import BadInput

MemberId = int


class Candidate(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A member as an election sees it: its id and the attributes that may be ranked.

    Attributes are pairs sorted by name, so that equal candidates are equal values.
    """

    id: MemberId
    attributes: tuple[tuple[str, float], ...] = ()

    def attribute(self, name: str) -> float:
        """The attribute's value. If it is missing, the user made a mistake."""
        for key, value in self.attributes:
            if key == name:
                return value
        raise BadInput(f"member {self.id} has no attribute {name!r}, which the choice ranks by")


def candidate(member: MemberId, **attributes: float) -> Candidate:
    """A candidate from keyword attributes.

    >>> candidate(3, load=0.5, cpu=8)
    Candidate(id=3, attributes=(('cpu', 8), ('load', 0.5)))
    """
    for name, value in attributes.items():
        if value != value:
            raise BadInput(f"attribute {name!r} of member {member} is not a number")
    return Candidate(member, tuple(sorted(attributes.items())))


class Choice(ABC):
    """A total order over candidates. A better candidate has a larger `key`."""

    @property
    @abstractmethod
    def name(self) -> str:
        """The text that `parse_choice` reads back."""

    @abstractmethod
    def key(self, candidate: Candidate) -> tuple[float, ...]:
        """The sort key: a better candidate has a larger key. It ends with the id."""

    def better(self, one: Candidate, other: Candidate) -> bool:
        """Whether `one` is strictly better than `other`."""
        return self.key(one) > self.key(other)

    def can_rank(self, candidate: Candidate) -> bool:
        """Whether a candidate has all attributes that the choice ranks, with finite values.

        >>> parse_choice("highest:cpu").can_rank(Candidate(3)), HighestId().can_rank(Candidate(3))
        (False, True)
        """
        try:
            return all(-inf < value < inf for value in self.key(candidate))
        except BadInput:
            return False


@dataclass(frozen=True, slots=True)
class HighestId(Choice):
    """The largest id wins: the papers' usual choice."""

    @property
    def name(self) -> str:
        return "highest-id"

    def key(self, candidate: Candidate) -> tuple[float, ...]:
        return (candidate.id,)

    def better(self, one: Candidate, other: Candidate) -> bool:
        return one.id > other.id

    def can_rank(self, candidate: Candidate) -> bool:
        return True


@dataclass(frozen=True, slots=True)
class LowestId(Choice):
    """The smallest id wins."""

    @property
    def name(self) -> str:
        return "lowest-id"

    def key(self, candidate: Candidate) -> tuple[float, ...]:
        return (-candidate.id,)

    def better(self, one: Candidate, other: Candidate) -> bool:
        return one.id < other.id

    def can_rank(self, candidate: Candidate) -> bool:
        return True


@dataclass(frozen=True, slots=True)
class ByAttributes(Choice):
    """Compare attributes in order, each the highest or the lowest. Ties go to the higher id.

    >>> choice = parse_choice("highest:cpu,lowest:load")
    >>> choice.better(candidate(1, cpu=8, load=0.1), candidate(2, cpu=8, load=0.9))
    True
    """

    ranks: tuple[tuple[str, bool], ...]  # (attribute, whether higher is better)

    @property
    def name(self) -> str:
        return ",".join(f"{'highest' if up else 'lowest'}:{key}" for key, up in self.ranks)

    def key(self, candidate: Candidate) -> tuple[float, ...]:
        values = (
            candidate.attribute(key) if up else -candidate.attribute(key) for key, up in self.ranks
        )
        return (*values, candidate.id)


def parse_choice(text: str) -> Choice:
    """A choice function from its name.

    `highest-id`, `lowest-id`, `highest:ATTRIBUTE`, `lowest:ATTRIBUTE`, or several of the latter
    separated by commas, compared in that order.

    >>> parse_choice("lowest-id").name
    'lowest-id'
    """
    if text == "highest-id":
        return HighestId()
    if text == "lowest-id":
        return LowestId()
    ranks: list[tuple[str, bool]] = []
    for part in text.split(","):
        direction, colon, attribute = part.strip().partition(":")
        if direction not in ("highest", "lowest") or not colon or not attribute:
            raise BadInput(
                f"choice {text!r} is not understood: use highest-id, lowest-id, "
                "or highest:ATTRIBUTE / lowest:ATTRIBUTE, several separated by commas"
            )
        ranks.append((attribute, direction == "highest"))
    return ByAttributes(tuple(ranks))
