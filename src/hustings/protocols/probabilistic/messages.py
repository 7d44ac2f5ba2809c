"""What members of a probabilistic election send each other."""

from __future__ import annotations

from typing import ClassVar

import msgspec

from hustings.core.choice import Candidate, MemberId
from hustings.core.messages import Message, Role, Term

MAX_WITHOUT = 16  # members that one call may rule out
MAX_SEQUENCE = 2**48  # a forged number beyond it teaches nothing,
MAX_JUMP = 2**32  # nor one that is further than this from the last


class Call(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One election. The call that is larger, read from left to right, supersedes the other."""

    sequence: Term
    initiator: MemberId
    nonce: int  # sets apart two calls of one initiator that has forgotten the first
    without: tuple[MemberId, ...] = ()  # who cannot be elected: the leader whose crash led to this

    @property
    def order(self) -> tuple[int, int, int]:
        """What calls are compared by."""
        return self.sequence, self.initiator, self.nonce

    def term(self, number: int, rounds: int) -> int:
        """The term of round `number`, where an election has this many: terms number all rounds."""
        return (self.sequence - 1) * rounds + number

    @property
    def sound(self) -> bool:
        """Whether the numbers are such as a member would send."""
        return 0 < self.sequence <= MAX_SEQUENCE and len(self.without) <= MAX_WITHOUT


class InitMsg(Message, frozen=True, tag="INIT"):
    """I and I': a round begins, `wait` after this was sent."""

    role: ClassVar[Role] = Role.ELECTION
    call: Call
    round: int
    wait: float


class PreferMsg(Message, frozen=True, tag="PREFER"):
    """From relay member to relay member: the best that I know of."""

    role: ClassVar[Role] = Role.ELECTION
    call: Call
    round: int
    me: Candidate
    best: Candidate
    left: float  # until the relay phase ends, for one who has not heard that it began


class FinalMsg(Message, frozen=True, tag="FINAL"):
    """To all: whom this relay member ends up with."""

    role: ClassVar[Role] = Role.COORDINATOR
    call: Call
    round: int
    best: Candidate


def implied_term(message: Message, rounds: int) -> int:
    """The term of the round that a message is about: calls are counted in whole elections."""
    if not isinstance(message, InitMsg | PreferMsg | FinalMsg):
        return 0
    return message.call.term(min(max(message.round, 1), rounds), rounds)
