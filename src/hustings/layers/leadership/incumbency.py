"""The standing and the priority that a member shows to others.

A leader that the next better member must not displace has a priority above all others. It gets the
priority once it has led for `probation`, or at once if the leadership was handed to it. The
priority ends with the leadership.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hustings.core.choice import Candidate, MemberId
from hustings.core.context import Context, TimerKey
from hustings.layers.leadership.config import TIMER
from hustings.layers.leadership.standing import (
    ELIGIBLE,
    MAX_PRIORITY,
    with_priority,
    with_standing,
)

if TYPE_CHECKING:
    from hustings.layers.leadership.layer import LeadershipLayer

SECURE: TimerKey = (TIMER, 5)  # until a new leader has its priority


class Incumbency:
    """One member's standing and priority, in office and without."""

    __slots__ = ("_looks", "_me", "_shown", "layer", "office", "sought", "standing")

    def __init__(self, layer: LeadershipLayer) -> None:
        self.layer = layer
        self.standing = ELIGIBLE
        self.office: float | None = None  # the priority with leadership, if there is one
        # since when this member has a priority for a leadership that it still has to win
        self.sought = 0.0
        self._me = Candidate(0)
        self._shown = Candidate(0)
        self._looks = (ELIGIBLE, 0.0)  # the standing and the priority of that object

    @property
    def priority(self) -> float:
        """This member's priority."""
        return 0.0 if self.office is None else self.office

    def shown(self, me: Candidate) -> Candidate:
        """This member as others see it; the same object while nothing has changed.

        A leader to which the leadership was handed leads, also if it stood back.
        """
        wanted = (self.standing, 0.0) if self.office is None else (ELIGIBLE, self.office)
        if me is not self._me or wanted != self._looks:
            self._me, self._looks = me, wanted
            self._shown = with_standing(with_priority(me, wanted[1]), wanted[0])
        return self._shown

    def above_all(self) -> float:
        """A priority above all known ones."""
        return min(max(self.layer.electors.top(), 0.0) + 1.0, MAX_PRIORITY)

    def begin(self, ctx: Context) -> None:
        """This member has begun to lead."""
        layer = self.layer
        if layer.settings.sticky:
            if layer.settings.trial:
                ctx.set_timer(SECURE, layer.settings.trial)
            else:
                self.secure(ctx)

    def secure(self, ctx: Context) -> None:
        """This member has led for a while: from now on the next better member does not displace it.

        As a rule this does not happen at once: where several members begin to lead together, the
        best must stay.
        """
        layer = self.layer
        held = layer.held
        if (
            held is None
            or not layer.leads(ctx.me.id)
            or self.standing < ELIGIBLE
            or self.office is not None
        ):
            return
        self.office = self.above_all()
        if not layer.announces and len(layer.electors.view) > 1:
            ctx.multicast(layer.own_info(ctx.me.id, held.term))  # gossip would be slower

    def end(self) -> None:
        """The leadership is over, or was not won."""
        self.office = None

    def give_up_seeking(self, now: float) -> None:
        """End a follower's priority for a leadership, once it has had the time to win."""
        if self.office is not None and now - self.sought > self.layer.settings.leaderless_limit:
            self.office = None

    def meet_rival(self, ctx: Context, rival: MemberId) -> None:
        """Another member says that it leads. This member leads, too, and has led for long.

        If both took a priority with the leadership and did not know of each other, each would take
        itself for the better one. Then both would announce themselves for ever.
        """
        layer = self.layer
        if self.office is not None and layer.inner.seats == 1 and layer.leads(ctx.me.id):
            layer.electors.honour(rival)
