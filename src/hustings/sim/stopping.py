"""When a run is over that would not end by itself, and when it must not end yet.

`Calm` ends a run whose members never rest. `PlayOn` continues a run until all of its faults have
happened, also if an observer would stop it, and then gives the group the time to agree again.
`Confirmable` gives a run up in which the guard is out of reach for good. `endless_wait` says before
a run that the run would never end, unless chance or a fault may end it.
"""

from __future__ import annotations

from functools import partial
from math import inf
from typing import TYPE_CHECKING

from hustings.core.config import Config
from hustings.core.outcome import Outcome
from hustings.sim.checkers import agreed_leader
from hustings.sim.consistency import held_by
from hustings.sim.delay import Fixed
from hustings.sim.faults import (
    Alive,
    Call,
    Crash,
    CrashInside,
    Happening,
    Leave,
    Pause,
    Suspect,
)
from hustings.sim.guarding import obstacle
from hustings.sim.member import SimContext
from hustings.sim.queue import END_OF_TIME
from hustings.sim.world import Ended, World

if TYPE_CHECKING:
    from hustings.sim.experiment import Experiment

# What never brings a guard back into reach. A partition may, because it replaces one of its name.
HARMFUL = (Crash, CrashInside, Leave, Pause, Call, Suspect, Alive)


class Calm:
    """Stops a run once all live members have agreed for a while and no fault is due any more."""

    def __init__(self, calm: float, last_fault: float) -> None:
        self._calm = calm
        self._last_fault = last_fault
        self._changes = 0

    def declared(self, world: World, member: SimContext, outcome: Outcome) -> None:
        self._watch(world)

    def changed(self, world: World, member: SimContext) -> None:
        self._watch(world)

    def _watch(self, world: World) -> None:
        self._changes += 1
        instant = max(world.now, self._last_fault) + self._calm
        if agreed_leader(world) is not None and instant <= END_OF_TIME:
            world.at(instant, partial(self._look, world, self._changes))

    def _look(self, world: World, changes: int) -> None:
        leader = agreed_leader(world)
        if changes == self._changes and leader is not None and world.members[leader].up:
            world.stop()


class PlayOn:
    """Puts a stop off until all faults have happened and the group is calm again."""

    def __init__(self, world: World, faults: tuple[Happening, ...], calm: float) -> None:
        self._last = max(fault.at for fault in faults)
        self._calm = Calm(calm, self._last)
        self._watching = False
        world.may_stop = self._may_stop

    def _may_stop(self, world: World) -> bool:
        if self._watching or world.now > self._last:
            return True  # nothing is put off, or it was and all is calm now
        self._watching = True
        world.watch(self._calm)
        self._calm.changed(world, next(iter(world.members.values())))
        return False


class Confirmable:
    """Gives a run up when no member can be confirmed and no event to come can change that.

    It checks when a member comes or goes, and after each fault. If no member can be confirmed, it
    waits for `grace` before it stops: a lease that a member still holds ends, and members declare
    the result. It does not touch other runs.
    """

    def __init__(
        self, world: World, faults: tuple[Happening, ...], origin: float, grace: float
    ) -> None:
        mends = [one.at + origin for one in faults if not isinstance(one, HARMFUL)]
        self._mended = max(mends, default=0.0)
        self._grace = grace
        self._waiting = False
        world.watch(self)
        self._look(world)
        for one in faults:  # they are in the queue already, so each check comes after its fault
            world.at(one.at + origin, partial(self._look, world))

    def declared(self, world: World, member: SimContext, outcome: Outcome) -> None:
        """Ignore outcomes: they bring no guard back."""

    def changed(self, world: World, member: SimContext) -> None:
        self._look(world)

    def _look(self, world: World) -> None:
        if not self._waiting and self._is_lost(world):
            self._wait(world)

    def _is_lost(self, world: World) -> bool:
        return world.now >= self._mended and obstacle(world) is not None

    def _wait(self, world: World) -> None:
        instant = world.now + self._grace
        self._waiting = instant <= END_OF_TIME
        if self._waiting:
            world.at(instant, partial(self._look_again, world))

    def _look_again(self, world: World) -> None:
        self._waiting = False
        if not self._is_lost(world):
            return
        if any(held_by(member) == member.id for member in world.live()):
            self._wait(world)  # its lease continues
        else:
            world.stop(Ended.UNCONFIRMABLE)


def settling_time(config: Config) -> float:
    """How long to wait after the last fault before an agreement counts as lasting.

    A member that gives up a silent leader after a time (`listen`) has done it by then.
    """
    listen: float = getattr(config, "listen", 0.0)
    return (listen if listen < inf else 0.0) + 20.0 * config.delta


def endless_wait(experiment: Experiment) -> str | None:
    """Why members of a run would never agree; None if they may agree.

    A member that repeats its announcements never rests, so such a run would continue to a limit.
    """
    scenario = experiment.scenario
    waits = experiment.announces and experiment.repeating and not experiment.endless
    deaf, drowned = experiment.network.multicasts.p >= 1.0, _drowned(experiment)
    if not waits or not (deaf or drowned):
        return None
    if experiment.pauses is not None:
        return None  # a member that is not paused agrees with itself
    if any(isinstance(one, Crash | Leave | Pause) for one in scenario.extra):
        return None  # the last member agrees with itself
    members = experiment.members - len(set(scenario.crashed))
    if scenario.joining:
        members += 1
    elif scenario.name != "start":
        members -= 1  # the leader, which goes
    if members < 2:
        return None
    why = "loss" if deaf else "collision"
    return (
        f"with a {why} of 1 nothing is ever heard, so {members} members never agree and no run "
        f"ends: give a smaller --{why}, or a limit (--until, --max-events)"
    )


def _drowned(experiment: Experiment) -> bool:
    """Whether at a start all speak at once in every period, and any two messages are both lost.

    A member that wakes up before it can hear the first announcement announces itself, too. All
    periods are the same, so messages that overlapped once overlap for ever.
    """
    network = experiment.network
    if network.multicasts.collision < 1.0 or experiment.scenario.name != "start":
        return False
    sleep: float = getattr(experiment.config, "T_S", 0.0)
    return (
        isinstance(network.delay, Fixed) and network.delay.bound > 0 and sleep < network.delay.bound
    )
