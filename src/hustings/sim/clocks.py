"""Members' clocks: how far they are off, each by a rate and an offset of its own."""

from __future__ import annotations

from dataclasses import dataclass

from hustings.core.errors import BadInput
from hustings.core.streams import Stream, derive
from hustings.sim.instants import END_OF_TIME
from hustings.sim.world import World


@dataclass(frozen=True, slots=True)
class Clocks:
    """How far members' clocks are off: each draws its own rate and offset within these bounds."""

    drift: float = 0.0
    offset: float = 0.0

    def __post_init__(self) -> None:
        if not 0.0 <= self.drift < 1.0:
            raise BadInput(f"clock drift must lie in [0, 1), not {self.drift:g}")
        if not 0.0 <= self.offset <= END_OF_TIME:
            raise BadInput(f"clock offset must lie in [0, {END_OF_TIME:g}], not {self.offset:g}")

    def set_in(self, world: World, seed: int) -> None:
        """Let every member of a world keep time by a clock of its own."""
        if not self.drift and not self.offset:
            return
        stream = Stream(derive(seed, "clocks"))
        for member in world.members.values():
            rate = 1.0 + stream.uniform(-self.drift, self.drift)
            member.keep_time(rate, stream.uniform(0.0, self.offset))
