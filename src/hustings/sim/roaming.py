"""A group whose members move: links come and go, and each component is watched for its leader.

Distance becomes what the world already has: with routed links one partition, whose sides are the
components; with direct links a one-way cut for each member, from it to all that are out of range.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from hustings.core.choice import Choice, MemberId
from hustings.sim.components import ComponentLeaders, OneLeaderEach
from hustings.sim.consistency import Metrics
from hustings.sim.faults import Heal, OneWay, Partition
from hustings.sim.mobility import ROUTED, Component, Mobility, Topology
from hustings.sim.studies import Study
from hustings.sim.world import World

PARTED = "out of range"  # the partition's name


class Roaming(Study):
    """A mobile group, watched until the time limit."""

    def __init__(self, mobility: Mobility, horizon: float, choice: Choice, settle: float) -> None:
        super().__init__()
        self._mobility = mobility
        self._horizon = horizon
        self._components: tuple[Component, ...] = ()
        self._cut_off: dict[MemberId, tuple[MemberId, ...]] = {}  # with direct links
        self._watched = ComponentLeaders(choice)
        self.checker = OneLeaderEach(self._watched, settle)

    def begin(self, world: World) -> None:
        """Members stand at their first places; to be called before any of them sends."""
        self.open(world)
        world.be_careful()
        self._watched.begin(world)
        topologies = self._mobility.topologies(len(world.members), self._horizon, world.seed)
        self._move(world, next(topologies), topologies)
        world.at(self._horizon, lambda: None)  # a group that rests is watched to the end, too

    def _move(self, world: World, now: Topology, later: Iterator[Topology]) -> None:
        components, first = now.components(), not self._components
        changed, self._components = components != self._components, components
        if self._mobility.links != ROUTED:
            self._cut(world, now)
        elif changed and not (first and len(components) == 1):
            _part(world, components)
        if changed:
            self._watched.regroup(world, components)
        following = next(later, None)
        if following is not None:
            world.at(following.at, partial(self._move, world, following, later))

    def _cut(self, world: World, now: Topology) -> None:
        """Who is out of a member's range hears nothing of it."""
        for member, near in now.neighbours.items():
            far = tuple(one for one in now.neighbours if one != member and one not in near)
            if far != self._cut_off.get(member, ()):
                name = f"{PARTED} of {member}"
                cut = OneWay(senders=(member,), to=far, name=name) if far else Heal(name=name)
                cut.happen(world)
                self._cut_off[member] = far

    def time(self, world: World) -> float:
        return world.now - self.origin

    def metrics(self, world: World) -> Metrics:
        return self._watched.finish(world)


def _part(world: World, components: tuple[Component, ...]) -> None:
    if len(components) > 1:
        Partition(sides=components, name=PARTED).happen(world)
    else:
        Heal(name=PARTED).happen(world)
