"""What members and voters of a quorum say to each other.

Every number has a bound, so that what arrives from a network can be stored, compared and counted
upon without a second look. `config` is the number of the configuration that the sender goes by:
votes count only among those of one configuration. `incarnation` is the proposer's.

A name can be forged by whoever has the group's key. So what changes a voter's memory for good
answers a question of its own: `nonce`, `challenge` and `ticket` are drawn at random, sent to one
member, and said back by nobody else.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

import msgspec
from msgspec import Meta

from hustings.core.choice import MemberId
from hustings.core.messages import Count, Incarnation, LayerMessage, Message, Role, Token

MAX_NUMBER = 1 << 62  # of rounds, tokens, requests and configurations
MAX_TIME = 1e12
MOST_VOTERS = 7

Number = Annotated[int, Meta(ge=0, le=MAX_NUMBER)]
ConfigNumber = Annotated[Count, Meta(ge=0, le=MAX_NUMBER)]
Round = Annotated[Token, Meta(ge=0, le=MAX_NUMBER)]  # a token is the round that won it
Time = Annotated[float, Meta(ge=0, le=MAX_TIME)]
Epochs = Annotated[tuple[Number, ...], Meta(max_length=MOST_VOTERS)]
Voters = Annotated[tuple[MemberId, ...], Meta(min_length=1, max_length=MOST_VOTERS)]


class Ballot(msgspec.Struct, frozen=True, array_like=True, gc=False, order=True):
    """One round of one incarnation of one member; no two of these ever win the same round."""

    round: Round
    holder: MemberId
    incarnation: Number


class Lease(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What a voter accepted last; `ttl` is 0 once it was given back."""

    holder: MemberId
    incarnation: Number
    token: Round
    ttl: Time

    def is_of(self, ballot: Ballot) -> bool:
        """Whether the ballot's proposer holds it."""
        return self.holder == ballot.holder and self.incarnation == ballot.incarnation


class Change(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The next configuration's voters; of them `newcomer`, born so, did not vote before."""

    voters: Voters
    newcomer: MemberId
    epoch: Number


class Sealed(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What a voter has agreed to as its configuration's end, and in which round.

    `told`: it had forgotten whether it agreed, and others have told it; that counts for nobody.
    """

    round: Round
    change: Change
    told: bool = False


NOBODY = Ballot(0, 0, 0)


# Asking for the lease


class PrepareMsg(LayerMessage, frozen=True, tag="Q-PREPARE"):
    """May I have this round?"""

    role: ClassVar[Role] = Role.ELECTION
    config: ConfigNumber
    round: Round
    incarnation: Number


class PromiseMsg(LayerMessage, frozen=True, tag="Q-PROMISE"):
    """You may, and nobody shall have a lower one; this is what I accepted last."""

    role: ClassVar[Role] = Role.ANSWER
    config: ConfigNumber
    round: Round
    incarnation: Number
    epochs: Epochs
    lease: Lease | None


class AcceptMsg(LayerMessage, frozen=True, tag="Q-ACCEPT"):
    """Hold the lease for me from now on."""

    role: ClassVar[Role] = Role.ELECTION
    config: ConfigNumber
    round: Round
    incarnation: Number
    token: Round
    ttl: Time
    request: Number


class AcceptedMsg(LayerMessage, frozen=True, tag="Q-ACCEPTED"):
    """I do, since this request."""

    role: ClassVar[Role] = Role.ANSWER
    config: ConfigNumber
    round: Round
    incarnation: Number
    request: Number
    epochs: Epochs


class NackMsg(LayerMessage, frozen=True, tag="Q-NACK"):
    """I do not: a higher round was promised, or `lease` of somebody else lives on."""

    role: ClassVar[Role] = Role.ANSWER
    config: ConfigNumber
    round: Round
    incarnation: Number
    promised: Round
    lease: Lease | None
    remaining: Time


class ReleaseMsg(LayerMessage, frozen=True, tag="Q-RELEASE"):
    """I hold it no more; `to` should be next."""

    config: ConfigNumber
    round: Round
    incarnation: Number
    token: Round
    to: MemberId | None


class AvailableMsg(LayerMessage, frozen=True, tag="Q-AVAILABLE"):
    """The lease that you were refused for was given back; or I did not vote, and do now."""

    config: ConfigNumber
    token: Round


# Voters that have not voted yet, or have forgotten


class RecoveryMsg(LayerMessage, frozen=True, tag="Q-RECOVERY"):
    """I was born so: have I ever voted? `proof` is the challenge of whoever is asked, if known."""

    config: ConfigNumber
    epoch: Number
    nonce: Number
    proof: Number = 0


class RecoveryEmptyMsg(LayerMessage, frozen=True, tag="Q-RECOVERY-EMPTY"):
    """I do not know, I do not vote either; this is my epoch, and this my incarnation.

    Rounds begin above that, so it must be one that the date allows.
    """

    config: ConfigNumber
    epoch: Number
    nonce: Number
    mine: Number
    incarnation: Annotated[Incarnation, Meta(ge=0, le=MAX_NUMBER)]


class RecoveryStateMsg(LayerMessage, frozen=True, tag="Q-RECOVERY-STATE"):
    """I vote; as you I know who was born `listed`, and this is what I have promised so far.

    `counted`: who was born so was there when nobody remembered a vote and all began anew.
    `challenge`: say this, and another life of yours is listed.
    """

    config: ConfigNumber
    epoch: Number
    nonce: Number
    listed: Number
    promised: Round
    lease: Lease | None
    epochs: Epochs
    sealed: Sealed | None
    counted: bool
    challenge: Number = 0


# Other voters


class InviteMsg(LayerMessage, frozen=True, tag="Q-INVITE"):
    """You are to vote from the next configuration on: how were you born?"""

    config: ConfigNumber
    nonce: Number = 0


class InvitedMsg(LayerMessage, frozen=True, tag="Q-INVITED"):
    """So was I."""

    role: ClassVar[Role] = Role.ANSWER
    config: ConfigNumber
    epoch: Number
    nonce: Number = 0


class ConfPrepareMsg(LayerMessage, frozen=True, tag="Q-CONF-PREPARE"):
    """I want to change the voters: may I have this round, whoever holds the lease?"""

    config: ConfigNumber
    round: Round
    incarnation: Number


class ConfPromiseMsg(LayerMessage, frozen=True, tag="Q-CONF-PROMISE"):
    """You may; this is what I had sealed before, and with this ticket you may seal."""

    role: ClassVar[Role] = Role.ANSWER
    config: ConfigNumber
    round: Round
    incarnation: Number
    epochs: Epochs
    sealed: Sealed | None
    ticket: Number = 0


class ConfAcceptMsg(LayerMessage, frozen=True, tag="Q-CONF-ACCEPT"):
    """Vote no more in this configuration: so shall it go on."""

    config: ConfigNumber
    round: Round
    incarnation: Number
    change: Change
    ticket: Number = 0


class ConfAcceptedMsg(LayerMessage, frozen=True, tag="Q-CONF-ACCEPTED"):
    """I vote no more."""

    role: ClassVar[Role] = Role.ANSWER
    config: ConfigNumber
    round: Round
    incarnation: Number
    epochs: Epochs


class ConfInstallMsg(LayerMessage, frozen=True, tag="Q-CONF-INSTALL"):
    """`config` has begun: with which voters, above which round, and who may hold the lease.

    A lease of nobody's (incarnation 0) says that it cannot be told who holds it: all wait. With
    `epochs` it is one voter's word that it has sealed the last configuration so. Sent alone it is
    a reason to ask, and nothing else.
    """

    role: ClassVar[Role] = Role.COORDINATOR
    config: ConfigNumber
    change: Change
    promised: Round
    lease: Lease | None
    epochs: Epochs = ()


class ConfInstalledMsg(LayerMessage, frozen=True, tag="Q-CONF-INSTALLED"):
    """I go by this configuration now."""

    role: ClassVar[Role] = Role.ANSWER
    config: ConfigNumber


class ConfQueryMsg(LayerMessage, frozen=True, tag="Q-CONF-QUERY"):
    """I have heard that `config` is over: what came after it?"""

    config: ConfigNumber
    nonce: Number


class ConfInfoMsg(LayerMessage, frozen=True, tag="Q-CONF-INFO"):
    """These are the voters now, as far as I know.

    With a `nonce` it answers AFTER, and `step` is what came after the configuration asked about.
    Without one it is a reason to ask, and nothing else.
    """

    config: ConfigNumber
    voters: Voters
    nonce: Number = 0
    step: ConfInstallMsg | None = None


KINDS: tuple[type[Message], ...] = (
    PrepareMsg,
    PromiseMsg,
    AcceptMsg,
    AcceptedMsg,
    NackMsg,
    ReleaseMsg,
    AvailableMsg,
    RecoveryMsg,
    RecoveryEmptyMsg,
    RecoveryStateMsg,
    ConfQueryMsg,
    ConfInfoMsg,
    InviteMsg,
    InvitedMsg,
    ConfPrepareMsg,
    ConfPromiseMsg,
    ConfAcceptMsg,
    ConfAcceptedMsg,
    ConfInstallMsg,
    ConfInstalledMsg,
)
