"""Stable election: a new leader only when all members agree that the old one is dead.

Model      Complete; members crash and may come back; an unreliable failure detector. Safety rests
           on the answers, progress on delays that keep to delta and on a detector that is right.
Idea       Three phases. PREPARE: is the leader dead? One NACK ends the round with ABORT and no
           leader. READY: all that agreed reserve the best of them. COMMIT: it is announced.
Invariant  No leader is committed against an objection that arrives in time.
Cost       (n-2) + 4r messages with r live others, 5(n-2) if only the leader is dead; 5 delays.
           An aborted attempt costs (n-2) + 2r.
Guarantee  Advisory. In doubt it blocks. But the accused leader itself is not asked: if all others
           are wrong about it, there are two leaders until one of them learns of the other.
Paper      Park, known here from the overhead-aware election paper, section 2.

Each member believes its own detector. With `belief=told` (the default, the paper's rule) a member
objects until its detector suspects the leader. So no member replaces a leader that one member
believes alive. All members are told of a crash, so the best proposes at once, and each other member
waits T1 for each better one. With `belief=silent` silence counts as consent, and one notice is
enough. Then a member objects only if it leads itself, follows another leader than the accused, or
was last told that the accused lives.
One wrong belief that the leader lives blocks the election until a detector says something new.
A member that learns of the crash last proposes last: a detector that is right in the end is enough.
Other decisions: docs/decisions/0007.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import Annotated, ClassVar, Literal

from msgspec import Meta

from hustings.core.choice import Candidate, Choice, MemberId
from hustings.core.config import Config
from hustings.core.context import Context, TimerKey
from hustings.core.election import About, Assumptions, Election, upon
from hustings.core.messages import Message, Role, Term
from hustings.core.outcome import ELECTING, Guarantee

ANSWERS = "T1"
PROPOSER = "T2"

Round = tuple[Term, MemberId]  # epoch, proposer; the epoch of a committed round is the term


class PrepareMsg(Message, frozen=True, tag="PREPARE"):
    """Is this leader, committed in that round, dead? None: the sender knows no leader."""

    role: ClassVar[Role] = Role.ELECTION
    round: Round
    accused: MemberId | None
    committed: Round


class AckMsg(Message, frozen=True, tag="ACK"):
    """The sender agrees that the leader is dead, or (ready) to the proposed leader."""

    role: ClassVar[Role] = Role.ANSWER
    round: Round
    ready: bool
    me: Candidate


class NackMsg(Message, frozen=True, tag="NACK"):
    """The sender objects: this member leads, or (None) there is or was a later round."""

    role: ClassVar[Role] = Role.ANSWER
    round: Round
    ready: bool
    leader: MemberId | None
    committed: Round
    epoch: Term


class ReadyMsg(Message, frozen=True, tag="READY"):
    """All members agree; this member is proposed."""

    role: ClassVar[Role] = Role.OTHER
    round: Round
    leader: MemberId


class CommitMsg(Message, frozen=True, tag="COMMIT"):
    """This member leads."""

    role: ClassVar[Role] = Role.COORDINATOR
    round: Round
    leader: MemberId


class AbortMsg(Message, frozen=True, tag="ABORT"):
    """A member objects: this member leads, or (None) the proposer will try again."""

    role: ClassVar[Role] = Role.OTHER
    round: Round
    leader: MemberId | None
    committed: Round


class StableConfig(Config, frozen=True, kw_only=True):
    """Timers, and the meaning of one's own detector's silence."""

    T1: Annotated[float, Meta(gt=0, description="wait for answers; default 2 delta")] | None = None
    T2: (
        Annotated[float, Meta(gt=0, description="wait for a proposer; default 2 T1 + delta")] | None
    ) = None
    belief: Annotated[
        Literal["told", "silent"],
        Meta(
            description="told: a member agrees only if it was told of the crash; otherwise it "
            "agrees unless it knows that the leader is alive"
        ),
    ] = "told"
    max_runs: Annotated[
        int,
        Meta(ge=1, description="the number of runs without a result after which a member gives up"),
    ] = 16

    @property
    def answers(self) -> float:
        return 2 * self.delta if self.T1 is None else self.T1

    @property
    def proposer(self) -> float:
        return 2 * self.answers + self.delta if self.T2 is None else self.T2

    @property
    def unanimous(self) -> bool:
        return self.belief == "told"

    def warnings(self) -> list[str]:
        if self.answers < 2 * self.delta:
            return [
                f"T1 = {self.answers:g} is shorter than a round trip ({2 * self.delta:g}): "
                "objections come too late to be heard; set T1 >= 2 delta"
            ]
        return []


class Phase(Enum):
    """A member's part in the round under way."""

    IDLE = "idle"
    ENGAGED = "engaged"  # it has agreed to another member's round
    PREPARE = "prepare"  # its own round: is the leader dead?
    READY = "ready"  # its own round: is this member to lead?


class Stable(Election):
    """Park's election: prepare, ready, commit, each by all members."""

    __slots__ = (
        "accused",
        "agreed",
        "charged",
        "chosen",
        "committed",
        "config",
        "dead",
        "epoch",
        "former",
        "objections",
        "phase",
        "round",
        "runs",
        "vouched",
        "waiting",
        "wanting",
    )

    about = About(
        name="stable",
        family="bully",
        paper="Park, in the overhead-aware election paper, section 2",
        idea="three phases; a new leader only if all agree that the old one is dead",
        model="complete, crash and recovery, unreliable failure detector, timeouts",
        guarantee=Guarantee.ADVISORY,
        cost="(n-2)+4r messages, r live others; 5 delays",
        promises="one leader, the best alive when it was elected; blocks while one member believes "
        "that the old leader lives",
    )
    assumptions = Assumptions(displaces=False)
    Settings = StableConfig
    messages = (PrepareMsg, AckMsg, NackMsg, ReadyMsg, CommitMsg, AbortMsg)
    config: StableConfig

    def __init__(self, config: StableConfig, choice: Choice) -> None:
        super().__init__(config, choice)
        self.committed: Round = (0, 0)  # the round whose result I know ...
        self.former: MemberId | None = None  # ... and its leader, which I may suspect by now
        self.epoch = 0  # the highest seen
        self.round: Round = (0, 0)  # the last one I took part in
        self.phase = Phase.IDLE
        self.accused: MemberId | None = None  # in that round
        self.agreed: dict[MemberId, Candidate] = {}  # in my own round: all members that have agreed
        self.waiting: list[MemberId] = []  # in this phase: members that have not answered
        self.objections: dict[MemberId, NackMsg] = {}
        self.chosen: MemberId | None = None
        self.dead: set[MemberId] = set()  # suspected; for membership tests only, never iterated
        self.charged: set[MemberId] = set()  # those of them that I have accused in a round of mine
        self.vouched: set[MemberId] = set()  # those that my detector last reported alive
        self.wanting = False  # whether I need a leader and have none
        self.runs = 0

    # Proposing

    def start(self, ctx: Context) -> None:
        self.recall(ctx)
        epoch = ctx.stored.get("epoch")
        self.epoch = max(self.term, epoch) if isinstance(epoch, int) else self.term
        self.committed = (self.term, 0)
        if ctx.incarnation > 1:  # back from a crash: another member will say which member leads
            self.propose(ctx, None)

    def call(self, ctx: Context) -> None:
        if self.leader is None:  # else there is a leader, and as far as I know it lives
            self.propose(ctx, self.former)

    def assume_leader(self, ctx: Context, leader: MemberId, term: int) -> None:
        super().assume_leader(ctx, leader, term)
        if self.phase in (Phase.PREPARE, Phase.READY):
            self.dismiss(ctx, leader, (term, 0))
        if self.phase is not Phase.IDLE or self.wanting:
            ctx.cancel_timer(PROPOSER)
        self.dead.discard(leader)
        self.charged.discard(leader)
        self.settle(leader, max(self.committed, (term, 0)))

    def accuse(self, ctx: Context, accused: MemberId | None) -> None:
        """Propose; where all members are told, only after the better ones."""
        better = ctx.view.ranking(self.choice).better_than(ctx.me.id)
        ahead = sum(one not in self.dead for one in better)
        if not ahead or not self.config.unanimous or self.phase is not Phase.IDLE:
            self.propose(ctx, accused)
        else:
            self.accused, self.wanting = accused, True
            self.disown(ctx, ELECTING)
            ctx.set_timer(PROPOSER, ahead * self.config.answers)

    def propose(self, ctx: Context, accused: MemberId | None) -> None:
        """Start phase one of a round of my own, unless I take part in a round already."""
        if self.phase is not Phase.IDLE:
            return
        if accused not in self.dead:
            accused = None  # another's suspicion, or taken back: ask that member, too
        ctx.cancel_timer(PROPOSER)
        if self.runs >= self.config.max_runs:
            runs, self.runs, self.wanting = self.runs, 0, False
            self.give_up(ctx, f"no result after {runs} runs")
            return
        self.runs, self.wanting = self.runs + 1, True
        self.next_round(ctx)
        self.disown(ctx, ELECTING)
        self.accused = accused
        if accused is not None:
            self.charged.add(accused)
        self.agreed = {ctx.me.id: ctx.me}
        asked = [member for member in ctx.view if member not in (ctx.me.id, accused)]
        self.enter(ctx, Phase.PREPARE, asked, PrepareMsg(self.round, accused, self.committed))

    def next_round(self, ctx: Context) -> None:
        """Return a round that is unlike any other, whatever crashes there are."""
        self.epoch += 1
        self.round = (self.epoch, ctx.me.id)
        ctx.persist(epoch=self.epoch)

    def enter(self, ctx: Context, phase: Phase, asked: list[MemberId], message: Message) -> None:
        """Ask, and wait for all answers, also from suspects: a suspicion may be wrong."""
        self.phase = phase
        self.waiting = asked
        self.objections = {}
        self.tell(ctx, asked, message)
        if asked:
            ctx.set_timer(ANSWERS, self.config.answers)
        else:
            self.close(ctx)

    def close(self, ctx: Context) -> None:
        """End the phase: all have answered, or cannot answer any more."""
        if self.objections:
            self.abort(ctx)
        elif self.phase is Phase.PREPARE:
            self.chosen = max(self.agreed.values(), key=self.choice.key).id
            others = [member for member in self.agreed if member != ctx.me.id]
            self.enter(ctx, Phase.READY, others, ReadyMsg(self.round, self.chosen))
        elif self.waiting:
            self.again(ctx)
        else:
            self.commit(ctx)

    def commit(self, ctx: Context) -> None:
        """Announce the leader: phase three."""
        assert self.chosen is not None  # since the second phase
        self.tell(ctx, self.agreed, CommitMsg(self.round, self.chosen))
        self.follow(ctx, self.chosen, self.round)

    def abort(self, ctx: Context) -> None:
        """End the round after an objection: follow the leader it names, or have none."""
        objector, last = max(self.objections.items(), key=lambda item: item[1].committed)
        leader, committed = last.leader, last.committed
        if committed < self.committed or any(n.leader is None for n in self.objections.values()):
            leader = None  # a member is behind, or another round will soon give a result
        if leader == ctx.me.id:
            self.resume(ctx)
            return
        self.dismiss(ctx, leader, committed)
        if leader is None:
            ctx.set_timer(PROPOSER, self.config.proposer)
        elif leader in self.dead:
            self.block(ctx, f"member {objector} believes that {leader} leads")
        else:
            self.follow(ctx, leader, committed)

    def resume(self, ctx: Context) -> None:
        """Lead on in a new term: I came back before another member was elected."""
        self.next_round(ctx)
        self.tell(ctx, ctx.view, CommitMsg(self.round, ctx.me.id))
        self.follow(ctx, ctx.me.id, self.round)

    def tell(self, ctx: Context, members: Iterable[MemberId], message: Message) -> None:
        for member in members:
            if member != ctx.me.id:
                ctx.send(member, message)

    def again(self, ctx: Context) -> None:
        """Ask anew: a member that had agreed is gone, or a member came back."""
        self.dismiss(ctx, None, self.committed)
        self.propose(ctx, self.accused)

    def dismiss(self, ctx: Context, leader: MemberId | None, committed: Round) -> None:
        """End my round without a result of its own."""
        self.phase = Phase.IDLE
        ctx.cancel_timer(ANSWERS)
        heard = {**self.agreed, **self.objections}
        self.tell(ctx, heard, AbortMsg(self.round, leader, committed))

    def block(self, ctx: Context, reason: str) -> None:
        """Stay without a leader until the detector says something new."""
        self.runs, self.wanting = 0, True
        self.disown(ctx, reason)

    def follow(self, ctx: Context, leader: MemberId, committed: Round) -> None:
        """Take the outcome of a round, mine or another's."""
        ctx.cancel_timer(ANSWERS)
        ctx.cancel_timer(PROPOSER)
        self.settle(leader, committed)
        ctx.persist(epoch=self.epoch)
        self.elect(ctx, leader, committed[0])
        if leader in self.charged:  # the group knows of my suspicion, and does not share it
            self.dead.discard(leader)
            self.charged.discard(leader)
        elif leader in self.dead:  # perhaps it died since
            self.propose(ctx, leader)

    def settle(self, leader: MemberId, committed: Round) -> None:
        self.phase, self.wanting, self.runs = Phase.IDLE, False, 0
        self.former, self.committed = leader, committed
        self.round = max(self.round, committed)
        self.epoch = max(self.epoch, committed[0])

    # Answers to my round

    @upon(AckMsg)
    def on_ack(self, ctx: Context, sender: MemberId, message: AckMsg) -> None:
        if self.is_answer(message.round, message.ready):
            if self.phase is Phase.PREPARE:
                self.agreed[sender] = message.me
                self.dead.discard(sender)  # it answered, so it lives
            self.answered(ctx, sender)
        elif self.phase is Phase.IDLE and message.round[1] == ctx.me.id:  # the sender must not wait
            ctx.send(sender, AbortMsg(message.round, self.leader, self.committed))

    @upon(NackMsg)
    def on_nack(self, ctx: Context, sender: MemberId, message: NackMsg) -> None:
        self.epoch = max(self.epoch, message.epoch)
        if self.is_answer(message.round, message.ready):
            self.objections[sender] = message
            self.answered(ctx, sender)

    def is_answer(self, number: Round, ready: bool) -> bool:
        return number == self.round and self.phase is (Phase.READY if ready else Phase.PREPARE)

    def answered(self, ctx: Context, member: MemberId) -> None:
        if member in self.waiting:
            self.waiting.remove(member)
            if not self.waiting:
                self.close(ctx)

    # Rounds of other members

    @upon(PrepareMsg)
    def on_prepare(self, ctx: Context, sender: MemberId, message: PrepareMsg) -> None:
        self.epoch = max(self.epoch, message.round[0])
        if message.round == self.round:
            return  # a copy
        if self.objects(ctx, message.accused, message.committed):
            self.object(ctx, sender, message.round, False, self.leader)
        elif message.round < self.round:
            self.object(ctx, sender, message.round, False, None)
        else:
            ctx.cancel_timer(ANSWERS)
            self.phase = Phase.ENGAGED
            self.round = message.round
            self.accused = message.accused
            ctx.set_timer(PROPOSER, self.config.proposer)
            ctx.send(sender, AckMsg(message.round, False, ctx.me))

    def objects(self, ctx: Context, accused: MemberId | None, committed: Round) -> bool:
        """Whether I believe that there is a live leader."""
        consented = self.phase is Phase.ENGAGED and self.leader == self.accused
        if self.leader is None or consented or committed > self.committed:
            return False
        if self.leader == accused != ctx.me.id and committed == self.committed:
            return self.config.unanimous or self.leader in self.vouched
        return True

    def object(
        self, ctx: Context, to: MemberId, number: Round, ready: bool, leader: MemberId | None
    ) -> None:
        ctx.send(to, NackMsg(number, ready, leader, self.committed, self.epoch))

    @upon(ReadyMsg)
    def on_ready(self, ctx: Context, sender: MemberId, message: ReadyMsg) -> None:
        if self.phase is Phase.ENGAGED and message.round == self.round:
            ctx.send(sender, AckMsg(message.round, True, ctx.me))
        else:
            leader = self.leader if self.phase is Phase.IDLE else None
            self.object(ctx, sender, message.round, True, leader)

    @upon(CommitMsg)
    def on_commit(self, ctx: Context, sender: MemberId, message: CommitMsg) -> None:
        if message.round > self.committed:
            if self.phase in (Phase.PREPARE, Phase.READY):
                self.dismiss(ctx, message.leader, message.round)
            self.follow(ctx, message.leader, message.round)

    @upon(AbortMsg)
    def on_abort(self, ctx: Context, sender: MemberId, message: AbortMsg) -> None:
        if self.phase is not Phase.ENGAGED or message.round != self.round:
            return
        if message.leader is None:  # the proposer will come again, or die
            ctx.set_timer(PROPOSER, self.config.proposer)
            return
        self.phase = Phase.IDLE
        ctx.cancel_timer(PROPOSER)
        if message.leader == ctx.me.id != self.leader:
            self.resume(ctx)
        elif message.leader not in self.dead and message.committed >= self.committed:
            self.follow(ctx, message.leader, message.committed)
        elif self.leader is None:
            if self.config.unanimous and message.leader in self.dead - self.charged:
                self.accuse(ctx, message.leader)  # the objector may have learned more since
            else:
                self.block(ctx, f"somebody believes that {message.leader} leads")

    def on_timer(self, ctx: Context, key: TimerKey) -> None:
        proposing = self.phase in (Phase.PREPARE, Phase.READY)
        if proposing and key == ANSWERS:
            self.close(ctx)
        elif not proposing and key == PROPOSER:  # it fell silent, or it is time to try again
            self.phase = Phase.IDLE
            self.propose(ctx, self.accused)

    # Failures

    def on_suspect(self, ctx: Context, member: MemberId) -> None:
        if member == ctx.me.id:
            return
        self.dead.add(member)
        self.charged.discard(member)
        self.vouched.discard(member)
        if member == self.leader:
            self.leader = None
            self.accuse(ctx, member)
        elif self.phase is Phase.PREPARE:  # consent and objection end with their member
            self.agreed.pop(member, None)
            if self.objections.pop(member, None) is not None:
                self.again(ctx)  # in a round later than any that it knew of
        elif self.phase is Phase.READY and member in self.agreed:
            self.again(ctx)
        elif self.phase is Phase.ENGAGED and member == self.round[1]:
            self.phase = Phase.IDLE
            self.propose(ctx, self.accused)
        elif self.leader == ctx.me.id and member == self.committed[1]:
            # The accused may live, and no other member may tell it.
            self.tell(ctx, ctx.view, CommitMsg(self.committed, ctx.me.id))
        elif self.wanting and self.leader is None:
            self.accuse(ctx, self.former)

    def on_alive(self, ctx: Context, member: MemberId) -> None:
        if member == ctx.me.id:
            return
        self.dead.discard(member)
        self.charged.discard(member)
        self.vouched.add(member)
        if member == self.former and self.leader is None:
            # Perhaps it leads on, perhaps it came back and knows nothing: ask it with the rest.
            if self.phase is Phase.IDLE:
                self.propose(ctx, None)
            elif self.phase is not Phase.ENGAGED and self.accused == member:
                self.accused = None
                self.again(ctx)
        elif self.leader is not None and ctx.me.id in (self.leader, self.committed[1]):
            if member in ctx.view:  # it may have missed the result
                ctx.send(member, CommitMsg(self.committed, self.leader))

    def state(self) -> str:
        return f"leader={self.leader} term={self.term} round={self.round} phase={self.phase.value}"
