"""The beginning of a group with several leaders: when everybody has heard all of them.

Whom a member holds besides the best is not declared, so after every announcement has landed
everybody is looked at. For that it must be known when it lands: all messages take one time.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from functools import partial

from hustings.core.choice import MemberId
from hustings.core.messages import Message, Role
from hustings.core.outcome import Outcome
from hustings.sim.consistency import Metrics
from hustings.sim.instants import TICKS, on_grid
from hustings.sim.member import SimContext
from hustings.sim.world import World


class HearingAll:
    """Watches a group from its start until all have heard all leaders; then stops the run."""

    def __init__(self, seats: int, delay: float) -> None:
        self._seats = seats
        self._delay = delay
        self._sends: list[float] = []
        self._announced: dict[MemberId, list[float]] = {}
        self._tmax: float | None = None
        self._rounds = 0

    def sent(self, world: World, member: SimContext, to: MemberId | None, message: Message) -> None:
        """Note when messages leave, and look again when an announcement has landed."""
        if message.role is Role.DETECTOR:
            return
        self._sends.append(world.now)
        if message.role is Role.COORDINATOR:
            own = self._announced.setdefault(member.id, [])
            own.append(world.now)
            landed = world.now + self._delay + 1 / TICKS
            world.at(landed, partial(self._look, world, world.now, len(own)))

    def declared(self, world: World, member: SimContext, outcome: Outcome) -> None:
        """Tells of the best leader only."""

    def changed(self, world: World, member: SimContext) -> None:
        """Seen at the next look."""

    def _look(self, world: World, sent: float, number: int) -> None:
        if self._tmax is None and settled(world, self._seats):
            self._tmax = sent
            self._rounds = number
            world.stop()

    def metrics(self, world: World) -> Metrics:
        """What it took; without values if it did not come about."""
        names = ("tmax", "sent_by_tmax", "rounds", "leadership_delay", "num_msgs", "first_round")
        if self._tmax is None:
            return dict.fromkeys(names)
        end = on_grid(self._tmax + self._delay)
        count = bisect_left if self._delay else bisect_right  # itself it counts in any case
        return {
            "tmax": self._tmax,
            "sent_by_tmax": float(bisect_right(self._sends, self._tmax)),
            "rounds": float(self._rounds),
            "leadership_delay": end,
            "num_msgs": float(count(self._sends, end)),
            "first_round": float(sum(count(own, end) > 0 for own in self._announced.values())),
        }


def settled(world: World, seats: int) -> bool:
    """Whether all hold the same leaders, as many as there shall be.

    A leader holds those better than itself, and itself; it need not know of the worse ones.
    """
    held = {member.id: member.election.leaders for member in world.live()}
    longest = max(held.values(), key=len, default=())
    if len(longest) != min(seats, len(held)):
        return False
    own = {leader: longest[: place + 1] for place, leader in enumerate(longest)}
    return all(leaders == own.get(member, longest) for member, leaders in held.items())
