"""LE-M: the member that wakes first leads; `le-s` with the wake-up time as criterion.

Model      Multicast with loss and a delay of at most delta; members join, leave and crash
           unnoticed. With key=absolute clocks are compared: they should be roughly synchronised.
Idea       Each member stands with the time at which it wakes. The earliest is the best, then the
           higher id. A member that sends has woken early, so one message silences all that sleep.
Invariant  As `machine.py`. With key=absolute no later member replaces a live leader.
Cost       At a simultaneous start without loss N delta/T_S + 1 messages, T_S/(N+1) and a delay.
Guarantee  Advisory.
Paper      Announce-listen thesis, chapter 5, "other definitions of leadership"; 5.4.

The thesis does not say whether the key is the instant of waking or the time slept. The instant is
the default. By the time slept, a new member would replace the leader with probability 1/(N+1)
without need. A member draws a new key at every sleep. A listener does not sleep, so it has no key.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from hustings.core.choice import Candidate, Choice
from hustings.core.context import Context
from hustings.core.election import About, Assumptions
from hustings.core.outcome import Guarantee
from hustings.protocols.announce.laws import instant
from hustings.protocols.announce.machine import Machine
from hustings.protocols.announce.settings import LeMConfig


@dataclass(frozen=True, slots=True)
class Earliest(Choice):
    """The earliest wake-up wins, then the higher id: `lowest:wake`, asked at every message."""

    @property
    def name(self) -> str:
        return "lowest:wake"

    def key(self, candidate: Candidate) -> tuple[float, ...]:
        return (-candidate.attribute("wake"), candidate.id)


class LeM(Machine):
    """The state machine with the wake-up time as attribute."""

    __slots__ = ()

    about = About(
        name="le-m",
        family="announce",
        paper="Announce-listen thesis, chapter 5, minimal wake-up time",
        idea="sleep; the member that wakes first leads, and its announcement silences the others",
        model="lossy multicast, members join, leave and crash; synchronised clocks (key=absolute)",
        guarantee=Guarantee.ADVISORY,
        cost="N delta/T_S + 1 messages to start, T_S/(N+1) + delta; then 1 per T_A",
        promises="in the end one living leader, not the best by the choice function; "
        "no exclusivity, and members follow a dead leader for up to T_L",
    )
    assumptions = Assumptions(
        reliable=False, displaces=False, announces=True, ranks_by="the time of waking"
    )
    Settings = LeMConfig
    config: LeMConfig

    def criterion(self) -> Choice:
        return Earliest()

    def sleep(self, ctx: Context) -> float:
        config = self.config
        if not config.interval:
            return 0.0
        return instant(config.law, config.lam, config.interval, ctx.rng.random())

    def standing(self, ctx: Context, member: Candidate, slept: float | None) -> Candidate:
        if slept is None:
            key = inf
        else:
            # Rounded, so that one instant is one key in whatever order it was summed.
            key = slept if self.config.key == "relative" else round(ctx.now() + slept, 8)
        return Candidate(member.id, (("wake", key),))

    def incumbent(self, ctx: Context, member: Candidate) -> Candidate:
        # The earliest of as many sleepers as I know. It is not drawn, because all members must work
        # out the same.
        config = self.config
        slept = 0.0
        if config.key == "relative" and config.interval:
            earliest = 1 / (len(ctx.view) + 1)
            slept = instant(config.law, config.lam, config.interval, earliest)
        return self.standing(ctx, member, slept)

    def reconsider(self, ctx: Context) -> None:
        self.me = ctx.me  # attributes do not matter here
