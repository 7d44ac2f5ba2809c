"""Bully with an assistant: the leader's assistant takes over without an election.

Model      Synchronous: a message to a live member arrives within delta, and a detector reports
           each crash. Every member knows all others; members crash and may come back.
Idea       A member that notices the crash reports it to the assistant. The assistant verifies it
           with a CHECK, sends I_AM_LEADER, and lets all vote for the next assistant. If the
           assistant is dead too, a bully election follows.
Invariant  While the model holds, the assistant does not replace a live leader.
Cost       2 + 3(n-2) messages, 6 delays; 1 + bully + 2r if the assistant is dead, r live others.
Guarantee  Advisory. A late answer, or a wrong suspicion of leader and assistant at once, may give
           two leaders for a while; a wrong suspicion of the leader alone does not.
Paper      Zargarnataj 2007, known here from the overhead-aware election paper, section 2, which
           calls him Mahdi.

The summary leaves much open. The decisions here:
- An assistant that notices the crash itself has no member to report to, but still sends its CHECK.
  When the leader answers, the assistant tells all members that reported (ALIVE).
- Each member votes for the best member after the new leader that it believes alive. The voter with
  the most votes becomes assistant, the better one on a tie. ASSISTANT tells all voters.
- I_AM_LEADER goes to all members but the dead leader, also to members better than the assistant
  (they have come back since). A better member answers with a bully election. It does not report to
  an assistant worse than itself.
- A dead assistant is not replaced before the next election.

The best live member leads in the end under two conditions: every crash is told to all members, and
told after the last messages of the dead member have arrived (delta). A suspicion that overtakes
those messages may leave a dead leader in place.
T1 is the wait for answers and votes. T2 is the wait for the assistant to act: the report travels,
the assistant waits T1, its result travels. T3 is the wait for the coordinator of a bully election.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from msgspec import Meta

from hustings.core.choice import Choice, MemberId
from hustings.core.context import Context, TimerKey
from hustings.core.election import About, Assumptions, Claim, upon
from hustings.core.messages import Message, Role, Term
from hustings.core.outcome import ELECTING, Guarantee
from hustings.protocols.bully import IDLE, Bully, BullyConfig, CoordinatorMsg
from hustings.protocols.bully_group import AliveMsg, CheckMsg

REPORT = "report"
CHECK = "check"
VOTES = "votes"

# Where a member stands, besides the phases of a bully election.
REPORTING = "reporting"  # until T2: will the assistant act?
CHECKING = "checking"  # until T1: does the leader live after all?


class ReportMsg(Message, frozen=True, tag="REPORT"):
    """The leader of `term` is dead: take over."""

    role: ClassVar[Role] = Role.OTHER
    term: Term
    leader: MemberId


class IAmLeaderMsg(Message, frozen=True, tag="I_AM_LEADER"):
    """The sender was the assistant and has taken over."""

    role: ClassVar[Role] = Role.COORDINATOR
    term: Term


class VoteMsg(Message, frozen=True, tag="VOTE"):
    """The sender votes for this member as assistant."""

    role: ClassVar[Role] = Role.OTHER
    term: Term
    candidate: MemberId


class AssistantMsg(Message, frozen=True, tag="ASSISTANT"):
    """This member has won the vote and is the assistant."""

    role: ClassVar[Role] = Role.OTHER
    term: Term
    assistant: MemberId


class BullyAssistantConfig(BullyConfig, frozen=True, kw_only=True):
    """Timers; each one that is not given is a multiple of delta."""

    T2: (
        Annotated[float, Meta(gt=0, description="wait for the assistant; default T1 + 2 delta")]
        | None
    ) = None
    T3: (
        Annotated[float, Meta(gt=0, description="wait for the coordinator; default 10 delta")]
        | None
    ) = None

    @property
    def assistant(self) -> float:
        return self.answers + 2 * self.delta if self.T2 is None else self.T2

    @property
    def coordinator(self) -> float:
        return 10 * self.delta if self.T3 is None else self.T3

    def warnings(self) -> list[str]:
        found = super().warnings()
        if self.assistant < self.answers + 2 * self.delta:
            found.append(
                f"T2 = {self.assistant:g} is shorter than the assistant needs to act "
                f"({self.answers + 2 * self.delta:g}): elections are called in vain; "
                "set T2 >= T1 + 2 delta"
            )
        return found


class BullyAssistant(Bully):
    """A bully with an assistant: elections only if leader and assistant are dead."""

    __slots__ = ("accused", "assistant", "config", "electorate", "informers", "voted", "votes")

    about = About(
        name="bully-assistant",
        family="bully",
        paper="Zargarnataj 2007, in the overhead-aware election paper, section 2",
        idea="an assistant checks the leader and takes over; all vote for the next assistant",
        model="synchronous, complete, crash and recovery, failure detector",
        guarantee=Guarantee.ADVISORY,
        cost="2+3(n-2) messages, 6 delays; a full bully election if the assistant is dead",
        promises="one leader, the best alive, while delays keep to delta and all learn of "
        "crashes; no exclusivity otherwise",
    )
    assumptions = Assumptions()
    Settings = BullyAssistantConfig
    messages: ClassVar[tuple[type[Message], ...]] = (
        *Bully.messages,
        ReportMsg,
        CheckMsg,
        AliveMsg,
        IAmLeaderMsg,
        VoteMsg,
        AssistantMsg,
    )
    config: BullyAssistantConfig

    def __init__(self, config: BullyAssistantConfig, choice: Choice) -> None:
        super().__init__(config, choice)
        self.assistant: MemberId | None = None  # of the present leader, if I know it
        self.accused: MemberId | None = None  # the leader that I report or check
        self.informers: list[MemberId] = []  # members that wait for my result
        self.voted: tuple[int, MemberId | None] = (0, None)  # term and leader I last voted under
        self.electorate: list[MemberId] = []  # as leader: the members that have yet to vote
        self.votes: dict[MemberId, MemberId] = {}  # as leader: by voter

    def assume_leader(self, ctx: Context, leader: MemberId, term: int) -> None:
        super().assume_leader(ctx, leader, term)
        self.voted = (term, leader)
        self.assistant = self.next_best(ctx, leader)
        if self.electorate:  # I was leader until now
            self.electorate = []
            ctx.cancel_timer(VOTES)

    def next_best(self, ctx: Context, leader: MemberId) -> MemberId | None:
        """Return the best member after the leader that I believe alive."""
        if leader not in ctx.view:
            return None
        after = ctx.view.ranking(self.choice).worse_than(leader)
        return next((member for member in after if member not in self.dead), None)

    # The leader is dead

    def on_suspect(self, ctx: Context, member: MemberId) -> None:
        if member == ctx.me.id:
            return
        self.dead.add(member)
        if member == self.leader:
            self.accuse(ctx, member)
        elif self.phase == REPORTING and member == self.assistant:
            self.fall_back(ctx)

    def accuse(self, ctx: Context, leader: MemberId) -> None:
        """Leave the takeover to the assistant, if it is better than I am."""
        if self.phase != IDLE:
            return
        assistant = self.assistant
        if assistant == ctx.me.id:
            self.check(ctx, leader)
        elif assistant in self.dead or not self.outranks(ctx, assistant, ctx.me.id):
            self.begin(ctx)
        elif assistant is not None:
            self.phase = REPORTING
            self.accused = leader
            self.dead.discard(leader)  # the CHECK will show; only a later suspicion counts
            self.disown(ctx, ELECTING)
            ctx.send(assistant, ReportMsg(self.term, leader))
            ctx.set_timer(REPORT, self.config.assistant)

    def check(self, ctx: Context, leader: MemberId) -> None:
        """Take over as leader, unless the leader answers that it lives."""
        self.phase = CHECKING
        self.accused = leader
        self.dead.discard(leader)
        self.disown(ctx, ELECTING)
        if leader in ctx.view:
            ctx.send(leader, CheckMsg(self.term))
            ctx.set_timer(CHECK, self.config.answers)
        else:
            self.take_over(ctx)

    def take_over(self, ctx: Context) -> None:
        """Lead: the leader did not answer."""
        if self.accused is not None:
            self.dead.add(self.accused)
        others = [member for member in ctx.view if member not in (ctx.me.id, self.accused)]
        self.settle(ctx)
        self.elect(ctx, ctx.me.id, self.term + 1)
        self.remember(ctx)
        victory = IAmLeaderMsg(self.term)
        for member in others:
            ctx.send(member, victory)
        self.collect(ctx, others)

    def fall_back(self, ctx: Context) -> None:
        """Begin a bully election: the assistant is dead, too."""
        self.phase = IDLE
        ctx.cancel_timer(REPORT)
        self.begin(ctx)

    def settle(self, ctx: Context) -> None:
        super().settle(ctx)
        self.accused = None
        self.informers = []
        ctx.cancel_timer(REPORT)
        ctx.cancel_timer(CHECK)

    def on_timer(self, ctx: Context, key: TimerKey) -> None:
        if key == VOTES:
            self.appoint(ctx)
        elif key == CHECK:
            if self.phase == CHECKING:
                self.take_over(ctx)
        elif key == REPORT:
            if self.phase == REPORTING:
                self.fall_back(ctx)
        else:
            super().on_timer(ctx, key)

    @upon(ReportMsg)
    def on_report(self, ctx: Context, sender: MemberId, message: ReportMsg) -> None:
        newer = message.term > self.term
        if self.leader == ctx.me.id and not (
            newer and self.outranks(ctx, message.leader, ctx.me.id)
        ):
            self.learn(message.term)
            if newer:  # others followed a later leader: lead again, in a new term
                self.win(ctx)
            else:
                ctx.send(sender, IAmLeaderMsg(self.term))
            return
        if sender not in self.informers:
            self.informers.append(sender)
        if self.phase == IDLE:
            known = None if newer else self.leader
            self.learn(message.term)
            self.check(ctx, message.leader if known is None else known)

    @upon(CheckMsg)
    def on_check(self, ctx: Context, sender: MemberId, message: CheckMsg) -> None:
        if self.leader is not None and self.term >= message.term:
            group = () if self.assistant is None else (self.assistant,)
            ctx.send(sender, AliveMsg(self.term, self.leader, group))
        elif self.leader == ctx.me.id:
            self.learn(message.term)
            self.win(ctx)

    @upon(AliveMsg)
    def on_alive_leader(self, ctx: Context, sender: MemberId, message: AliveMsg) -> None:
        source = self.assistant if self.phase == REPORTING else message.leader
        if message.leader == self.accused and sender != source:
            return  # second-hand: the CHECK will show
        if message.term >= self.term and message.leader != ctx.me.id:
            if not self.outranks(ctx, ctx.me.id, message.leader):
                self.follow(ctx, message.leader, message.term)
                if self.leader == message.leader and message.group:
                    self.assistant = message.group[0]

    # After a new leader

    @upon(IAmLeaderMsg)
    def on_i_am_leader(self, ctx: Context, sender: MemberId, message: IAmLeaderMsg) -> None:
        self.on_coordinator(ctx, sender, CoordinatorMsg(message.term))

    def follow(self, ctx: Context, leader: MemberId, term: int) -> None:
        informers = self.informers
        self.electorate = []
        ctx.cancel_timer(VOTES)
        super().follow(ctx, leader, term)
        self.vote(ctx, leader)
        for member in informers:
            ctx.send(member, AliveMsg(term, leader, ()))
        if leader in self.dead:  # a last message, or a wrong suspicion: ask it
            self.dead.discard(leader)
            self.begin(ctx)

    def vote(self, ctx: Context, leader: MemberId) -> None:
        """Vote once under each leader."""
        if self.voted != (self.term, leader):
            self.voted = (self.term, leader)
            self.assistant = None
            candidate = self.next_best(ctx, leader)
            if candidate is not None:
                ctx.send(leader, VoteMsg(self.term, candidate))

    def win(self, ctx: Context) -> None:
        super().win(ctx)
        self.collect(ctx, list(ctx.view.ranking(self.choice).worse_than(ctx.me.id)))

    def collect(self, ctx: Context, electorate: list[MemberId]) -> None:
        """As leader, wait for the votes of the others."""
        self.assistant = None
        self.electorate = electorate
        self.votes = {}
        if electorate:
            ctx.set_timer(VOTES, self.config.answers)

    @upon(VoteMsg)
    def on_vote(self, ctx: Context, sender: MemberId, message: VoteMsg) -> None:
        if self.leader != ctx.me.id or message.term != self.term:
            return
        if self.electorate:
            self.votes[sender] = message.candidate
            if sender in self.electorate:
                self.electorate.remove(sender)
                if not self.electorate:
                    self.appoint(ctx)
        elif self.assistant is not None:
            ctx.send(sender, AssistantMsg(self.term, self.assistant))

    def appoint(self, ctx: Context) -> None:
        """Appoint the voter with the most votes; a member that did not vote may be dead."""
        ctx.cancel_timer(VOTES)
        self.electorate = []
        best = None
        most = -1
        candidates = list(self.votes.values())
        for member in ctx.view.ranking(self.choice).ids:  # best first, so ties go to the better
            if member in self.votes and candidates.count(member) > most:
                best, most = member, candidates.count(member)
        if best is not None:
            self.assistant = best
            result = AssistantMsg(self.term, best)
            for member in self.votes:
                ctx.send(member, result)

    @upon(AssistantMsg)
    def on_assistant(self, ctx: Context, sender: MemberId, message: AssistantMsg) -> None:
        if sender == self.leader and message.term == self.term:
            self.assistant = message.assistant

    def claim_of(self, message: Message) -> Claim | None:
        if isinstance(message, IAmLeaderMsg):
            return Claim(message.term)
        return super().claim_of(message)

    def state(self) -> str:
        return f"{super().state()} assistant={self.assistant}"
