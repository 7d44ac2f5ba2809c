"""An established group that announces, left alone until chance has set in.

The group begins as if everybody had just heard the leader. Then messages get lost, and how long ago
each member last heard the leader becomes a matter of chance; a member whom one announcement has
reached is as if it had never begun otherwise. So the group is left alone for as many periods as it
takes until, but for a chance of `REST`, every member has heard an announcement.

The period is not presumed but taken from the leader's first two announcements.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from hustings.core.choice import MemberId
from hustings.core.messages import Message, Role
from hustings.sim.consistency import held_by, most_held
from hustings.sim.instants import END_OF_TIME
from hustings.sim.loss import Loss
from hustings.sim.member import SimContext
from hustings.sim.world import World

REST = 1e-6
MOST_PERIODS = 10_000  # where next to nothing arrives
MOST_WAITED = 300  # periods in which nobody leads: many leases long


def warm_up(loss: Loss, members: int) -> int:
    """How many announcements it takes until (nearly) surely everybody has heard one.

    >>> from hustings.sim.loss import NoLoss, Uncorrelated
    >>> warm_up(NoLoss(), 500), warm_up(Uncorrelated(0.4), 500)
    (1, 22)
    """
    p = loss.again(members)  # at its worst: as if all were sending at once
    if not 0.0 < p < 1.0:
        return MOST_PERIODS if p else 1
    return min(MOST_PERIODS, math.ceil(math.log(REST / members) / math.log(p)))


class Steady:
    """Listens to an established leader and calls `ready` once, when chance has set in."""

    def __init__(self, world: World, leader: MemberId, ready: Callable[[World], None]) -> None:
        self.leader = leader  # the established one, or who has taken its place by then
        self._ready = ready
        self._periods = warm_up(world.network.multicasts, len(world.live()))
        self._period = 0.0
        self._waited = 0
        self._last: dict[MemberId, float] = {}  # when each announced itself last
        world.listen_in(self)

    def sent(self, world: World, member: SimContext, to: MemberId | None, message: Message) -> None:
        """Learn the period from the first two announcements."""
        if message.role is not Role.COORDINATOR:
            return
        who, now = member.id, world.now
        if not self._period and who == self.leader and who in self._last:
            self._period = now - self._last[who]
            instant = now + self._periods * self._period
            if instant <= END_OF_TIME:  # else it is never ready
                world.at(instant, lambda: self._reached(world))
        self._last[who] = now

    def _reached(self, world: World) -> None:
        first = world.members[self.leader]
        if held_by(first) != first.id:  # it was overtaken, or something has happened to it
            leader = most_held(world)
            if leader in self._last:
                self.leader = leader
            elif self._wait_on(world):
                return
        self._ready(world)

    def _wait_on(self, world: World) -> bool:
        """Nobody leads: a guard may take its time to confirm the first leader, but not for ever.

        A group that has waited in vain may need what is to happen, as voters need one that joins.
        """
        self._waited += 1
        instant = world.now + self._period
        if self._waited > MOST_WAITED or instant > END_OF_TIME:
            return False
        world.at(instant, lambda: self._reached(world))
        return True

    def after_next(self, fraction: float) -> float:
        """The instant at a fraction of the period after the leader's next announcement."""
        return self._last[self.leader] + (1.0 + fraction) * self._period

    def last_of(self, member: MemberId) -> float:
        """When a member announced itself last."""
        return self._last[member]
