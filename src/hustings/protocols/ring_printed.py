"""Ring as printed: the slides for one and for several initiators, taken literally.

It exists to show how it fails; `ring` is the election that the slides mean.

Model      As `ring`: a ring of live members; messages to live members arrive.
Idea       Forward a greater candidate; replace a smaller one by oneself unless one "has forwarded
           an election message earlier". Remember the highest initiator seen, and suppress messages
           that lower ones started.
Invariant  None of use. A member puts its own name forward once in its lifetime.
Cost       With one initiator 2N to 3N-1, as `ring`; with several a little more, or a deadlock.
Guarantee  Advisory, and not even that: see below.
Paper      Elections lecture, "The Ring Election Protocol" (1) and (2) and "Multiple Initiators?".

What goes wrong:
- There is one flag for all runs. A member that sets the flag in a run that is suppressed later
  cannot stand in the run that goes on. Example: ring 1, 2, 4, 3 with initiators 1 and 3. Member 4
  stands in the run of 1, which 3 suppresses; the run of 3 ends at 4, and no member is elected. That
  is so in 13 of the 90 cases of four members, in 154 of the 744 of five.
- The flag is never reset. So in a later election only the initiator stands, and its message ends at
  the first better member.
- The cache is never emptied: what a lower id starts later is suppressed for ever.
- A candidate that dies on its way goes round for ever; only a limit ends such a run.

What cannot be taken literally: the slide does not say what happens to a smaller candidate at a
member that has forwarded before. It is dropped, or messages would go round for ever. To send one's
own message counts as forwarding, and notes its initiator in the cache. If the initiator were noted
only when the message comes round, the same cases would deadlock, one hop later. A member that is
told that the leader has gone initiates. One alone elects itself. ELECTED carries a term, as all
results here do.
"""

from __future__ import annotations

from typing import ClassVar

from hustings.core.choice import Candidate, Choice, MemberId
from hustings.core.context import Context
from hustings.core.election import About, Assumptions, Election, upon
from hustings.core.messages import Message, Role, Term
from hustings.core.outcome import ELECTING, Guarantee
from hustings.protocols.ring import PlacedConfig


class ElectionMsg(Message, frozen=True, tag="ELECTION"):
    """The best candidate so far, in the run of this initiator."""

    role: ClassVar[Role] = Role.ELECTION
    initiator: MemberId
    best: Candidate


class ElectedMsg(Message, frozen=True, tag="ELECTED"):
    """The result, on its way round the ring."""

    role: ClassVar[Role] = Role.COORDINATOR
    initiator: MemberId
    leader: MemberId
    term: Term


class RingPrintedConfig(PlacedConfig, frozen=True, kw_only=True):
    """The slides have no timer."""

    def warnings(self) -> list[str]:
        return ["the rules are wrong as printed: they are here to be seen failing"]


class RingPrinted(Election):
    """The slides, rule by rule."""

    __slots__ = ("cache", "config", "forwarded")

    about = About(
        name="ring-printed",
        family="ring",
        paper="Elections lecture, chapter 15, ring election and multiple initiators",
        idea="the slides' rules with one flag for all runs, which show how they fail",
        model="asynchronous ring, reliable links, no crash during the run",
        guarantee=Guarantee.ADVISORY,
        cost="2N to 3N-1 messages and delays with one initiator",
        promises="nothing: two initiators may deadlock, and no second election works; use ring",
    )
    assumptions = Assumptions(live_view=True)
    Settings = RingPrintedConfig
    messages = (ElectionMsg, ElectedMsg)
    config: RingPrintedConfig

    def __init__(self, config: RingPrintedConfig, choice: Choice) -> None:
        super().__init__(config, choice)
        self.forwarded = False  # "has forwarded an election message earlier": one flag
        self.cache: MemberId = 0  # the highest initiator of all messages sent or received

    # The initiator

    def call(self, ctx: Context) -> None:
        self.initiate(ctx)

    def on_suspect(self, ctx: Context, member: MemberId) -> None:
        if member == self.leader:
            self.initiate(ctx)

    def initiate(self, ctx: Context) -> None:
        """Send an Election message that contains my own id:attr."""
        self.disown(ctx, ELECTING)
        self.cache = max(self.cache, ctx.me.id)
        self.forward(ctx, ElectionMsg(ctx.me.id, ctx.me))

    def forward(self, ctx: Context, message: ElectionMsg | ElectedMsg) -> None:
        """Send to the neighbour clockwise."""
        if isinstance(message, ElectionMsg):
            self.forwarded = True
        successor = self.config.successor(ctx, ())
        if successor is not None:
            ctx.send(successor, message)
        elif self.leader != ctx.me.id:
            self.elect(ctx, ctx.me.id, self.term + 1)

    # Every member

    def is_suppressed(self, initiator: MemberId) -> bool:
        """Whether the initiator is lower than the highest seen; a higher one updates the cache."""
        self.cache = max(self.cache, initiator)
        return initiator < self.cache

    @upon(ElectionMsg)
    def on_election(self, ctx: Context, sender: MemberId, message: ElectionMsg) -> None:
        if self.is_suppressed(message.initiator):
            return
        if message.best.id == ctx.me.id:
            self.elect(ctx, ctx.me.id, self.term + 1)
            self.forward(ctx, ElectedMsg(message.initiator, ctx.me.id, self.term))
        elif self.choice.better(message.best, ctx.me):
            self.forward(ctx, message)
        elif not self.forwarded:
            self.forward(ctx, ElectionMsg(message.initiator, ctx.me))

    @upon(ElectedMsg)
    def on_elected(self, ctx: Context, sender: MemberId, message: ElectedMsg) -> None:
        if self.is_suppressed(message.initiator) or message.leader == ctx.me.id:
            return
        self.elect(ctx, message.leader, max(self.term, message.term))
        self.forward(ctx, message)

    def state(self) -> str:
        flag = " forwarded" if self.forwarded else ""
        return f"leader={self.leader} term={self.term} cache={self.cache}{flag}"
