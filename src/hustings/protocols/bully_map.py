"""MAP bully: ask the best member first; only if it is silent, ask the next best.

Model      Synchronous: a message to a live member arrives within delta, and a detector reports
           each crash. Every member keeps all members in a list from best to worst, the MAP.
Idea       Walk down the MAP from the dead leader. The first member that answers OK takes office
           without an election of its own. A member that reaches its own name takes office itself.
Invariant  While the model holds, a member takes office only when all better ones were silent.
Cost       n - m ELECTION, 1 OK, m - 1 LEADER: n messages, in time (n - 1 - m)T + 2, with m the
           best alive. If m is the detector, n - 1 - m ELECTION and no OK, n - 2 messages; of k
           detectors each sends its own ELECTIONs, and all but the first get STOP.
Guarantee  Advisory. A wrong suspicion skips a live leader and makes a second one for a while.
Paper      Bani Yassein, Alsaity, Alwidian: An Efficient Overhead-Aware Leader Election Algorithm
           for Distributed Systems, section 4. Its Fig. 2 as printed is `bully-map-printed`.

The paper leaves some points open. The decisions here:
- T2 limits the wait for LEADER, since a candidate may die after its OK. The walk then starts again
  from the top. The member gives up after `max_runs` walks in a row.
- A walk skips only the suspected leader. Without a suspicion it starts at the top.
- Time decides what "the same election" means. For 2 delta after a member took office, or learned
  which member did, another member may have sent its ELECTION before it knew. The answer is STOP
  alone. Likewise a worse member's LEADER that arrives within 2 delta of a better one's is ignored:
  the two crossed, and the worse member has stepped down by then. An unnecessary STOP costs one T2.
- Later than that, a leader answers STOP and repeats LEADER to the caller. If the caller knows of a
  later term, another leader was announced meanwhile, and this leader announces itself to all again.
- A member that comes back from a crash walks from the top, so a best member that returns leads at
  once. Any other member cannot know what it has missed, so it walks on to the leader or to its own
  name. Meanwhile it answers STOP if it is asked, and ignores the LEADER of a member that it has yet
  to ask. A leader that it asks repeats LEADER even in the first 2 delta.
- A leader that comes back may announce a term that belonged to another leader meanwhile, or that is
  over. A member that led then sends it an ELECTION with the later term, and the leader announces
  itself again in a new term.
- When a worse member sends LEADER, a leader announces itself again, and any other member walks.
- When a suspicion is taken back and that member is better than the leader, a walk follows T2 later.
"""

from __future__ import annotations

from enum import Enum
from math import inf
from typing import Annotated, ClassVar

from msgspec import Meta

from hustings.core.choice import Choice, MemberId
from hustings.core.config import Config
from hustings.core.context import Context, TimerKey
from hustings.core.election import About, Assumptions, Claim, Election, upon
from hustings.core.messages import Message, Role, Term
from hustings.core.outcome import ELECTING, Guarantee

ANSWER = "T"
LEADER = "T2"
RECHECK = "recheck"


class ElectionMsg(Message, frozen=True, tag="ELECTION"):
    """All members better than the receiver are silent: will it lead?"""

    role: ClassVar[Role] = Role.ELECTION
    term: Term
    returned: bool  # the sender was away: it may have missed an announcement


class OkMsg(Message, frozen=True, tag="OK"):
    """The sender will lead."""

    role: ClassVar[Role] = Role.ANSWER
    term: Term


class StopMsg(Message, frozen=True, tag="STOP"):
    """Another member has asked before: wait for the result."""

    role: ClassVar[Role] = Role.OTHER
    term: Term


class LeaderMsg(Message, frozen=True, tag="LEADER"):
    """The sender leads."""

    role: ClassVar[Role] = Role.COORDINATOR
    term: Term


class BullyMapConfig(Config, frozen=True, kw_only=True):
    """Timers of the MAP bully; each one that is not given is a multiple of delta."""

    T: Annotated[float, Meta(gt=0, description="wait for one OK; default 2 delta")] | None = None
    T2: Annotated[float, Meta(gt=0, description="wait for LEADER; default 10 delta")] | None = None
    max_runs: Annotated[
        int,
        Meta(
            ge=1,
            description="the number of walks in a row without a result after which a "
            "member gives up",
        ),
    ] = 16

    @property
    def answer(self) -> float:
        return 2 * self.delta if self.T is None else self.T

    @property
    def announcement(self) -> float:
        return 10 * self.delta if self.T2 is None else self.T2

    def warnings(self) -> list[str]:
        if self.answer < 2 * self.delta:
            return [
                f"T = {self.answer:g} is shorter than a round trip ({2 * self.delta:g}): "
                "live members are passed over and a worse one may lead; set T >= 2 delta"
            ]
        return []


class Phase(Enum):
    """What a member does in the election."""

    IDLE = "idle"
    PROBING = "probing"
    WAITING = "waiting"
    LEADER = "leader"


class BullyMap(Election):
    """The overhead-aware election, with the decisions above."""

    __slots__ = (
        "asked",
        "away",
        "config",
        "down",
        "phase",
        "rest",
        "revived",
        "runs",
        "seat",
        "since",
    )

    about = About(
        name="bully-map",
        family="bully",
        paper="Bani Yassein, Alsaity, Alwidian, overhead-aware election, section 4",
        idea="ask the better members one after the other, the best first",
        model="synchronous, complete, crash and recovery, failure detector",
        guarantee=Guarantee.ADVISORY,
        cost="n messages with one detector, n-2 if it is the best alive; T for each dead candidate",
        promises="one leader, the best alive, while delays keep to delta and no live leader is "
        "suspected; no exclusivity otherwise",
    )
    assumptions = Assumptions()
    Settings = BullyMapConfig
    messages = (ElectionMsg, OkMsg, StopMsg, LeaderMsg)
    config: BullyMapConfig

    def __init__(self, config: BullyMapConfig, choice: Choice) -> None:
        super().__init__(config, choice)
        self.phase = Phase.IDLE
        self.away = False  # back from a crash, and still on the first walk
        self.asked: MemberId | None = None  # the member whose answer or announcement I await
        self.rest: list[MemberId] = []  # members still to ask, the best at the end
        self.down: MemberId | None = None  # the suspected leader that this election replaces
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
            self.down = member
            self.begin(ctx)

    def on_alive(self, ctx: Context, member: MemberId) -> None:
        if member == self.down:
            self.down = None
        known = member in ctx.view
        if known and (self.revived is None or self.outranks(ctx, member, self.revived)):
            # A member that was away announces itself; this is for a member that never was away.
            self.revived = member
            ctx.set_timer(RECHECK, self.config.announcement)

    def begin(self, ctx: Context) -> None:
        """Begin an election; only one at a time."""
        if not self.electing():
            self.walk(ctx)

    def electing(self) -> bool:
        return self.phase in (Phase.PROBING, Phase.WAITING)

    def walk(self, ctx: Context) -> None:
        """Walk once down the MAP, from the top to my own name."""
        self.runs += 1
        better = ctx.view.ranking(self.choice).better_than(ctx.me.id)
        self.rest = [member for member in reversed(better) if member != self.down]
        self.ask_next(ctx)

    def ask_next(self, ctx: Context) -> None:
        if not self.rest:
            self.take_office(ctx)
            return
        self.phase = Phase.PROBING
        self.asked = self.rest.pop()
        ctx.send(self.asked, ElectionMsg(self.term, self.away))
        ctx.set_timer(ANSWER, self.config.answer)

    def take_office(self, ctx: Context) -> None:
        """Lead: all better members are silent."""
        self.settle(ctx)
        self.phase = Phase.LEADER
        self.seat = (self.term + 1, ctx.me.id)
        self.elect(ctx, ctx.me.id, self.term + 1)
        self.remember(ctx)
        announcement = LeaderMsg(self.term)
        for member in ctx.view.ranking(self.choice).worse_than(ctx.me.id):
            ctx.send(member, announcement)

    def settle(self, ctx: Context) -> None:
        """End the election."""
        self.phase = Phase.IDLE
        self.away = False
        self.asked = self.down = None
        self.rest = []
        self.runs = 0
        self.since = ctx.now()
        ctx.cancel_timer(ANSWER)
        ctx.cancel_timer(LEADER)

    # Messages from others

    @upon(ElectionMsg)
    def on_election(self, ctx: Context, sender: MemberId, message: ElectionMsg) -> None:
        if self.outranks(ctx, sender, ctx.me.id):
            return  # it does not need my answer
        fresh = self.leader is not None and self.fresh(ctx)
        behind = message.term > self.term  # others were told of a later leader
        if self.leader == ctx.me.id and (message.returned or behind or not fresh):
            ctx.send(sender, StopMsg(self.term))
            self.insist(ctx, sender, message.term)
        elif fresh or self.away:
            ctx.send(sender, StopMsg(self.term))
        else:
            self.term = max(self.term, message.term)
            ctx.send(sender, OkMsg(self.term))
            self.take_office(ctx)

    def insist(self, ctx: Context, caller: MemberId, term: int) -> None:
        """Answer a caller that does not know that I lead."""
        if term > self.term:
            self.term = term
            self.take_office(ctx)
        else:
            ctx.send(caller, LeaderMsg(self.term))

    @upon(OkMsg)
    def on_ok(self, ctx: Context, sender: MemberId, message: OkMsg) -> None:
        self.wait(ctx, sender, message.term)

    @upon(StopMsg)
    def on_stop(self, ctx: Context, sender: MemberId, message: StopMsg) -> None:
        self.wait(ctx, sender, message.term)

    def wait(self, ctx: Context, sender: MemberId, term: int) -> None:
        """Wait, since a better member is alive; only the first answer starts the timer."""
        if self.phase is Phase.PROBING:
            self.term = max(self.term, term)
            self.phase = Phase.WAITING
            self.asked = sender
            ctx.cancel_timer(ANSWER)
            ctx.set_timer(LEADER, self.config.announcement)

    @upon(LeaderMsg)
    def on_leader(self, ctx: Context, sender: MemberId, message: LeaderMsg) -> None:
        if self.outranks(ctx, ctx.me.id, sender):
            self.protest(ctx, message.term)
        elif self.crossed(ctx, sender) or self.ahead(ctx, sender):
            pass
        elif self.taken(sender, message.term):
            self.correct(ctx, sender, message.term)
        else:
            self.settle(ctx)
            self.seat = (message.term, sender)
            self.elect(ctx, sender, message.term)
            self.remember(ctx)

    def taken(self, sender: MemberId, term: int) -> bool:
        """Whether the announced term belonged to another leader, or is over."""
        return term < self.term or (term == self.seat[0] and sender != self.seat[1])

    def correct(self, ctx: Context, sender: MemberId, term: int) -> None:
        """Make a leader that was away announce itself in a new term.

        A member that led meanwhile, or that looks for a leader, tells it; others hear the result.
        """
        if self.leader in (None, ctx.me.id) or self.electing():
            self.term += term == self.term
            self.settle(ctx)
            self.disown(ctx, ELECTING)
            self.runs, self.phase, self.asked = 1, Phase.WAITING, sender
            ctx.send(sender, ElectionMsg(self.term, False))
            ctx.set_timer(LEADER, self.config.announcement)

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

    def ahead(self, ctx: Context, sender: MemberId) -> bool:
        """Whether my first walk after my return has yet to reach `sender`."""
        return self.away and self.asked is not None and self.outranks(ctx, self.asked, sender)

    # Timers

    def on_timer(self, ctx: Context, key: TimerKey) -> None:
        if key == RECHECK:
            self.recheck(ctx)
        elif key == ANSWER:
            self.ask_next(ctx)
        elif self.runs < self.config.max_runs:  # the member that answered has fallen silent
            self.walk(ctx)
        else:
            runs = self.runs
            self.settle(ctx)
            self.give_up(ctx, f"no leader after {runs} walks down the MAP")

    def recheck(self, ctx: Context) -> None:
        """Check whether a member that I took for dead leads, if it should."""
        if self.electing():
            ctx.set_timer(RECHECK, self.config.announcement)
            return
        revived, self.revived = self.revived, None
        leader = self.leader
        if leader is None or (revived is not None and self.outranks(ctx, revived, leader)):
            self.begin(ctx)

    def claim_of(self, message: Message) -> Claim | None:
        return Claim(message.term) if isinstance(message, LeaderMsg) else None

    def state(self) -> str:
        place = f"({self.asked})" if self.electing() else ""
        return f"leader={self.leader} term={self.term} {self.phase.value}{place}"
