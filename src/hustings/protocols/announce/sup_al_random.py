"""SUP+AL with random announcers: in every interval of T_A suppression draws which members announce.

Model      Multicast with loss and a delay of at most delta; members join, leave and crash
           unnoticed.
Idea       In every interval sleep a random time t in [0, T_S] and announce yourself, unless a
           message has arrived in this interval; hold the best member that you have heard of.
Invariant  In every interval some member sends: a silent member has received another's message.
           What a member holds only gets better, until it expires.
Cost       In every interval as many messages as one round of sup: N delta/T_S + 1 without loss,
           where al takes N.
Guarantee  Advisory.
Paper      Announce-listen thesis, chapter 5, section 5.7, "Composition and parameterization".

No member is silent for longer than an interval, so members cannot deadlock as in `sup-al`: they
hold states as in `al`. The cost is time. All members have the same chance to send. So the best is
heard only after N / (messages per interval) intervals on average; hence T_L grows with the group.

With suppress=false no member skips its turn: the sleep only spreads N announcements over T_S. The
thesis found this in use.
"""

from __future__ import annotations

from hustings.core.choice import MemberId
from hustings.core.context import Context, TimerKey
from hustings.core.election import About, upon
from hustings.core.outcome import Guarantee
from hustings.protocols.announce.al import Al
from hustings.protocols.announce.laws import instant
from hustings.protocols.announce.machine import ANNOUNCE_TIMER, SUPPRESS_TIMER
from hustings.protocols.announce.messages import AnnounceMsg
from hustings.protocols.announce.settings import SupAlRandomConfig


class SupAlRandom(Al):
    """AL whose announcers are drawn anew in every interval."""

    __slots__ = ()

    about = About(
        name="sup-al-random",
        family="announce",
        paper="Announce-listen thesis, chapter 5, section 5.7",
        idea="in every interval sleep, and announce yourself unless a message arrives in it",
        model="lossy multicast",
        guarantee=Guarantee.ADVISORY,
        cost="N delta/T_S + 1 messages per T_A",
        promises="in the end all hold the best alive, if messages arrive; the best has to wait for "
        "its turn to be heard; a study",
    )
    Settings = SupAlRandomConfig
    config: SupAlRandomConfig

    def on_timer(self, ctx: Context, key: TimerKey) -> None:
        if key == ANNOUNCE_TIMER:
            config = self.config
            t = instant(config.law, config.lam, config.T_S, ctx.rng.random())
            ctx.set_timer(SUPPRESS_TIMER, t, eager=True)
            ctx.set_timer(ANNOUNCE_TIMER, config.T_A, eager=True)
        elif key == SUPPRESS_TIMER:
            self.speak(ctx)
        else:
            super().on_timer(ctx, key)

    @upon(AnnounceMsg)
    def on_announce(self, ctx: Context, sender: MemberId, message: AnnounceMsg) -> None:
        if self.config.suppress and sender != ctx.me.id:
            ctx.cancel_timer(SUPPRESS_TIMER)
        super().on_announce(ctx, sender, message)

    def patience(self, ctx: Context) -> float:
        """Long enough for each member to have a few turns, where no T_L is given."""
        if self.config.T_L is not None or not self.config.suppress:
            return self.config.listen
        return self.config.listen * len(ctx.view)
