"""What an observer knows of the leader: others' reports, and their age.

Leaders tell observers at every change and from time to time. An observer that has heard nothing for
a while asks. An observer that has heard nothing for long has no leader any more.
"""

from __future__ import annotations

from hustings.core.choice import MemberId
from hustings.core.context import Context
from hustings.core.outcome import ELECTING, Elected, NoLeader, Outcome
from hustings.layers.leadership.config import LeadershipConfig
from hustings.layers.leadership.messages import LeaderQueryMsg

UNHEARD = "nobody has told of a leader for long"


class ObserverState:
    """One observer's knowledge."""

    __slots__ = ("heard", "leaders", "settings", "term", "told")

    def __init__(self, settings: LeadershipConfig) -> None:
        self.settings = settings
        self.leaders: tuple[MemberId, ...] = ()
        self.term = 0
        self.heard = 0.0  # when it last heard of these leaders
        self.told: Outcome | None = None

    def start(self, ctx: Context) -> None:
        """Continue from the stored term."""
        stored = ctx.stored.get("term")
        if isinstance(stored, int):
            self.term = max(self.term, stored)
        self.heard = ctx.now()
        self.say(ctx, NoLeader(ELECTING))

    def hear(
        self, ctx: Context, sender: MemberId, leaders: tuple[MemberId, ...], term: int
    ) -> None:
        """Note a report of leaders. Of two reports in one term the first stays."""
        first = leaders[0]
        if first == ctx.me.id or (first != sender and first not in ctx.view):
            return  # no member here knows that the leader is alive
        if term < self.term:
            if not self.leaders and first in ctx.view:
                ctx.send(first, LeaderQueryMsg(self.term))  # so that it leads in a later term
            return
        if term == self.term and self.leaders and leaders[0] != self.leaders[0]:
            return
        self.heard = ctx.now()
        if term > self.term:
            ctx.persist(term=term)
        self.leaders, self.term = leaders, term
        self.say(ctx, Elected(leaders[0], term))

    def lose(self, ctx: Context, member: MemberId) -> None:
        """Gossip takes a member for dead."""
        if member in self.leaders:
            self.leaders = tuple(each for each in self.leaders if each != member)
            if self.leaders:
                self.say(ctx, Elected(self.leaders[0], self.term))
            else:
                self.forget(ctx, ELECTING)

    def forget(self, ctx: Context, reason: str) -> None:
        """Have no leader any more."""
        self.leaders = ()
        self.say(ctx, NoLeader(reason))

    def tick(self, ctx: Context, electors: list[MemberId]) -> None:
        """Check whether the report is still fresh."""
        silence = ctx.now() - self.heard
        if self.leaders and silence > self.settings.leaderless_limit:
            self.forget(ctx, UNHEARD)
        if electors and (not self.leaders or silence > 1.5 * self.settings.informing):
            ctx.send(ctx.rng.choice(electors), LeaderQueryMsg(self.term))

    def say(self, ctx: Context, outcome: Outcome) -> None:
        """Tell the owner what is new."""
        if outcome != self.told:
            self.told = outcome
            ctx.declare(outcome)
