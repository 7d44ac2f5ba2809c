"""LE-S: suppression, then announcements; a member that hears a better one in time never announces.

Model      Multicast with loss and a delay of at most delta; members join, leave and crash
           unnoticed.
Idea       Sleep a random time t in [0, T_S]; announce unless a better member has announced by then.
Invariant  As `machine.py`.
Cost       At a simultaneous start without loss N delta/T_S + H_N - delta/T_S messages on average;
           in time the sleep of the best, T_S/2, and a delay.
Guarantee  Advisory.
Paper      Announce-listen thesis, chapter 5: Program 5.2, Figure 5.2.

With wake=criterion the sleep is no longer random: the better a member's place in its view, the
earlier it wakes. So the best announces first, and hardly any other member does. The thesis
recommends this in general; `le-m` reverses it and makes the wake-up time the criterion. With
wake=linked place and chance are mixed, in the proportion `link`. Then a better member probably
wakes earlier, and members whose views are wrong or whose best is dead still do not all wake at
once.
"""

from __future__ import annotations

from hustings.core.context import Context
from hustings.core.election import About
from hustings.core.outcome import Guarantee
from hustings.protocols.announce.laws import instant, place
from hustings.protocols.announce.machine import Machine
from hustings.protocols.announce.settings import LeSConfig


class LeS(Machine):
    """Program 5.2."""

    __slots__ = ()

    about = About(
        name="le-s",
        family="announce",
        paper="Announce-listen thesis, chapter 5, Program 5.2",
        idea="sleep, and announce yourself unless a better one has; then listen, and begin anew",
        model="lossy multicast, members join, leave and crash; no detector, no view needed",
        guarantee=Guarantee.ADVISORY,
        cost="N delta/T_S + H_N messages to start, T_S/2 + delta; then 1 per T_A",
        promises="in the end one leader, the best alive, however many messages are lost; "
        "no exclusivity, and members follow a dead leader for up to T_L",
    )
    Settings = LeSConfig
    config: LeSConfig

    def sleep(self, ctx: Context) -> float:
        config = self.config
        if not config.interval:
            return 0.0
        link = {"random": 0.0, "criterion": 1.0, "linked": config.link}[config.wake]
        u = link * place(ctx.view, self.choice, ctx.me.id) if link else 0.0
        if link < 1.0:
            u += (1.0 - link) * ctx.rng.random()
        return instant(config.law, config.lam, config.interval, u)
