"""What carries an election and shows its leader as its own: a detector's roof, a stack's."""

from __future__ import annotations

from collections.abc import Mapping

from hustings.core.choice import MemberId
from hustings.core.election import Election, VotesNeeded
from hustings.core.messages import Message


class Carrying(Election):
    """`inner` under a roof that adds something, and changes nothing about whom it elects.

    No slots: two instances may hold different elections, so `handlers` is the instance's and hides
    the class's.
    """

    def __init__(self, inner: Election) -> None:
        # The base would set leader and term, which are the inner election's.
        self.config = inner.config
        self.choice = inner.choice
        self.inner = inner

    @property
    def leader(self) -> MemberId | None:
        """The inner election's leader, also in the middle of a handler."""
        return self.inner.leader

    @leader.setter
    def leader(self, leader: MemberId | None) -> None:
        self.inner.leader = leader

    @property
    def term(self) -> int:
        """The inner election's term."""
        return self.inner.term

    @term.setter
    def term(self, term: int) -> None:
        self.inner.term = term

    @property
    def seats(self) -> int:
        """The inner election's."""
        return self.inner.seats

    @property
    def leaders(self) -> tuple[MemberId, ...]:
        """The inner election's."""
        return self.inner.leaders

    def opens(self, message: Message) -> tuple[int, ...] | None:
        return self.inner.opens(message)

    def span(self, message: Message, members: int) -> tuple[float, float]:
        return self.inner.span(message, members)

    def tallies(self) -> Mapping[str, int]:
        return self.inner.tallies()

    def votes_needed(self) -> VotesNeeded | None:
        return self.inner.votes_needed()
