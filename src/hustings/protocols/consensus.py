"""Consensus: members propose a leader, and a majority decides on one proposal.

Model      Asynchronous and complete; members crash and come back with what they stored. The view
           holds all members, also the dead. A failure detector, perhaps wrong, says when to begin.
Idea       Term k is instance k of consensus (Paxos, single decree). A member that calls an election
           proposes the best member that it does not suspect: PREPARE to all, PROMISE from a
           majority, ACCEPT of the value that was accepted with the highest ballot, or else of its
           own value, ACCEPTED from a majority: decided. DECIDED tells the others.
Invariant  Once a majority has accepted a leader for a term, every higher ballot of that term has
           that leader too.
Cost       5(N-1) messages in 5 delays for one proposer and no crash. N counts the dead, too.
Guarantee  A term never has two leaders, whatever the delays, losses, suspicions and crashes. A
           member may follow the leader of an earlier term until it learns of a later one. There is
           progress while a majority is up and no other proposer disturbs one for five delays.
Paper      Elections lecture, chapter 15, "Can use Consensus to solve Election".

The slide lets all members propose, and the group agrees on one member's value: that is the
reduction. The opposite reduction, "elect a process, use its id's last bit", is
`hustings sim --consensus`: any election of the catalogue solves consensus as far as it is safe.

Two proposers may outbid each other for ever: consensus has no time limit in an asynchronous system.
Here an outbid member waits a random time, which doubles with each attempt, and gives up after
`attempts`. A wrong suspicion replaces a live leader, by a new term. `quorum` adds leases to this.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from msgspec import Meta

from hustings.core.choice import Choice, MemberId
from hustings.core.config import Config
from hustings.core.context import Context, TimerKey
from hustings.core.election import About, Assumptions, Election, upon
from hustings.core.messages import Message, Role, Term
from hustings.core.outcome import ELECTING, Guarantee

WAIT = "wait"  # for a majority, or before the next attempt
IDLE, PREPARING, ACCEPTING, RESTING = "idle", "preparing", "accepting", "resting"
NEVER = (0, 0)  # below all ballots

Ballot = tuple[int, int]  # attempt, and the proposer: no two members share a ballot


class PrepareMsg(Message, frozen=True, tag="PREPARE"):
    """The sender wants to propose for this term: take part in no lower attempt."""

    role: ClassVar[Role] = Role.ELECTION
    term: Term
    attempt: Term


class PromiseMsg(Message, frozen=True, tag="PROMISE"):
    """The sender promises, and reports the value and ballot it has accepted in this term."""

    role: ClassVar[Role] = Role.ANSWER
    term: Term
    attempt: Term
    accepted: Ballot = NEVER
    leader: MemberId | None = None


class AcceptMsg(Message, frozen=True, tag="ACCEPT"):
    """Accept this leader for this term."""

    role: ClassVar[Role] = Role.ELECTION
    term: Term
    attempt: Term
    leader: MemberId


class AcceptedMsg(Message, frozen=True, tag="ACCEPTED"):
    """The sender has accepted the value."""

    role: ClassVar[Role] = Role.ANSWER
    term: Term
    attempt: Term


class OutbidMsg(Message, frozen=True, tag="NACK"):
    """The sender has promised a higher attempt than this one."""

    role: ClassVar[Role] = Role.ANSWER
    term: Term
    attempt: Term


class DecidedMsg(Message, frozen=True, tag="DECIDED"):
    """This term has this leader."""

    role: ClassVar[Role] = Role.COORDINATOR
    term: Term
    leader: MemberId


class ReturnedMsg(Message, frozen=True, tag="RETURNED"):
    """The sender was away: which term is the present one?"""

    role: ClassVar[Role] = Role.OTHER


class ConsensusConfig(Config, frozen=True, kw_only=True):
    """How long to wait for a majority, and how often to try."""

    T: Annotated[float, Meta(gt=0, description="wait for a majority; default 2 delta")] | None = (
        None
    )
    attempts: Annotated[
        int,
        Meta(
            ge=1,
            le=1000,
            description="the number of attempts to propose after which a member gives up",
        ),
    ] = 20

    @property
    def wait(self) -> float:
        return 2 * self.delta if self.T is None else self.T


class Consensus(Election):
    """Election by consensus, after the lecture's reduction."""

    __slots__ = (
        "accepted",
        "attempt",
        "config",
        "instance",
        "outbid",
        "phase",
        "promised",
        "proposal",
        "suspected",
        "tries",
        "value",
        "votes",
        "yes",
    )

    about = About(
        name="consensus",
        family="consensus",
        paper="Elections lecture, chapter 15: Can use Consensus to solve Election",
        idea="members propose a leader, a majority decides on one proposal; one instance per term",
        model="asynchronous, complete, crash and recovery with storage, majority, failure detector",
        guarantee=Guarantee.ADVISORY,
        cost="5(N-1) messages; 5 delays",
        promises="a term never has two leaders, whatever happens; members may still follow the "
        "leader of an earlier term, so exclusivity needs a lease",
    )
    assumptions = Assumptions(displaces=False)
    Settings = ConsensusConfig
    messages = (
        PrepareMsg,
        PromiseMsg,
        AcceptMsg,
        AcceptedMsg,
        OutbidMsg,
        DecidedMsg,
        ReturnedMsg,
    )
    config: ConsensusConfig

    def __init__(self, config: ConsensusConfig, choice: Choice) -> None:
        super().__init__(config, choice)
        # As acceptor, of the instance that is not decided yet.
        self.instance = 0
        self.promised: Ballot = NEVER
        self.accepted: Ballot = NEVER
        self.value: MemberId | None = None  # the accepted value
        # As proposer.
        self.phase = IDLE
        self.attempt = 0  # my latest attempt
        self.proposal: MemberId = 0  # once a majority has promised
        self.tries = 0  # since the election was called
        self.outbid = 0  # the highest attempt of others that I know
        self.votes: dict[MemberId, PromiseMsg] = {}  # of the members that have promised
        self.yes: set[MemberId] = set()  # members that have accepted; only counted, never iterated
        self.suspected: set[MemberId] = set()  # for membership tests only

    # Joining and calling

    def start(self, ctx: Context) -> None:
        self.recall(ctx)
        stored = ctx.stored.get("acceptor")
        if isinstance(stored, list | tuple) and len(stored) == 6:
            instance, *numbers, value = stored
            self.instance = int(instance)
            self.promised = (int(numbers[0]), int(numbers[1]))
            self.accepted = (int(numbers[2]), int(numbers[3]))
            self.value = None if value is None else int(value)
        if ctx.incarnation > 1:
            self.tell(ctx, ReturnedMsg())

    def call(self, ctx: Context) -> None:
        self.begin(ctx)

    def on_suspect(self, ctx: Context, member: MemberId) -> None:
        if member == ctx.me.id:
            return
        self.suspected.add(member)
        if member == self.leader:
            self.begin(ctx)

    def on_alive(self, ctx: Context, member: MemberId) -> None:
        self.suspected.discard(member)

    def assume_leader(self, ctx: Context, leader: MemberId, term: int) -> None:
        super().assume_leader(ctx, leader, term)
        self.stop(ctx)

    # Proposing

    def begin(self, ctx: Context) -> None:
        """Propose a leader for the next term, unless I already do."""
        if self.phase == IDLE:
            self.tries = 0
            self.disown(ctx, ELECTING)
            self.propose(ctx)

    def propose(self, ctx: Context) -> None:
        """Start a ballot above all that I know."""
        self.take_up(self.term + 1)
        self.tries += 1
        self.attempt = max(self.attempt, self.outbid, self.promised[0]) + 1
        self.votes, self.yes = {}, set()
        self.phase = PREPARING
        prepare = PrepareMsg(self.instance, self.attempt)
        ctx.set_timer(WAIT, self.config.wait)
        self.on_prepare(ctx, ctx.me.id, prepare)  # first: a ballot that was sent is not used again
        self.tell(ctx, prepare)

    @upon(PromiseMsg)
    def on_promise(self, ctx: Context, sender: MemberId, message: PromiseMsg) -> None:
        if not self.is_mine(PREPARING, message.term, message.attempt):
            return
        self.votes[sender] = message
        if len(self.votes) < self.enough(ctx):
            return
        last = max(self.votes.values(), key=lambda vote: vote.accepted)
        self.proposal = self.best(ctx) if last.leader is None else last.leader
        self.phase = ACCEPTING
        accept = AcceptMsg(self.instance, self.attempt, self.proposal)
        ctx.set_timer(WAIT, self.config.wait)
        self.on_accept(ctx, ctx.me.id, accept)
        self.tell(ctx, accept)

    @upon(AcceptedMsg)
    def on_accepted(self, ctx: Context, sender: MemberId, message: AcceptedMsg) -> None:
        if not self.is_mine(ACCEPTING, message.term, message.attempt):
            return
        self.yes.add(sender)
        if len(self.yes) >= self.enough(ctx):
            decided = DecidedMsg(self.instance, self.proposal)
            self.tell(ctx, decided)
            self.on_decided(ctx, ctx.me.id, decided)

    @upon(OutbidMsg)
    def on_outbid(self, ctx: Context, sender: MemberId, message: OutbidMsg) -> None:
        if message.term == self.instance:
            self.outbid = max(self.outbid, message.attempt)

    def on_timer(self, ctx: Context, key: TimerKey) -> None:
        """Try again without a majority, later each time and at random."""
        if self.phase == RESTING:
            self.propose(ctx)
        elif self.tries >= self.config.attempts:
            self.stop(ctx)
            self.give_up(ctx, f"no majority in {self.config.attempts} attempts")
        else:  # leave the member that outbid me undisturbed for a while
            self.phase = RESTING
            ctx.set_timer(WAIT, ctx.rng.random() * self.config.wait * 2 ** min(self.tries, 6))

    # Voting

    @upon(PrepareMsg)
    def on_prepare(self, ctx: Context, sender: MemberId, message: PrepareMsg) -> None:
        if not self.may_vote(ctx, sender, message.term):
            return
        ballot = (message.attempt, sender)
        if ballot < self.promised:
            self.answer(ctx, sender, OutbidMsg(message.term, self.promised[0]))
            return
        self.promised = ballot
        self.store(ctx)
        self.answer(ctx, sender, PromiseMsg(message.term, ballot[0], self.accepted, self.value))

    @upon(AcceptMsg)
    def on_accept(self, ctx: Context, sender: MemberId, message: AcceptMsg) -> None:
        if not self.may_vote(ctx, sender, message.term):
            return
        ballot = (message.attempt, sender)
        if ballot < self.promised:
            self.answer(ctx, sender, OutbidMsg(message.term, self.promised[0]))
            return
        self.promised = self.accepted = ballot
        self.value = message.leader
        self.store(ctx)
        self.answer(ctx, sender, AcceptedMsg(message.term, message.attempt))

    def may_vote(self, ctx: Context, sender: MemberId, term: int) -> bool:
        """Whether a term is open here; a sender with a term that is over is told its leader."""
        if term > self.instance:
            self.take_up(term)
        if term < self.instance or term <= self.term:
            if self.leader is not None and sender != ctx.me.id:
                ctx.send(sender, DecidedMsg(self.term, self.leader))
            return False
        return True

    def take_up(self, term: int) -> None:
        """Vote in a new instance; the earlier ones are decided, or it would not have begun."""
        if term > self.instance:
            self.instance = term
            self.promised = self.accepted = NEVER
            self.value = None
            self.outbid = 0

    # Deciding

    @upon(DecidedMsg)
    def on_decided(self, ctx: Context, sender: MemberId, message: DecidedMsg) -> None:
        if message.term <= self.term:
            return
        self.stop(ctx)
        self.elect(ctx, message.leader, message.term)
        self.remember(ctx)
        if message.leader in self.suspected:
            self.begin(ctx)

    @upon(ReturnedMsg)
    def on_returned(self, ctx: Context, sender: MemberId, message: ReturnedMsg) -> None:
        if self.leader is not None:
            ctx.send(sender, DecidedMsg(self.term, self.leader))

    # Helpers

    def is_mine(self, phase: str, term: int, attempt: int) -> bool:
        """Whether this is an answer to my present question."""
        return (phase, term, attempt) == (self.phase, self.instance, self.attempt)

    def enough(self, ctx: Context) -> int:
        """Return a majority of all members, also the dead."""
        return len(ctx.view) // 2 + 1

    def best(self, ctx: Context) -> MemberId:
        """Return the best member that I do not suspect."""
        ranking = ctx.view.ranking(self.choice).ids
        return next((each for each in ranking if each not in self.suspected), ctx.me.id)

    def stop(self, ctx: Context) -> None:
        self.phase = IDLE
        self.votes, self.yes = {}, set()
        ctx.cancel_timer(WAIT)

    def store(self, ctx: Context) -> None:
        """Store the vote: it counts only if it outlives a crash."""
        ctx.persist(acceptor=(self.instance, *self.promised, *self.accepted, self.value))

    def answer(self, ctx: Context, sender: MemberId, message: Message) -> None:
        """Answer the proposer, which may be this member."""
        if sender != ctx.me.id:
            ctx.send(sender, message)
        elif isinstance(message, PromiseMsg | AcceptedMsg):
            self.handlers[type(message)](self, ctx, sender, message)

    def tell(self, ctx: Context, message: Message) -> None:
        for member in ctx.view:
            if member != ctx.me.id:
                ctx.send(member, message)

    def state(self) -> str:
        return (
            f"leader={self.leader} term={self.term} instance={self.instance} "
            f"promised={self.promised} accepted={self.accepted}:{self.value} {self.phase}"
        )
