"""A detector that is right and complete, and slower than the network."""

from __future__ import annotations

from functools import partial

from hustings.core.choice import MemberId
from hustings.core.outcome import Outcome
from hustings.core.streams import Stream
from hustings.sim.member import SimContext, Status
from hustings.sim.world import World

# In units of delta. A suspicion never overtakes the last words of the dead.
SOONEST, LATEST = 1.0001, 4.0


class RightDetector:
    """Tells each live member of each crash and of each return, at a time of its own.

    A member that comes back is told who is gone. With `repairs`, the views forget the dead, as a
    protocol with a live view is promised.
    """

    def __init__(self, stream: Stream, *, repairs: bool) -> None:
        self._stream = stream
        self._repairs = repairs
        self._suspects: dict[MemberId, set[MemberId]] = {}  # whom each member suspects

    def suspected(self, member: MemberId) -> bool:
        """Whether anybody suspects a member now, perhaps because it has not heard of its return."""
        return any(member in suspects for suspects in self._suspects.values())

    def declared(self, world: World, member: SimContext, outcome: Outcome) -> None:
        """Outcomes are none of a detector's business."""

    def changed(self, world: World, member: SimContext) -> None:
        """A member crashed or came back."""
        others = [other for other in world.members.values() if other is not member]
        if member.status is Status.CRASHED:
            self._suspects.pop(member.id, None)  # it forgets, and will be told again
            if self._repairs:
                self._later(world, partial(self._repair, world, member, member.incarnation))
            for other in others:
                self._warn(world, other, member)
        elif member.status is Status.UP and member.incarnation > 1:
            for other in others:
                if member.id in self._suspects.get(other.id, ()):
                    self._later(world, partial(self._trust, world, other, member))
                if other.status is Status.CRASHED:
                    self._warn(world, member, other)

    def _later(self, world: World, action: partial[None]) -> None:
        world.at(world.now + self._stream.uniform(SOONEST, LATEST), action)

    def _warn(self, world: World, who: SimContext, about: SimContext) -> None:
        self._later(world, partial(self._suspect, world, who, about, about.incarnation))

    def _suspect(self, world: World, who: SimContext, about: SimContext, life: int) -> None:
        if about.status is Status.CRASHED and about.incarnation == life and who.up:
            self._suspects.setdefault(who.id, set()).add(about.id)
            world.tell(who, "suspect", about.id)

    def _trust(self, world: World, who: SimContext, about: SimContext) -> None:
        if about.up and who.up and about.id in self._suspects.get(who.id, ()):
            self._suspects[who.id].discard(about.id)
            world.tell(who, "alive", about.id)

    def _repair(self, world: World, member: SimContext, life: int) -> None:
        if member.status is Status.CRASHED and member.incarnation == life:
            world.everybody_forgets(member)
