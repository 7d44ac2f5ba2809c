"""Inquiry: a member without a leader asks others, and calls an election if none of them knows one.

A member asks when it joins, when it comes back from a pause in which it led, and when it has been
without a leader for `leaderless_timeout`. Elections that announce find their leader by themselves:
there a member asks, and does not call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hustings.core.choice import MemberId
from hustings.core.context import Context, TimerKey
from hustings.layers.leadership.config import TIMER
from hustings.layers.leadership.messages import LeaderQueryMsg

if TYPE_CHECKING:
    from hustings.layers.leadership.layer import LeadershipLayer

ANSWERS: TimerKey = (TIMER, 2)  # until the members that were asked have answered

_ASKED = 3  # members in one inquiry
_INQUIRIES = 3  # about a leader that others name and that is not in view
_LONGEST = 8  # times leaderless_timeout: longest time between two calls in vain


class Inquiry:
    """Whether this member is asking, since when it has no leader, and how long it waits."""

    __slots__ = ("_count", "_wait", "layer", "leaderless_since", "rumour", "running")

    def __init__(self, layer: LeadershipLayer) -> None:
        self.layer = layer
        self.running = False
        self.leaderless_since = 0.0  # or when the last attempt was made
        self.rumour: MemberId | None = None  # others say that it leads, and it is not in view
        self._wait = layer.settings.leaderless_limit
        self._count = 0

    def is_due(self, now: float) -> bool:
        """Whether this member has been without a leader for too long."""
        return now - self.leaderless_since >= self._wait

    def be_due(self, now: float) -> None:
        """Make the inquiry due now."""
        self.leaderless_since = now - self._wait

    def end(self) -> None:
        """End the inquiry, because there is a leader."""
        self.running = False
        self._count = 0
        self._wait = self.layer.settings.leaderless_limit

    def begin(self, ctx: Context) -> None:
        """Ask some members for the leader. If there is no member to ask, that is an answer, too."""
        layer = self.layer
        others = layer.electors.others(ctx.me.id)
        self.rumour = None
        if not others:
            self.conclude(ctx)
            return
        self.running = True
        self._count += 1
        question = LeaderQueryMsg(layer.highest)
        # In a large group, the members asked may not know.
        asked = 1 if layer.doubts.knows_a_part and layer.announces else _ASKED
        for member in ctx.rng.sample(others, min(asked, len(others))):
            ctx.send(member, question)
        wait = layer.settings.answers
        partial = layer.settings.partial
        late = layer.doubts.turn(ctx) if partial else ctx.rng.uniform(0.0, wait)
        ctx.set_timer(ANSWERS, wait + late)  # so that members do not all call at once

    def check(self, ctx: Context) -> None:
        """Act from time to time, as long as there is no leader."""
        if self.running:
            self._ask_on(ctx)
        elif self.is_due(ctx.now()):
            self.begin(ctx)

    def _ask_on(self, ctx: Context) -> None:
        """Ask on until it is this member's turn to call.

        Where turns are long, one lost answer would otherwise cost an election.
        """
        others = self.layer.electors.others(ctx.me.id)
        if self.layer.settings.partial and others:
            ctx.send(ctx.rng.choice(others), LeaderQueryMsg(self.layer.highest))

    def conclude(self, ctx: Context) -> None:
        """No member knows a leader that could be followed: elect one."""
        layer = self.layer
        if layer.resuming is not None:
            if self.rumour is not None and self._count < _INQUIRIES:
                self.begin(ctx)
            else:
                layer.resume(ctx)
            return
        self.running = layer.recovering = False
        layer.begin(ctx)
        if layer.held is not None or layer.resignation.resigned:
            return
        if self.rumour is not None and self._count < _INQUIRIES:
            self.begin(ctx)  # the leader may still come into view
            return
        self._count = 0
        self.leaderless_since = ctx.now()
        self._wait = min(2 * self._wait, _LONGEST * layer.settings.leaderless_limit)
        self._wait *= ctx.rng.uniform(0.75, 1.0)
        if not layer.announces:
            layer.inner.call(layer.within(ctx))
