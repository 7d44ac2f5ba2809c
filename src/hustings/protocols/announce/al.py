"""AL: every member announces itself for ever. A baseline: announce and listen without an election.

Model      Multicast with loss and a delay of at most delta.
Idea       Announce yourself every T_A, and hold the best member whose announcement you received.
Invariant  What a member holds only gets better, until it expires.
Cost       N messages per T_A, for ever.
Guarantee  Advisory.
Paper      Announce-listen thesis, chapter 4, as chapter 5 uses it (5.4.2).

Of all states that a member would hold, this file keeps only the best: it is the one that the
measure of convergence needs. With a finite T_L it expires after that much silence. Then the member
holds itself, and receives the announcements of the others within T_A.
"""

from __future__ import annotations

from typing import ClassVar

from hustings.core.choice import Candidate, Choice, MemberId
from hustings.core.context import Context, TimerKey
from hustings.core.election import About, Assumptions, Election, upon
from hustings.core.errors import BadInput
from hustings.core.messages import Message
from hustings.core.outcome import Guarantee
from hustings.protocols.announce.following import LISTEN_TIMER, rankable
from hustings.protocols.announce.machine import ANNOUNCE_TIMER, MAX_TERM
from hustings.protocols.announce.messages import AnnounceMsg
from hustings.protocols.announce.settings import AlConfig


class Al(Election):
    """Every member announces itself, and none defers."""

    __slots__ = ("best", "config", "number", "reign")

    about = About(
        name="al",
        family="announce",
        paper="Announce-listen thesis, chapters 4 and 5",
        idea="baseline: every member announces itself for ever, and holds the best it has heard",
        model="lossy multicast",
        guarantee=Guarantee.ADVISORY,
        cost="N messages per T_A",
        promises="in the end all hold the best alive, if messages arrive; a baseline",
    )
    assumptions = Assumptions(reliable=False, announces=True)
    Settings = AlConfig
    messages: ClassVar[tuple[type[Message], ...]] = (AnnounceMsg,)
    config: AlConfig

    def __init__(self, config: AlConfig, choice: Choice) -> None:
        super().__init__(config, choice)
        self.best = Candidate(0)
        self.number = 0
        self.reign = 0  # the term of this incarnation

    def start(self, ctx: Context) -> None:
        self.recall(ctx)
        self.reign = min(self.term + 1, MAX_TERM)
        self.hold(ctx, ctx.me, self.reign)
        ctx.set_timer(ANNOUNCE_TIMER, 0.0, eager=True)

    def hold(self, ctx: Context, candidate: Candidate, term: int) -> None:
        """Hold the best candidate so far."""
        if candidate.id == ctx.me.id:
            ctx.cancel_timer(LISTEN_TIMER)
        self.best = candidate
        self.elect(ctx, candidate.id, term)
        self.remember(ctx)

    def on_timer(self, ctx: Context, key: TimerKey) -> None:
        if key == LISTEN_TIMER:
            self.hold(ctx, ctx.me, self.term)
            return
        self.speak(ctx)
        ctx.set_timer(ANNOUNCE_TIMER, self.config.T_A, eager=True)

    def speak(self, ctx: Context) -> None:
        """Announce this member."""
        if self.leader == ctx.me.id:
            self.best = ctx.me  # its attributes may have changed
        elif self.choice.better(ctx.me, self.best):
            self.hold(ctx, ctx.me, self.term)
        self.number += 1
        ctx.multicast(AnnounceMsg(self.reign, self.number, ctx.me))

    def patience(self, ctx: Context) -> float:
        """How long a state is held without a new announcement."""
        return self.config.listen

    @upon(AnnounceMsg)
    def on_announce(self, ctx: Context, sender: MemberId, message: AnnounceMsg) -> None:
        candidate = message.candidate
        if sender != candidate.id or sender == ctx.me.id:
            return
        held = sender == self.leader
        if held and candidate == self.best:
            ctx.set_timer(LISTEN_TIMER, self.patience(ctx))
            return  # else it has changed
        try:
            better = self.choice.better(candidate, ctx.me if held else self.best)
        except BadInput:
            return  # it lacks an attribute that the choice ranks by
        if better and rankable(self.choice.key(candidate)):
            self.hold(ctx, candidate, max(self.term, min(message.term, MAX_TERM)))
            ctx.set_timer(LISTEN_TIMER, self.patience(ctx))
        elif held:
            self.hold(ctx, ctx.me, self.term)

    def on_suspect(self, ctx: Context, member: MemberId) -> None:
        if member == self.leader and member != ctx.me.id:
            self.hold(ctx, ctx.me, self.term)

    def assume_leader(self, ctx: Context, leader: MemberId, term: int) -> None:
        """Every member has just received its announcement; the announcements go on."""
        super().assume_leader(ctx, leader, term)
        self.reign = term
        self.best = ctx.view.candidate(leader) if leader in ctx.view else Candidate(leader)
        if leader != ctx.me.id:
            ctx.set_timer(LISTEN_TIMER, self.patience(ctx))
        elif self.number:
            ctx.cancel_timer(LISTEN_TIMER)  # of the member that I held before
        ctx.set_timer(ANNOUNCE_TIMER, self.config.T_A, eager=True)
