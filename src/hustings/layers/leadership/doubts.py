"""Doubts: leaders that gossip takes for dead, where members know only a part of the group.

There a false alarm reaches many members, and all of them would call an election. So each member
waits for its turn. Few members wait for a short time only, and one of them calls for all.
"""

from __future__ import annotations

from math import log
from typing import TYPE_CHECKING

from hustings.core.choice import MemberId
from hustings.core.context import Context, TimerKey
from hustings.core.thinning import pause
from hustings.layers.leadership.config import TIMER

if TYPE_CHECKING:
    from hustings.layers.leadership.layer import LeadershipLayer

DOUBT: TimerKey = (TIMER, 6)  # until this member does something about a leader's end

_DOUBTED = 8  # former leaders that are remembered as dead


class Doubts:
    """The leaders in doubt, and when it is this member's turn."""

    __slots__ = ("_doubted", "layer")

    def __init__(self, layer: LeadershipLayer) -> None:
        self.layer = layer
        self._doubted: dict[MemberId, bool] = {}  # with whether the election was told

    def __contains__(self, member: MemberId) -> bool:
        return member in self._doubted

    def take_back(self, member: MemberId) -> None:
        """Note that a member is alive."""
        self._doubted.pop(member, None)

    def doubt(self, ctx: Context, leader: MemberId) -> bool:
        """Gossip takes the leader for dead, here and elsewhere.

        Return whether this waits for a turn.
        """
        if not self.layer.settings.partial or leader != self.layer.inner.leader:
            return False
        if leader not in self._doubted:
            self._doubted[leader] = False
            if len(self._doubted) > _DOUBTED:
                del self._doubted[next(iter(self._doubted))]
            ctx.set_timer(DOUBT, self.turn(ctx))
        return not self._doubted[leader]

    def give_up(self, ctx: Context) -> None:
        """Give up the leader: no other member has called meanwhile, and the leader is silent."""
        for leader in [each for each, told in self._doubted.items() if not told]:
            self._doubted[leader] = True
            self.layer.inner.on_suspect(self.layer.within(ctx), leader)

    def turn(self, ctx: Context) -> float:
        """How long this member waits for another one to act. Few members wait for a short time."""
        size = self.size
        spread = self.layer.settings.call_spread
        return spread * (log(max(2.0, size)) + 1) * pause(ctx.rng.random(), size)

    @property
    def size(self) -> float:
        """The group's size, as far as it is known."""
        view = self.layer.electors.view
        return max(float(len(view)), view.estimate or 0.0)

    @property
    def knows_a_part(self) -> bool:
        """Whether only a part of the group is known, as far as its size is."""
        view = self.layer.electors.view
        return view.estimate is not None and view.estimate > 1.5 * len(view)

    def speaks_for_all(self, ctx: Context) -> bool:
        """Whether this member speaks for the group: about one does, if all members know."""
        return not self.layer.settings.partial or ctx.rng.random() * self.size < 1.0
