"""Which of a voter's lives a vote comes from: votes of a life that is over do not count.

A epoch is the number of a voter's life and some random bits; 0 says that nothing is known. A voter
that has lost its disk begins another life (see `enrolment`), and every vote tells of the epochs
that its voter knows.
"""

from __future__ import annotations

from hustings.core.choice import MemberId
from hustings.quorum.config import Electorate

EPOCH_BITS = 32  # random ones; above them is the number of the life


def epoch_number(epoch: int) -> int:
    """The how-manieth life of a voter that was born so.

    >>> epoch_number(0), epoch_number((2 << EPOCH_BITS) + 12345)
    (0, 2)
    """
    return epoch >> EPOCH_BITS


class EpochCheck:
    """What the votes that were counted so far say about epochs."""

    def __init__(self) -> None:
        self.epochs: dict[MemberId, tuple[int, ...]] = {}  # that came with each voter's vote

    def admit(
        self, electorate: Electorate, sender: MemberId, epochs: tuple[int, ...]
    ) -> list[MemberId] | None:
        """Whose earlier votes this one shows to be void; None if it is void itself.

        Two epochs in one life cannot both be right: then what was said last counts.
        """
        voters = electorate.voters
        if sender not in voters or len(epochs) != len(voters):
            return None
        mine = voters.index(sender)
        void = []
        for other, theirs in self.epochs.items():
            place = voters.index(other)
            if epoch_number(theirs[mine]) > epoch_number(epochs[mine]):
                return None
            told, own = epochs[place], theirs[place]
            if other == sender:
                over = own != epochs[mine]
            else:
                over = epoch_number(told) > epoch_number(own) or _contradict(told, own)
                over = over or _contradict(theirs[mine], epochs[mine])
            if over:
                void.append(other)
        for other in void:
            del self.epochs[other]
        self.epochs[sender] = epochs
        return void


def _contradict(one: int, other: int) -> bool:
    return epoch_number(one) == epoch_number(other) > 0 and one != other
