"""LE-M: who wakes first leads. `le-s` with the wake-up time for the criterion.

Model      Multicast with loss and a delay of at most delta; members come, go and crash unnoticed.
           With key=absolute clocks are compared: they should be roughly synchronised.
Idea       Members stand with the time at which they wake; the earliest is the best, then the
           higher id. A member that speaks has woken early, so one message silences all who sleep.
Invariant  As `machine.py`. With key=absolute nobody who comes later unseats a living leader.
Cost       At a simultaneous start without loss N delta/T_S + 1 messages, T_S/(N+1) and a delay.
Guarantee  Advisory.
Paper      Announce-listen thesis, chapter 5, "other definitions of leadership"; 5.4.

The thesis does not say whether the key is the instant of waking or the time slept. The instant is
the default: by the time slept, a newcomer would unseat the leader with probability 1/(N+1) for
nothing. The key is drawn anew at every sleep, and a listener, who does not sleep, has none.
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
    """The machine with the wake-up time for an attribute."""

    __slots__ = ()

    about = About(
        name="le-m",
        family="announce",
        paper="Announce-listen thesis, chapter 5, minimal wake-up time",
        idea="sleep; who wakes first leads, and its first announcement silences the sleepers",
        model="lossy multicast, members come, go and crash; clocks alike (key=absolute)",
        guarantee=Guarantee.ADVISORY,
        cost="N delta/T_S + 1 messages to start, T_S/(N+1) + delta; then 1 per T_A",
        promises="in the end one living leader, not the best by the choice function; "
        "no exclusivity, and a dead leader is believed in for up to T_L",
    )
    assumptions = Assumptions(reliable=False, displaces=False, announces=True)
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
            # Rounded, so that one instant is one key whichever way it was added up.
            key = slept if self.config.key == "relative" else round(ctx.now() + slept, 8)
        return Candidate(member.id, (("wake", key),))

    def incumbent(self, ctx: Context, member: Candidate) -> Candidate:
        # The earliest of as many sleepers as I know; all must work out the same, so none is drawn.
        config = self.config
        slept = 0.0
        if config.key == "relative" and config.interval:
            earliest = 1 / (len(ctx.view) + 1)
            slept = instant(config.law, config.lam, config.interval, earliest)
        return self.standing(ctx, member, slept)

    def reconsider(self, ctx: Context) -> None:
        self.me = ctx.me  # attributes do not matter here
