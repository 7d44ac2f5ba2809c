"""Broadcast: everybody tells everybody its id, and each picks the best.

Model      Synchronous and complete: a message to a live member arrives within delta. The view
           holds the live members; somebody repairs it.
Idea       START to all others; a member that hears of the round sends its ID to all others; with
           all ids in, or after T, each decides for the best it has heard of.
Invariant  Two members that have heard the same ids of a round take the same leader.
Cost       (N-1) + N(N-1) messages, N(N-1) if the start carries the id, in 2 delays; each further
           simultaneous initiator costs N-1 STARTs more, or nothing. N counts the live members.
Guarantee  Advisory. A member that crashes while it sends its id, or is slower than T, is counted
           by some and not by others, who then take different leaders; see below.
Paper      Elections lecture, "Trivial Solution".

The slide asks for the potential problems. They are met as follows. A dead member would block all:
T ends the wait, and so does a suspicion. The best member may crash having told only some: these
take a dead leader until their detector suspects it, which starts the next round; without a
detector the disagreement stays. Several may start at once: a START heard in a round under way
starts nothing new. Messages of an earlier round are dropped, for each carries the number of its
round, which is also the term; an id of the present round that comes after the decision still
counts, so a member that T cut off repairs the others' decision by speaking at last. T = 3 delta
lets one initiator crash in the middle of its STARTs; each further crash of that kind in a row
delays the news by delta and is repaired in the same way. A START from the past is answered by an
id, which tells its sender the present round; a member back from a crash sends START 0 to learn
it, and then starts the next one.

A suspicion and an id contradict each other: the later word counts, and a round makes earlier
suspicions void. So a wrong suspicion does not change the result of the round it causes, but a
detector faster than the network (a suspicion that overtakes the last words of the dead) may leave
a dead leader in place.
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
UNKNOWN = 0  # the round of a START whose sender has been away


class StartMsg(Message, frozen=True, tag="START"):
    """A round begins; in the combined form it carries its sender's id."""

    role: ClassVar[Role] = Role.ELECTION
    round: Term
    me: Candidate | None = None


class IdMsg(Message, frozen=True, tag="ID"):
    """Here I am."""

    role: ClassVar[Role] = Role.ANSWER
    round: Term
    me: Candidate


class BroadcastConfig(Config, frozen=True, kw_only=True):
    """The one timer, and whether the start carries the id."""

    T: Annotated[float, Meta(gt=0, description="wait for all ids; default 3 delta")] | None = None
    combined: Annotated[bool, Meta(description="START carries its sender's id")] = False

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
        idea="everybody tells everybody its id; each picks the best",
        model="synchronous, complete, live view, crash and recovery, failure detector",
        guarantee=Guarantee.ADVISORY,
        cost="(N-1)+N(N-1) messages, N(N-1) combined; 2 delays",
        promises="one leader, the best alive, if nobody crashes in mid-broadcast or the detector "
        "then tells; no exclusivity otherwise",
    )
    assumptions = Assumptions(live_view=True)
    Settings = BroadcastConfig
    messages = (StartMsg, IdMsg)
    config: BroadcastConfig

    def __init__(self, config: BroadcastConfig, choice: Choice) -> None:
        super().__init__(config, choice)
        self.round = 0  # the highest seen
        self.open = False  # whether I wait for ids ...
        self.asking = False  # ... only to learn which round it is
        self.heard: dict[MemberId, Candidate] = {}  # meanwhile, in the order of arrival
        self.dead: set[MemberId] = set()  # suspected since it began; only ever asked, never walked

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
        self.heard = {}  # of earlier rounds, or of one that is over
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
        """Take part in a round that somebody else started."""
        self.round = number
        self.asking = False
        self.tell(ctx, IdMsg(number, ctx.me))
        self.wait(ctx)

    def tell(self, ctx: Context, message: Message) -> None:
        for member in ctx.view:
            if member != ctx.me.id:
                ctx.send(member, message)

    def wait(self, ctx: Context) -> None:
        """From now on ids count."""
        self.open = True
        self.heard = {ctx.me.id: ctx.me}
        self.dead = set()  # earlier suspicions may be wrong: this round will show
        self.disown(ctx, ELECTING)
        ctx.set_timer(IDS, self.config.ids)
        self.look(ctx)

    # Hearing from others

    @upon(StartMsg)
    def on_start(self, ctx: Context, sender: MemberId, message: StartMsg) -> None:
        if message.round > self.round:
            self.join(ctx, message.round)
        elif self.asking:
            return
        elif message.round < self.round:
            # Its sender was away, or this is an old copy: my id says which round it is.
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
        """An id of the present round; one that comes late may change the decision."""
        if not self.heard:  # I know this round's leader, but took no part in it
            self.begin(ctx)
            return
        if not self.open and other.id not in self.heard:  # it may have missed my id, too
            ctx.send(other.id, IdMsg(self.round, ctx.me))
        self.heard[other.id] = other
        self.dead.discard(other.id)
        self.look(ctx)

    # Deciding

    def look(self, ctx: Context) -> None:
        """Wait no longer once nobody is missing."""
        if not self.open or self.complete(ctx):
            self.conclude(ctx)

    def complete(self, ctx: Context) -> bool:
        if len(self.heard) + len(self.dead) < len(ctx.view):
            return False  # the quick answer, nearly always
        return all(member in self.heard or member in self.dead for member in ctx.view)

    def conclude(self, ctx: Context) -> None:
        """Start the round that I asked for, or take the best one heard and not suspected since."""
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
                return  # also if it was better when it was heard
            if member not in self.heard:
                self.begin(ctx)  # two parts of a group meet again
                return
        if member in self.heard:
            self.conclude(ctx)

    def state(self) -> str:
        return f"leader={self.leader} term={self.term} round={self.round} open={self.open}"
