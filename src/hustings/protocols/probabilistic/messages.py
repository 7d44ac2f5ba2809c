"""The messages of a probabilistic election."""

from __future__ import annotations

from typing import ClassVar

import msgspec

from hustings.core.choice import Candidate, MemberId
from hustings.core.messages import Message, Role, Term

MAX_WITHOUT = 16  # members that one call may exclude
MAX_SEQUENCE = 2**48  # a forged number above this limit is ignored,
MAX_JUMP = 2**32  # and so is one that is further than this from the last


class Call(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One election. Of two calls the larger, read from left to right, supersedes the other."""

    sequence: Term
    initiator: MemberId
    nonce: int  # distinguishes two calls of one initiator that has forgotten the first
    without: tuple[MemberId, ...] = ()  # not eligible: the leader whose crash led to this

    @property
    def order(self) -> tuple[int, int, int]:
        """Return the key that compares calls."""
        return self.sequence, self.initiator, self.nonce

    def term(self, number: int, rounds: int) -> int:
        """Return the term of round `number`; terms number all rounds, up to `rounds` per call."""
        return (self.sequence - 1) * rounds + number

    @property
    def sound(self) -> bool:
        """Whether the numbers are such that a member would send them."""
        return 0 < self.sequence <= MAX_SEQUENCE and len(self.without) <= MAX_WITHOUT


class InitMsg(Message, frozen=True, tag="INIT"):
    """I and I': a round begins `wait` after this message was sent."""

    role: ClassVar[Role] = Role.ELECTION
    call: Call
    round: int
    wait: float


class PreferMsg(Message, frozen=True, tag="PREFER"):
    """From relay member to relay member: the best candidate that the sender knows."""

    role: ClassVar[Role] = Role.ELECTION
    call: Call
    round: int
    me: Candidate
    best: Candidate
    left: float  # until the relay phase ends, for a member that does not know of its beginning


class FinalMsg(Message, frozen=True, tag="FINAL"):
    """To all: the final choice of this relay member."""

    role: ClassVar[Role] = Role.COORDINATOR
    call: Call
    round: int
    best: Candidate


def implied_term(message: Message, rounds: int) -> int:
    """Return the term of a message's round: calls are counted in whole elections."""
    if not isinstance(message, InitMsg | PreferMsg | FinalMsg):
        return 0
    return message.call.term(min(max(message.round, 1), rounds), rounds)
