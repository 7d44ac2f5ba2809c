"""An election behind a guard whose voters are members themselves, as one election.

Model      Messages may be late, lost, doubled, out of order. Members crash, come back, are cut off
           and paused. Less than half of the voters are gone at a time, or no leader is confirmed.
Idea       `LeaseLayer` asks a guard. Here its questions go to the voters as messages, and their
           votes come back as verdicts. Members vote, whether they are candidates or not.
Invariant  Those of `acceptor`, `proposer` and `recovery`. A verdict answers a request that was made
           before the voters were asked, so the lease counted from the request is short enough. A
           member's vote for itself goes the same way, without a message.
Cost       2 messages per voter for a renewal, 4 for a new holder. Members that are no candidates
           cost the voters nothing.
Guarantee  That of `LeaseLayer`: tokens grow, and with clocks within 1 +- drift never two at once.

This layer's timers begin with "quorum-", and so do the names of its stored values. The world knows
the sender of each message, and lets only members in. A member that uses another's name, or says
wrong things about others, may cost time. It changes no stored state for good, because a voter asks
before it stores (see `messages`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, NamedTuple, Protocol

import msgspec

from hustings.core.choice import MemberId
from hustings.core.context import Context, ForwardingContext, TimerKey
from hustings.core.election import upon
from hustings.core.errors import BadInput, ProtocolBug
from hustings.core.guard import Verdict
from hustings.core.messages import Message
from hustings.layers.layer import Layer
from hustings.layers.lease import LeaseLayer
from hustings.quorum.acceptor import Acceptor
from hustings.quorum.config import Electorate, QuorumConfig, after
from hustings.quorum.configurations import Configurations
from hustings.quorum.messages import (
    KINDS,
    AcceptedMsg,
    AcceptMsg,
    AvailableMsg,
    ConfAcceptedMsg,
    ConfAcceptMsg,
    ConfInfoMsg,
    ConfInstalledMsg,
    ConfInstallMsg,
    ConfPrepareMsg,
    ConfPromiseMsg,
    ConfQueryMsg,
    InvitedMsg,
    InviteMsg,
    NackMsg,
    PrepareMsg,
    PromiseMsg,
    RecoveryEmptyMsg,
    RecoveryMsg,
    RecoveryStateMsg,
    ReleaseMsg,
)
from hustings.quorum.proposer import AGAIN, Proposer
from hustings.quorum.reconfiguration import IDLE, INSTALLING, SEAL, Reconfiguration
from hustings.quorum.recovery import ENROLL, AcceptorRecovery

SUCCESSOR_FIRST = 4.0  # message delays for which the lease is reserved for the chosen successor
ABANDONED = 8.0  # times the patience: after that a voter that sealed a change completes it itself
MAX_TURNS = 64  # messages of a member to itself in one handler
MAX_MOVES = 16  # changes of voters that are remembered until they are read


class VotesNeeded(NamedTuple):
    """The voters whose votes a member needs before it may lead."""

    voters: tuple[MemberId, ...]
    enough: int  # number of votes that is enough
    votes: bool  # whether this member, if it is a voter, votes without the others


class Move(NamedTuple):
    """New voters, the voters before, and the former voters that confirmed the change."""

    electorate: Electorate
    before: Electorate
    confirmed: tuple[MemberId, ...]


class AsksVoters(Protocol):
    """The layer that takes a member's requests to the voters."""

    def acquire(self, ctx: Context, ttl: float, request: int) -> None:
        """This member asks for the lease, or renews it."""

    def release(self, ctx: Context) -> None:
        """This member gives the lease back."""


class VotersContext(ForwardingContext):
    """What the lease layer gets: its calls to the guard go to the voters."""

    __slots__ = ("_layer",)

    def __init__(self, below: Context, layer: AsksVoters) -> None:
        super().__init__(below)
        self._layer = layer

    def acquire(self, ttl: float, request: int) -> None:
        self._layer.acquire(self._below, ttl, request)

    def release(self, request: int) -> None:
        self._layer.release(self._below)


class QuorumLeaseLayer(Layer):
    """`inner` asks a guard, and the members that vote are the guard."""

    adds: ClassVar[str] = "a quorum"
    messages: ClassVar[tuple[type[Message], ...]] = KINDS
    acceptor_class: ClassVar[type[Acceptor]] = Acceptor
    proposer_class: ClassVar[type[Proposer]] = Proposer
    recovery_class: ClassVar[type[AcceptorRecovery]] = AcceptorRecovery
    inner: LeaseLayer

    def __init__(self, inner: LeaseLayer, quorum: QuorumConfig) -> None:
        super().__init__(inner)
        self.inner = inner
        self.quorum = quorum
        self.electorate = quorum.electorate
        lease = inner.lease
        longest = quorum.longest_for(lease.asked)
        self.proposer = self.proposer_class(self.electorate, lease.delta)
        self.acceptor = self.acceptor_class(self.electorate, longest, durable=quorum.durable)
        self.recovery = self.recovery_class(self.acceptor, lease.patience, self.reachable)
        self.recovery.founds = quorum.origin == quorum.electorate
        self.reconfiguration = Reconfiguration(self.electorate, lease.patience)
        self.configurations = Configurations(self.electorate, longest, quorum.origin)
        self.announcer: MemberId | None = None  # the member to tell when this member has moved
        self.moves: list[Move] = []  # for the owner, which logs the changes

    # What a world calls

    def start(self, ctx: Context) -> None:
        self._go_by(self.configurations.recall(ctx))
        above = self.quorum.above
        self.proposer.highest = above if self.quorum.durable else max(above, ctx.incarnation)
        if ctx.me.id in self.electorate.voters:
            self.recovery.start(ctx)
            self.acceptor.begin_above(above)  # its disk may be an old copy
            self._watch_seal(ctx)
        super().start(ctx)

    def on_timer(self, ctx: Context, key: TimerKey) -> None:
        if key == AGAIN:
            self.proposer.again(ctx)
            self._settle(ctx)
        elif key == ENROLL:
            self._enrol(ctx, self.recovery.on_timer)
        elif key == SEAL:
            self._on_seal_timer(ctx)
        else:
            super().on_timer(ctx, key)

    def on_verdict(self, ctx: Context, verdict: Verdict) -> None:
        raise ProtocolBug("a member with a quorum asks no other guard")

    def votes_needed(self) -> VotesNeeded:
        votes = self.acceptor.votes or not self.quorum.durable
        return VotesNeeded(self.electorate.voters, self.electorate.majority, votes)

    def take_moves(self) -> list[Move]:
        """The changes of voters since the last call of this method."""
        moves, self.moves = self.moves, []
        return moves

    def state(self) -> str:
        return f"{self.inner.state()} | {self.proposer.state()} | {self.recovery.state()}" + (
            self.reconfiguration.state()
        )

    # What the inner election does

    def run_inner(self, ctx: Context, act: Callable[..., None], *about: object) -> None:
        act(VotersContext(ctx, self), *about)
        self._settle(ctx)

    def acquire(self, ctx: Context, ttl: float, request: int) -> None:
        """This member wants the lease; the voters are asked when the handler is done."""
        self.proposer.highest = max(self.proposer.highest, self.inner.term)
        self.proposer.acquire(ctx, ttl, request)

    def release(self, ctx: Context) -> None:
        """Give the lease back. The leader that this member's election names should be next."""
        better = self.inner.inner.leader
        self.proposer.release(ctx, None if better == ctx.me.id else better)

    def _settle(self, ctx: Context) -> None:
        """Send messages, count this member's own vote, pass on verdicts, until nothing is left."""
        proposer = self.proposer
        for _ in range(MAX_TURNS):
            if proposer.outbox:
                self._ask_voters(ctx, proposer.outbox.pop(0))
            elif self.reconfiguration.outbox:
                self._post(ctx, *self.reconfiguration.outbox.pop(0))
            elif proposer.verdicts:
                self.inner.on_verdict(VotersContext(ctx, self), proposer.verdicts.pop(0))
            else:
                return
        raise ProtocolBug(f"member {ctx.me.id} does not come to an end with itself")

    def _ask_voters(self, ctx: Context, message: Message) -> None:
        me = ctx.me.id
        for voter in self.reachable(ctx):
            if voter != me:
                ctx.send(voter, message)
        if self._is_voter(me):
            self._post(ctx, me, message)

    def _post(self, ctx: Context, to: MemberId, message: Message) -> None:
        """Send a message. A message to this member itself is handled at once."""
        if to == ctx.me.id:
            self.handlers[type(message)](self, ctx, to, message)
        else:
            ctx.send(to, message)

    def reachable(self, ctx: Context) -> tuple[MemberId, ...]:
        """The voters to write to: all of them, also those that are not in the view."""
        return self.electorate.voters

    # Voting

    def _is_asked(self, ctx: Context, sender: MemberId, config: int) -> bool:
        """Whether this member votes in the sender's configuration."""
        votes = self.acceptor.votes and self.acceptor.sealed is None
        return self._is_shared(ctx, sender, config) and votes and self._is_voter(ctx.me.id)

    def _is_voter(self, member: MemberId) -> bool:
        return member in self.electorate.voters

    def _is_shared(self, ctx: Context, sender: MemberId, config: int) -> bool:
        """Whether both use one configuration. If not, tell the member that is behind, or ask."""
        if config < self.electorate.number:
            self._tell_voters(ctx, sender)
        elif config > self.electorate.number:
            self._enquire(ctx)
        return config == self.electorate.number

    def _tell_voters(self, ctx: Context, member: MemberId) -> None:
        """Tell a member which configuration this member uses; that member will ask its voters."""
        if member != ctx.me.id:
            ctx.send(member, ConfInfoMsg(self.electorate.number, self.electorate.voters))

    @upon(PrepareMsg)
    def _on_prepare(self, ctx: Context, sender: MemberId, message: PrepareMsg) -> None:
        if self._is_asked(ctx, sender, message.config):
            self._post(ctx, sender, self.acceptor.prepare(ctx, sender, message))
        elif message.config == self.electorate.number and not self.acceptor.votes:
            self.acceptor.note_waiting(sender)

    @upon(AcceptMsg)
    def _on_propose(self, ctx: Context, sender: MemberId, message: AcceptMsg) -> None:
        if self._is_asked(ctx, sender, message.config):
            self._post(ctx, sender, self.acceptor.propose(ctx, sender, message))

    @upon(ReleaseMsg)
    def _on_release(self, ctx: Context, sender: MemberId, message: ReleaseMsg) -> None:
        if not self._is_asked(ctx, sender, message.config):
            return
        if self.acceptor.release(ctx, sender, message, SUCCESSOR_FIRST * self.inner.lease.delta):
            self._tell_waiting(ctx)

    def _tell_waiting(self, ctx: Context) -> None:
        freed, waiting = self.acceptor.freed()
        for member in waiting:
            self._post(ctx, member, freed)

    # Counting votes. This member's own vote is handled after the handler that is running.

    def _after(self, ctx: Context, sender: MemberId) -> None:
        if sender != ctx.me.id:
            self._settle(ctx)

    @upon(PromiseMsg)
    def _on_promise(self, ctx: Context, sender: MemberId, message: PromiseMsg) -> None:
        self.proposer.on_promise(ctx, sender, message)
        self._after(ctx, sender)

    @upon(AcceptedMsg)
    def _on_accepted(self, ctx: Context, sender: MemberId, message: AcceptedMsg) -> None:
        self.proposer.on_accepted(ctx, sender, message)
        self._after(ctx, sender)

    @upon(NackMsg)
    def _on_refused(self, ctx: Context, sender: MemberId, message: NackMsg) -> None:
        if message.remaining > self.acceptor.longest:
            message = msgspec.structs.replace(message, remaining=self.acceptor.longest)
        self.proposer.on_refused(ctx, sender, message)
        self.reconfiguration.on_refused(ctx, sender, message)
        self._after(ctx, sender)

    @upon(AvailableMsg)
    def _on_freed(self, ctx: Context, sender: MemberId, message: AvailableMsg) -> None:
        self.proposer.on_freed(sender, message)
        self._settle(ctx)

    # AcceptorRecovery

    def _is_peer(self, ctx: Context, sender: MemberId, config: int) -> bool:
        """Whether both are voters of one configuration."""
        both = self._is_voter(sender) and self._is_voter(ctx.me.id) and sender != ctx.me.id
        return self._is_shared(ctx, sender, config) and both

    @upon(RecoveryMsg)
    def _on_enroll(self, ctx: Context, sender: MemberId, message: RecoveryMsg) -> None:
        if self.quorum.durable and self._is_peer(ctx, sender, message.config):
            ctx.send(sender, self.recovery.on_enroll(ctx, sender, message))

    @upon(RecoveryEmptyMsg)
    def _on_fresh(self, ctx: Context, sender: MemberId, message: RecoveryEmptyMsg) -> None:
        if self._is_peer(ctx, sender, message.config):
            self._enrol(ctx, self.recovery.on_fresh, sender, message)

    @upon(RecoveryStateMsg)
    def _on_known(self, ctx: Context, sender: MemberId, message: RecoveryStateMsg) -> None:
        if self._is_peer(ctx, sender, message.config):
            self._enrol(ctx, self.recovery.on_known, sender, message)

    def _enrol(self, ctx: Context, handler: Callable[..., None], *about: object) -> None:
        """Recover. When this voter then votes, tell the members that asked before."""
        voted = self.acceptor.votes
        handler(ctx, *about)
        if self.acceptor.votes and not voted:
            self._tell_waiting(ctx)

    # Configurations

    def replace(self, ctx: Context, old: MemberId, new: MemberId) -> None:
        """Let `new` vote in the place of `old`, if a majority of the voters agrees.

        There is no answer. When the change is done, `electorate` changes. If another member has
        begun a change, that change is completed instead. Then call this again.
        """
        if not self.quorum.durable:
            raise BadInput("voters without a disk cannot be replaced: restart all with others")
        voters = self.electorate.voters
        if old not in voters or new in voters:
            raise BadInput(f"{old} must be one of the voters, and {new} must not be")
        self.reconfiguration.heard(self.proposer.highest)
        self.reconfiguration.begin(ctx, old, new)
        self._settle(ctx)

    def _go_by(self, electorate: Electorate) -> None:
        self.electorate = self.acceptor.electorate = electorate
        self.proposer.electorate = self.reconfiguration.electorate = electorate

    def _move(self, ctx: Context, electorate: Electorate, step: ConfInstallMsg | None) -> None:
        """Use other voters from now on."""
        move = Move(electorate, self.electorate, self.configurations.witnesses(electorate))
        self.moves = [*self.moves[1 - MAX_MOVES :], move]
        self._go_by(electorate)
        self.configurations.move(ctx, electorate, step)
        self.proposer.move(ctx, electorate)
        self.reconfiguration.move(ctx, electorate)

    def _enquire(self, ctx: Context) -> None:
        """A message names later voters: ask the present voters about them."""
        if self.quorum.durable:
            question = self.configurations.ask(ctx, self.inner.lease.patience)
            if question is not None:
                self._ask_voters(ctx, question)

    @upon(ConfQueryMsg)
    def _on_after(self, ctx: Context, sender: MemberId, message: ConfQueryMsg) -> None:
        if message.config > self.electorate.number:
            self._enquire(ctx)
        elif self.quorum.durable:
            self._post(ctx, sender, self.configurations.answer(ctx, self.acceptor, message))

    @upon(ConfInfoMsg)
    def _on_moved(self, ctx: Context, sender: MemberId, message: ConfInfoMsg) -> None:
        if not message.nonce:
            self._is_shared(ctx, sender, message.config)
        elif self.configurations.hear(sender, message):
            self._follow(ctx)
        self._after(ctx, sender)

    def _follow(self, ctx: Context) -> None:
        """Use the configuration that a majority of the present voters says the group uses."""
        known = self.configurations
        step, jump, furthest = known.step(), known.jump(), known.furthest()
        if step is not None:
            self._install(ctx, step)
        elif jump is not None:
            self._jump(ctx, jump)
        else:
            return
        number = self.electorate.number
        if self.reconfiguration.phase == INSTALLING:
            ctx.multicast(ConfInfoMsg(number, self.electorate.voters))
        if self.announcer is not None:
            self._post(ctx, self.announcer, ConfInstalledMsg(number))
            self.announcer = None
        if furthest > number:
            self._enquire(ctx)

    def _jump(self, ctx: Context, electorate: Electorate) -> None:
        """Jump over several changes: this member does not know what was sealed."""
        self._move(ctx, electorate, None)
        if self._is_voter(ctx.me.id):
            self.recovery.begin_anew(ctx)
        else:
            self.recovery.retire(ctx)

    @upon(InviteMsg)
    def _on_invite(self, ctx: Context, sender: MemberId, message: InviteMsg) -> None:
        shared = self._is_shared(ctx, sender, message.config)
        if shared and self.quorum.durable and not self._is_voter(ctx.me.id):
            epoch = self.recovery.introduce(ctx)
            self._post(ctx, sender, InvitedMsg(message.config, epoch, message.nonce))

    @upon(InvitedMsg)
    def _on_invited(self, ctx: Context, sender: MemberId, message: InvitedMsg) -> None:
        self.reconfiguration.on_invited(ctx, sender, message)
        self._after(ctx, sender)

    def _is_seated(self, ctx: Context, sender: MemberId, config: int) -> bool:
        """Whether this member votes on how the sender's configuration ends."""
        votes = self.quorum.durable and self.acceptor.votes and self._is_voter(ctx.me.id)
        return self._is_shared(ctx, sender, config) and votes

    @upon(ConfPrepareMsg)
    def _on_survey(self, ctx: Context, sender: MemberId, message: ConfPrepareMsg) -> None:
        if self._is_seated(ctx, sender, message.config):
            self._post(ctx, sender, self.acceptor.survey(ctx, sender, message))

    @upon(ConfAcceptMsg)
    def _on_seal(self, ctx: Context, sender: MemberId, message: ConfAcceptMsg) -> None:
        seated = self._is_seated(ctx, sender, message.config)
        if seated and self.electorate.may_become(message.change):
            self._post(ctx, sender, self.acceptor.seal(ctx, sender, message))
            self._watch_seal(ctx)

    def _watch_seal(self, ctx: Context) -> None:
        """A voter that sealed a configuration makes sure that another one follows."""
        if self.acceptor.sealed is not None and self.reconfiguration.phase == IDLE:
            pause = ABANDONED * self.inner.lease.patience
            ctx.set_timer(SEAL, pause * (1.0 + ctx.rng.random()))

    def _on_seal_timer(self, ctx: Context) -> None:
        self.reconfiguration.heard(max(self.proposer.highest, self.acceptor.promised.round))
        if self.reconfiguration.phase == IDLE and self.acceptor.sealed is not None:
            self.reconfiguration.finish(ctx)
        else:
            self.reconfiguration.on_timer(ctx)
        self._settle(ctx)
        self._watch_seal(ctx)

    @upon(ConfPromiseMsg)
    def _on_surveyed(self, ctx: Context, sender: MemberId, message: ConfPromiseMsg) -> None:
        self.reconfiguration.on_surveyed(ctx, sender, message)
        self._after(ctx, sender)

    @upon(ConfAcceptedMsg)
    def _on_sealed(self, ctx: Context, sender: MemberId, message: ConfAcceptedMsg) -> None:
        self.reconfiguration.on_sealed(ctx, sender, message)
        self._after(ctx, sender)

    @upon(ConfInstallMsg)
    def _on_install(self, ctx: Context, sender: MemberId, message: ConfInstallMsg) -> None:
        if message.config <= self.electorate.number:
            self._post(ctx, sender, ConfInstalledMsg(message.config))
        elif self.quorum.durable:
            self.announcer = sender
            self._enquire(ctx)
        self._after(ctx, sender)

    def _install(self, ctx: Context, step: ConfInstallMsg) -> None:
        me, change, voted = ctx.me.id, step.change, self.acceptor.votes
        self.proposer.highest = max(self.proposer.highest, step.promised)
        self._move(ctx, after(step), step)
        if me not in change.voters:
            self.recovery.retire(ctx)
        elif voted or (change.newcomer, change.epoch) == (me, self.recovery.introduce(ctx)):
            self.acceptor.install(ctx, step)
            self.recovery.seat(ctx)
        else:
            self.recovery.begin_anew(ctx)

    @upon(ConfInstalledMsg)
    def _on_installed(self, ctx: Context, sender: MemberId, message: ConfInstalledMsg) -> None:
        self.reconfiguration.on_installed(ctx, sender, message)
        self._after(ctx, sender)


def with_quorum(
    elect: Callable[[], LeaseLayer], config: QuorumConfig
) -> Callable[[], QuorumLeaseLayer]:
    """Turn a factory of elections with a guard into one whose members vote in the quorum."""
    return lambda: QuorumLeaseLayer(elect(), config)
