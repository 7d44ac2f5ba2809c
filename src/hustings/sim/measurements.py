"""Measurements: what is observed in a run with its own scenario, and the numbers that result.

Deadlocks are counted, too. In a deadlock every member follows another live member, and no member
leads: all wait for announcements that never come.

A measurement counts from `origin` on, the instant of the event that it is about. `earlier` counts
the messages that were sent before.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING

from hustings.core.choice import MemberId
from hustings.core.errors import BadInput
from hustings.core.messages import Message, Role
from hustings.core.outcome import Elected, Outcome
from hustings.core.streams import Stream, derive
from hustings.sim.announcing import Hearing, HearingAll, Speech, Steady, one_delay
from hustings.sim.consistency import Accord, Lapses, Leaders, Metrics, held_by
from hustings.sim.faults import Call, Crash, Join, Leave, Suspect
from hustings.sim.member import SimContext
from hustings.sim.queue import TICKS
from hustings.sim.stopping import Calm
from hustings.sim.world import World

if TYPE_CHECKING:
    from hustings.sim.scenarios import Turnover


class Deadlocks:
    """Counts members that do not follow another live member.

    With none of them there is a deadlock.
    """

    def __init__(self) -> None:
        self._free: dict[MemberId, None] = {}
        self._empty = False  # no member is there
        self._began = 0.0
        self._since: float | None = None  # when the present deadlock began
        self._number = 0
        self._lasted = 0.0  # deadlocks that are over

    def begin(self, world: World) -> None:
        """Watch from now on."""
        self._began = world.now
        self._recount(world)
        world.watch(self)

    def declared(self, world: World, member: SimContext, outcome: Outcome) -> None:
        """A member follows another one, or does not."""
        leader = outcome.leader if outcome.__class__ is Elected else None
        if leader is not None and leader != member.id and world.members[leader].up:
            self._free.pop(member.id, None)
        else:
            self._free[member.id] = None
        self._look(world)

    def changed(self, world: World, member: SimContext) -> None:
        """A member that comes or goes changes which members others follow."""
        self._recount(world)

    def _recount(self, world: World) -> None:
        live = world.live()
        self._empty = not live
        self._free = {one.id: None for one in live if not _defers(world, one)}
        self._look(world)

    def _look(self, world: World) -> None:
        if self._free or self._empty:
            if self._since is not None:
                self._lasted += world.now - self._since
            self._since = None
        elif self._since is None:
            self._since = world.now
            self._number += 1

    def metrics(self, world: World) -> Metrics:
        """At the end of a run; `deadlock`: whether it ends in one."""
        since = self._since
        lasted = self._lasted + (0.0 if since is None else world.now - since)
        watched = world.now - self._began
        return {
            "deadlock": float(since is not None),
            "deadlocks": float(self._number),
            "deadlocked_fraction": lasted / watched if watched else None,
        }


def _defers(world: World, member: SimContext) -> bool:
    leader = held_by(member)
    return leader is not None and leader != member.id and world.members[leader].up


class RunMeasurement(ABC):
    """What a run is for."""

    def __init__(self) -> None:
        self.origin = 0.0
        self.earlier: Mapping[type[Message], int] = {}
        self.leaders = Leaders()

    def open(self, world: World) -> None:
        """From now on things count."""
        self.origin = world.now
        self.earlier = dict(world.sent)
        self.leaders.begin(world)

    def time(self, world: World) -> float:
        """The time from `origin` to the last declaration."""
        return max(0.0, world.last_declared - self.origin)

    @abstractmethod
    def metrics(self, world: World) -> Metrics:
        """The metrics at the end of a run; what did not happen has no value."""


class Beginning(RunMeasurement):
    """All members start at once: until all have heard the leader, or all have spoken."""

    def __init__(self, world: World, *, repeating: bool) -> None:
        super().__init__()
        self._observer = _observer(world) if repeating else Speech()
        world.listen_in(self._observer)
        world.watch(self._observer)
        self.open(world)

    def metrics(self, world: World) -> Metrics:
        return {**self._observer.metrics(world), **self.leaders.metrics(world)}


def _observer(world: World) -> Hearing | HearingAll:
    seats = max((member.election.seats for member in world.live()), default=1)
    delay = one_delay(world.network)
    if seats == 1:
        ordered = any(getattr(one.election.config, "orders", False) for one in world.live())
        return Hearing(world, ordered=ordered)
    if delay is None:
        raise BadInput("the start of a group with several leaders is measured with a fixed --delay")
    return HearingAll(seats, delay)


class Tally:
    """Counts messages as they are sent."""

    def __init__(self) -> None:
        self._number = 0
        self._at = -1.0
        self._before = 0

    def sent(self, world: World, member: SimContext, to: MemberId | None, message: Message) -> None:
        """One more."""
        if message.role is Role.DETECTOR:
            return
        if world.now != self._at:
            self._at, self._before = world.now, self._number
        self._number += 1

    def before(self, now: float) -> int:
        """How many were sent strictly before the present instant."""
        return self._before if self._at == now else self._number


class Disturbance(RunMeasurement):
    """Something happens to an established group: until all hold one living leader again.

    It happens at a uniform phase between two announcements of the leader. If the leader goes, its
    last messages may still win followers. So nothing counts before they have arrived. A group that
    held a successor all the time has lost no time.
    """

    def __init__(self, world: World, leader: MemberId) -> None:
        super().__init__()
        self._tally = Tally()
        self._counts = False  # whether an accord is what the run waits for
        self._messages = 0
        self._delay: float | None = None
        self.accord = Accord()
        self.steady = Steady(world, leader, self._plan)

    @abstractmethod
    def happen(self, world: World) -> float:
        """Let it happen. Return until when nothing counts."""

    def is_final(self) -> bool:
        """Whether the present accord is what the run waits for."""
        return True

    def _plan(self, world: World) -> None:
        phase = 1.0 - Stream(derive(world.seed, "phase")).random()  # in (0, 1]
        instant = max(world.now, self.steady.after_next(phase))
        world.at(instant, lambda: self._disturb(world))

    def _disturb(self, world: World) -> None:
        self.open(world)
        world.listen_in(self._tally)
        self.accord.begin(world)
        self.accord.upon = self._agreed
        until = self.happen(world)
        if until > world.now:
            world.at(until + 1.0 / TICKS, lambda: self._look(world))
        else:
            self._look(world)

    def _agreed(self, world: World) -> None:
        self._messages = self._tally.before(world.now)
        if self._counts:
            self._look(world)

    def _look(self, world: World) -> None:
        self._counts = True
        if self.accord.leader is not None and self._delay is None and self.is_final():
            self._delay = self.accord.since - self.origin
            world.stop()

    def metrics(self, world: World) -> Metrics:
        return {
            "reestablishment_delay": self._delay,
            "num_msgs": None if self._delay is None else float(self._messages),
            **self.leaders.metrics(world),
        }


class Departure(Disturbance):
    """The leader crashes, or leaves in good order; `told` suspect it at once."""

    def __init__(
        self, world: World, leader: MemberId, told: tuple[MemberId, ...], goodbye: float | None
    ) -> None:
        """`goodbye`: how long it lingers when it leaves; None: it crashes."""
        super().__init__(world, leader)
        self._told = told
        self._goodbye = goodbye

    def happen(self, world: World) -> float:
        leader = world.members[self.steady.leader]
        last = self.steady.last_of(leader.id)
        if self._goodbye is None:
            Crash(member=leader.id).happen(world)
        else:
            self.accord.excuse(world, leader)
            Leave(member=leader.id, linger=self._goodbye).happen(world)
            last = world.now
        for member in self._told:
            Suspect(member=member, about=leader.id).happen(world)
        return last + world.network.delay.bound


class Joining(Disturbance):
    """One more member joins; `told` call an election at once.

    Behind a guard it may hear of the confirmed leader at once. If it then `takes_over`, the run
    continues until all members hold it.
    """

    def __init__(
        self,
        world: World,
        leader: MemberId,
        joiner: MemberId,
        told: tuple[MemberId, ...],
        *,
        takes_over: bool,
    ) -> None:
        super().__init__(world, leader)
        self._joiner = joiner
        self._told = told
        self._takes_over = takes_over

    def is_final(self) -> bool:
        return not self._takes_over or self.accord.leader == self._joiner

    def happen(self, world: World) -> float:
        Join(member=self._joiner).happen(world)
        for member in self._told:
            Call(member=member).happen(world)
        return world.now


class LongRun(RunMeasurement):
    """A group watched until the time limit."""

    def __init__(self) -> None:
        super().__init__()
        self._accord = Accord()

    def begin(self, world: World) -> None:
        """From now on it is watched."""
        self.open(world)
        self._accord.begin(world)

    def time(self, world: World) -> float:
        return world.now - self.origin

    def metrics(self, world: World) -> Metrics:
        return {**self._accord.metrics(world), **self.leaders.metrics(world)}


class Settling(LongRun):
    """All members start at once, and nothing promises that one leads: count what happens.

    It ends when nothing is left to happen, or when all have held one leader for `calm` after the
    last fault; otherwise at the time limit.
    """

    def __init__(self, world: World, calm: float, last_fault: float) -> None:
        super().__init__()
        self._deadlocks = Deadlocks()
        self.begin(world)
        self._deadlocks.begin(world)
        world.watch(Calm(calm, last_fault))

    def metrics(self, world: World) -> Metrics:
        return {**self._deadlocks.metrics(world), **super().metrics(world)}


class Vigil(LongRun):
    """No fault happens to an established group: count the members that lose the live leader.

    Only `told` suspect it wrongly, once.
    """

    def __init__(self, world: World, leader: MemberId, told: tuple[MemberId, ...]) -> None:
        super().__init__()
        self._told = told
        self._lapses = Lapses()
        self._steady = Steady(world, leader, self.begin)

    def begin(self, world: World) -> None:
        super().begin(world)
        leader = self._steady.leader
        self._lapses.begin(world, leader)
        for member in self._told:
            Suspect(member=member, about=leader).happen(world)

    def metrics(self, world: World) -> Metrics:
        return {**self._lapses.metrics(world), **super().metrics(world)}


class Churn(LongRun):
    """Members come and go."""

    def __init__(self, world: World, turnover: Turnover, announcer: MemberId | None) -> None:
        """With an `announcer`, once its group is steady; otherwise at once."""
        super().__init__()
        self._turnover = turnover
        if announcer is None:
            self.begin(world)
        else:
            Steady(world, announcer, self.begin)

    def begin(self, world: World) -> None:
        super().begin(world)
        self._turnover.begin(world)

    def metrics(self, world: World) -> Metrics:
        return {**self._turnover.metrics(), **super().metrics(world)}
