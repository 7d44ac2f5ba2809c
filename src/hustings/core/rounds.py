"""Elections that go round by round, and the values that a study of them needs."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping

from hustings.core.election import Election
from hustings.core.messages import Message


class RoundBased(Election):
    """An election whose messages open rounds. A subclass says which, and how long a round takes."""

    __slots__ = ()

    @abstractmethod
    def opens(self, message: Message) -> tuple[int, ...] | None:
        """The round that sending this message opens, if it opens one.

        The key grows from round to round, and ends with the round's number. Several messages may
        open the same round.
        """

    @abstractmethod
    def span(self, message: Message, members: int) -> tuple[float, float]:
        """The round that this message opens in a group of `members`.

        How long after the message was sent the round begins, and how long it takes, to its end.
        """

    def tallies(self) -> Mapping[str, int]:
        """Numbers about this member's part, which the study adds up over the group."""
        return {}
