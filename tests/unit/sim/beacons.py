"""A small election that announces, with nothing left to chance: members wake when they are told to.

The attribute `wake` says how long a member sleeps before it announces itself. `L` is how long it
listens to a leader that is silent; `once` makes it speak once and rest.
"""

from __future__ import annotations

from typing import ClassVar

from hustings.core.choice import HighestId, MemberId
from hustings.core.config import Config
from hustings.core.context import Context, TimerKey
from hustings.core.election import About, Assumptions, Election, upon
from hustings.core.messages import Message, Role
from hustings.core.outcome import ELECTING, Guarantee
from hustings.sim.delay import Fixed
from hustings.sim.experiment import Experiment
from hustings.sim.network import Network
from hustings.sim.queue import END_OF_TIME
from hustings.sim.scenarios import Scenario


class HereMsg(Message, frozen=True, tag="HERE"):
    """I lead."""

    role: ClassVar[Role] = Role.COORDINATOR


class ByeMsg(Message, frozen=True, tag="BYE"):
    """I am gone."""


class BeaconConfig(Config, frozen=True, kw_only=True):
    """A period, and how much silence a listener bears."""

    T: float = 1.0
    L: float = float("inf")
    once: bool = False
    byes: int = 0
    gap: float = 0.0


class Beacon(Election):
    """Follows the highest id that it hears."""

    about = About(
        name="beacon",
        family="none",
        paper="none",
        idea="announce",
        model="any",
        guarantee=Guarantee.ADVISORY,
        cost="some",
        promises="nothing",
    )
    assumptions = Assumptions(reliable=False, announces=True)
    Settings = BeaconConfig
    messages = (HereMsg, ByeMsg)
    config: BeaconConfig

    def start(self, ctx: Context) -> None:
        self.disown(ctx, ELECTING)
        ctx.set_timer("here", ctx.me.attribute("wake"), eager=True)

    def on_timer(self, ctx: Context, key: TimerKey) -> None:
        if key == "listen":
            self.start(ctx)
            return
        if key == "bye":
            ctx.multicast(ByeMsg())
            return
        if self.leader != ctx.me.id:
            self.elect(ctx, ctx.me.id, self.term + 1)
        ctx.multicast(HereMsg())
        if not self.config.once:
            ctx.set_timer("here", self.config.T, eager=True)

    @upon(HereMsg)
    def on_here(self, ctx: Context, sender: MemberId, message: HereMsg) -> None:
        if sender > max(self.leader or 0, ctx.me.id):
            self.elect(ctx, sender, self.term + 1)
            ctx.cancel_timer("here")
        if sender == self.leader:
            ctx.set_timer("listen", self.config.L)

    @upon(ByeMsg)
    def on_bye(self, ctx: Context, sender: MemberId, message: ByeMsg) -> None:
        if sender == self.leader:
            ctx.cancel_timer("listen")
            self.start(ctx)

    def leave(self, ctx: Context) -> None:
        ctx.cancel_timer("here")
        for number in range(self.config.byes):
            if number and self.config.gap:
                ctx.set_timer("bye", self.config.gap * number, eager=True)
            else:
                ctx.multicast(ByeMsg())

    def on_suspect(self, ctx: Context, member: MemberId) -> None:
        if member == self.leader:
            ctx.set_timer("listen", 0.0)

    def assume_leader(self, ctx: Context, leader: MemberId, term: int) -> None:
        super().assume_leader(ctx, leader, term)
        ctx.cancel_timer("here")
        if leader == ctx.me.id:
            ctx.set_timer("here", self.config.T, eager=True)
        else:
            ctx.set_timer("listen", self.config.L)


class OneBeacon(Beacon):
    """Announces itself once, and falls silent."""

    assumptions = Assumptions(reliable=False, announces=True, repeats=False)


def beacons(
    *wakes: float,
    scenario: Scenario | str = "start",
    network: Network | None = None,
    delay: float = 0.1,
    seed: int = 3,
    until: float = END_OF_TIME,
    max_events: int = 100_000,
    oracle: float | None = None,
    **settings: object,
) -> Experiment:
    """A group whose members 1, 2, ... wake so late, one who joins included."""
    scenario = Scenario(scenario) if isinstance(scenario, str) else scenario
    return Experiment(
        OneBeacon if settings.get("once") else Beacon,
        len(wakes) - scenario.name.startswith("join"),
        BeaconConfig.parse({"delta": delay or 1.0, **settings}),
        choice=HighestId(),
        attributes=(("wake", None if scenario.name == "churn" else wakes),),
        network=network or Network(delay=Fixed(delay)),
        scenario=scenario,
        seed=seed,
        max_events=max_events,
        oracle=oracle,
        until=until,
    )
