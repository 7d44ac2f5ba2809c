"""SUP+AL: suppression unchanged, then announcements; the first sender received is elected.

Model      Multicast with loss and a delay of at most delta; members join, leave and crash
           unnoticed.
Idea       Sleep a random time t in [0, T_S], then announce yourself every T_A, unless a message of
           any member arrives: then follow its sender, and begin anew after T_L of silence.
Invariant  A member sleeps, announces, or listens to the member that it received first.
Cost       N delta/T_S + 1 messages to start without loss, as sup; then 1 per T_A and announcer.
Guarantee  None: several may lead, and with yields all may defer to each other, without a leader.
Paper      Announce-listen thesis, chapter 5, section 5.7, "Composition and parameterization".

The thesis asks whether such an election would be of use, and names its faults. Members have no
order here, so two that hear each other both defer: A hears B, B hears C, C hears A. For such a
deadlock all must have sent, so a member that announces must defer as well as one that sleeps. With
yields=false it does not, as in SUP, where a member that has sent is done. Then the first sender
leads permanently, and so does every member that sends before it receives a message.

SUP knows no T_L, and in the simulator a start has none either. With a T_L, members that have
deadlocked begin anew after T_L, and may deadlock again.
"""

from __future__ import annotations

from typing import ClassVar

from hustings.core.choice import Choice, MemberId
from hustings.core.context import Context, TimerKey
from hustings.core.election import About, Assumptions, Election, upon
from hustings.core.messages import Message
from hustings.core.outcome import ELECTING, Guarantee
from hustings.protocols.announce.following import LISTEN_TIMER
from hustings.protocols.announce.laws import instant
from hustings.protocols.announce.machine import (
    ANNOUNCE,
    ANNOUNCE_TIMER,
    LISTEN,
    MAX_TERM,
    SUPPRESS,
    SUPPRESS_TIMER,
)
from hustings.protocols.announce.messages import AnnounceMsg
from hustings.protocols.announce.settings import SupAlConfig


class SupAl(Election):
    """An election by the first message received."""

    __slots__ = ("config", "number", "phase", "reign")

    about = About(
        name="sup-al",
        family="announce",
        paper="Announce-listen thesis, chapter 5, section 5.7",
        idea="sleep, and announce yourself unless a message arrives; its sender is elected",
        model="lossy multicast",
        guarantee=Guarantee.ADVISORY,
        cost="N delta/T_S + 1 messages to start; then 1 per T_A and announcer",
        promises="nothing: several may lead, or all defer to each other and none leads; "
        "sup-al-random does not deadlock, le-s elects",
    )
    assumptions = Assumptions(
        reliable=False,
        displaces=False,
        agrees=False,
        announces=True,
        ranks_by="who is heard first",
    )
    Settings = SupAlConfig
    messages: ClassVar[tuple[type[Message], ...]] = (AnnounceMsg,)
    config: SupAlConfig

    def __init__(self, config: SupAlConfig, choice: Choice) -> None:
        super().__init__(config, choice)
        self.phase = SUPPRESS
        self.number = 0  # announcements of my present leadership
        self.reign = 0  # its term

    def start(self, ctx: Context) -> None:
        self.recall(ctx)
        self.suppress(ctx)

    def call(self, ctx: Context) -> None:
        if self.phase == LISTEN:
            self.suppress(ctx)

    def on_suspect(self, ctx: Context, member: MemberId) -> None:
        if self.phase == LISTEN and member == self.leader:
            self.suppress(ctx)

    def suppress(self, ctx: Context) -> None:
        """Follow no member, and sleep."""
        self.phase = SUPPRESS
        ctx.cancel_timer(LISTEN_TIMER)
        self.disown(ctx, ELECTING)
        config = self.config
        t = instant(config.law, config.lam, config.T_S, ctx.rng.random())
        ctx.set_timer(SUPPRESS_TIMER, t, eager=True)

    def on_timer(self, ctx: Context, key: TimerKey) -> None:
        if key == LISTEN_TIMER:
            self.suppress(ctx)
            return
        if self.phase != ANNOUNCE:
            self.phase = ANNOUNCE
            self.number = 0
            self.reign = min(self.term + 1, MAX_TERM)
            self.elect(ctx, ctx.me.id, self.reign)
            self.remember(ctx)
        self.number += 1
        ctx.multicast(AnnounceMsg(self.reign, self.number, ctx.me))
        ctx.set_timer(ANNOUNCE_TIMER, self.config.T_A, eager=True)

    @upon(AnnounceMsg)
    def on_announce(self, ctx: Context, sender: MemberId, message: AnnounceMsg) -> None:
        if sender == ctx.me.id or message.term < 1:
            return
        if self.phase == LISTEN and sender != self.leader:
            return
        if self.phase == LISTEN and message.term <= self.term:
            ctx.set_timer(LISTEN_TIMER, self.config.listen)
        elif self.phase != ANNOUNCE or self.config.yields:
            self.defer(ctx, sender, message.term)

    def defer(self, ctx: Context, sender: MemberId, term: int) -> None:
        """Follow the sender as leader."""
        self.phase = LISTEN
        ctx.cancel_timer(SUPPRESS_TIMER)
        ctx.cancel_timer(ANNOUNCE_TIMER)
        self.elect(ctx, sender, max(self.term, min(term, MAX_TERM)))
        self.remember(ctx)
        ctx.set_timer(LISTEN_TIMER, self.config.listen)

    def assume_leader(self, ctx: Context, leader: MemberId, term: int) -> None:
        """Enter a steady state: every member has just received an announcement of `leader`."""
        super().assume_leader(ctx, leader, term)
        ctx.cancel_timer(SUPPRESS_TIMER)
        if leader == ctx.me.id:
            self.phase = ANNOUNCE
            self.number = 1
            self.reign = term
            ctx.cancel_timer(LISTEN_TIMER)
            ctx.set_timer(ANNOUNCE_TIMER, self.config.T_A, eager=True)
        else:
            self.phase = LISTEN
            ctx.cancel_timer(ANNOUNCE_TIMER)
            ctx.set_timer(LISTEN_TIMER, self.config.listen)

    def state(self) -> str:
        return f"leader={self.leader} term={self.term} {self.phase}"
