"""Pre-emption: with `preempt_after`, a leader hands over to a better member that stays in view.

The better member must have been in view for that long. Nothing happens in the election inside: the
leader itself names its successor.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hustings.core.context import Context, TimerKey
from hustings.layers.leadership.config import TIMER

if TYPE_CHECKING:
    from hustings.layers.leadership.layer import LeadershipLayer

PREEMPT: TimerKey = (TIMER, 4)


def preempt(ctx: Context, layer: LeadershipLayer) -> None:
    """Hand over to a better member that has been up for long enough, or see when that will be.

    Once more when the view changes: a member that is new is looked at with the next tick.
    """
    due, me, electors = layer.settings.preempt_after, ctx.me, layer.electors
    if not due or not layer.leads(me.id) or layer.inner.seats > 1:
        return
    now, best, wait = ctx.now(), me, due
    for member, at in electors.since.items():
        other = electors.candidate(member)
        if electors.priority(member) < 0.0 or not layer.plain.better(other, me):
            continue
        left = at + due - now
        if left > layer.settings.delta / 100:  # a timer that is due now would fire for ever
            wait = min(wait, left)
        elif layer.plain.better(other, best):
            best = other
    if best.id != me.id:
        layer.transfer.hand_over(ctx, best.id)
    elif wait < due:
        ctx.set_timer(PREEMPT, wait)
