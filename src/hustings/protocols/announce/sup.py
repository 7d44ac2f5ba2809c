"""SUP: suppression alone, at most one message per member. A baseline, and no election.

Model      Multicast with loss and a delay of at most delta.
Idea       Sleep a random time t in [0, T_S]; send, unless any message has arrived before.
Invariant  A member sends at most once in a round.
Cost       N delta/T_S + 1 messages without loss, on average; one round.
Guarantee  None: each member follows the first sender that it received, and senders follow
           themselves.
Paper      Announce-listen thesis, chapters 2 and 3, as chapter 5 uses them (5.4).

An election that is called, or a leader that is suspected, begins another round. Rounds have terms,
so a late message of an earlier round silences no member.
"""

from __future__ import annotations

from typing import ClassVar

from hustings.core.choice import Choice, MemberId
from hustings.core.context import Context, TimerKey
from hustings.core.election import About, Assumptions, Election, upon
from hustings.core.messages import Message
from hustings.core.outcome import ELECTING, Guarantee
from hustings.protocols.announce.laws import instant
from hustings.protocols.announce.machine import MAX_TERM, SUPPRESS, SUPPRESS_TIMER
from hustings.protocols.announce.messages import AnnounceMsg
from hustings.protocols.announce.settings import SupConfig

DONE = "done"


class Sup(Election):
    """One round of suppression."""

    __slots__ = ("config", "phase")

    about = About(
        name="sup",
        family="announce",
        paper="Announce-listen thesis, chapters 2, 3 and 5",
        idea="baseline: sleep, and send once unless a message has arrived",
        model="lossy multicast",
        guarantee=Guarantee.ADVISORY,
        cost="N delta/T_S + 1 messages, one round",
        promises="no agreement: members follow the first sender they hear; a baseline for le-s",
    )
    assumptions = Assumptions(
        reliable=False,
        displaces=False,
        agrees=False,
        announces=True,
        repeats=False,
        ranks_by="who is heard first",
    )
    Settings = SupConfig
    messages: ClassVar[tuple[type[Message], ...]] = (AnnounceMsg,)
    config: SupConfig

    def __init__(self, config: SupConfig, choice: Choice) -> None:
        super().__init__(config, choice)
        self.phase = DONE

    def start(self, ctx: Context) -> None:
        self.recall(ctx)
        self.begin(ctx)

    def call(self, ctx: Context) -> None:
        self.begin(ctx)

    def on_suspect(self, ctx: Context, member: MemberId) -> None:
        if member == self.leader:
            self.begin(ctx)

    def begin(self, ctx: Context) -> None:
        """Begin a round: sleep."""
        if self.phase == SUPPRESS:
            return
        self.phase = SUPPRESS
        self.disown(ctx, ELECTING)
        config = self.config
        u = ctx.rng.random()
        ctx.set_timer(SUPPRESS_TIMER, instant(config.law, config.lam, config.T_S, u), eager=True)

    def on_timer(self, ctx: Context, key: TimerKey) -> None:
        """Send: no message has arrived."""
        self.decide(ctx, ctx.me.id, min(self.term + 1, MAX_TERM))
        ctx.multicast(AnnounceMsg(self.term, 1, ctx.me))

    @upon(AnnounceMsg)
    def on_announce(self, ctx: Context, sender: MemberId, message: AnnounceMsg) -> None:
        if self.term < message.term <= MAX_TERM and sender != ctx.me.id:
            self.decide(ctx, sender, message.term)

    def decide(self, ctx: Context, leader: MemberId, term: int) -> None:
        """End the round for this member."""
        self.phase = DONE
        ctx.cancel_timer(SUPPRESS_TIMER)
        self.elect(ctx, leader, term)
        self.remember(ctx)

    def assume_leader(self, ctx: Context, leader: MemberId, term: int) -> None:
        super().assume_leader(ctx, leader, term)
        self.phase = DONE
        ctx.cancel_timer(SUPPRESS_TIMER)

    def state(self) -> str:
        return f"leader={self.leader} term={self.term} {self.phase}"
