"""Bully with GRANT: one member asks, collects the answers, and appoints the best of them.

Model      Synchronous: a message to a live member arrives within delta, and a detector reports
           each crash. Every member knows all others; members crash and may come back.
Idea       The initiator asks all better members. Each answers with its id. The initiator grants
           office to the best, which announces itself. Of several initiators, members answer only
           the worst.
Invariant  While the model holds, a member takes office only when no better one answered.
Cost       sum of n - d over the initiators d in ELECTION, m - d1 OK to the lowest of them, 1 GRANT,
           m - 1 COORDINATOR: 3n - 4 for d = 1 and only the leader dead; W + T1 + 2 delays.
Guarantee  Advisory. A late answer may give two leaders for a while.
Paper      Kordafshari, Gholipour, Jahanshahi, Haghighat: Modified bully election algorithm in
           distributed systems, WSEAS 2005; known here from the related work of the overhead-aware
           paper (section 2). Where that says "no response from any process with lower ID", it
           must mean higher.

The other decisions are ours:
- A receiver waits W before it answers, because the message of a lower initiator may be on its way.
  Messages of two initiators that start at once arrive within delta of each other, so the default is
  W = delta. With equal delays W = 0 is enough, because timers fire after the arrivals of the same
  instant. T1 comes on top of W.
- Every initiator waits, even the best, and even one that knows all better members to be dead.
- A member that receives the ELECTION of a lower initiator stops its own asking. It waits for
  COORDINATOR, one delta longer than the initiator would; then it asks. The initiator waits T2
  after its GRANT and asks again. It gives up after `max_runs` such runs in a row.
- An initiator may die while it asks. The members that it reached then do not answer the members
  that it did not reach, and one of the latter may take office. The better members wait and then
  ask, which corrects that.
- A leader in office answers and waits like any other member. If it is granted office, it announces
  itself again.
- A member that comes back from a crash asks separately: members answer it at once, a leader in
  office also with COORDINATOR, and no member waits or stops for it. The reason: it may have missed
  the lower initiator that all others answer, and would take their silence for death.
- For 2 delta after an announcement, other members may act before it reaches them. In that time
  members answer an initiator that knows only an earlier term, but do not wait for it. They ignore a
  GRANT. They also ignore the COORDINATOR of a member worse than the announced leader: it crossed
  the message of the better one.
- A leader that comes back may announce a term that belonged to another leader meanwhile, or that is
  over. A member that led then, or that has no leader, asks and appoints it again in a new term.
- When a worse member sends COORDINATOR, a leader announces itself again, and any other member asks.
- When a suspicion is taken back and that member is better than the leader, a run follows T2 later.
"""

from __future__ import annotations

from enum import Enum
from math import inf
from typing import Annotated, ClassVar

from msgspec import Meta

from hustings.core.choice import Candidate, Choice, MemberId
from hustings.core.config import Config
from hustings.core.context import Context, TimerKey
from hustings.core.election import About, Assumptions, Claim, Election, upon
from hustings.core.messages import Message, Role, Term
from hustings.core.outcome import ELECTING, Guarantee

WINDOW = "W"
ANSWERS = "T1"
COORDINATOR = "T2"
RECHECK = "recheck"


class ElectionMsg(Message, frozen=True, tag="ELECTION"):
    """Which members better than the sender are alive?"""

    role: ClassVar[Role] = Role.ELECTION
    term: Term
    returned: bool  # the sender was away: it may have missed another initiator


class OkMsg(Message, frozen=True, tag="OK"):
    """The sender is alive, and this is its id."""

    role: ClassVar[Role] = Role.ANSWER
    term: Term
    candidate: Candidate


class GrantMsg(Message, frozen=True, tag="GRANT"):
    """The receiver is the best member that answered, and shall lead."""

    role: ClassVar[Role] = Role.OTHER
    term: Term


class CoordinatorMsg(Message, frozen=True, tag="COORDINATOR"):
    """The sender leads."""

    role: ClassVar[Role] = Role.COORDINATOR
    term: Term


class BullyGrantConfig(Config, frozen=True, kw_only=True):
    """Timers of the granting bully; each one that is not given is a multiple of delta."""

    W: (
        Annotated[float, Meta(ge=0, description="wait for a lower initiator; default delta")] | None
    ) = None
    T1: (
        Annotated[float, Meta(gt=0, description="the wait for answers, after W; default 2 delta")]
        | None
    ) = None
    T2: Annotated[float, Meta(gt=0, description="wait after GRANT; default 10 delta")] | None = None
    max_runs: Annotated[
        int,
        Meta(
            ge=1,
            description="the number of runs in a row without a result after which a "
            "member gives up",
        ),
    ] = 16

    @property
    def window(self) -> float:
        return self.delta if self.W is None else self.W

    @property
    def answers(self) -> float:
        return self.window + (2 * self.delta if self.T1 is None else self.T1)

    @property
    def coordinator(self) -> float:
        return 10 * self.delta if self.T2 is None else self.T2

    def warnings(self) -> list[str]:
        trip = 2 * self.delta
        if self.answers - self.window < trip:
            return [
                f"T1 = {self.T1:g} is shorter than a round trip ({trip:g}): "
                "answers come too late and a worse member may lead; set T1 >= 2 delta"
            ]
        return []


class Phase(Enum):
    """What a member does in the election."""

    IDLE = "idle"
    ASKING = "asking"
    WAITING = "waiting"
    LEADER = "leader"


class BullyGrant(Election):
    """Kordafshari's bully, with the decisions above."""

    __slots__ = ("away", "best", "caller", "config", "phase", "revived", "runs", "seat", "since")

    about = About(
        name="bully-grant",
        family="bully",
        paper="Kordafshari et al. 2005, as told in overhead-aware election, section 2",
        idea="ask all better members and appoint the best that answers",
        model="synchronous, complete, crash and recovery, failure detector",
        guarantee=Guarantee.ADVISORY,
        cost="3n-4 messages at worst with one initiator; W + T1 + 2 delays",
        promises="one leader, the best alive, while delays keep to delta; no exclusivity otherwise",
    )
    assumptions = Assumptions()
    Settings = BullyGrantConfig
    messages = (ElectionMsg, OkMsg, GrantMsg, CoordinatorMsg)
    config: BullyGrantConfig

    def __init__(self, config: BullyGrantConfig, choice: Choice) -> None:
        super().__init__(config, choice)
        self.phase = Phase.IDLE
        self.away = False  # back from a crash, without news of the leader
        self.best: Candidate | None = None  # of the members that answered
        self.caller: MemberId | None = None  # the lowest initiator of the open window
        self.revived: MemberId | None = None  # the best member whose suspicion was taken back
        self.runs = 0
        self.seat: tuple[Term, MemberId | None] = (0, None)  # the last leader held, and its term
        self.since = -inf  # when the present leader was announced

    def assume_leader(self, ctx: Context, leader: MemberId, term: int) -> None:
        super().assume_leader(ctx, leader, term)
        self.seat = (term, leader)
        if self.electing():
            self.settle(ctx)
        self.phase = Phase.LEADER if leader == ctx.me.id else Phase.IDLE

    # Calling an election

    def start(self, ctx: Context) -> None:
        self.recall(ctx)
        if ctx.incarnation > 1:
            self.away = True
            self.begin(ctx)

    def call(self, ctx: Context) -> None:
        self.begin(ctx)

    def on_suspect(self, ctx: Context, member: MemberId) -> None:
        if member == self.leader and member != ctx.me.id:
            self.disown(ctx, ELECTING)
            self.begin(ctx)

    def on_alive(self, ctx: Context, member: MemberId) -> None:
        known = member in ctx.view
        if known and (self.revived is None or self.outranks(ctx, member, self.revived)):
            # A member that was away announces itself; this is for a member that never was away.
            self.revived = member
            ctx.set_timer(RECHECK, self.config.coordinator)

    def begin(self, ctx: Context) -> None:
        """Begin an election; one at a time, my own or that of another member."""
        if not self.electing():
            self.ask(ctx)

    def electing(self) -> bool:
        return self.phase in (Phase.ASKING, Phase.WAITING)

    def ask(self, ctx: Context) -> None:
        """Run one election."""
        self.runs += 1
        self.phase = Phase.ASKING
        self.best = None
        question = ElectionMsg(self.term, self.away)
        for member in ctx.view.ranking(self.choice).better_than(ctx.me.id):
            ctx.send(member, question)
        ctx.set_timer(ANSWERS, self.config.answers)

    def conclude(self, ctx: Context) -> None:
        """Grant office after all answers, or take it."""
        if self.best is None:
            self.take_office(ctx)
            return
        ctx.send(self.best.id, GrantMsg(self.term))
        self.stand_by(ctx, self.config.coordinator)

    def take_office(self, ctx: Context) -> None:
        """Lead: no better member answered, or an initiator says so."""
        self.settle(ctx)
        self.phase = Phase.LEADER
        self.seat = (self.term + 1, ctx.me.id)
        self.elect(ctx, ctx.me.id, self.term + 1)
        self.remember(ctx)
        victory = CoordinatorMsg(self.term)
        for member in ctx.view.ranking(self.choice).worse_than(ctx.me.id):
            ctx.send(member, victory)

    def stand_by(self, ctx: Context, patience: float) -> None:
        """Wait for another member to act."""
        self.phase = Phase.WAITING
        ctx.cancel_timer(ANSWERS)
        ctx.set_timer(COORDINATOR, patience)

    def settle(self, ctx: Context) -> None:
        """End the election; a caller without an answer gets the result instead."""
        self.phase = Phase.IDLE
        self.away = False
        self.best = self.caller = None
        self.runs = 0
        self.since = ctx.now()
        for timer in (WINDOW, ANSWERS, COORDINATOR):
            ctx.cancel_timer(timer)

    # Messages from others

    @upon(ElectionMsg)
    def on_election(self, ctx: Context, sender: MemberId, message: ElectionMsg) -> None:
        if self.outranks(ctx, sender, ctx.me.id):
            return  # it does not need my answer
        if message.returned:
            self.inform(ctx, sender)
            return
        outdated = self.leader is not None and self.fresh(ctx) and message.term < self.term
        self.term = max(self.term, message.term)
        if self.caller is None:
            self.caller = sender
            ctx.set_timer(WINDOW, self.config.window)
        elif self.outranks(ctx, self.caller, sender):
            self.caller = sender
        if self.electing() or not outdated:
            config = self.config
            self.stand_by(ctx, config.answers + config.coordinator + config.delta)

    def inform(self, ctx: Context, caller: MemberId) -> None:
        """Answer a caller that was away and asks separately."""
        ctx.send(caller, OkMsg(self.term, ctx.me))
        if self.leader == ctx.me.id:
            ctx.send(caller, CoordinatorMsg(self.term))

    def answer(self, ctx: Context) -> None:
        """Answer the lowest initiator of the window, which has closed."""
        if self.caller is not None:
            ctx.send(self.caller, OkMsg(self.term, ctx.me))
            self.caller = None

    @upon(OkMsg)
    def on_ok(self, ctx: Context, sender: MemberId, message: OkMsg) -> None:
        self.term = max(self.term, message.term)
        candidate = message.candidate
        if self.phase is not Phase.ASKING or candidate.id != sender:
            return
        if self.choice.better(candidate, self.best or ctx.me):
            self.best = candidate

    @upon(GrantMsg)
    def on_grant(self, ctx: Context, sender: MemberId, message: GrantMsg) -> None:
        self.term = max(self.term, message.term)
        if not (self.leader is not None and self.fresh(ctx)):
            self.take_office(ctx)

    @upon(CoordinatorMsg)
    def on_coordinator(self, ctx: Context, sender: MemberId, message: CoordinatorMsg) -> None:
        if self.outranks(ctx, ctx.me.id, sender):
            self.protest(ctx, message.term)
        elif self.crossed(ctx, sender):
            pass
        elif self.taken(sender, message.term):
            if self.leader in (None, ctx.me.id):  # a follower of another leader gets the result
                self.disown(ctx, ELECTING)
                self.phase = Phase.IDLE if self.phase is Phase.LEADER else self.phase
                self.begin(ctx)
        else:
            self.settle(ctx)
            self.seat = (message.term, sender)
            self.elect(ctx, sender, message.term)
            self.remember(ctx)

    def taken(self, sender: MemberId, term: int) -> bool:
        """Whether the announced term belonged to another leader, or is over."""
        return term < self.term or (term == self.seat[0] and sender != self.seat[1])

    def protest(self, ctx: Context, term: int) -> None:
        """React to a worse member that took office: it cannot have asked me."""
        self.term = max(self.term, term)
        if self.leader == ctx.me.id:
            self.take_office(ctx)
        else:
            self.begin(ctx)

    # Conditions

    def fresh(self, ctx: Context) -> bool:
        """Whether some member may still act before it learns of the present leader.

        The announcement took up to delta. A message sent just before its arrival took another one.
        """
        return ctx.now() - self.since < 2 * self.config.delta

    def crossed(self, ctx: Context, sender: MemberId) -> bool:
        """Whether `sender` announced itself before it learned of my better leader."""
        leader = self.leader
        return leader is not None and self.fresh(ctx) and self.outranks(ctx, leader, sender)

    # Timers

    def on_timer(self, ctx: Context, key: TimerKey) -> None:
        if key == WINDOW:
            self.answer(ctx)
        elif key == ANSWERS:
            self.conclude(ctx)
        elif key == RECHECK:
            self.recheck(ctx)
        elif self.runs < self.config.max_runs:  # the member that was to act has fallen silent
            self.ask(ctx)
        else:
            runs = self.runs
            self.settle(ctx)
            self.give_up(ctx, f"no coordinator after {runs} runs")

    def recheck(self, ctx: Context) -> None:
        """Check whether a member that I took for dead leads, if it should."""
        if self.electing():
            ctx.set_timer(RECHECK, self.config.coordinator)
            return
        revived, self.revived = self.revived, None
        leader = self.leader
        if leader is None or (revived is not None and self.outranks(ctx, revived, leader)):
            self.begin(ctx)

    def claim_of(self, message: Message) -> Claim | None:
        return Claim(message.term) if isinstance(message, CoordinatorMsg) else None

    def state(self) -> str:
        return f"leader={self.leader} term={self.term} {self.phase.value}"
