"""What members and voters of a quorum say to each other.

Every number has a bound, so that what arrives from a network can be stored, compared and counted
upon without a second look. `config` is the number of the configuration that the sender goes by:
votes count only among those of one configuration. `incarnation` is the proposer's.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

import msgspec
from msgspec import Meta

from hustings.core.choice import MemberId
from hustings.core.messages import Message, Role

MAX_NUMBER = 1 << 62  # of rounds, tokens, requests and configurations
MAX_TIME = 1e12
MOST_VOTERS = 7

Number = Annotated[int, Meta(ge=0, le=MAX_NUMBER)]
Time = Annotated[float, Meta(ge=0, le=MAX_TIME)]
Births = Annotated[tuple[Number, ...], Meta(max_length=MOST_VOTERS)]
Voters = Annotated[tuple[MemberId, ...], Meta(min_length=1, max_length=MOST_VOTERS)]


class Ballot(msgspec.Struct, frozen=True, array_like=True, gc=False, order=True):
    """One round of one incarnation of one member; no two of these ever win the same round."""

    round: Number
    holder: MemberId
    incarnation: Number


class Lease(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What a voter accepted last; `ttl` is 0 once it was given back."""

    holder: MemberId
    incarnation: Number
    token: Number
    ttl: Time

    def is_of(self, ballot: Ballot) -> bool:
        """Whether the ballot's proposer holds it."""
        return self.holder == ballot.holder and self.incarnation == ballot.incarnation


class Change(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The next configuration's voters; of them `newcomer`, born so, did not vote before."""

    voters: Voters
    newcomer: MemberId
    birth: Number


class Sealed(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What a voter has agreed to as its configuration's end, and in which round."""

    round: Number
    change: Change


NOBODY = Ballot(0, 0, 0)


# Asking for the lease


class PrepareMsg(Message, frozen=True, tag="Q-PREPARE"):
    """May I have this round?"""

    role: ClassVar[Role] = Role.ELECTION
    config: Number
    round: Number
    incarnation: Number


class PromiseMsg(Message, frozen=True, tag="Q-PROMISE"):
    """You may, and nobody shall have a lower one; this is what I accepted last."""

    role: ClassVar[Role] = Role.ANSWER
    config: Number
    round: Number
    incarnation: Number
    births: Births
    lease: Lease | None


class ProposeMsg(Message, frozen=True, tag="Q-PROPOSE"):
    """Hold the lease for me from now on."""

    role: ClassVar[Role] = Role.ELECTION
    config: Number
    round: Number
    incarnation: Number
    token: Number
    ttl: Time
    request: Number


class AcceptedMsg(Message, frozen=True, tag="Q-ACCEPTED"):
    """I do, since this request."""

    role: ClassVar[Role] = Role.ANSWER
    config: Number
    round: Number
    incarnation: Number
    request: Number
    births: Births


class RefusedMsg(Message, frozen=True, tag="Q-REFUSED"):
    """I do not: a higher round was promised, or `lease` of somebody else lives on."""

    role: ClassVar[Role] = Role.ANSWER
    config: Number
    round: Number
    incarnation: Number
    promised: Number
    lease: Lease | None
    remaining: Time


class ReleaseMsg(Message, frozen=True, tag="Q-RELEASE"):
    """I hold it no more; `to` should be next."""

    config: Number
    round: Number
    incarnation: Number
    token: Number
    to: MemberId | None


class FreedMsg(Message, frozen=True, tag="Q-FREED"):
    """The lease that you were refused for was given back."""

    config: Number
    token: Number


# Voters that have not voted yet, or have forgotten


class EnrollMsg(Message, frozen=True, tag="Q-ENROLL"):
    """I was born so: have I ever voted?"""

    config: Number
    birth: Number
    nonce: Number


class FreshMsg(Message, frozen=True, tag="Q-FRESH"):
    """I do not know, I do not vote either; this is my birth."""

    config: Number
    birth: Number
    nonce: Number
    mine: Number


class KnownMsg(Message, frozen=True, tag="Q-KNOWN"):
    """I vote; as you I know who was born `listed`, and this is what I have promised so far."""

    config: Number
    birth: Number
    nonce: Number
    listed: Number
    promised: Number
    lease: Lease | None
    births: Births
    sealed: Sealed | None


# Other voters


class MovedMsg(Message, frozen=True, tag="Q-MOVED"):
    """These are the voters now, as far as I know."""

    config: Number
    voters: Voters


class InviteMsg(Message, frozen=True, tag="Q-INVITE"):
    """You are to vote from the next configuration on: how were you born?"""

    config: Number


class InvitedMsg(Message, frozen=True, tag="Q-INVITED"):
    """So was I."""

    role: ClassVar[Role] = Role.ANSWER
    config: Number
    birth: Number


class SurveyMsg(Message, frozen=True, tag="Q-SURVEY"):
    """I want to change the voters: may I have this round, whoever holds the lease?"""

    config: Number
    round: Number
    incarnation: Number


class SurveyedMsg(Message, frozen=True, tag="Q-SURVEYED"):
    """You may; this is what I had sealed before."""

    role: ClassVar[Role] = Role.ANSWER
    config: Number
    round: Number
    incarnation: Number
    births: Births
    sealed: Sealed | None


class SealMsg(Message, frozen=True, tag="Q-SEAL"):
    """Vote no more in this configuration: so shall it go on."""

    config: Number
    round: Number
    incarnation: Number
    change: Change


class SealedMsg(Message, frozen=True, tag="Q-SEALED"):
    """I vote no more; this was the last lease that I accepted, with a `ttl` of 0 if it is over."""

    role: ClassVar[Role] = Role.ANSWER
    config: Number
    round: Number
    incarnation: Number
    births: Births
    lease: Lease | None


class InstallMsg(Message, frozen=True, tag="Q-INSTALL"):
    """`config` has begun: with which voters, above which round, and who may hold the lease.

    A lease of nobody's (incarnation 0) says that it cannot be told who holds it: all wait.
    """

    role: ClassVar[Role] = Role.COORDINATOR
    config: Number
    change: Change
    promised: Number
    lease: Lease | None


class InstalledMsg(Message, frozen=True, tag="Q-INSTALLED"):
    """I go by this configuration now."""

    role: ClassVar[Role] = Role.ANSWER
    config: Number


KINDS: tuple[type[Message], ...] = (
    PrepareMsg,
    PromiseMsg,
    ProposeMsg,
    AcceptedMsg,
    RefusedMsg,
    ReleaseMsg,
    FreedMsg,
    EnrollMsg,
    FreshMsg,
    KnownMsg,
    MovedMsg,
    InviteMsg,
    InvitedMsg,
    SurveyMsg,
    SurveyedMsg,
    SealMsg,
    SealedMsg,
    InstallMsg,
    InstalledMsg,
)
