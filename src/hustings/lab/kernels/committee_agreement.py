"""What one agreement costs: messages and rounds of the recursive phase king, per participant.

An agreement on one of m values sends messages of v = ceil log2 m bits (votes, results, kings) and
of w = ceil log2 (m + 1) bits (proposals). How many of either do not depend on m, so two numbers
tell all costs; those of one king are shared among the participants. Many agreements at once share
their messages.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

BASE = 16  # so many or fewer take the plain phase king
frame = 10  # bytes of an encoded message beside its value, if that is short


class Load(NamedTuple):
    """What one participant sends on average in one agreement."""

    plain: float  # messages that carry a value
    wide: float  # messages that carry a value or none
    rounds: int

    @property
    def messages(self) -> float:
        """Of both kinds."""
        return self.plain + self.wide

    def bits(self, values: int = 2, instances: float = 1.0) -> float:
        """Bits of values, for so many agreements on one of so many values.

        >>> round(load(128).bits()), round(load(1024).bits())
        (1823, 14346)
        """
        return instances * (width(values) * self.plain + width(values + 1) * self.wide)

    def wire(self, values: int = 2, instances: int = 1) -> float:
        """Bits of the encoded messages."""
        plain = encoded(instances * width(values))
        return self.plain * plain + self.wide * encoded(instances * width(values + 1))


def width(values: int) -> int:
    """Bits that tell one of so many values."""
    return max(0, (values - 1).bit_length())


def encoded(bits: float) -> float:
    """Bits on the wire of a message with so many bits of value: a marker bit makes it whole."""
    return 8.0 * (frame + int(bits + 1 + 7) // 8)


@cache
def load(k: int) -> Load:
    """The recursive phase king among k.

    >>> load(128).rounds, load(1024).rounds
    (186, 1530)
    """
    if k <= 1:
        return Load(0.0, 0.0, 0)
    others = k - 1
    if k <= BASE:
        phases = (k - 1) // 3 + 1
        return Load(phases * others * (1.0 + 1.0 / k), float(phases * others), 3 * phases)
    first = (k + 1) // 2
    upper, lower = load(first), load(k - first)
    share = first / k
    return Load(
        3.0 * others + share * upper.plain + (1.0 - share) * lower.plain,
        2.0 * others + share * upper.wide + (1.0 - share) * lower.wide,
        6 + upper.rounds + lower.rounds,
    )


@cache
def _longest() -> list[int]:
    """The most rounds of a broadcast among 0, 1, .. participants, as far as asked for."""
    return [0]


def most_rounds(k: int) -> int:
    """The most rounds that telling all and agreeing on it takes among k or fewer.

    What is scheduled: all must stay in step, whoever takes part in the end.
    """
    known = _longest()
    while len(known) <= k:
        known.append(max(known[-1], 1 + load(len(known)).rounds))
    return known[k]
