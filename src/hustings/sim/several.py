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
        # Of each leader and member that holds it: after which announcement it first did.
        self._firsts: dict[tuple[MemberId, MemberId], int] = {}
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
            world.at(landed, partial(self._look, world, member.id, world.now, len(own)))

    def declared(self, world: World, member: SimContext, outcome: Outcome) -> None:
        """Tells of the best leader only."""

    def changed(self, world: World, member: SimContext) -> None:
        """Seen at the next look."""

    def _look(self, world: World, sender: MemberId, sent: float, number: int) -> None:
        for member in world.live():
            if member.id != sender and sender in member.election.leaders:
                self._firsts.setdefault((sender, member.id), number)
        if self._tmax is None and settled(world, self._seats):
            self._tmax = sent
            self._rounds = number
            world.stop()

    def metrics(self, world: World) -> Metrics:
        """What it took; without values if it did not come about."""
        timed = ("tmax", "sent_by_tmax", "rounds", "avg_rounds")
        names = (*timed, "leadership_delay", "num_msgs", "first_round")
        if self._tmax is None:
            return dict.fromkeys(names)
        end = on_grid(self._tmax + self._delay)
        count = bisect_left if self._delay else bisect_right  # itself it counts in any case
        return {
            "tmax": self._tmax,
            "sent_by_tmax": float(bisect_right(self._sends, self._tmax)),
            "rounds": float(self._rounds),
            "avg_rounds": self._average(world, self._tmax),
            "leadership_delay": end,
            "num_msgs": float(count(self._sends, end)),
            "first_round": float(sum(count(own, end) > 0 for own in self._announced.values())),
        }

    def _average(self, world: World, tmax: float) -> float:
        """Over all leaders and all who hold them: the first announcement that each pair needed."""
        numbers = [
            # What landed together with the last one was not looked at on its own any more.
            self._firsts.get((leader, member.id)) or bisect_right(self._announced[leader], tmax)
            for member in world.live()
            for leader in member.election.leaders
            if leader != member.id
        ]
        return sum(numbers) / len(numbers) if numbers else 1.0  # alone: as with one leader


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
