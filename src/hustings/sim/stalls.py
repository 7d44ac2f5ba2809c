"""A member that notices, when it goes on after a pause, that it stood still.

As on a real network (`net/runner.py`): a member stood still while something of its own was due. If
that was for too long, what waits to be read is old and is not read, its timers count from then on
as if the time had not passed, and its election is told before anything else happens.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hustings.sim.instants import NEVER, on_grid
from hustings.sim.member import Kept, SimContext

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hustings.sim.queue import Timer
    from hustings.sim.world import World


def stood_still(ctx: SimContext, since: float, now: float) -> float:
    """For how long, until now, a member that was paused has left its timers waiting."""
    due = min((timer.deadline for timer in ctx.timers.values()), default=NEVER)
    return max(0.0, now - max(since, due))


def wake_up(world: World, ctx: SimContext, gap: float, waiting: Sequence[Kept | Timer]) -> None:
    """The member goes on after `gap`: it learns of that first."""
    for item in waiting:
        if isinstance(item, Kept):
            world.lose((item.number, item.message), ctx.id, "overslept")
    for timer in ctx.timers.values():
        if timer.deadline < NEVER:
            world.queue.arm(timer, max(world.now, on_grid(timer.deadline + gap)))
    world.invoke(ctx, ctx.election.woke, gap * ctx.pace)
