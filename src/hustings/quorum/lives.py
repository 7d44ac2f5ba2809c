"""Which of a voter's lives a vote comes from: votes of a life that is over do not count.

A birth is the number of a voter's life and some random bits; 0 says that nothing is known. A voter
that has lost its disk begins another life (see `enrolment`), and every vote tells of the births
that its voter knows.
"""

from __future__ import annotations

from hustings.core.choice import MemberId
from hustings.quorum.config import Electorate

LIFE_BITS = 32  # random ones; above them is the number of the life


def life(birth: int) -> int:
    """The how-manieth life of a voter that was born so.

    >>> life(0), life((2 << LIFE_BITS) + 12345)
    (0, 2)
    """
    return birth >> LIFE_BITS


class Lives:
    """What the votes that were counted so far say about births."""

    def __init__(self) -> None:
        self.births: dict[MemberId, tuple[int, ...]] = {}  # that came with each voter's vote

    def admit(
        self, electorate: Electorate, sender: MemberId, births: tuple[int, ...]
    ) -> list[MemberId] | None:
        """Whose earlier votes this one shows to be void; None if it is void itself.

        Two births in one life cannot both be right: then what was said last counts.
        """
        voters = electorate.voters
        if sender not in voters or len(births) != len(voters):
            return None
        mine = voters.index(sender)
        void = []
        for other, theirs in self.births.items():
            place = voters.index(other)
            if life(theirs[mine]) > life(births[mine]):
                return None
            told, own = births[place], theirs[place]
            if other == sender:
                over = own != births[mine]
            else:
                over = life(told) > life(own) or _contradict(told, own)
                over = over or _contradict(theirs[mine], births[mine])
            if over:
                void.append(other)
        for other in void:
            del self.births[other]
        self.births[sender] = births
        return void


def _contradict(one: int, other: int) -> bool:
    return life(one) == life(other) > 0 and one != other
