"""The perfect detector sees the whole world, and tells all members the truth after a fixed time.

It is for tests and experiments without a detector's errors, and without heartbeats in the counts. A
detector that errs by script is a list of `faults.Suspect` and `faults.Alive`. The detectors with
heartbeats are in `hustings.layers`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from hustings.core.choice import MemberId
from hustings.core.errors import BadInput
from hustings.core.outcome import Outcome
from hustings.sim.member import SimContext, Status
from hustings.sim.queue import END_OF_TIME
from hustings.sim.world import World

_GONE = (Status.CRASHED, Status.LEFT)


class Oracle:
    """An observer; `world.watch(Oracle(latency))` before the run.

    All other members hear `suspect` a fixed latency after a crash or a departure, unless the member
    is back by then. They hear `alive` the same time after its return. A member that comes up hears
    after the same time which members are gone. A paused member hears on waking what it missed.
    """

    def __init__(self, latency: float = 0.0) -> None:
        if not 0.0 <= latency <= END_OF_TIME:
            raise BadInput(
                f"the oracle's latency must lie between 0 and {END_OF_TIME:g}, not {latency:g}"
            )
        self.latency = latency
        self._gone: dict[MemberId, float] = {}  # and since when
        self._told: dict[MemberId, None] = {}  # members that all know to be gone
        self._missed: dict[MemberId, list[tuple[str, MemberId]]] = {}  # while paused

    def declared(self, world: World, member: SimContext, outcome: Outcome) -> None:
        """Ignore outcomes."""

    def changed(self, world: World, member: SimContext) -> None:
        """A member came up, crashed, paused, resumed or left."""
        who = member.id
        if member.status is Status.PAUSED:
            self._missed[who] = []
        elif member.status in _GONE:
            self._missed.pop(who, None)
            self._gone[who] = world.now
            self._later(world, partial(self._suspect, world, who, world.now))
        elif who in self._missed:
            news = self._missed.pop(who)
            world.at(world.now, partial(self._catch_up, world, member, news))
        else:
            self._gone.pop(who, None)
            if who in self._told:
                self._later(world, partial(self._trust, world, who))
            earlier = [("suspect", other) for other in self._told if other != who]
            if earlier:
                self._later(world, partial(self._catch_up, world, member, earlier))

    def _later(self, world: World, action: Callable[[], None]) -> None:
        instant = world.now + self.latency
        if instant <= END_OF_TIME:  # otherwise no member will hear it
            world.at(instant, action)

    def _suspect(self, world: World, who: MemberId, since: float) -> None:
        if self._gone.get(who) == since and who not in self._told:
            self._told[who] = None
            self._announce(world, "suspect", who)

    def _trust(self, world: World, who: MemberId) -> None:
        if who not in self._gone and who in self._told:
            del self._told[who]
            self._announce(world, "alive", who)

    def _announce(self, world: World, what: str, about: MemberId) -> None:
        for missed in self._missed.values():
            missed.append((what, about))
        for member in world.live():
            if member.id != about:
                world.tell(member, what, about)

    def _catch_up(self, world: World, member: SimContext, news: list[tuple[str, MemberId]]) -> None:
        if member.id in self._missed:  # asleep by now
            self._missed[member.id][:0] = news
            return
        for what, about in news:
            # If it came back since, all members that are awake have heard so.
            if about != member.id and (what == "alive" or about in self._told):
                world.tell(member, what, about)
