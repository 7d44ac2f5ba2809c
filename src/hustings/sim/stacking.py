"""Runs of an election upon gossip membership and bimodal multicast.

Members start at 0 and gossip. The event of the scenario comes when their views have settled. Gossip
never rests, so such a run ends with the election: when no message of it is in flight and no member
has set a timer for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from hustings.core.choice import MemberId
from hustings.core.messages import Message, Role
from hustings.core.outcome import Outcome
from hustings.layers.gossip.layer import GossipConfig, warm_up
from hustings.layers.gossip.membership import Membership
from hustings.layers.multicast.bimodal import Bimodal
from hustings.sim.member import SimContext
from hustings.sim.queue import END_OF_TIME, NEVER, on_grid
from hustings.sim.world import World


class Settled:
    """Counts from the end of the warm-up, and ends the run when the election rests."""

    def __init__(self, stack: GossipConfig, members: int, last_fault: float) -> None:
        """`last_fault`: when the last of the scenario's faults is due, from `origin`."""
        self.origin = settled_at(stack, members)
        self.earlier: Mapping[type[Message], int] = {}
        self._until = self.origin + last_fault
        self._landing = stack.buffering_time  # of the messages sent last
        self._noticed = stack.cleanup_time(members)  # how long after a crash all have noticed
        self._last = self.origin

    def begin(self, world: World) -> None:
        """To be called before anything else is planned for `origin`."""
        self._landing += world.network.delay.bound
        world.at(self.origin, partial(self._open, world))
        world.listen_in(self)
        world.watch(self)
        if self._until > self.origin:  # the last fault may be a cut, of which no member is told
            self._until += self._noticed

    def _open(self, world: World) -> None:
        self.earlier = dict(world.sent)
        self._look_after(world)

    def sent(self, world: World, member: SimContext, to: MemberId | None, message: Message) -> None:
        """Note when the election last spoke."""
        if message.role is not Role.DETECTOR:
            self._last = world.now

    def declared(self, world: World, member: SimContext, outcome: Outcome) -> None:
        """Ignore outcomes: they do not continue a run."""

    def changed(self, world: World, member: SimContext) -> None:
        """A member that goes is missed only later."""
        if world.now > self.origin:
            self._until = max(self._until, world.now + self._noticed)

    def _look_after(self, world: World) -> None:
        instant = max(self._last, self._until, world.now) + self._landing
        if instant <= END_OF_TIME:
            world.at(instant, partial(self._look, world))

    def _look(self, world: World) -> None:
        quiet = world.now >= max(self._last, self._until) + self._landing
        if quiet and not any(_waits(member) for member in world.live()):
            world.stop()
        else:
            self._look_after(world)


def settled_at(stack: GossipConfig, members: int) -> float:
    """The time at which a group of this size that starts at 0 has settled."""
    return on_grid(warm_up(stack, members))


def _waits(member: SimContext) -> bool:
    """Whether a member has armed a timer of its election, not of gossip."""
    return any(
        timer.deadline < NEVER and not Membership.owns(key) and not Bimodal.owns(key)
        for key, timer in member.timers.items()
    )
