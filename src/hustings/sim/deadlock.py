"""Deadlocks: every member follows another one, all of them alive, and nobody leads.

Whoever sleeps will speak, and whoever holds a dead leader will miss it; but members that all defer
to each other wait for announcements that nobody is going to make.
"""

from __future__ import annotations

from hustings.core.choice import MemberId
from hustings.core.outcome import Elected, Outcome
from hustings.sim.consistency import Metrics, held_by
from hustings.sim.member import SimContext
from hustings.sim.world import World


class Deadlocks:
    """Counts those who do not defer to a living other; while there is none, all are deadlocked."""

    def __init__(self) -> None:
        self._free: dict[MemberId, None] = {}
        self._empty = False  # nobody is there
        self._began = 0.0
        self._since: float | None = None  # when the present deadlock began
        self._number = 0
        self._lasted = 0.0  # deadlocks that are over

    def begin(self, world: World) -> None:
        """Watch from now on."""
        self._began = world.now
        self._recount(world)
        world.watch(self)

    def declared(self, world: World, member: SimContext, outcome: Outcome) -> None:
        """A member defers to another one, or does not."""
        leader = outcome.leader if outcome.__class__ is Elected else None
        if leader is not None and leader != member.id and world.members[leader].up:
            self._free.pop(member.id, None)
        else:
            self._free[member.id] = None
        self._look(world)

    def changed(self, world: World, member: SimContext) -> None:
        """Who comes or goes changes to whom others defer."""
        self._recount(world)

    def _recount(self, world: World) -> None:
        live = world.live()
        self._empty = not live
        self._free = {one.id: None for one in live if not _defers(world, one)}
        self._look(world)

    def _look(self, world: World) -> None:
        if self._free or self._empty:
            if self._since is not None:
                self._lasted += world.now - self._since
            self._since = None
        elif self._since is None:
            self._since = world.now
            self._number += 1

    def metrics(self, world: World) -> Metrics:
        """At the end of a run; `deadlock`: whether it ends in one."""
        since = self._since
        lasted = self._lasted + (0.0 if since is None else world.now - since)
        watched = world.now - self._began
        return {
            "deadlock": float(since is not None),
            "deadlocks": float(self._number),
            "deadlocked_fraction": lasted / watched if watched else None,
        }


def _defers(world: World, member: SimContext) -> bool:
    leader = held_by(member)
    return leader is not None and leader != member.id and world.members[leader].up
