"""Bully: the best live member takes over; its messages silence all worse members.

Model      Synchronous: a message to a live member arrives within delta, and a detector reports
           each crash. Every member knows all others; members crash and may come back.
Idea       Ask all better members. If one answers, wait for its victory; if none does, win.
Invariant  While the model holds, no member declares itself leader while a better one is alive.
Cost       n**2 - n - 1 messages at worst (the lowest detects), n - 2 at best; 4 delays at worst.
Guarantee  Advisory. A late answer or a wrong suspicion may give two leaders for a while.
Paper      Elections lecture, "Bully Algorithm"; Garcia-Molina 1982, doi:10.1109/TC.1982.1675885.

The slides give 5 transmission times for the worst case. But the answer and the second-level
ELECTION travel at the same time, so the worst case is 2 + T1, which is 4. The slides also do not
count OK and COORDINATOR.
"""

from __future__ import annotations

from collections.abc import Collection
from math import inf
from typing import Annotated, ClassVar

from msgspec import Meta

from hustings.core.choice import Choice, MemberId
from hustings.core.config import Config
from hustings.core.context import Context, TimerKey
from hustings.core.election import About, Assumptions, Claim, Election, upon
from hustings.core.messages import Message, Role, Term
from hustings.core.outcome import ELECTING, Guarantee

ANSWERS = "T1"
COORDINATOR = "T2"

# Where a member stands in a run.
IDLE = "idle"
ASKING = "asking"  # until T1: is a better member alive?
WAITING = "waiting"  # until T2, counted from the first OK: for the coordinator


class ElectionMsg(Message, frozen=True, tag="ELECTION"):
    """Is a better member than the sender alive?"""

    role: ClassVar[Role] = Role.ELECTION
    term: Term


class OkMsg(Message, frozen=True, tag="OK"):
    """The sender is alive and better, and takes over the election."""

    role: ClassVar[Role] = Role.ANSWER
    term: Term


class CoordinatorMsg(Message, frozen=True, tag="COORDINATOR"):
    """The sender leads."""

    role: ClassVar[Role] = Role.COORDINATOR
    term: Term


class BullyConfig(Config, frozen=True, kw_only=True):
    """Timers of the bully; each one that is not given is a multiple of delta."""

    T1: Annotated[float, Meta(gt=0, description="wait for answers; default 2 delta")] | None = None
    T2: (
        Annotated[float, Meta(gt=0, description="wait for the coordinator; default 10 delta")]
        | None
    ) = None
    max_runs: Annotated[
        int,
        Meta(
            ge=1,
            description="the number of runs in a row without a result after which a "
            "member gives up",
        ),
    ] = 16
    election_backoff: Annotated[
        float,
        Meta(
            ge=0,
            description="the time after an election in which a member that is asked answers and "
            "starts no election; 0: it always starts one, as in the lecture",
        ),
    ] = 0.0

    @classmethod
    def for_network(cls, delta: float, given: Collection[str] = ()) -> dict[str, object]:
        # An election asks many members, and each of them would begin one that asks many again.
        # Where answers come sooner than questions, as on one machine, that can go on for seconds.
        return {**super().for_network(delta, given), "election_backoff": 2 * delta}

    @property
    def answers(self) -> float:
        return 2 * self.delta if self.T1 is None else self.T1

    @property
    def coordinator(self) -> float:
        return 10 * self.delta if self.T2 is None else self.T2

    def broken_rules(self) -> list[str]:
        endless = [name for name in ("T1", "T2") if getattr(self, name) == inf]
        return [f"{name} must be finite: no member would ever take over" for name in endless]

    def warnings(self) -> list[str]:
        if self.answers < 2 * self.delta:
            return [
                f"T1 = {self.answers:g} is shorter than a round trip ({2 * self.delta:g}): "
                "answers come too late and several members may win; set T1 >= 2 delta"
            ]
        return []


class Bully(Election):
    """The lecture's bully, with the decisions of its specification."""

    __slots__ = ("config", "dead", "heard", "phase", "runs")

    about = About(
        name="bully",
        family="bully",
        paper="Elections lecture, chapter 15; Garcia-Molina 1982",
        idea="ask all better members; silence means victory",
        model="synchronous, complete, crash and recovery, failure detector",
        guarantee=Guarantee.ADVISORY,
        cost="n^2-n-1 messages at worst, n-2 at best; 4 delays",
        promises="one leader, the best alive, while delays keep to delta; no exclusivity otherwise",
    )
    assumptions = Assumptions()
    Settings = BullyConfig
    messages: ClassVar[tuple[type[Message], ...]] = (ElectionMsg, OkMsg, CoordinatorMsg)
    config: BullyConfig

    def __init__(self, config: BullyConfig, choice: Choice) -> None:
        super().__init__(config, choice)
        self.dead: set[MemberId] = set()  # suspected; for membership tests only, never iterated
        self.phase = IDLE
        self.runs = 0
        self.heard = -inf  # when the coordinator last announced itself

    # Calling an election

    def start(self, ctx: Context) -> None:
        self.recall(ctx)
        if ctx.incarnation > 1:  # back from a crash: perhaps better than the present leader
            self.begin(ctx)

    def call(self, ctx: Context) -> None:
        self.begin(ctx)

    def assume_leader(self, ctx: Context, leader: MemberId, term: int) -> None:
        super().assume_leader(ctx, leader, term)
        self.heard = ctx.now()
        self.dead.discard(leader)
        if self.phase != IDLE:
            self.settle(ctx)  # the run has a result

    def on_suspect(self, ctx: Context, member: MemberId) -> None:
        self.dead.add(member)
        if member == self.leader:
            self.begin(ctx)
        elif self.phase == ASKING and not self.awaits_anybody(ctx):
            self.win(ctx)  # the member that I asked is gone: no answer is missing any more

    def on_alive(self, ctx: Context, member: MemberId) -> None:
        self.dead.discard(member)
        if self.leader == ctx.me.id and self.outranks(ctx, ctx.me.id, member):
            ctx.send(member, CoordinatorMsg(self.term))  # it may follow another leader by now
        elif self.leader != member and self.outranks(ctx, member, self.leader):
            ctx.send(member, ElectionMsg(self.term))  # it is better than my leader: it must know

    def begin(self, ctx: Context) -> None:
        """Start a run; only one at a time."""
        if self.phase != IDLE:
            return
        if not self.awaits_anybody(ctx):
            self.win(ctx)
            return
        better = ctx.view.ranking(self.choice).better_than(ctx.me.id)
        self.phase = ASKING
        self.runs += 1
        self.disown(ctx, ELECTING)
        question = ElectionMsg(self.term)
        for member in better:  # the suspects too: a suspicion may be wrong
            ctx.send(member, question)
        ctx.set_timer(ANSWERS, self.config.answers)

    def awaits_anybody(self, ctx: Context) -> bool:
        """Whether a better member may be alive."""
        better = ctx.view.ranking(self.choice).better_than(ctx.me.id)
        return any(member not in self.dead for member in better)

    def win(self, ctx: Context) -> None:
        """Lead: no better member is alive."""
        self.settle(ctx)
        self.elect(ctx, ctx.me.id, self.term + 1)
        self.remember(ctx)
        victory = CoordinatorMsg(self.term)
        for member in ctx.view.ranking(self.choice).worse_than(ctx.me.id):
            ctx.send(member, victory)

    def settle(self, ctx: Context) -> None:
        """End the run."""
        self.phase = IDLE
        self.runs = 0
        ctx.cancel_timer(ANSWERS)
        ctx.cancel_timer(COORDINATOR)

    def learn(self, term: int) -> None:
        """Take over a higher term; terms only grow."""
        if term > self.term:
            self.term = term

    # Messages from others

    @upon(ElectionMsg)
    def on_election(self, ctx: Context, sender: MemberId, message: ElectionMsg) -> None:
        known, self_leads = self.leader is not None, self.leader == ctx.me.id
        asked_before = message.term < self.term
        reigned_since = message.term > self.term
        self.learn(message.term)
        ctx.send(sender, OkMsg(self.term))
        if self_leads and reigned_since:
            self.win(ctx)  # others followed a later leader: lead again, in a new term
        elif self_leads:
            ctx.send(sender, CoordinatorMsg(self.term))
        elif known and (asked_before or ctx.now() - self.heard < self.config.election_backoff):
            pass  # it has yet to hear of the leader that I know, or asks that leader as well
        else:
            self.begin(ctx)

    @upon(OkMsg)
    def on_ok(self, ctx: Context, sender: MemberId, message: OkMsg) -> None:
        self.learn(message.term)
        if self.phase == ASKING:
            self.phase = WAITING
            ctx.cancel_timer(ANSWERS)
            ctx.set_timer(COORDINATOR, self.config.coordinator)

    @upon(CoordinatorMsg)
    def on_coordinator(self, ctx: Context, sender: MemberId, message: CoordinatorMsg) -> None:
        leader = self.leader
        if self.outranks(ctx, ctx.me.id, sender):
            self.learn(message.term)
            self.begin(ctx)  # it cannot have heard of me
        elif leader not in (None, sender) and self.outranks(ctx, leader, sender):
            if message.term > self.term:
                self.follow(ctx, sender, message.term)
        elif message.term < self.term:  # a late victory, or the winner missed a term: ask it
            if leader != sender:
                ctx.send(sender, ElectionMsg(self.term))
        else:
            self.follow(ctx, sender, message.term)

    def follow(self, ctx: Context, leader: MemberId, term: int) -> None:
        """Follow the winner."""
        self.heard = ctx.now()
        self.settle(ctx)
        self.elect(ctx, leader, term)
        self.remember(ctx)

    def on_timer(self, ctx: Context, key: TimerKey) -> None:
        if key == ANSWERS:
            self.win(ctx)
        elif self.runs < self.config.max_runs:  # the member that answered has fallen silent
            self.phase = IDLE
            self.begin(ctx)
        else:
            runs = self.runs
            self.settle(ctx)
            self.give_up(ctx, f"no coordinator after {runs} runs")

    def claim_of(self, message: Message) -> Claim | None:
        return Claim(message.term) if isinstance(message, CoordinatorMsg) else None

    def state(self) -> str:
        return f"leader={self.leader} term={self.term} {self.phase}"
