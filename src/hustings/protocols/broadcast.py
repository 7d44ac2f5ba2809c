"""Broadcast: every member tells all others its id, and each member picks the best id.

Model      Synchronous and complete: a message to a live member arrives within delta. The view
           holds the live members; another part of the system keeps it up to date.
Idea       The initiator sends START to all others. A member that learns of the round sends its ID
           to all others. With all ids in, or after T, each member decides for the best id.
Invariant  Two members that have received the same ids of a round take the same leader.
Cost       (N-1) + N(N-1) messages, N(N-1) if the START carries the id, in 2 delays. Each further
           simultaneous initiator costs N-1 more STARTs, or nothing. N counts the live members.
Guarantee  Advisory. If a member crashes while it sends its id, or is slower than T, some members
           count its id and others do not. They then take different leaders; see below.
Paper      Elections lecture, "Trivial Solution".

The slide asks for the potential problems. This file meets them as follows:
- A dead member would block all others. T ends the wait, and so does a suspicion.
- The best member may crash after it has told only some. These take a dead leader until their
  detector suspects it, which starts the next round. Without a detector the disagreement stays.
- Several members may start at once. A START that arrives in a round under way starts nothing new.
- Each message carries the number of its round, which is also the term. Members drop messages of an
  earlier round. An id of the present round counts even after the decision: if T cut off a slow
  member, its late id repairs the decision of the others.
- T = 3 delta lets one initiator crash while it sends its STARTs. Each further crash of that kind in
  a row delays the news by delta and is repaired in the same way.
- A member answers a START of an earlier round with its id, which tells the sender the present
  round. A member that is back from a crash sends START 0 to learn the round, then starts the next.

A suspicion and an id contradict each other: the later one counts, and a new round makes earlier
suspicions void. So a wrong suspicion does not change the result of the round that it causes. But if
the detector is faster than the network, a suspicion may overtake the last messages of the dead
member. That may leave a dead leader in place.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from msgspec import Meta

from hustings.core.choice import Candidate, Choice, MemberId
from hustings.core.config import Config
from hustings.core.context import Context, TimerKey
from hustings.core.election import About, Assumptions, Election, upon
from hustings.core.messages import Message, Role, Term
from hustings.core.outcome import ELECTING, Guarantee

IDS = "T"
UNKNOWN = 0  # the round of a START whose sender was away


class StartMsg(Message, frozen=True, tag="START"):
    """A round begins. In the combined form the START carries its sender's id."""

    role: ClassVar[Role] = Role.ELECTION
    round: Term
    me: Candidate | None = None


class IdMsg(Message, frozen=True, tag="ID"):
    """The sender is alive and takes part in the round."""

    role: ClassVar[Role] = Role.ANSWER
    round: Term
    me: Candidate


class BroadcastConfig(Config, frozen=True, kw_only=True):
    """The one timer, and whether the START carries the id."""

    T: Annotated[float, Meta(gt=0, description="wait for all ids; default 3 delta")] | None = None
    combined: Annotated[bool, Meta(description="START carries the id of its sender")] = False

    @property
    def ids(self) -> float:
        return 3 * self.delta if self.T is None else self.T

    def warnings(self) -> list[str]:
        if self.ids < 2 * self.delta:
            return [
                f"T = {self.ids:g} is shorter than a START and an ID ({2 * self.delta:g}): "
                "members decide before they have heard all; set T >= 2 delta"
            ]
        return []


class Broadcast(Election):
    """The lecture's trivial solution, with numbered rounds."""

    __slots__ = ("asking", "config", "dead", "heard", "open", "round")

    about = About(
        name="broadcast",
        family="broadcast",
        paper="Elections lecture, chapter 15: Trivial Solution",
        idea="every member tells all others its id; each picks the best",
        model="synchronous, complete, live view, crash and recovery, failure detector",
        guarantee=Guarantee.ADVISORY,
        cost="(N-1)+N(N-1) messages, N(N-1) combined; 2 delays",
        promises="one leader, the best alive, unless a member crashes in mid-broadcast and no "
        "detector reports it; no exclusivity otherwise",
    )
    assumptions = Assumptions(live_view=True)
    Settings = BroadcastConfig
    messages = (StartMsg, IdMsg)
    config: BroadcastConfig

    def __init__(self, config: BroadcastConfig, choice: Choice) -> None:
        super().__init__(config, choice)
        self.round = 0  # the highest round seen
        self.open = False  # whether I wait for ids ...
        self.asking = False  # ... only to learn the present round
        self.heard: dict[MemberId, Candidate] = {}  # in the order of arrival
        self.dead: set[MemberId] = set()  # suspected since it began; never iterated

    # Calling an election

    def start(self, ctx: Context) -> None:
        self.recall(ctx)
        self.round = self.term
        if ctx.incarnation > 1:  # back from a crash: perhaps better than the present leader
            self.asking = True
            self.tell(ctx, StartMsg(UNKNOWN))
            self.wait(ctx)

    def call(self, ctx: Context) -> None:
        self.begin(ctx)

    def assume_leader(self, ctx: Context, leader: MemberId, term: int) -> None:
        super().assume_leader(ctx, leader, term)
        self.round = max(self.round, term)
        self.dead.discard(leader)
        self.heard = {}  # ids of earlier rounds, or of a round that is over
        self.asking = False
        if self.open:
            self.open = False
            ctx.cancel_timer(IDS)

    def begin(self, ctx: Context) -> None:
        """Start the next round, unless one is under way."""
        if self.open:
            return
        self.round += 1
        combined = self.config.combined
        self.tell(ctx, StartMsg(self.round, ctx.me if combined else None))
        if not combined:
            self.tell(ctx, IdMsg(self.round, ctx.me))
        self.wait(ctx)

    def join(self, ctx: Context, number: int) -> None:
        """Take part in a round that another member started."""
        self.round = number
        self.asking = False
        self.tell(ctx, IdMsg(number, ctx.me))
        self.wait(ctx)

    def tell(self, ctx: Context, message: Message) -> None:
        for member in ctx.view:
            if member != ctx.me.id:
                ctx.send(member, message)

    def wait(self, ctx: Context) -> None:
        """Start to collect ids."""
        self.open = True
        self.heard = {ctx.me.id: ctx.me}
        self.dead = set()  # earlier suspicions may be wrong: this round will show
        self.disown(ctx, ELECTING)
        ctx.set_timer(IDS, self.config.ids)
        self.look(ctx)

    # Messages from others

    @upon(StartMsg)
    def on_start(self, ctx: Context, sender: MemberId, message: StartMsg) -> None:
        if message.round > self.round:
            self.join(ctx, message.round)
        elif self.asking:
            return
        elif message.round < self.round:
            # The sender was away, or this is an old copy: my id tells it the present round.
            ctx.send(sender, IdMsg(self.round, ctx.me))
        if message.round == self.round and message.me is not None:
            self.hear(ctx, message.me)

    @upon(IdMsg)
    def on_id(self, ctx: Context, sender: MemberId, message: IdMsg) -> None:
        if self.asking:
            self.round = max(self.round, message.round)
        elif message.round > self.round:
            self.join(ctx, message.round)
        if self.asking or message.round == self.round:
            self.hear(ctx, message.me)

    def hear(self, ctx: Context, other: Candidate) -> None:
        """Count an id of the present round; a late id may change the decision."""
        if not self.heard:  # I know this round's leader, but took no part in the round
            self.begin(ctx)
            return
        if not self.open and other.id not in self.heard:  # it may have missed my id, too
            ctx.send(other.id, IdMsg(self.round, ctx.me))
        self.heard[other.id] = other
        self.dead.discard(other.id)
        self.look(ctx)

    # Deciding

    def look(self, ctx: Context) -> None:
        """Stop waiting as soon as no id is missing."""
        if not self.open or self.complete(ctx):
            self.conclude(ctx)

    def complete(self, ctx: Context) -> bool:
        if len(self.heard) + len(self.dead) < len(ctx.view):
            return False  # the quick answer in nearly all cases
        return all(member in self.heard or member in self.dead for member in ctx.view)

    def conclude(self, ctx: Context) -> None:
        """Start the next round after asking for its number, or take the best unsuspected id."""
        if self.open:
            self.open = False
            ctx.cancel_timer(IDS)
            if self.asking:
                self.asking = False
                self.begin(ctx)
                return
        best = ctx.me
        for other in self.heard.values():
            if other.id not in self.dead and self.choice.better(other, best):
                best = other
        if best.id != self.leader:
            self.elect(ctx, best.id, self.round)
            self.remember(ctx)

    def on_timer(self, ctx: Context, key: TimerKey) -> None:
        if self.open:
            self.conclude(ctx)

    # Failures

    def on_suspect(self, ctx: Context, member: MemberId) -> None:
        if member == ctx.me.id:
            return
        self.dead.add(member)
        if self.open:
            self.look(ctx)
        elif member == self.leader:
            self.begin(ctx)

    def on_alive(self, ctx: Context, member: MemberId) -> None:
        self.dead.discard(member)
        view = ctx.view
        if self.open or self.leader is None:
            return
        if member in view and self.leader in view:
            if not self.choice.better(view.candidate(member), view.candidate(self.leader)):
                return  # even if it was better when its id arrived
            if member not in self.heard:
                self.begin(ctx)  # two parts of a group meet again
                return
        if member in self.heard:
            self.conclude(ctx)

    def state(self) -> str:
        return f"leader={self.leader} term={self.term} round={self.round} open={self.open}"
