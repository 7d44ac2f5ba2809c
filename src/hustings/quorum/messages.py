"""What members and voters of a quorum say to each other.

Every number has a bound. So what arrives from a network can be stored, compared and counted without
another check. `config` is the number of the configuration that the sender uses: votes count only
among votes of one configuration. `incarnation` is the proposer's.

An attacker with the group's key can forge a name. So a message that changes a voter's stored state
for good must answer a question of that voter. The voter draws `nonce`, `challenge` and `ticket` at
random and sends each to one member. No other member can repeat it.
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
    """One round of one incarnation of one member. No two of these ever win the same round."""

    round: Round
    holder: MemberId
    incarnation: Number


class Lease(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The lease that a voter accepted last. `ttl` is 0 after it was given back."""

    holder: MemberId
    incarnation: Number
    token: Round
    ttl: Time

    def is_of(self, ballot: Ballot) -> bool:
        """Whether the ballot's proposer holds it."""
        return self.holder == ballot.holder and self.incarnation == ballot.incarnation


class Change(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The next configuration's voters. Of them, `newcomer` in `epoch` did not vote before."""

    voters: Voters
    newcomer: MemberId
    epoch: Number


class Sealed(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The change that a voter has agreed to as its configuration's end, and the round.

    `told`: the voter had forgotten whether it agreed, and others have told it. Such a seal never
    counts.
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
    """You may have it, and I promise no lower round. `lease` is what I accepted last."""

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
    """I hold the lease for you, since this request."""

    role: ClassVar[Role] = Role.ANSWER
    config: ConfigNumber
    round: Round
    incarnation: Number
    request: Number
    epochs: Epochs


class NackMsg(LayerMessage, frozen=True, tag="Q-NACK"):
    """I refuse: a higher round was promised, or another member's `lease` is not over."""

    role: ClassVar[Role] = Role.ANSWER
    config: ConfigNumber
    round: Round
    incarnation: Number
    promised: Round
    lease: Lease | None
    remaining: Time


class ReleaseMsg(LayerMessage, frozen=True, tag="Q-RELEASE"):
    """I no longer hold the lease; `to` should be next."""

    config: ConfigNumber
    round: Round
    incarnation: Number
    token: Round
    to: MemberId | None


class AvailableMsg(LayerMessage, frozen=True, tag="Q-AVAILABLE"):
    """The lease for which you were refused was given back; or I did not vote, and vote now."""

    config: ConfigNumber
    token: Round


# Voters that have not voted yet, or that have forgotten their votes


class RecoveryMsg(LayerMessage, frozen=True, tag="Q-RECOVERY"):
    """This is my epoch: have I ever voted? `proof` is the challenge of the receiver, if known."""

    config: ConfigNumber
    epoch: Number
    nonce: Number
    proof: Number = 0


class RecoveryEmptyMsg(LayerMessage, frozen=True, tag="Q-RECOVERY-EMPTY"):
    """I do not know, and do not vote either. `mine` is my epoch, `incarnation` my incarnation.

    Rounds begin above the incarnation, so the date must allow it.
    """

    config: ConfigNumber
    epoch: Number
    nonce: Number
    mine: Number
    incarnation: Annotated[Incarnation, Meta(ge=0, le=MAX_NUMBER)]


class RecoveryStateMsg(LayerMessage, frozen=True, tag="Q-RECOVERY-STATE"):
    """I vote. I know you by the epoch `listed`, and these are my promises so far.

    `counted`: the epoch was there at a genesis, when no voter remembered a vote and all began anew.
    `challenge`: if you repeat it, I list another epoch of yours.
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
    """You will vote from the next configuration on: which epoch do you have?"""

    config: ConfigNumber
    nonce: Number = 0


class InvitedMsg(LayerMessage, frozen=True, tag="Q-INVITED"):
    """I have this epoch."""

    role: ClassVar[Role] = Role.ANSWER
    config: ConfigNumber
    epoch: Number
    nonce: Number = 0


class ConfPrepareMsg(LayerMessage, frozen=True, tag="Q-CONF-PREPARE"):
    """I want to change the voters: may I have this round, whichever member holds the lease?"""

    config: ConfigNumber
    round: Round
    incarnation: Number


class ConfPromiseMsg(LayerMessage, frozen=True, tag="Q-CONF-PROMISE"):
    """You may have it. `sealed` is what I had sealed before. With this ticket you may seal."""

    role: ClassVar[Role] = Role.ANSWER
    config: ConfigNumber
    round: Round
    incarnation: Number
    epochs: Epochs
    sealed: Sealed | None
    ticket: Number = 0


class ConfAcceptMsg(LayerMessage, frozen=True, tag="Q-CONF-ACCEPT"):
    """Stop voting in this configuration: `change` is how it continues."""

    config: ConfigNumber
    round: Round
    incarnation: Number
    change: Change
    ticket: Number = 0


class ConfAcceptedMsg(LayerMessage, frozen=True, tag="Q-CONF-ACCEPTED"):
    """I have stopped voting in this configuration."""

    role: ClassVar[Role] = Role.ANSWER
    config: ConfigNumber
    round: Round
    incarnation: Number
    epochs: Epochs


class ConfInstallMsg(LayerMessage, frozen=True, tag="Q-CONF-INSTALL"):
    """`config` has begun: its voters, the round that rounds must exceed, and the possible holder.

    A lease with incarnation 0 says that the holder cannot be known: all must wait. With `epochs`,
    this is one voter's statement that it has sealed the last configuration with this change. Sent
    alone, it is only a reason to ask.
    """

    role: ClassVar[Role] = Role.COORDINATOR
    config: ConfigNumber
    change: Change
    promised: Round
    lease: Lease | None
    epochs: Epochs = ()


class ConfInstalledMsg(LayerMessage, frozen=True, tag="Q-CONF-INSTALLED"):
    """I use this configuration now."""

    role: ClassVar[Role] = Role.ANSWER
    config: ConfigNumber


class ConfQueryMsg(LayerMessage, frozen=True, tag="Q-CONF-QUERY"):
    """I have heard that `config` is over: what came after it?"""

    config: ConfigNumber
    nonce: Number


class ConfInfoMsg(LayerMessage, frozen=True, tag="Q-CONF-INFO"):
    """These are the voters now, as far as I know.

    With a `nonce` it answers CONF-QUERY, and `step` is what came after the configuration in the
    question. Without a `nonce` it is only a reason to ask.
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
