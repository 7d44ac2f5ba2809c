"""Members that crash at random and come back, and whole sites that fail.

The rates are those of an environment. Crashes and outages have random streams of their own, so that
the same group meets the same ones whatever is elected, and pauses do not change with them.
"""

from __future__ import annotations

from functools import partial
from random import Random
from typing import TYPE_CHECKING

from hustings.core.streams import derive
from hustings.sim.environment import CUT, Crashes, Environment, Outages
from hustings.sim.faults import Crash, Heal, Partition, Restart
from hustings.sim.guarding import GUARD
from hustings.sim.member import Status

if TYPE_CHECKING:
    from hustings.core.choice import MemberId
    from hustings.sim.agenda import Agenda
    from hustings.sim.sites import Sites
    from hustings.sim.world import World

_RUNNING = (Status.UP, Status.PAUSED)


class Failing:
    """The crashes and outages of one run."""

    def __init__(
        self, environment: Environment, world: World, agenda: Agenda, begin: float
    ) -> None:
        self._world = world
        self._agenda = agenda
        self._crash_rng = Random(derive(world.seed, "crashes"))
        self._outage_rng = Random(derive(world.seed, "outages"))
        self._down: dict[MemberId, int] = {}  # members that crashed alone: their incarnations
        self._dark: dict[int, dict[MemberId, int]] = {}  # by site: those that its outage stopped
        self._crashes = environment.crashes
        self._outages = environment.outages
        self._sites = environment.sites
        self.crashes = self.outages = 0
        if self._crashes is not None:
            for member in world.members:
                self._next_crash(self._crashes, begin, member)
        if self._outages is not None and self._sites is not None:
            for site in range(len(self._sites.names)):
                self._next_outage(self._outages, self._sites, begin, site)

    # Crashes

    def _next_crash(self, crashes: Crashes, now: float, member: MemberId) -> None:
        at = now + self._crash_rng.expovariate(crashes.rate)
        self._agenda.later(at, member, partial(self._crash, crashes, member))

    def _crash(self, crashes: Crashes, member: MemberId) -> None:
        world = self._world
        ctx = world.members[member]
        if ctx.status not in _RUNNING:
            self._next_crash(crashes, world.now, member)
            return
        self._down[member] = ctx.incarnation
        self._agenda.in_effect += 1
        self.crashes += 1
        Crash(member=member).happen(world)
        back = world.now + crashes.back.draw(self._crash_rng, member, member)
        self._agenda.later(back, member, partial(self._back, crashes, member))

    def _back(self, crashes: Crashes, member: MemberId) -> None:
        incarnation = self._down.pop(member)
        self._agenda.in_effect -= 1
        site = None if self._sites is None else self._sites.of(member)
        if site in self._dark:
            self._dark[site].setdefault(member, incarnation)  # its machine has no power yet
        else:
            self._restart(member, incarnation)
        self._next_crash(crashes, self._world.now, member)

    def _restart(self, member: MemberId, incarnation: int) -> None:
        """The member runs again, unless something else has brought it back already."""
        ctx = self._world.members[member]
        if ctx.status is Status.CRASHED and ctx.incarnation == incarnation:
            Restart(member=member).happen(self._world)

    # Outages

    def _next_outage(self, outages: Outages, sites: Sites, now: float, site: int) -> None:
        at = now + self._outage_rng.expovariate(outages.rate)
        self._agenda.later(at, -1 - site, partial(self._fail, outages, sites, site))

    def _fail(self, outages: Outages, sites: Sites, site: int) -> None:
        world = self._world
        self.outages += 1
        self._agenda.in_effect += 1
        inside = [member for member in world.members if sites.of(member) == site]
        outside = [member for member in world.members if sites.of(member) != site]
        if outages.kind == CUT:
            (inside if site == 0 else outside).append(GUARD)  # the guard is at the first site
            self._cut(sites, site, inside, outside)
        else:
            if site == 0:
                self._cut(sites, site, [GUARD], list(world.members))
            running = [one for one in inside if world.members[one].status in _RUNNING]
            stopped = {one: world.members[one].incarnation for one in running}
            self._dark[site] = stopped
            for member in stopped:
                Crash(member=member).happen(world)
        lasts = outages.lasts.draw(self._outage_rng, site, site)
        over = partial(self._end, outages, sites, site)
        self._agenda.later(world.now + lasts, -1 - site, over)

    def _end(self, outages: Outages, sites: Sites, site: int) -> None:
        self._agenda.in_effect -= 1
        Heal(name=_cut_name(sites, site)).happen(self._world)
        for member, incarnation in self._dark.pop(site, {}).items():
            self._restart(member, incarnation)
        self._next_outage(outages, sites, self._world.now, site)

    def _cut(self, sites: Sites, site: int, *sides: list[MemberId]) -> None:
        parts = tuple(map(tuple, sides))
        Partition(name=_cut_name(sites, site), sides=parts).happen(self._world)

    def metrics(self) -> dict[str, float | None]:
        """At the end of a run: how many crashes and outages there were."""
        found: dict[str, float | None] = {}
        if self._crashes is not None:
            found["crashes"] = float(self.crashes)
        if self._outages is not None:
            found["outages"] = float(self.outages)
        return found


def _cut_name(sites: Sites, site: int) -> str:
    return f"outage-{sites.names[site]}"
