"""What chance does to a group, in the order in which it is due: pauses, crashes, outages.

One entry of the world's queue stands for all of it. By itself it does not continue a run: the run
ends if nothing else is left to happen and nothing is in effect that has an end.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from typing import TYPE_CHECKING

from hustings.sim.queue import END_OF_TIME, on_grid

if TYPE_CHECKING:
    from hustings.sim.world import World


class Agenda:
    """What is due, and when. At one instant, what has the smaller `place` comes first."""

    __slots__ = ("_count", "_due", "_world", "in_effect")

    def __init__(self, world: World) -> None:
        self._world = world
        self._due: list[tuple[float, int, int, Callable[[], None]]] = []
        self._count = 0
        self.in_effect = 0  # pauses, crashes and outages that have not ended

    def later(self, instant: float, place: int, act: Callable[[], None]) -> None:
        """Let something happen at an instant, unless that is after the end of time."""
        at = on_grid(instant)
        if at <= END_OF_TIME:
            self._count += 1
            heappush(self._due, (at, place, self._count, act))

    def arm(self) -> None:
        """Let the world call when the next thing is due."""
        if self._due:
            self._world.at(self._due[0][0], self._happen)

    def _happen(self) -> None:
        world = self._world
        while self._due and self._due[0][0] <= world.now:
            heappop(self._due)[-1]()
        if self.in_effect or world.queue.busy:
            self.arm()
