"""Which epoch of an acceptor a vote comes from: votes of an epoch that is over do not count.

An acceptor that loses its disk begins a new epoch (see `recovery`). An epoch is stored as one
number: how many epochs the acceptor has begun, and some random bits below that. 0 means that
nothing is known. Every vote carries the epochs of all voters that its acceptor knows.
"""

from __future__ import annotations

from hustings.core.choice import MemberId
from hustings.quorum.config import Electorate

EPOCH_BITS = 32  # random bits; the count of epochs is above them


def epoch_number(epoch: int) -> int:
    """How many epochs the acceptor had begun when it drew this one.

    >>> epoch_number(0), epoch_number((2 << EPOCH_BITS) + 12345)
    (0, 2)
    """
    return epoch >> EPOCH_BITS


class EpochCheck:
    """The epochs in the votes that were counted so far."""

    def __init__(self) -> None:
        self.epochs: dict[MemberId, tuple[int, ...]] = {}  # the epochs in each voter's vote

    def admit(
        self, electorate: Electorate, sender: MemberId, epochs: tuple[int, ...]
    ) -> list[MemberId] | None:
        """The members whose earlier votes this vote makes void; None if it is void itself.

        Two different epochs with one count cannot both be right. Then the later statement counts.
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
