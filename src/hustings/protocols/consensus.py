"""Consensus: members propose a leader, and a majority decides on one proposal.

Model      Asynchronous and complete; members crash and come back with what they stored. The view
           holds all members, also the dead. A failure detector, perhaps wrong, says when to begin.
Idea       Term k is instance k of consensus (Paxos, single decree). A member that calls proposes
           the best member that it does not suspect: PREPARE to all, PROMISE from a majority, ACCEPT
           of the value that was accepted with the highest ballot, or else of its own, ACCEPTED from
           a majority: decided. DECIDED tells the others.
Invariant  Once a majority has accepted a leader for a term, every higher ballot of that term has
           that leader too.
Cost       5(N-1) messages in 5 delays for one proposer and no crash. N counts the dead, too.
Guarantee  A term never has two leaders, whatever the delays, losses, suspicions and crashes. A
           member may follow the leader of an earlier term until it hears better. There is progress
           while a majority is up and one proposer is left undisturbed for five delays.
Paper      Elections lecture, chapter 15, "Can use Consensus to solve Election".

The slide has everybody propose and the group agree on some process's value: that is the reduction.
The other way round, "elect a process, use its id's last bit", is `hustings sim --consensus`: any
election of the catalogue solves consensus as far as it is safe.

Two proposers may outbid each other for ever: consensus has no bound in an asynchronous system. Here
who is outbid waits a random time, which doubles with each attempt, and gives up after `attempts`.
A wrong suspicion replaces a living leader, by a new term. `quorum` adds leases to this.
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

Ballot = tuple[int, int]  # attempt, and who tries: no two members share one


class PrepareMsg(Message, frozen=True, tag="PREPARE"):
    """I want to propose for this term; promise to take part in no lower attempt."""

    role: ClassVar[Role] = Role.ELECTION
    term: Term
    attempt: Term


class PromiseMsg(Message, frozen=True, tag="PROMISE"):
    """I promise, and this is what I have accepted in this term, with which ballot."""

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
    """I have accepted it."""

    role: ClassVar[Role] = Role.ANSWER
    term: Term
    attempt: Term


class OutbidMsg(Message, frozen=True, tag="NACK"):
    """I have promised a higher attempt than yours."""

    role: ClassVar[Role] = Role.ANSWER
    term: Term
    attempt: Term


class DecidedMsg(Message, frozen=True, tag="DECIDED"):
    """This term has this leader."""

    role: ClassVar[Role] = Role.COORDINATOR
    term: Term
    leader: MemberId


class ReturnedMsg(Message, frozen=True, tag="RETURNED"):
    """I was away: which term is it?"""

    role: ClassVar[Role] = Role.OTHER


class ConsensusConfig(Config, frozen=True, kw_only=True):
    """How long to wait for a majority, and how often to try."""

    T: Annotated[float, Meta(gt=0, description="wait for a majority; default 2 delta")] | None = (
        None
    )
    attempts: Annotated[int, Meta(ge=1, le=1000, description="to propose, before giving up")] = 20

    @property
    def wait(self) -> float:
        return 2 * self.delta if self.T is None else self.T


class Consensus(Election):
    """Election by consensus, as the lecture reduces it."""

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
        idea="members propose a leader and a majority decides on one proposal: one instance a term",
        model="asynchronous, complete, crash and recovery with storage, majority, failure detector",
        guarantee=Guarantee.ADVISORY,
        cost="5(N-1) messages; 5 delays",
        promises="a term never has two leaders, whatever happens; members may still follow the "
        "leader of an earlier term, so exclusivity needs a guard",
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
        self.value: MemberId | None = None  # what was accepted
        # As proposer.
        self.phase = IDLE
        self.attempt = 0  # of mine
        self.proposal: MemberId = 0  # once a majority has promised
        self.tries = 0  # since the election was called
        self.outbid = 0  # the highest attempt of others that I know
        self.votes: dict[MemberId, PromiseMsg] = {}  # of who has promised
        self.yes: set[MemberId] = set()  # who has accepted; only counted, never walked
        self.suspected: set[MemberId] = set()  # only ever asked

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
        """Propose a leader for the next term, unless I do."""
        if self.phase == IDLE:
            self.tries = 0
            self.disown(ctx, ELECTING)
            self.propose(ctx)

    def propose(self, ctx: Context) -> None:
        """A ballot above all that I know."""
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
        """No majority in time: try again, later each time and at random."""
        if self.phase == RESTING:
            self.propose(ctx)
        elif self.tries >= self.config.attempts:
            self.stop(ctx)
            self.give_up(ctx, f"no majority in {self.config.attempts} attempts")
        else:  # a member that outbid me is left undisturbed for a while
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
        """Whether a term is open here; who asks about one that is over is told its leader."""
        if term > self.instance:
            self.take_up(term)
        if term < self.instance or term <= self.term:
            if self.leader is not None and sender != ctx.me.id:
                ctx.send(sender, DecidedMsg(self.term, self.leader))
            return False
        return True

    def take_up(self, term: int) -> None:
        """Vote in a new instance; those before it are decided, or it would not have begun."""
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

    # Small parts

    def is_mine(self, phase: str, term: int, attempt: int) -> bool:
        """Whether this is an answer to what I ask now."""
        return (phase, term, attempt) == (self.phase, self.instance, self.attempt)

    def enough(self, ctx: Context) -> int:
        """A majority of all members, also the dead."""
        return len(ctx.view) // 2 + 1

    def best(self, ctx: Context) -> MemberId:
        """The best member that I do not suspect."""
        ranking = ctx.view.ranking(self.choice).ids
        return next((each for each in ranking if each not in self.suspected), ctx.me.id)

    def stop(self, ctx: Context) -> None:
        self.phase = IDLE
        self.votes, self.yes = {}, set()
        ctx.cancel_timer(WAIT)

    def store(self, ctx: Context) -> None:
        """A vote counts only if it outlives a crash."""
        ctx.persist(acceptor=(self.instance, *self.promised, *self.accepted, self.value))

    def answer(self, ctx: Context, sender: MemberId, message: Message) -> None:
        """To the proposer, which may be this member."""
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
